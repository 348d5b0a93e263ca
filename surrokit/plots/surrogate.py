"""The surrogate against the exact potential: at draws, and along lines."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.limits import one_thread
from surrokit.types import FloatArray

LARGE = 0.5  #: Error in nats from which on a dot is marked.


@attrs.frozen(kw_only=True, eq=False)
class Comparison:
    """The surrogate V of a run, and the exact potential U at its draws, without an exact call."""

    run: Any
    positions: FloatArray  # where U is known, in sampling coordinates, shape (n, dim)
    values: FloatArray  # U there, above the least
    errors: FloatArray  # U - V there, less its median: potentials are known up to a constant

    @classmethod
    def of(cls, run: Any) -> Comparison:
        """Return that of a :class:`~surrokit.result.run.Run`."""
        most = 400
        if run.surrogate is None:
            raise ConfigurationError(
                "this run has no surrogate to look at: it was exact throughout, or was opened from "
                "a file, which holds none; sample with a surrogate, or use surrokit.resume"
            )
        at, values = run.kept.positions.reshape(-1, run.kept.positions.shape[2]), run.kept.values
        known = np.flatnonzero(np.isfinite(values))
        if len(known) < 2:
            raise ConfigurationError("there are no draws to look at a surrogate by; draw some")
        known = known[:: -(-len(known) // most)]
        at, values = at[known], values.ravel()[known]
        apart = values - _value(run, at)
        apart -= np.nanmedian(apart) if np.isfinite(apart).any() else 0.0
        return cls(run=run, positions=at, values=values - values.min(), errors=apart)

    @property
    def spread(self) -> float:
        """Standard deviation of the errors; NaN where none is known."""
        return float(np.nanstd(self.errors)) if np.isfinite(self.errors).any() else np.nan

    def surrogate_at(self, positions: FloatArray) -> FloatArray:
        """Return values of the surrogate, NaN where they are not finite."""
        return _value(self.run, positions)

    def line(self, column: int) -> FloatArray:
        """Return positions (81, dim) through the mean, 3 sds of a number to each side.

        The other numbers go along as they do in the draws, by their regression on this one.
        """
        draws = self.run.kept.positions.reshape(-1, self.positions.shape[1])
        along = np.atleast_2d(np.cov(draws, rowvar=False))[column]
        sd = np.sqrt(along[column]) or 1.0
        return np.asarray(draws.mean(axis=0) + np.linspace(-3.0, 3.0, 81)[:, None] * (along / sd))

    def place(self, positions: FloatArray, column: int) -> FloatArray:
        """Return where positions are on the axis of a number, in the user's coordinates if any."""
        user = self.run.kept.transform.to_bounded(positions)
        return np.asarray((user if user.shape == positions.shape else positions)[:, column])

    def label(self, column: int) -> str:
        """Return the name of a number of the sampling coordinates."""
        same = len(self.run.labels) == self.positions.shape[1]
        labels = self.run.labels if same else self.run.parameters.labels_on_line
        return str(labels[column])


def _value(run: Any, positions: FloatArray) -> FloatArray:
    with one_thread():
        values = np.asarray(run.surrogate.value(positions), dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)
