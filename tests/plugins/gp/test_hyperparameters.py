"""Hyperparameters as settings, as vectors, and as what a search finds."""

import attrs
import numpy as np
import pytest
from plain_observations import of_values

from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit_gp.exact import exact_likelihood
from surrokit_gp.fitc import sparse_likelihood
from surrokit_gp.hyperparameters import Hyperparameters, Space, given_hyperparameters, search


@pytest.fixture
def observations(rng):
    """Draws from a process with length scales 1 and 3, signal 2 and noise 0.1."""
    positions = rng.uniform(-3.0, 3.0, (150, 2))
    scaled = positions / [1.0, 3.0]
    squares = np.square(scaled[:, None, :] - scaled).sum(axis=2)
    covariance = 4.0 * np.exp(-0.5 * squares) + 0.01 * np.eye(150)
    values = np.linalg.cholesky(covariance) @ rng.standard_normal(150)
    return of_values(positions, values)


def space_of(observations, *, isotropic=True, noise=None, max_signal=5.0):
    return Space.of(observations, isotropic, noise, max_signal)


def exact(observations):
    return lambda values, _: exact_likelihood(observations, values)


def climbed(observations, n_starts=3, **settings):
    """Return the hyperparameters that a search from several starts finds."""
    space, likelihood = space_of(observations, **settings), exact(observations)
    starts = space.starts(n_starts, np.random.default_rng(0))
    ends = search(space, likelihood, starts, 10)
    starts = [space.pack(end.hyperparameters) for end in ends]
    return search(space, likelihood, starts, 50, every=False)[0].hyperparameters


def test_hyperparameters_of_draws_are_found_at_a_maximum(observations):
    found = climbed(observations, isotropic=False)
    np.testing.assert_allclose(found.length_scales, [1.0, 3.0], rtol=0.3)
    assert found.signal_sd == pytest.approx(2.0, rel=0.4)
    assert found.noise_sd == pytest.approx(0.1, rel=0.2)
    value, slope = exact_likelihood(observations, found)
    np.testing.assert_allclose(slope, 0.0, atol=0.5)  # curvatures are of the order of 100
    assert exact_likelihood(observations, climbed(observations))[0] < value
    one, many = (
        exact_likelihood(observations, climbed(observations, n_starts=n))[0] for n in (1, 6)
    )
    assert many >= one - 0.1


def test_fixed_noise_stays(observations):
    found = climbed(observations, noise=0.3)
    assert found.noise_sd == 0.3
    assert found.signal_sd > 1.0
    assert climbed(observations, noise=0.0).noise_sd == 0.0


def test_iterations_are_limited(observations):
    calls = []

    def counted(values, _):
        calls.append(values)
        return exact_likelihood(observations, values)

    space = space_of(observations)
    starts = space.starts(3, np.random.default_rng(0))
    assert len(search(space, counted, starts, 2)) == 3
    few = len(calls)
    search(space, counted, starts, 50)
    assert few < 3 * 8
    assert len(calls) - few > 1.5 * few


def test_starts_that_fail_are_passed_over(observations):
    def picky(values, _):
        if values.length_scales > 2.0:
            raise SurrogateFitError("too long")
        return exact_likelihood(observations, values)

    space = space_of(observations)
    starts = space.starts(3, np.random.default_rng(0))
    lengths = [np.exp(start[0]) for start in starts]
    assert min(lengths) < 2.0 < max(lengths)
    ends = search(space, picky, starts, 10)
    assert 0 < len(ends) < 3
    long = attrs.evolve(ends[0].hyperparameters, length_scales=5.0)
    starts = [space.pack(values) for values in (long, *(end.hyperparameters for end in ends))]
    first = search(space, picky, starts, 50, every=False)
    assert len(first) == 1
    assert first[0].hyperparameters.length_scales <= 2.0
    assert search(space, picky, starts, 50)[0].hyperparameters == first[0].hyperparameters


@pytest.mark.parametrize("kind", ["raises", "is not a number", "has no factor"])
def test_if_every_start_fails(observations, kind):
    def never(values, _):
        if kind == "raises":
            raise SurrogateFitError("no luck")
        if kind == "has no factor":
            raise np.linalg.LinAlgError("no luck")
        return np.nan, np.zeros(4)

    reason = "it is not finite" if kind == "is not a number" else "no luck"
    message = f"from any of 3 starts \\(the last reason: {reason}\\); use whiten=True and a larger"
    space = space_of(observations)
    with pytest.raises(SurrogateFitError, match=message):
        search(space, never, space.starts(3, np.random.default_rng(0)), 10)


