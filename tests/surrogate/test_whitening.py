"""The map to coordinates in which the training points are alike in every direction."""

import numpy as np
import pytest

from surrokit.errors import SurrogateFitError
from surrokit.surrogate.whitening import Whitening

DIM = 4


def test_whitened_positions_have_mean_zero_and_unit_covariance():
    rng = np.random.default_rng(0)
    positions = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 3)) * [1.0, 1e6, 1e-6] + 5
    weights = rng.uniform(0.1, 1.0, 200)
    whitened = Whitening.of(positions, weights).apply(positions)
    np.testing.assert_allclose(weights @ whitened, 0.0, atol=1e-6)
    covariance = (whitened.T * weights) @ whitened / weights.sum()
    np.testing.assert_allclose(covariance, np.eye(3), atol=1e-6)


def test_a_covariance_that_nothing_can_mend_is_refused(monkeypatch):
    def refuse(matrix):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(np.linalg, "cholesky", refuse)
    with pytest.raises(
        SurrogateFitError,
        match="has no Cholesky factor; give the learner positions that vary in every direction",
    ):
        Whitening.of(np.eye(3), np.ones(3))


def test_the_inverse_is_that_of_the_factor():
    positions = np.random.default_rng(4).standard_normal((30, DIM)) * [1.0, 10.0, 0.1, 3.0]
    whitening = Whitening.of(positions, np.ones(30))
    np.testing.assert_allclose(whitening.inverse @ whitening.factor, np.eye(DIM), atol=1e-12)
    np.testing.assert_array_equal(whitening.factor, np.tril(whitening.factor))
    back = whitening.apply(positions) @ whitening.factor.T + whitening.mean
    np.testing.assert_allclose(back, positions, rtol=1e-10)


def random_quadratic(rng, spread=1.0):
    """A mode and a Hessian of a normal density."""
    half = rng.standard_normal((DIM, 2 * DIM))
    scales = np.exp(spread * rng.standard_normal(DIM))
    return rng.standard_normal(DIM), scales[:, None] * (half @ half.T) * scales


@pytest.mark.parametrize("n_points", [DIM + 1, DIM + 3, 40])
@pytest.mark.parametrize("where", ["at the mode", "far away", "on a line, nearly"])
def test_gradients_of_a_quadratic_give_its_inverse_hessian_and_mode(n_points, where):
    # Wherever the points lie, as soon as there are more of them than dimensions.
    rng = np.random.default_rng(5)
    for _ in range(10):
        mode, hessian = random_quadratic(rng)
        positions = rng.standard_normal((n_points, DIM))
        positions = {
            "at the mode": positions + mode,
            "far away": 10.0 + 3.0 * positions,
            "on a line, nearly": positions[:, :1] + 0.3 * positions,
        }[where]
        gradients = (positions - mode) @ hessian
        found = Whitening.of_gradients(positions, gradients, rng.uniform(0.2, 1.0, n_points))
        # In the new coordinates the Hessian is the identity, and the mode is the origin.
        seen = found.factor.T @ hessian @ found.factor
        np.testing.assert_allclose(np.linalg.eigvalsh(seen), 1.0, atol=2e-2)
        assert np.linalg.norm(found.apply(mode[None])) < 2e-2


def test_positions_and_gradients_get_the_same_covariance():
    # The definition, on a potential that is not quadratic and with points enough.
    rng = np.random.default_rng(6)
    positions = rng.standard_normal((300, DIM)) * [1.0, 4.0, 0.3, 1.0]
    gradients = positions**3 + positions @ np.diag([1.0, 0.1, 9.0, 2.0])
    weights = rng.uniform(0.2, 1.0, 300)
    found = Whitening.of_gradients(positions, gradients, weights)
    shares = weights / weights.sum()
    z, g = found.apply(positions), gradients @ found.factor
    of_positions, of_gradients = (
        (each - shares @ each).T @ (shares[:, None] * (each - shares @ each)) for each in (z, g)
    )
    np.testing.assert_allclose(of_positions, of_gradients, rtol=1e-3, atol=1e-3)
    # and the mean is a Newton step from theirs: the mean gradient vanishes there to first order
    np.testing.assert_allclose(shares @ z, shares @ g, atol=1e-3)


