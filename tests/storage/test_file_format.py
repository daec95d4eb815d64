"""The specification in `docs/file-format.md` agrees with the code."""

import re
from pathlib import Path

import numpy as np
import pytest

from ratoon.initialise import INITS
from ratoon.kernels import ACTIVATIONS
from ratoon.storage import rules, write_document
from ratoon.storage.container import DTYPES
from tests.storage.cases import a_document

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "file-format.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the documents are not installed")


@pytest.mark.parametrize("widths", [(6, 5, 3), (1500, 700, 2)])
def test_the_example_reads_a_network_without_ratoon(tmp_path, widths):
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    document = a_document(widths=widths, density=0.1)
    write_document(document, tmp_path / "m.ratoon")
    names = {}
    exec(code, names)
    found = list(names["read_layers"](tmp_path / "m.ratoon"))
    assert len(found) == len(document.networks[0].layers)
    for (weights, bias), layer in zip(found, document.networks[0].layers, strict=True):
        assert (weights != layer.to_csr()).nnz == 0
        np.testing.assert_array_equal(bias, layer.bias)


def test_every_rule_and_name_is_in_the_specification():
    text = PAGE.read_text()
    for number in rules.RULES:
        assert re.search(rf"^{number}\. ", text, flags=re.MULTILINE), number
    for name in [*ACTIVATIONS, *INITS, *DTYPES]:
        assert re.search(rf"\b{name}\b", text), name


def test_the_limits_are_those_of_the_code():
    text = (ROOT / "SECURITY.md").read_text()
    assert rules.MAX_FILE_BYTES == 64 * 2**30
    assert rules.MAX_HEADER_BYTES == 2**20
    for part in (
        f"| tensors | {rules.MAX_TENSORS} |",
        f"| {rules.MAX_NETWORKS}, {rules.MAX_LAYERS}, {rules.MAX_ARRAYS} |",
        f"| {rules.MAX_DEPTH} and {rules.MAX_CONFIG_DEPTH} |",
    ):
        assert part in text
    assert rules.TEXT_SLACK == 64 * 2**20
    assert rules.TEXT_FACTOR == 3