def test_inducing_points_move_to_a_larger_likelihood(observations):
    inducing = observations.rows.positions[:6]

    def likelihood(values, moved):
        return sparse_likelihood(observations, values, inducing if moved is None else moved)

    space = space_of(observations)
    start = Hyperparameters(length_scales=1.5, signal_sd=2.0, noise_sd=0.3)
    fixed = search(space, likelihood, [space.pack(start)], 50)[0]
    assert fixed.inducing is None
    start = space.pack(fixed.hyperparameters)
    moved = search(space, likelihood, [start], 50, inducing)[0]
    assert moved.inducing.shape == inducing.shape
    before = likelihood(fixed.hyperparameters, None)[0]
    assert likelihood(moved.hyperparameters, moved.inducing)[0] > before + 10.0


@pytest.mark.parametrize("noise", [None, 0.2])
@pytest.mark.parametrize("isotropic", [True, False])
def test_vectors_and_hyperparameters(observations, isotropic, noise):
    space = space_of(observations, isotropic=isotropic, noise=noise)
    lengths = 1.5 if isotropic else (1.5, 0.7)
    values = Hyperparameters(length_scales=lengths, signal_sd=3.0, noise_sd=noise or 0.5)
    again = space.unpack(space.pack(values))
    np.testing.assert_allclose(again.length_scales, lengths)
    assert (again.signal_sd, again.noise_sd) == (pytest.approx(3.0), noise or pytest.approx(0.5))
    for start in space.starts(5, np.random.default_rng(0)):
        assert (space.bounds[:, 0] <= start).all()
        assert (start <= space.bounds[:, 1]).all()


def test_the_far_tail_does_not_set_the_scale(observations):
    values, tail_sd = observations.rows.values.copy(), np.zeros(150)
    values[:5], tail_sd[:5] = 1e6, 1e5
    spoilt = of_values(observations.rows.positions, values, tail_sd=tail_sd)
    assert space_of(spoilt).height < 10.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"length_scales": 0.0}, "length_scales must be a positive finite number, or one for each"),
        ({"length_scales": (1.0, -1.0)}, r"one for each coordinate, got \(1.0, -1.0\)"),
        ({"length_scales": ()}, r"one for each coordinate, got \(\)"),
        ({"length_scales": "long"}, "one for each coordinate, got 'long'"),
        ({"length_scales": np.inf}, "one for each coordinate, got inf"),
        ({"signal_sd": 0.0}, "signal_sd must be a positive finite number, got 0.0"),
        ({"noise_sd": -1.0}, "noise_sd must be a finite number of at least 0, got -1.0"),
    ],
)
def test_impossible_hyperparameters(settings, message):
    given = {"length_scales": 1.0, "signal_sd": 1.0, "noise_sd": 1.0, **settings}
    with pytest.raises(ConfigurationError, match=message):
        Hyperparameters(**given)


def test_hyperparameters_from_arrays_and_mappings():
    values = {"length_scales": np.array([1.0, 2.0]), "signal_sd": 1.0, "noise_sd": 0.0}
    found = given_hyperparameters(values)
    assert found == Hyperparameters(length_scales=[1.0, 2.0], signal_sd=1.0, noise_sd=0.0)
    np.testing.assert_array_equal(found.scales(2), [1.0, 2.0])
    one = attrs.evolve(found, length_scales=np.array(3.0))
    assert one.length_scales == 3.0
    np.testing.assert_array_equal(one.scales(2), [3.0, 3.0])
    assert given_hyperparameters(None) is None


@pytest.mark.parametrize("max_signal", [5.0, 1e3])
def test_the_signal_is_bounded_as_asked(rng, max_signal):
    # a quadratic is the limit of processes with ever longer scales and larger signals
    positions = rng.standard_normal((60, 2))
    values = 0.5 * np.square(positions).sum(axis=1)
    observations = of_values(positions, values)
    found = climbed(observations, max_signal=max_signal)
    height = np.sqrt(np.mean(values**2))
    assert found.signal_sd <= max_signal * height * (1 + 1e-9)
    assert (found.signal_sd > 6.0 * height) == (max_signal > 5.0)
