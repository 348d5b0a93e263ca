"""How large a network is, if its user does not say."""

from __future__ import annotations

import numpy as np

TRAINED_SIZE = 50
"""Nodes of a network whose hidden parameters are trained: each step costs a whole fit."""


def default_size(dim: int, n_equations: int) -> int:
    """Return how many nodes a network gets, if its user does not say.

    Measured at fixed points on logistic, quartic and banana targets: with the ridge chosen from
    the data, more nodes than points are always better, by a factor of two in the gradient's error
    from s = 2 n / 3 to s = 4 n / 3; what they cost is the leapfrog's time.

    Parameters
    ----------
    dim
        Numbers in a position.
    n_equations
        Values and components of gradients to be fitted.
    """
    return min(200 * dim, int(np.clip(2 * n_equations, 1000, 2000)))
