"""The size of a network whose user does not say it."""

from __future__ import annotations

import numpy as np

TRAINED_SIZE = 50
"""Nodes of a network whose hidden parameters are trained: each step costs a whole fit."""

FINE_SIZES = (400, 3000)
"""Nodes that learn outputs at least and at most, where accuracy is worth more than speed."""


def default_size(dim: int, n_values: int, n_gradients: int) -> int:
    """Return how many nodes a network gets, if its user does not say.

    Measured at fixed points on logistic, quartic and banana targets. On values alone, with the
    ridge chosen from the data, more nodes than points are always better, by a factor of two in the
    gradient's error from s = 2 n / 3 to s = 4 n / 3. With gradients the trend takes most of the
    work, and from 400 nodes on the error hardly falls; what nodes cost is the leapfrog's time.

    Parameters
    ----------
    dim
        Numbers in a position.
    n_values, n_gradients
        Values and gradients to be fitted.
    """
    if n_gradients:
        return int(np.clip(100 * dim, 400, 1000))
    return min(200 * dim, int(np.clip(2 * n_values, 1000, 2000)))


def fine_size(n_equations: int) -> int:
    """Return how many nodes learn outputs where accuracy is worth more than speed.

    Measured on the elliptic equation with 20 parameters: from 295 points with Jacobians the sd of
    V - U is 0.096 nats by a trend alone, and 0.072, 0.046 and 0.032 with 1,000, 2,000 and 3,000
    nodes. A gradient for 32 positions then takes 0.1, 0.4, 0.7 and 1.1 milliseconds.

    Parameters
    ----------
    n_equations
        For each output: points, and their derivatives.
    """
    return int(np.clip(n_equations // 2, *FINE_SIZES))
