from tests.estimators.conftest import rng as rng
from tests.estimators.conftest import two_classes as two_classes
