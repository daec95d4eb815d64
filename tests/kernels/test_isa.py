"""The choice of the instruction set, and agreement between instruction sets."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon import kernels
from ratoon.kernels import as_samples, available_isas
from tests.kernels.jobs import Job
from tests.processes import run_python


def test_an_instruction_set_is_used_within_its_block_only():
    before = kernels.current_isa()
    for name in available_isas():
        with kernels.use_isa(name):
            assert kernels.current_isa() == name
        assert kernels.current_isa() == before
    with pytest.raises(ValueError, match="available"), kernels.use_isa("mmx"):
        pass
    assert kernels.current_isa() == before
    assert available_isas()[-1] == "baseline"


@pytest.mark.parametrize("requested", ["baseline", "mmx"])
def test_the_environment_names_the_instruction_set(requested):
    script = "from ratoon.kernels import current_isa; print(current_isa())"
    done = run_python(script, RATOON_ISA=requested)
    if requested == "mmx":
        assert "'mmx' is not available here; available: " in done.stderr
        assert done.returncode == 1
    else:
        assert done.stdout == "baseline\n"


def test_instruction_sets_agree_but_for_rounding():
    outputs = []
    for name in available_isas():
        with kernels.use_isa(name):
            job = Job(n_threads=1)
            job.train()
            outputs.append(job.network.predict(as_samples(job.x, np.float32)))
    for output in outputs[1:]:
        # Six steps in float32, each rounding to 6e-8 of values near 1 a few hundred times.
        assert np.abs(output - outputs[0]).max() < 1e-3
    assert_array_equal([len(output) for output in outputs], 24)
