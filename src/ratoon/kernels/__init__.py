"""Python functions for the compiled code; no other package imports it directly.

Every function here has a twin in `ratoon.kernels.reference`, written in NumPy, slow and obvious,
which the tests compare it with.  Shapes are checked on the native side; a `Topology` was
checked when it was made.
"""

from __future__ import annotations

from ratoon.activations import ACTIVATIONS as ACTIVATIONS
from ratoon.kernels.isa import available_isas as available_isas
from ratoon.kernels.isa import current_isa as current_isa
from ratoon.kernels.isa import use_isa as use_isa
from ratoon.kernels.linear import activate as activate
from ratoon.kernels.linear import backward as backward
from ratoon.kernels.linear import derive as derive
from ratoon.kernels.linear import drop as drop
from ratoon.kernels.linear import forward as forward
from ratoon.kernels.linear import normal as normal
from ratoon.kernels.linear import rows_of as rows_of
from ratoon.kernels.linear import update as update
from ratoon.kernels.network import NativeNetwork as NativeNetwork
from ratoon.kernels.network import Pace as Pace
from ratoon.kernels.rewire import rewire_by_sign as rewire_by_sign
from ratoon.kernels.samples import NativeSamples as NativeSamples
from ratoon.kernels.samples import as_samples as as_samples
from ratoon.kernels.types import DERIVED_FROM_INPUT as DERIVED_FROM_INPUT
from ratoon.kernels.types import LANES as LANES
from ratoon.kernels.types import Rule as Rule
from ratoon.kernels.types import Scaling as Scaling
from ratoon.kernels.types import Step as Step
from ratoon.kernels.types import block_lanes as block_lanes
from ratoon.kernels.types import passes_by_runs as passes_by_runs
from ratoon.losses import LOSSES as LOSSES
