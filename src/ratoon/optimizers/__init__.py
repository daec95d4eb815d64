"""Optimizers and learning-rate schedules."""

from __future__ import annotations

from ratoon.optimizers.rules import OPTIMIZERS as OPTIMIZERS
from ratoon.optimizers.rules import SGD as SGD
from ratoon.optimizers.rules import Adam as Adam
from ratoon.optimizers.rules import Optimizer as Optimizer
from ratoon.optimizers.rules import RMSprop as RMSprop
from ratoon.optimizers.rules import make_optimizer as make_optimizer
from ratoon.optimizers.schedules import SCHEDULES as SCHEDULES
from ratoon.optimizers.schedules import Schedule as Schedule
from ratoon.optimizers.schedules import constant as constant
from ratoon.optimizers.schedules import cosine as cosine
from ratoon.optimizers.schedules import make_schedule as make_schedule
from ratoon.optimizers.schedules import stepped as stepped
from ratoon.optimizers.schedules import with_floor as with_floor
from ratoon.optimizers.schedules import with_warm_up as with_warm_up
