"""What a model relies on: contributions of features, their ranking, and sets of features.

`contributions` divides an output among the features of a sample, `ranking` orders the features of
a model, `stability` measures how well resamples agree, and `enrichment` asks which gene sets are
high in a ranking.
"""

from __future__ import annotations

from ratoon.explain.contributions import METHODS as METHODS
from ratoon.explain.contributions import contributions as contributions
from ratoon.explain.explanation import Explanation as Explanation
