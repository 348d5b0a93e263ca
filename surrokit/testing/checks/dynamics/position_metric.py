"""Checks of metrics whose mass matrix G(q) changes with position."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from surrokit.interfaces import changes_with_position
from surrokit.testing.measures.demands import demand, demand_close, demand_equal, demand_shape
from surrokit.testing.measures.differences import difference
from surrokit.testing.measures.statistics import Verdict, normality
from surrokit.testing.results import Check, Factory
from surrokit.testing.targets.counting import Fenced
from surrokit.testing.targets.densities import Banana, Gaussian, Mixture, Student
from surrokit.testing.targets.target import Target
from surrokit.types import Cache, FloatArray

N_POSITIONS = 6
"""Positions on each target."""

N_DRAWS = 40_000
"""Momenta drawn by the statistical check, on each target."""

COVARIANCE = np.array([[1.3, 0.5], [0.5, 2.6]])
"""The covariance that metrics are adapted to."""

_TARGETS: tuple[Target, ...] = (Banana(), Mixture(), Student(), Gaussian())

Case = tuple[str, Any, Target]
"""A label, a metric, and a target that offers what it needs."""


def _cases(make: Factory) -> list[Case]:
    """Return each target with the metric as made and, if it is tunable, as adapted."""
    metric = make()
    targets = [target for target in _TARGETS if metric.needs <= target.capabilities]
    demand(
        targets,
        f"the metric needs {sorted(metric.needs)}, which no target of the suite offers; names are "
        "in surrokit.capabilities",
    )
    metrics = [("", metric)]
    if metric.tunable:
        metrics.append(("adapted, ", metric.adapt(COVARIANCE)))
    return [
        (f"{label}{type(target).__name__}: ", one, target)
        for target in targets
        for label, one in metrics
    ]


def _positions(target: Target) -> FloatArray:
    return target.sample(np.random.default_rng(1666), N_POSITIONS)


def _vectors() -> FloatArray:
    return np.random.default_rng(5).standard_normal((N_POSITIONS, 2))


def _matrices(metric: Any, cache: Cache, n: int) -> FloatArray:
    """Return G, shape (n, 2, 2), by its products with unit vectors."""
    columns = [metric.momentum(cache, np.tile(unit, (n, 1))) for unit in np.eye(2)]
    return np.stack(columns, axis=-1)


def _matrices_at(metric: Any, target: Target, positions: FloatArray) -> FloatArray:
    return _matrices(metric, metric.factor(target, positions), len(positions))


def _log_determinant(metric: Any, target: Target, positions: FloatArray) -> FloatArray:
    matrices = _matrices_at(metric, target, positions)
    return np.asarray(np.linalg.slogdet(matrices)[1], dtype=np.float64)


def _form(metric: Any, target: Target, vectors: FloatArray, positions: FloatArray) -> FloatArray:
    cache = metric.factor(target, positions)
    return np.asarray((vectors * metric.momentum(cache, vectors)).sum(axis=1))


def check_mass_matrix(make: Factory) -> None:
    """G is symmetric and positive definite, and velocity and log determinant are those of G."""
    for label, metric, target in _cases(make):
        positions, momenta = _positions(target), _vectors()
        cache = metric.factor(target, positions)
        for name, array in cache.items():
            demand(
                isinstance(array, np.ndarray) and array.shape[:1] == (N_POSITIONS,),
                f"{label}{name} in the cache must be an array with one row for each position",
            )
        matrices = _matrices(metric, cache, N_POSITIONS)
        demand_close(matrices, matrices.transpose(0, 2, 1), f"{label}G against its transpose")
        least = np.linalg.eigvalsh(matrices).min()
        demand(least > 0, f"{label}G must be positive definite, but has eigenvalue {least:.3g}")
        velocity = metric.velocity(cache, momenta)
        demand_shape(velocity, momenta.shape, f"{label}velocity")
        expected = np.asarray(np.linalg.solve(matrices, momenta[:, :, None])[:, :, 0])
        demand_close(velocity, expected, f"{label}velocity against G^-1 p", rtol=1e-7)
        demand_close(
            2.0 * metric.energy(cache, np.zeros_like(momenta)),
            np.asarray(np.linalg.slogdet(matrices)[1], dtype=np.float64),
            f"{label}2 K(q, 0) against log det G",
        )


def check_energy_by_position(make: Factory) -> None:
    """The velocity is the derivative of the energy, which is even in the momenta."""
    for label, metric, target in _cases(make):
        positions, momenta = _positions(target), _vectors()
        cache = metric.factor(target, positions)
        energy = metric.energy(cache, momenta)
        demand_shape(energy, (N_POSITIONS,), f"{label}energy")
        expected, error = difference(partial(metric.energy, cache), momenta)
        demand_close(
            metric.velocity(cache, momenta),
            expected,
            f"{label}velocity against differences of the energy",
            rtol=1e-6,
            atol=3.0 * error + 1e-8,
        )
        demand_close(metric.energy(cache, -momenta), energy, f"{label}energy of momenta turned")


def check_momenta_by_position(make: Factory) -> None:
    """Momenta have covariance G(q): L^-1 p is standard normal, where G = L L^T."""
    verdicts = []
    for label, metric, target in _cases(make):
        positions = np.tile(_positions(target)[1], (N_DRAWS, 1))
        cache = metric.factor(target, positions)
        momenta = metric.draw(np.random.default_rng(29), cache)
        demand_shape(momenta, (N_DRAWS, 2), f"{label}momenta")
        demand_equal(
            metric.draw(np.random.default_rng(29), cache), momenta, f"{label}momenta drawn twice"
        )
        factor = np.linalg.cholesky(_matrices_at(metric, target, positions[:1])[0])
        verdicts.append(normality(np.linalg.solve(factor, momenta.T).T, f"{label}L^-1 p, "))
    Verdict.join(verdicts).require("momenta must be drawn from N(0, G) with the G of the energy")


def check_metric_derivatives(make: Factory) -> None:
    """The two gradients are those of log det G(q) and of u^T G(q) u."""
    for label, metric, target in _cases(make):
        positions, vectors = _positions(target), _vectors()
        cache = metric.factor(target, positions)
        expected, error = difference(partial(_log_determinant, metric, target), positions)
        demand_close(
            metric.log_determinant_gradient(target, positions, cache),
            expected,
            f"{label}log_determinant_gradient against differences of log det G",
            rtol=1e-6,
            atol=3.0 * error + 1e-7,
        )
        expected, error = difference(partial(_form, metric, target, vectors), positions)
        demand_close(
            metric.form_gradient(target, positions, cache, vectors),
            expected,
            f"{label}form_gradient against differences of u^T G u",
            rtol=1e-6,
            atol=3.0 * error + 1e-7,
        )


def check_approximate_product(make: Factory) -> None:
    """A cheap product, where there is one, is G u on a normal target."""
    for label, metric, target in _cases(make):
        positions, vectors = _positions(target), _vectors()
        product = metric.approximate_product(target, positions, vectors)
        if product is None:
            continue
        demand_shape(product, vectors.shape, f"{label}approximate_product")
        if isinstance(target, Gaussian):
            exact = metric.momentum(metric.factor(target, positions), vectors)
            demand_close(product, exact, f"{label}approximate_product against G u")


def check_positions_alone(make: Factory) -> None:
    """Results at one position do not depend on the others, even if G is not finite there."""
    for label, metric, target in _cases(make):
        positions, momenta = _positions(target), _vectors()
        whole = metric.factor(target, positions)
        spoilt = positions.copy()
        spoilt[2], spoilt[4] = np.nan, 1e6
        with np.errstate(all="ignore"):
            cache = metric.factor(Fenced(target, 1e3), spoilt)
            energy = metric.energy(cache, momenta)
        demand(
            np.isnan(energy[[2, 4]]).all(),
            f"{label}energy must be NaN where G is not finite, got {energy[[2, 4]]}",
        )
        for i in (0, 1, 3, 5):
            one = slice(i, i + 1)
            alone = metric.factor(target, positions[one])
            for name, array in alone.items():
                what = f"{label}{name} of position {i}"
                demand_close(whole[name][one], array, f"{what} beside others", rtol=1e-7)
                demand_close(cache[name][one], array, f"{what} beside NaN", rtol=1e-7)


def check_units(make: Factory) -> None:
    """``adapt`` changes no metric in place, and returns the same G if nothing is tunable."""
    metric = make()
    adapted = metric.adapt(COVARIANCE)
    demand(
        adapted.tunable == metric.tunable,
        f"tunable was {metric.tunable} and is {adapted.tunable} after adapt; it says what the "
        "user left free, which tuning does not change",
    )
    for label, one, target in _cases(make):
        positions = _positions(target)
        before = _matrices_at(one, target, positions)
        other = one.adapt(np.diag([4.0, 0.25]))
        demand_equal(_matrices_at(one, target, positions), before, f"{label}G after adapt")
        if not metric.tunable:
            demand_equal(_matrices_at(other, target, positions), before, f"{label}G, not tunable")


def check_arguments_untouched(make: Factory) -> None:
    """Positions, vectors and caches are not changed, and may be read-only."""
    for label, metric, target in _cases(make):
        positions, vectors = _positions(target), _vectors()
        cache = {name: array.copy() for name, array in metric.factor(target, positions).items()}
        arrays = {"positions": positions, "vectors": vectors, **cache}
        before = {name: array.copy() for name, array in arrays.items()}
        for array in arrays.values():
            array.setflags(write=False)
        metric.log_determinant_gradient(target, positions, cache)
        metric.form_gradient(target, positions, cache, vectors)
        metric.approximate_product(target, positions, vectors)
        for method in (metric.velocity, metric.momentum, metric.energy):
            method(cache, vectors)
        metric.draw(np.random.default_rng(0), cache)
        for name, array in arrays.items():
            demand_equal(array, before[name], f"{label}{name} before and after")


CHECKS: tuple[Check, ...] = (
    Check(check_mass_matrix, applies=changes_with_position),
    Check(check_energy_by_position, applies=changes_with_position),
    Check(check_momenta_by_position, level="statistical", applies=changes_with_position),
    Check(check_metric_derivatives, applies=changes_with_position),
    Check(check_approximate_product, applies=changes_with_position),
    Check(check_positions_alone, applies=changes_with_position),
    Check(check_units, applies=changes_with_position),
    Check(check_arguments_untouched, applies=changes_with_position),
)
"""For every metric that changes with position."""
