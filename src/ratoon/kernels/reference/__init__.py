"""Reference implementations of all kernels in NumPy: slow and simple; used by tests.

Nothing here is used at run time.  The functions take the same arguments as those of
`ratoon.kernels`, change the same arrays in place, and compute in the number type of the given
arrays: float64 copies give the exact result to compare a float32 kernel with.

Random numbers are the same to the bit, so for the same seed the reference grows the same
connections and drops the same neurons as the kernel.
"""

from __future__ import annotations

from ratoon.kernels.reference.activations import DERIVED_FROM_INPUT as DERIVED_FROM_INPUT
from ratoon.kernels.reference.activations import activate as activate
from ratoon.kernels.reference.activations import derive as derive
from ratoon.kernels.reference.augment import augmented as augmented
from ratoon.kernels.reference.bfloat16 import round_at_random as round_at_random
from ratoon.kernels.reference.bfloat16 import rounding_seed as rounding_seed
from ratoon.kernels.reference.linear import backward as backward
from ratoon.kernels.reference.linear import drop as drop
from ratoon.kernels.reference.linear import forward as forward
from ratoon.kernels.reference.linear import normal as normal
from ratoon.kernels.reference.linear import update as update
from ratoon.kernels.reference.losses import sample_losses as sample_losses
from ratoon.kernels.reference.network import ReferenceNetwork as ReferenceNetwork
from ratoon.kernels.reference.random import draw_distinct as draw_distinct
from ratoon.kernels.reference.random import random_below as random_below
from ratoon.kernels.reference.random import random_bits as random_bits
from ratoon.kernels.reference.rewire import random_topology as random_topology
from ratoon.kernels.reference.rewire import regrow as regrow
from ratoon.kernels.reference.rewire import rewire_by_sign as rewire_by_sign
from ratoon.kernels.reference.rewire import strongest_of_each_sign as strongest_of_each_sign
from ratoon.kernels.reference.tiles import Tile as Tile
from ratoon.kernels.reference.tiles import tiles_of as tiles_of
