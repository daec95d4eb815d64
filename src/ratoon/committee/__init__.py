"""The default recipe: a sparse hidden layer beside a linear path, solved instead of descended.

With tens of samples and thousands of features the training loss of any network is zero after a
few epochs, and what decides is the prior: which features may carry weight, and how much of it.
So the prior is where the work goes.  Every *member* of a committee is a network whose inputs are
weighed by their strength in one particular way; its output weights are the exact ridge solution;
cross-validation inside the training rows says how much each member's word counts.

`docs/recipe.md` has the measurements behind every choice.
"""

from __future__ import annotations

from ratoon.committee.fit import Committee as Committee
from ratoon.committee.fit import fit_committee as fit_committee
from ratoon.committee.problem import Problem as Problem
from ratoon.committee.problem import suits as suits
