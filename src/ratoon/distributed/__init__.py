"""One model over several processes: data parallel, with the same topology on all of them.

Every rank has the same network and reads the same samples (a memory map is shared, not copied).
A rank computes the gradients of its part of each minibatch; their weighted sum is the gradient of
the whole minibatch, and every rank takes the same step.  Rewirings are functions of the seed;
after each, all ranks take over the topology of rank 0 and compare what they have.

The transport is MPI through mpi4py, or threads of one process for tests.
"""

from __future__ import annotations

from ratoon.distributed.communicator import Communicator as Communicator
from ratoon.distributed.communicator import RankFailedError as RankFailedError
from ratoon.distributed.communicator import SingleRank as SingleRank
from ratoon.distributed.communicator import ThreadRanks as ThreadRanks
from ratoon.distributed.cost import StepCost as StepCost
from ratoon.distributed.data_parallel import DataParallel as DataParallel
from ratoon.distributed.data_parallel import Follow as Follow
from ratoon.distributed.data_parallel import train_together as train_together
from ratoon.distributed.mpi import MPICommunicator as MPICommunicator
