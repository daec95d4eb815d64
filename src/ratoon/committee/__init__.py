"""The default for few samples and many features: networks fitted in closed form, and merged."""

from __future__ import annotations

from ratoon.committee.fit import Committee as Committee
from ratoon.committee.fit import fit_committee as fit_committee
from ratoon.committee.linear import lasso_strength as lasso_strength
from ratoon.committee.priors import f_statistic as f_statistic
from ratoon.committee.problem import Problem as Problem
from ratoon.committee.problem import suits as suits
