"""Observations without a mean function, for tests of processes and of their search."""

import numpy as np

from surrokit.surrogate.whitening import Whitening
from surrokit_gp.observations import Frame, Observations, TrainingRows
from surrokit_gp.trend import Polynomial


def of_values(positions, values, **more):
    """Values at positions as they are, about a mean function of zero."""
    n, dim = positions.shape
    rows = {
        "gradients": np.full((n, dim), np.nan),
        "copies": np.ones(n),
        "tail_sd": np.zeros(n),
        **more,
    }
    rows = TrainingRows(positions=positions, values=values, **rows)
    return of_rows(rows, "zero", Frame(whitening=Whitening.identity(dim), whiten=False))


def of_rows(rows, kind, frame):
    """Rows about a mean function, without a trend."""
    return Observations.of(rows, frame, kind, Polynomial.of("zero", np.empty(0), rows.dim))
