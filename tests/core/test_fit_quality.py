"""How well a surrogate does where it was not fitted."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest

from surrokit.capabilities import GRADIENT
from surrokit.interfaces import Evaluations
from surrokit.surrogate.quality import FitQuality, fit_quality


@attrs.frozen
class Bowl:
    """|q|^2 / 2 + slope . q + level, with a gradient or without."""

    slope: tuple[float, ...] = (0.0, 0.0)
    level: float = 0.0
    capabilities: frozenset[str] = frozenset({GRADIENT})

    @property
    def dim(self):
        return len(self.slope)

    def value(self, positions):
        return 0.5 * (positions**2).sum(axis=1) + positions @ np.array(self.slope) + self.level

    def value_and_gradient(self, positions):
        return self.value(positions), positions + np.array(self.slope)


def exact(n=50, gradients=True):
    positions = np.random.default_rng(3).standard_normal((n, 2))
    values, slopes = Bowl().value_and_gradient(positions)
    return Evaluations(positions=positions, values=values, gradients=slopes if gradients else None)


def test_a_perfect_surrogate_has_no_error():
    quality = fit_quality(Bowl(), exact())
    assert quality == FitQuality(variance=0.0, gradient_error=0.0, n_points=50)
    assert quality.acceptance == 1.0


def test_a_constant_is_no_error():
    quality = fit_quality(Bowl(level=1000.0), exact())
    assert quality.variance == pytest.approx(0.0, abs=1e-20)
    assert quality.gradient_error == 0.0


def test_the_variance_is_that_of_the_difference():
    rows = exact()
    quality = fit_quality(Bowl(slope=(3.0, -4.0), level=9.0), rows)
    assert quality.variance == pytest.approx(np.var(rows.positions @ [3.0, -4.0]))


def test_the_error_of_gradients_by_hand():
    rows = Evaluations(
        positions=[[3.0, 0.0], [0.0, 4.0]], values=[4.5, 8.0], gradients=[[3.0, 0.0], [0.0, 4.0]]
    )
    # Errors (1, 2) in both rows; exact lengths 3 and 4.
    quality = fit_quality(Bowl(slope=(1.0, 2.0)), rows)
    assert quality.gradient_error == pytest.approx(math.sqrt(10.0 / 25.0))
    # L^T turns errors into (2, 6), exact ones into (6, 0) and (0, 12).
    quality = fit_quality(Bowl(slope=(1.0, 2.0)), rows, np.diag([2.0, 3.0]))
    assert quality.gradient_error == pytest.approx(math.sqrt(80.0 / 180.0))
    lower = np.array([[1.0, 0.0], [2.0, 1.0]])
    # L^T (1, 2) = (5, 2); L^T (3, 0) = (3, 0); L^T (0, 4) = (8, 4)
    quality = fit_quality(Bowl(slope=(1.0, 2.0)), rows, lower)
    assert quality.gradient_error == pytest.approx(math.sqrt(58.0 / 89.0))


def test_rows_without_gradient_count_for_values_only():
    rows = exact()
    gradients = np.array(rows.gradients)
    gradients[10:] = np.nan
    gradients[5, 1] = np.nan
    part = attrs.evolve(rows, gradients=gradients)
    surrogate = Bowl(slope=(1.0, 2.0))
    known = [0, 1, 2, 3, 4, 6, 7, 8, 9]
    expected = fit_quality(surrogate, rows.take(np.array(known)))
    found = fit_quality(surrogate, part)
    assert found.gradient_error == pytest.approx(expected.gradient_error)
    assert found.variance == fit_quality(surrogate, rows).variance
    assert found.n_points == 50


@pytest.mark.parametrize(
    ("surrogate", "rows"),
    [
        (Bowl(), exact(gradients=False)),
        (Bowl(), attrs.evolve(exact(), gradients=np.full((50, 2), np.nan))),
        (Bowl(capabilities=frozenset()), exact()),
    ],
    ids=["no gradients", "none paid for", "a surrogate without"],
)
def test_where_no_gradient_is_known(surrogate, rows):
    quality = fit_quality(surrogate, rows)
    assert quality.gradient_error is None
    assert quality.variance == 0.0


def test_rows_without_a_finite_value_are_left_out():
    rows = exact()
    values = np.array(rows.values)
    values[:20] = np.inf
    values[20] = np.nan
    quality = fit_quality(Bowl(slope=(1.0, 0.0)), attrs.evolve(rows, values=values))
    assert quality.n_points == 29
    assert quality.variance == pytest.approx(np.var(rows.positions[21:, 0]))


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_rows_have_no_variance(n):
    assert fit_quality(Bowl(), exact(n)) is None
    one = attrs.evolve(exact(2), values=[1.0, np.inf])
    assert fit_quality(Bowl(), one) is None


def test_a_flat_target_has_no_scale_for_errors():
    rows = Evaluations(positions=np.eye(2), values=np.zeros(2), gradients=np.zeros((2, 2)))
    assert fit_quality(Bowl(), rows).gradient_error > 1e100


@pytest.mark.statistical
@pytest.mark.parametrize("variance", [0.01, 0.3, 2.0, 10.0])
def test_predicted_acceptance_is_that_of_normal_errors(variance):
    # Mean of min(1, exp(r)), r ~ N(-v, 2 v). Five standard errors: false alarms below 1e-6.
    rng = np.random.default_rng(1)
    ratios = rng.normal(-variance, math.sqrt(2.0 * variance), 400_000)
    accepted = np.minimum(1.0, np.exp(ratios))
    error = accepted.std() / math.sqrt(len(accepted))
    quality = FitQuality(variance=variance, gradient_error=None, n_points=9)
    assert quality.acceptance == pytest.approx(accepted.mean(), abs=5.0 * error)


@pytest.mark.statistical
def test_predicted_acceptance_is_that_of_independent_draws():
    # V = U + error with an error that is normal over exact draws of both: two coordinates, the
    # surrogate a shifted density, so that V - U is linear. Five standard errors.
    rng, shift = np.random.default_rng(2), 0.8
    current = rng.standard_normal(400_000)
    proposed = rng.standard_normal(400_000) + shift
    error_current = -shift * current
    error_proposed = -shift * proposed
    accepted = np.minimum(1.0, np.exp(error_proposed - error_current))
    quality = FitQuality(variance=shift**2, gradient_error=None, n_points=9)
    error = accepted.std() / math.sqrt(len(accepted))
    assert quality.acceptance == pytest.approx(accepted.mean(), abs=5.0 * error)
