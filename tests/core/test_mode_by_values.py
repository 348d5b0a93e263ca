"""The search for the mode where gradients are made of differences of values."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import NumericalError, ShapeError
from surrokit.mode.descent import descend
from surrokit.mode.search import MOST_DIM, find_mode, goes_by_values
from surrokit.targets.differences import Differences
from surrokit.testing.targets import Banana, Gaussian


class Values:
    """Values alone of a target."""

    capabilities = frozenset()

    def __init__(self, target):
        self.target = target
        self.dim = target.dim

    def value(self, positions):
        return self.target.value(positions)


class Collinear:
    """A regression on columns that are far from zero, with an unknown scale."""

    dim, capabilities = 3, frozenset()
    x = 1950.0 + np.arange(60.0)
    y = 0.02 * x - 60.0 + np.random.default_rng(1).standard_normal(60)

    def value(self, positions):
        left = self.y - positions[:, :1] - positions[:, 1:2] * self.x
        log_scale = positions[:, 2]
        return 60 * log_scale + 0.5 * np.square(left).sum(axis=1) * np.exp(-2 * log_scale)

    @property
    def least(self):
        """U at the mode."""
        design = np.column_stack([np.ones(60), self.x])
        left = self.y - design @ np.linalg.lstsq(design, self.y)[0]
        return 30 * np.log(left @ left / 60) + 30


def recording(target):
    return RecordingPotential(Differences(target), keep=True)


def bowl(dim, gradient="differences"):
    return sk.potential(lambda q: 0.5 * q @ q, gradient, dim=dim)


def test_a_search_goes_by_values_where_gradients_are_made_of_them_in_few_dimensions():
    assert goes_by_values(bowl(MOST_DIM))
    assert not goes_by_values(bowl(MOST_DIM + 1))
    assert not goes_by_values(bowl(2, lambda q: q))


def test_a_search_in_many_dimensions_goes_by_differences():
    start = np.ones(MOST_DIM + 1)
    found, plain = (search(bowl(len(start)), start) for search in (find_mode, descend))
    assert found.converged
    assert found.hessian is None
    assert_allclose(found.position, plain.position, rtol=0, atol=0)


def test_a_start_by_values_is_one_position_and_can_be_evaluated():
    with pytest.raises(ShapeError, match=r"start must be one position of shape \(2,\), got"):
        find_mode(bowl(2), np.ones((1, 2)), max_calls=1)
    walled = sk.potential(lambda q: np.inf, "differences", dim=2)
    with pytest.raises(NumericalError, match="not finite at the start of the search"):
        find_mode(walled, np.ones(2))


def test_the_mode_of_a_normal_is_found_with_its_curvature():
    target = Gaussian(mean=(1.0, -2.0), covariance=((1.0, 0.9), (0.9, 1.0)))
    exact = recording(Values(target))
    found = find_mode(exact, np.full(2, 5.0))
    assert found.converged
    assert_allclose(found.position, [1.0, -2.0], atol=1e-3)
    assert_allclose(found.hessian, np.linalg.inv(target.covariance), rtol=1e-4)
    assert exact.n_calls <= found.calls * 5 < exact.n_calls + 5


def test_the_mode_of_collinear_parameters_is_found():
    exact = recording(Collinear())
    found = find_mode(exact, np.array([1.0, -1.0, 0.5]), max_calls=300)
    assert found.converged
    assert exact.n_calls < 150  # no differences where a step did not come down
    assert found.value < Collinear().least + 0.01
    gradients = exact.drain().gradients  # rough ones are not kept
    assert gradients is None or np.isnan(gradients).all()


def test_a_bend_takes_fewer_values_than_central_differences():
    start = np.array([-3.0, 8.0])
    by_matrices, plain = recording(Values(Banana())), recording(Values(Banana()))
    found, slower = find_mode(by_matrices, start), descend(plain, start)
    assert found.converged
    assert found.value < slower.value + 0.01
    assert by_matrices.n_calls < 0.8 * plain.n_calls


def test_no_more_is_paid_than_may_be():
    exact = recording(Collinear())
    found = find_mode(exact, np.array([1.0, -1.0, 0.5]), max_calls=10)
    assert not found.converged
    assert exact.n_calls <= 70


def test_a_search_may_be_ended():
    seen = []
    found = find_mode(
        recording(Values(Banana())),
        np.array([-3.0, 8.0]),
        until=lambda q, *_: seen.append(q) or True,
    )
    assert len(seen) == 1
    assert not found.converged
    assert_allclose(found.position, [-3.0, 8.0])


class TwoModes:
    """Normals about (3, 3) and (-3, -3)."""

    dim, capabilities = 2, frozenset()

    def value(self, positions):
        up, down = (0.5 * np.square(positions - m).sum(axis=1) for m in (3.0, -3.0))
        return -np.logaddexp(np.log(2 / 3) - up, np.log(1 / 3) - down)


def test_rough_gradients_beside_the_mode_do_not_use_up_the_search():
    start = np.array([-0.75267419, -0.3066942])
    found = find_mode(recording(TwoModes()), start, max_calls=20)
    assert found.converged
    assert_allclose(found.position, [-3.0, -3.0], atol=1e-3)


class Patchy:
    """A normal that fails at one position in twenty, always the same ones."""

    dim, capabilities = 3, frozenset()
    precision = np.linalg.inv([[1.0, 0.8, 0.0], [0.8, 1.0, 0.3], [0.0, 0.3, 1.0]])

    def __init__(self):
        self.farthest = 0.0

    def value(self, positions):
        self.farthest = max(self.farthest, np.abs(positions).max())
        fails = [zlib.crc32(row.tobytes()) % 20 == 0 for row in positions]
        values = 0.5 * np.einsum("ni,ij,nj->n", positions, self.precision, positions)
        return np.where(fails, np.nan, values)


@pytest.mark.filterwarnings("ignore:the target returned NaN")
def test_positions_that_fail_here_and_there_do_not_lead_astray():
    errors = []
    for seed in range(50):
        target = Patchy()
        start = np.random.default_rng(seed).uniform(-2.0, 2.0, 3)
        try:
            mode = find_mode(recording(target), start)
        except NumericalError:  # it fails at the start
            continue
        assert mode.converged
        assert mode.value < 0.01
        assert target.farthest < 20.0
        errors.append(np.abs(mode.hessian - target.precision).max())
    assert len(errors) > 40
    # now and then differences fail at both lengths
    assert np.mean(np.array(errors) < 0.01) > 0.9


def test_a_search_does_not_take_rounding_for_a_curvature():
    farthest = 0.0

    def value(q):  # on the left the second coordinate is all that matters, but for a slope
        nonlocal farthest
        farthest = max(farthest, np.abs(q).max())
        return 50.0 * q[1] ** 2 - q[0] + np.exp(q[0]) - 5000.0

    target = recording(sk.potential(value, dim=2))
    mode = find_mode(target, np.array([-50.0, 0.5]))
    assert_allclose(mode.position, [0.0, 0.0], atol=0.05)
    assert farthest < 200.0


@pytest.mark.long
def test_rough_gradients_do_not_make_a_search_leap():
    farthest = 0.0

    def value(q):
        nonlocal farthest
        farthest = max(farthest, np.abs(q).max())
        return 0.5 * q @ q * 300.0 + 0.3 * np.sin(1e7 * q.sum())

    for seed in range(25):
        start = np.random.default_rng(seed).uniform(-2.0, 2.0, 3)
        find_mode(Differences(sk.potential(value, dim=3)), start)
    assert farthest < 50.0


def test_a_mode_far_away_is_found_all_the_same():
    far = np.array([1e6, -3e5, 10.0])
    target = recording(
        sk.potential(lambda q: 0.5 * np.sum(((q - far) / [1e3, 10.0, 1.0]) ** 2), dim=3)
    )
    mode = find_mode(target, np.zeros(3), max_calls=400)
    assert mode.value < 0.1