@pytest.mark.parametrize("n_points", [2, 3, DIM])
def test_few_points_with_gradients(n_points):
    rng = np.random.default_rng(7)
    for _ in range(10):
        mode, hessian = random_quadratic(rng, 0.3)
        positions = mode + rng.standard_normal((n_points, DIM))
        gradients = (positions - mode) @ hessian
        found = Whitening.of_gradients(positions, gradients, np.ones(n_points))
        fresh = rng.standard_normal((500, DIM)) @ np.linalg.cholesky(np.linalg.inv(hessian)).T
        scales = np.sqrt(np.linalg.eigvalsh(np.cov((fresh @ found.inverse.T).T)))
        assert scales[-1] < 100.0
        assert scales[0] > 0.01


def test_one_point_or_a_flat_potential_falls_back_on_the_positions():
    rng = np.random.default_rng(8)
    positions, weights = rng.standard_normal((9, DIM)), np.ones(9)
    flat = Whitening.of_gradients(positions, np.full((9, DIM), 3.0), weights)
    expected = Whitening.of(positions, weights)
    np.testing.assert_array_equal(flat.factor, expected.factor)
    np.testing.assert_array_equal(flat.mean, expected.mean)
    one = Whitening.of_gradients(np.ones((3, DIM)), positions[:3], np.ones(3))
    np.testing.assert_array_equal(one.factor, np.eye(DIM))


@pytest.mark.parametrize("gradient", ["constant", "varying"])
@pytest.mark.parametrize("at", [0.1, 1.0, 1e6])
def test_a_coordinate_that_never_moved(at, gradient):
    rng = np.random.default_rng(9)
    positions = rng.standard_normal((30, DIM))
    positions[:, 2] = at
    gradients = 2.0 * positions
    if gradient == "varying":
        gradients[:, 2] += positions[:, 1]
    found = Whitening.of_gradients(positions, gradients, rng.uniform(0.2, 1.0, 30))
    scales = np.sqrt(np.linalg.eigvalsh(found.factor @ found.factor.T))
    assert scales[0] > 0.1
    assert scales[-1] < 10.0
    line = positions[:, :1]  # without gradients, on a line
    still = np.hstack([line, 2.0 * line, np.full((30, 1), at)])
    assert np.isfinite(Whitening.of(still, np.ones(30)).apply(still)).all()


@pytest.mark.parametrize("which", ["positions", "gradients"])
def test_overflowing_rows_with_gradients_are_refused(which):
    rng = np.random.default_rng(10)
    rows = {name: rng.standard_normal((9, DIM)) for name in ("positions", "gradients")}
    rows[which][4, 1] = -4e200
    with pytest.raises(SurrogateFitError, match=r"numbers as large as 4e\+200 overflow; rescale"):
        Whitening.of_gradients(rows["positions"], rows["gradients"], np.ones(9))
    with pytest.raises(SurrogateFitError, match="covariance of the training rows is not finite"):
        Whitening.of(rows[which], np.ones(9))


def test_correlations_that_may_as_well_be_noise_can_be_left_out():
    rng = np.random.default_rng(12)
    positions, weights = rng.standard_normal((40, DIM)), np.ones(40)
    kept, left_out = (
        Whitening.of(positions, weights, drops_noise=drops) for drops in (False, True)
    )

    def correlations(whitening):
        covariance = whitening.factor @ whitening.factor.T
        scales = np.sqrt(np.diag(covariance))
        return np.abs(np.tril(covariance / scales / scales[:, None], -1)).max()

    np.testing.assert_allclose(
        correlations(kept), np.abs(np.tril(np.corrcoef(positions.T), -1)).max()
    )
    assert correlations(left_out) < 0.5 * correlations(kept)
    # Those that stand out stay as they are.
    positions[:, 1] += 2.0 * positions[:, 0]
    kept, left_out = (
        Whitening.of(positions, weights, drops_noise=drops) for drops in (False, True)
    )
    np.testing.assert_array_equal(left_out.factor, kept.factor)


def test_rows_that_count_for_nothing_leave_no_rounding_whatever_their_size():
    """A start from which a search came may be 1e100 nats up; the first row among all."""
    rng = np.random.default_rng(5)
    positions = rng.standard_normal((20, DIM))
    gradients = positions * np.linspace(1.0, 4.0, DIM)
    weights = np.ones(20)
    known = Whitening.of_gradients(positions, gradients, weights)
    far = np.vstack([np.full(DIM, 50.0), positions]), np.vstack([np.full(DIM, 1e100), gradients])
    found = Whitening.of_gradients(*far, np.append(0.0, weights))
    np.testing.assert_allclose(found.factor, known.factor, atol=1e-12)
    np.testing.assert_allclose(found.mean, known.mean, atol=1e-9)
