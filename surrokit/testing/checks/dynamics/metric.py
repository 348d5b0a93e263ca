"""Checks of constant metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit.interfaces import changes_with_position
from surrokit.testing.measures.demands import demand, demand_close, demand_equal, demand_shape
from surrokit.testing.measures.differences import difference
from surrokit.testing.measures.statistics import Verdict, normality
from surrokit.testing.results import Check, Factory
from surrokit.types import FloatArray

N_DRAWS = 40_000
"""Momenta drawn by the statistical check."""

COVARIANCE = np.array([[1.3, 0.5], [0.5, 0.6]])
"""The covariance that metrics are adapted to."""

_WIDE = np.diag([4.0, 0.25])


def _metrics(make: Factory) -> list[tuple[str, Any]]:
    """Return the metric as made and, if it is tunable, as adapted."""
    metric = make()
    if not metric.tunable:
        return [("", metric)]
    return [("untuned: ", metric), ("adapted: ", metric.adapt(COVARIANCE))]


def _momenta() -> FloatArray:
    return np.random.default_rng(5).standard_normal((6, 2))


def _inverse_mass(metric: Any) -> FloatArray:
    """Return M^-1, which maps unit momenta to velocities; shape (2, 2)."""
    return np.asarray(metric.velocity(np.eye(2)))


def check_kinetic_energy(make: Factory) -> None:
    """The energy is a positive quadratic form, and the velocity is its gradient."""
    for label, metric in _metrics(make):
        momenta = _momenta()
        velocity, energy = metric.velocity(momenta), metric.energy(momenta)
        demand_shape(velocity, momenta.shape, f"{label}velocity")
        demand_shape(energy, (len(momenta),), f"{label}energy")
        expected, error = difference(metric.energy, momenta)
        demand_close(
            velocity,
            expected,
            f"{label}velocity against differences of the energy",
            rtol=1e-6,
            atol=3.0 * error + 1e-8,
        )
        half = 0.5 * np.einsum("ni,ni->n", momenta, velocity)
        demand_close(energy, half, f"{label}energy against p . velocity / 2")
        demand_close(metric.energy(-momenta), energy, f"{label}energy of the momenta turned")
        demand((energy > 0).all(), f"{label}energy must be positive, got {energy}")


def check_momenta(make: Factory) -> None:
    """Momenta have the covariance M of their energy: L^T p is standard normal, L L^T = M^-1."""
    verdicts = []
    for label, metric in _metrics(make):
        momenta = metric.draw(np.random.default_rng(29), N_DRAWS, 2)
        demand_shape(momenta, (N_DRAWS, 2), f"{label}momenta")
        factor = np.linalg.cholesky(_inverse_mass(metric))
        verdicts.append(normality(momenta @ factor, f"{label}L^T p, "))
    Verdict.join(verdicts).require("momenta must be drawn from N(0, M) with the M of the energy")


def check_momenta_reproducible(make: Factory) -> None:
    """The same generator gives the same momenta, and nothing else is used."""
    for label, metric in _metrics(make):
        first = metric.draw(np.random.default_rng(3), 5, 2)
        demand_equal(
            metric.draw(np.random.default_rng(3), 5, 2), first, f"{label}momenta drawn twice"
        )


def check_adapted(make: Factory) -> None:
    """``adapt`` changes no metric in place; the copy agrees with the covariance's diagonal."""
    metric = make()
    before = _inverse_mass(metric)
    adapted = metric.adapt(COVARIANCE)
    demand_equal(_inverse_mass(metric), before, "M^-1 of a metric before and after adapt")
    demand(
        adapted.tunable == metric.tunable,
        f"tunable was {metric.tunable} and is {adapted.tunable} after adapt; it says what the "
        "user left free, which tuning does not change",
    )
    if not metric.tunable:
        demand_equal(_inverse_mass(adapted), before, "M^-1 of a metric that is not tunable")
        return
    demand_close(
        np.diag(_inverse_mass(adapted)), np.diag(COVARIANCE), "diagonal of M^-1 after adapt"
    )
    again = adapted.adapt(_WIDE)
    demand_close(np.diag(_inverse_mass(again)), np.diag(_WIDE), "diagonal of M^-1 adapted twice")


def check_longest_scale(make: Factory) -> None:
    """The longest scale is the root of the largest eigenvalue of M^(1/2) C M^(1/2)."""
    for label, metric in _metrics(make):
        for covariance in (COVARIANCE, _WIDE):
            mass = np.linalg.inv(_inverse_mass(metric))
            expected = np.sqrt(np.linalg.eigvals(mass @ covariance).real.max())
            demand_close(
                np.array([float(metric.longest_scale(covariance))]),
                np.array([expected]),
                f"{label}longest_scale",
            )


def check_momenta_untouched(make: Factory) -> None:
    """``velocity`` and ``energy`` do not change the momenta."""
    for label, metric in _metrics(make):
        momenta = _momenta()
        before = momenta.copy()
        momenta.setflags(write=False)
        metric.velocity(momenta)
        metric.energy(momenta)
        demand_equal(momenta, before, f"{label}momenta before and after")


def _constant(metric: Any) -> bool:
    return not changes_with_position(metric)


CHECKS: tuple[Check, ...] = (
    Check(check_kinetic_energy, applies=_constant),
    Check(check_momenta, level="statistical", applies=_constant),
    Check(check_momenta_reproducible, applies=_constant),
    Check(check_adapted, applies=_constant),
    Check(check_longest_scale, applies=_constant),
    Check(check_momenta_untouched, applies=_constant),
)
"""For every metric with one mass matrix for all positions."""
