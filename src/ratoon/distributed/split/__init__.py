"""One network over several processes: every rank holds a part of the neurons of every layer.

The neurons of each layer are cut into parts.  The rank that owns a part holds the connections into
its neurons, their weights and their optimizer state, and the activations of its neurons.  No rank
holds the network: memory per rank falls with the number of ranks.

A step broadcasts the activations of one part at a time, so that no rank has all of a wide layer.
Rewiring needs no connections of other ranks.  The result depends on the number of parts, not on the
number of ranks, up to the order of sums.
"""

from __future__ import annotations

from ratoon.distributed.split.cost import SplitCost as SplitCost
from ratoon.distributed.split.cost import split_cost as split_cost
from ratoon.distributed.split.files import SplitFolder as SplitFolder
from ratoon.distributed.split.network import SplitNetwork as SplitNetwork
from ratoon.distributed.split.training import SplitTraining as SplitTraining
