"""What independent normal draws, and decisions by a few rows of the data, would cost."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from surrokit.cost.recording import RecordingPotential
from surrokit.mode.search import laplace_acceptance
from surrokit.registry.catalogue import Composer, Spec
from surrokit.types import FloatArray

ROWS_DECIDE = "rows"
"""Purpose of a correction that decides on a few rows of the data. Its decider, once prepared, has
the ``mode`` of the target, ``expected_rows`` of a decision, and ``predicted_acceptance(rng)`` of
independent draws of the Laplace approximation; None where even the prediction is expensive."""

NEARLY_NORMAL = 0.75
"""Predicted acceptance of draws of the Laplace approximation from which on they are proposed."""

_CLEARLY = 0.25  # of an evaluation of all rows, for an about independent draw


@attrs.frozen(kw_only=True)
class RowsForecast:
    """What decisions on a few rows would cost.

    Parameters
    ----------
    rows
        Expected for a move between independent draws of the Laplace approximation.
    acceptance
        Predicted for such a move; None where even the prediction would be expensive.
    whole
        Predicted for such a move when all rows decide; None where it was not looked at.
    mode : ndarray of shape (dim,), optional
        Where the target is least, as a search has found.
    """

    rows: float
    n_rows: int
    acceptance: float | None
    whole: float | None = None
    mode: FloatArray | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def is_nearly_normal(self) -> bool:
        """Whether independent normal draws are a good proposal where all rows decide."""
        return self.whole is not None and self.whole >= NEARLY_NORMAL

    @property
    def is_good(self) -> bool:
        """Whether it clearly beats an evaluation of all rows."""
        if not self.acceptance:
            return False
        worth = self.acceptance / (2.0 - self.acceptance)
        return self.rows / self.n_rows < _CLEARLY * worth

    def __str__(self) -> str:
        parts = [f"decisions are expected to touch {self.rows:.3g} of {self.n_rows} rows"]
        if self.rows >= self.n_rows:
            parts = [f"decisions would touch all {self.n_rows} rows"]
        elif self.acceptance is not None:
            parts[0] += f", with an acceptance of {self.acceptance:.2f}"
        if self.whole is not None:
            parts.append(f"with all rows normal draws would be accepted with {self.whole:.2f}")
        return "; ".join(parts)


def forecast_rows(
    composer: Composer,
    given: Spec | object,
    target: RecordingPotential,
    near: FloatArray,
    rng: np.random.Generator,
) -> RowsForecast | None:
    """Return what subsampling would cost; None where the target lacks what that takes.

    It takes a search of the mode from ``near (dim,)``, its curvature, and a few passes over the
    rows. ``given`` is the correction that decides on a few rows.
    """
    correction: Any = composer.make("correction", given)
    if not correction.needs <= target.capabilities:
        return None
    prepared = correction.bind(target).prepare(near)
    rows = float(prepared.expected_rows)
    few = rows < _CLEARLY * target.n_rows
    forecast = RowsForecast(
        rows=rows,
        n_rows=target.n_rows,
        acceptance=prepared.predicted_acceptance(rng) if few else None,
        mode=prepared.mode.position,
    )
    if forecast.is_good:
        return forecast
    return attrs.evolve(forecast, whole=laplace_acceptance(target, prepared.mode, rng))
