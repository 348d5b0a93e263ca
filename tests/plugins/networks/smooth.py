"""A smooth potential in three dimensions, and evaluations of it."""

from __future__ import annotations

import numpy as np

from surrokit.interfaces import Evaluations

DIM = 3


def potential(q):
    """|q|^2 / 2 with waves, and 7."""
    return 0.5 * np.square(q).sum(axis=1) + np.sin(q[:, 0]) + 0.3 * np.cos(2.0 * q[:, 1]) + 7.0


def gradient(q):
    """Its gradient."""
    slope = q.copy()
    slope[:, 0] += np.cos(q[:, 0])
    slope[:, 1] -= 0.6 * np.sin(2.0 * q[:, 1])
    return slope


def evaluations(n=150, seed=0, gradients=False, spread=1.0, centre=0.0):
    """Evaluations at normal positions."""
    q = centre + spread * np.random.default_rng(seed).standard_normal((n, DIM))
    slopes = gradient(q) if gradients else None
    return Evaluations(positions=q, values=potential(q), gradients=slopes)
