"""The default for few samples and many features: a sparse network fitted in closed form.

With tens of samples and thousands of features any network has a training loss of zero after a few
epochs.  What decides is the prior: which features may have large weights.  A committee combines
ridge regressions with different priors.

1.  **Standardise.**  Features become z-scores of the training samples, clipped to [-3, 3]; those
    that are 0 in most samples and never negative, as counts of words, to twice their mean positive
    value.  Sparse features are scaled but not centred; ridge centres them implicitly.
2.  **Members.**  A member gives feature j the prior variance ``F_j^q * std_j^(2r)``, where F is the
    F statistic of the feature with respect to the target and std its standard deviation before
    step 1.  q = 0 ignores the target, q = 2 relies on few features; r = 1/2 favours features that
    vary more in their original units.  There are four linear members, one with q = r = 0 and three
    with r = 1/2 and q = 0, 1, 2, and three with a sparse hidden layer of 1,000 rectified neurons
    (20 per sample if that is more, at most 4,000), also with r = 1/2 and q = 0, 1, 2.  A neuron has
    10 random inputs, drawn in proportion to the root of the prior.  Hidden weights are fixed;
    output weights are the ridge solution, for each of several penalties.
3.  **Shares.**  Ten-fold cross-validation, with F recomputed in every fold, gives outputs for
    samples that a member has not seen.  The shares of members and penalties minimise the squared
    error of the *mixture* of these outputs, plus a pull to given shares, where a member with a
    hidden layer counts a quarter of a linear one.  Members with a total share below 1 % are left
    out.
4.  **Merge.**  The others are fitted to all samples and summed, times their shares.  The sum is one
    network: hidden layers side by side, and for the sum u of the linear members two neurons per
    output, because ``u = max(u, 0) - max(-u, 0)``.
5.  **Calibrate.**  For classes the cross-validated outputs determine a shift that puts the boundary
    between classes of unequal size about where Fisher's discriminant does, and a temperature that
    minimises the log-loss.

Some additions.  Above 500 samples one quarter is held out for validation once, and neurons have
random biases.  Above 400 samples of up to 5,000 features another hidden member draws inputs by pair
strength: how well products of features predict the target.  For regression there are four more
linear members with few features: the lasso, and one to three iterations of ridge regression with
the squared weights as the next prior variance; all members that select features start with 1/100 of
the prior share.  With more than 10 continuous targets no member selects features: each target would
have its own.

F is computed from training samples only.  Selecting features on all samples before a split leaks.
"""

from __future__ import annotations

from ratoon.committee.cost import CommitteeCost as CommitteeCost
from ratoon.committee.cost import committee_cost as committee_cost
from ratoon.committee.fit import Committee as Committee
from ratoon.committee.fit import fit_committee as fit_committee
from ratoon.committee.linear import lasso_strength as lasso_strength
from ratoon.committee.priors import f_statistic as f_statistic
from ratoon.committee.problem import Problem as Problem
from ratoon.committee.problem import suits as suits
