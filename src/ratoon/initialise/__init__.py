"""Initial networks: the number of connections, the topology, and the weights."""

from __future__ import annotations

from ratoon.initialise.counts import SPREADS as SPREADS
from ratoon.initialise.counts import LayerStart as LayerStart
from ratoon.initialise.counts import compare_start as compare_start
from ratoon.initialise.counts import connections_wanted as connections_wanted
from ratoon.initialise.counts import density_of as density_of
from ratoon.initialise.counts import spread_over_layers as spread_over_layers
from ratoon.initialise.counts import start_table as start_table
from ratoon.initialise.patterns import brf as brf
from ratoon.initialise.patterns import fan_in as fan_in
from ratoon.initialise.patterns import from_matrix as from_matrix
from ratoon.initialise.patterns import guided as guided
from ratoon.initialise.patterns import scale_free as scale_free
from ratoon.initialise.patterns import small_world as small_world
from ratoon.initialise.topologies import STARTS as STARTS
from ratoon.initialise.topologies import check_within as check_within
from ratoon.initialise.topologies import seed_topologies as seed_topologies
from ratoon.initialise.topologies import start_topology as start_topology
from ratoon.initialise.topologies import start_within as start_within
from ratoon.initialise.weights import INITS as INITS
from ratoon.initialise.weights import first_weights as first_weights
from ratoon.initialise.weights import weight_scale as weight_scale
