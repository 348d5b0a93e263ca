"""From evaluations to a fitted regressor."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from surrokit.contracts.learner import Evaluations
from surrokit.errors import SurrogateFitError
from surrokit.surrogate.distinct import least_points
from surrokit.surrogate.quality import FitQuality, fit_quality
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, FloatArray
from surrokit_sklearn.fit.differences import CentralDifferences, suitable_step
from surrokit_sklearn.fit.fit_settings import FitSettings
from surrokit_sklearn.fit.fitted import FittedRegressor
from surrokit_sklearn.fit.prediction import predicted
from surrokit_sklearn.fit.sample_weights import weight_arguments
from surrokit_sklearn.fit.training_rows import TrainingRows
from surrokit_sklearn.gradients import analytic_gradient
from surrokit_sklearn.gradients.registry import Gradient

_LEAST_HELD_OUT = 5
"""Points below which a held-out variance says nothing."""


def fit_regressor(settings: FitSettings, observed: Evaluations, seed: int) -> FittedRegressor:
    """Fit a regressor to evaluations, and judge it by a second fit that lacks some of them.

    Parameters
    ----------
    settings
        The surrogate.
    observed
        All that was observed.
    seed
        Of the regressor's random states, and of which rows are held out.

    Raises
    ------
    SurrogateFitError
        If there are too few points with a finite value, or they cannot be fitted.
    """
    rows = TrainingRows.of(observed, settings.tail, weighted=settings.takes_weights)
    whitening = (
        Whitening.of(rows.evaluations.positions, rows.trust)
        if settings.whiten
        else Whitening.identity(rows.dim)
    )
    fit = _Fit(settings=settings, whitening=whitening, seed=seed)
    chosen = _choose(rows, settings.max_points, np.random.default_rng(seed))
    fitted = fit.fit(rows.take(chosen))
    left = ~chosen & (rows.trust == 1.0)
    if np.count_nonzero(left) >= _LEAST_HELD_OUT:
        # Judged by rows that there was no room for, at no cost.
        quality = fit_quality(fitted, rows.evaluations.take(left), whitening.factor)
    else:
        quality = fit.quality(rows.take(chosen))
    return attrs.evolve(fitted, quality=quality)


def _choose(rows: TrainingRows, max_points: int | None, rng: np.random.Generator) -> BoolArray:
    """Return which rows to fit to: all, or as many as there may be, drawn at random."""
    if max_points is None or len(rows) <= max_points:
        return np.ones(len(rows), dtype=bool)
    chosen = np.zeros(len(rows), dtype=bool)
    chosen[rng.choice(len(rows), max_points, replace=False)] = True
    return chosen


@attrs.frozen(kw_only=True, eq=False)
class _Fit:
    """What both fits have in common."""

    settings: FitSettings
    whitening: Whitening
    seed: int

    def fit(self, rows: TrainingRows) -> FittedRegressor:
        z = self.whitening.apply(rows.evaluations.positions)
        weights = rows.weights if self.settings.takes_weights else np.ones(len(rows))
        level, curvature = _trend(z, rows.evaluations.values, rows.trust, self.settings.trend)
        left = rows.evaluations.values - level - 0.5 * curvature * np.square(z).sum(axis=1)
        scale = _root_mean_square(left, rows.trust)
        regressor = _seed(self.settings.regressor, self.seed)
        _call_fit(regressor, z, left / scale, weights)
        return FittedRegressor(
            dim=rows.dim,
            regressor=regressor,
            slope=self._slope(regressor, z),
            whitening=self.whitening,
            level=level,
            curvature=curvature,
            scale=scale,
            capabilities=self.settings.provides,
            n_points=len(rows),
        )

    def _slope(self, regressor: Any, z: FloatArray) -> Gradient:
        known = analytic_gradient(regressor) if self.settings.gradient == "auto" else None
        if known is not None:
            return known
        step = self.settings.step or suitable_step(regressor, z)
        return CentralDifferences(regressor=regressor, step=step)

    def quality(self, rows: TrainingRows) -> FitQuality | None:
        """Return the error of a second fit on typical rows that it has not seen."""
        typical = np.flatnonzero(rows.trust == 1.0)
        n_held = int(self.settings.hold_out * len(typical))
        if n_held < _LEAST_HELD_OUT or len(rows) - n_held < least_points(rows.dim):
            return None
        held = np.zeros(len(rows), dtype=bool)
        held[np.random.default_rng(self.seed).choice(typical, n_held, replace=False)] = True
        part = self.fit(rows.take(~held))
        return fit_quality(part, rows.evaluations.take(held), self.whitening.factor)


def _trend(z: FloatArray, values: FloatArray, trust: FloatArray, kind: str) -> tuple[float, float]:
    """Return a and b of the trend a + b |z|^2 / 2 that fits best, with b >= 0."""
    level = float(np.average(values, weights=trust))
    if kind == "none":
        return level, 0.0
    halves = 0.5 * np.square(z).sum(axis=1)
    middle = float(np.average(halves, weights=trust))
    spread = float(np.average((halves - middle) ** 2, weights=trust))
    if not spread > 0.0:
        return level, 0.0
    slope = float(np.average((halves - middle) * (values - level), weights=trust)) / spread
    curvature = max(0.0, slope)
    return level - curvature * middle, curvature


def _root_mean_square(left: FloatArray, trust: FloatArray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        scale = float(np.sqrt(np.average(left**2, weights=trust)))
    if not np.isfinite(scale):
        raise SurrogateFitError(
            f"values as large as {np.abs(left).max():.3g} overflow when squared; use "
            "tail='down-weighted', or leave such rows out"
        )
    return scale or 1.0


def _seed(estimator: Any, seed: int) -> Any:
    """Return an unfitted copy in which every random state that is None is an integer."""
    from sklearn.base import clone

    copy = clone(estimator)
    rng = np.random.default_rng(seed)
    free = sorted(
        name
        for name, value in copy.get_params(deep=True).items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    )
    if free:
        copy.set_params(**{name: int(rng.integers(2**31 - 1)) for name in free})
    return copy


def _call_fit(regressor: Any, z: FloatArray, targets: FloatArray, weights: FloatArray) -> None:
    """Fit in place, and see that predictions are numbers."""
    # Some estimators pass weights on to others that take none, so none are given without need.
    given = weight_arguments(regressor, weights) if np.ptp(weights) > 0.0 else {}
    name = type(regressor).__name__
    n, dim = z.shape
    try:
        regressor.fit(z, targets, **given)
        found = predicted(regressor, z)
    except (Warning, SurrogateFitError):
        raise  # a warning that the user wants as an error stays what it is
    except Exception as error:
        raise SurrogateFitError(
            f"{name} could not be fitted to {n} points in {dim} dimensions: "
            f"{type(error).__name__}: {error}; explore for longer, or change its settings"
        ) from error
    bad = int(np.count_nonzero(~np.isfinite(found)))
    if bad:
        raise SurrogateFitError(
            f"{name} predicts NaN or infinity at {bad} of the {n} points that it was fitted to; "
            "change its settings, or use another regressor"
        )
