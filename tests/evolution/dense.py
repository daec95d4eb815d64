"""Every method once more, on dense matrices with masks: the plain way, for small layers.

Nothing here is shared with the library but the rule that of equal candidates the lower position
(or slot) comes first.  Random draws are taken from what the library drew, so that topologies can
be compared position by position.
"""

import numpy as np


def weakest(matrix, mask, count, order):
    """Return a mask without the ``count`` smallest; ``order`` lists the positions by slot."""
    magnitudes = np.abs(matrix.ravel()[order])
    goes = order[np.argsort(magnitudes, kind="stable")[:count]]
    left = mask.copy()
    left.ravel()[goes] = False
    return left


def grow_largest(scores, mask, count):
    """Return a mask with the ``count`` largest |scores| added outside of it, zeros left out."""
    candidates = np.where(mask, 0.0, np.abs(scores)).ravel()
    order = np.argsort(-candidates, kind="stable")[:count]
    grown = mask.copy()
    grown.ravel()[order[candidates[order] > 0]] = True
    return grown


def gradient(layer):
    """Return the whole gradient, which the library never writes down."""
    x, d = layer.signals()
    return x @ d.T
