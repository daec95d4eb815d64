"""What a model relies on: contributions of features, their ranking, and sets of features.

`contributions` divides an output among the features of a sample, `ranking` orders the features of
a model, `stability` measures how well resamples agree, and `enrichment` asks which gene sets are
high in a ranking.
"""

from __future__ import annotations

from ratoon.explain.associations import Associations as Associations
from ratoon.explain.associations import adjusted as adjusted
from ratoon.explain.associations import associations as associations
from ratoon.explain.contributions import METHODS as METHODS
from ratoon.explain.contributions import contributions as contributions
from ratoon.explain.enrichment import Enrichment as Enrichment
from ratoon.explain.enrichment import enrichment as enrichment
from ratoon.explain.enrichment import renamed as renamed
from ratoon.explain.explanation import Explanation as Explanation
from ratoon.explain.ranking import Ranking as Ranking
from ratoon.explain.ranking import feature_strength as feature_strength
from ratoon.explain.ranking import importances as importances
from ratoon.explain.ranking import relative_strength as relative_strength
from ratoon.explain.stability import StableSelection as StableSelection
from ratoon.explain.stability import complementary_halves as complementary_halves
from ratoon.explain.stability import stable_selection as stable_selection
