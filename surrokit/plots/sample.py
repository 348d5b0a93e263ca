"""Draws of equal weight, as pictures show them."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray
from surrokit.weighted.round import Distribution

RESAMPLED = 2000
"""Draws that stand for weighted ones."""

MOST_CHAINS = 8
"""Chains that a picture shows one by one."""

OF_WEIGHTS = "weighted answers, resampled by their weights"
OF_ROUND = "chains on the surrogate in the last round, before weights"


@attrs.frozen(kw_only=True, eq=False)
class Sample:
    """Draws of equal weight.

    Parameters
    ----------
    rows : ndarray of shape (n, dim)
        Draws of the target.
    chains : ndarray of shape (chains, m, dim)
        Chains as they went; of weighted answers, those on the surrogate.
    distribution
        Of weighted answers, by all that they know; None of plain draws.
    """

    rows: FloatArray
    chains: FloatArray
    distribution: Distribution | None = None

    @classmethod
    def of(cls, run: Any) -> Sample:
        """Return that of a :class:`~surrokit.result.run.Run`.

        Raises
        ------
        ConfigurationError
            If it has no draws.
        """
        draws = run.draws
        if not draws.shape[1]:
            raise ConfigurationError("there are no draws to show; draw some first")
        if run.answer is None:
            return cls(rows=draws.reshape(-1, draws.shape[2]), chains=draws[:MOST_CHAINS])
        return cls(
            rows=run.resampled(RESAMPLED, rng=0),
            chains=run.answer.rounds[-1].draws[: min(MOST_CHAINS, len(draws))],
            distribution=run.answer.distribution,
        )

    @property
    def weighted(self) -> bool:
        """Whether draws were resampled by their weights."""
        return self.distribution is not None

    @property
    def note(self) -> str | None:
        """What a reader must know of the draws."""
        return OF_WEIGHTS if self.weighted else None

    @property
    def note_on_chains(self) -> str | None:
        """What a reader must know of the chains."""
        return OF_ROUND if self.weighted else None

    def marginal(self, column: int) -> FloatArray:
        """Return equally likely values of one number, shape (n,)."""
        if self.distribution is None:
            return self.rows[:, column]
        below, points = self.distribution.below[column], self.distribution.points[column]
        places = (np.arange(RESAMPLED) + 0.5) / RESAMPLED
        return np.asarray(np.interp(places, below, points))

    def thin_rows(self, n: int) -> FloatArray:
        """Return at most n rows, evenly apart, shape (m, dim)."""
        return self.rows[:: -(-len(self.rows) // n)]


def density(values: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return ArviZ's density estimate, places and heights; None where values do not vary."""
    values = values[np.isfinite(values)]
    if len(values) < 4:
        return None
    centre, scale = float(np.median(values)), float(np.ptp(values))
    if not 0.0 < scale < np.inf:
        return None
    from arviz_stats.base import array_stats

    grid, heights, _ = array_stats.kde((values - centre) / scale, grid_len=128)
    return grid * scale + centre, np.asarray(heights / scale)
