"""Observations without a mean function, for tests of processes and of their search."""

import numpy as np

from surrokit.surrogate.whitening import Whitening
from surrokit_gp.data.observations import Frame, Observations
from surrokit_gp.data.training_rows import TrainingRows


def of_values(positions, values):
    """Values at positions as they are, about a mean function of zero."""
    n, dim = positions.shape
    rows = TrainingRows(
        positions=positions,
        values=values,
        gradients=np.full((n, dim), np.nan),
        copies=np.ones(n),
        tail_sd=np.zeros(n),
    )
    frame = Frame(whitening=Whitening.identity(dim), whiten=False)
    return Observations.of_rows(rows, np.empty(0, dtype=int), frame, "zero")
