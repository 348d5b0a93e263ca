"""Hyperparameters as settings, as vectors, and as what a search finds."""

import attrs
import numpy as np
import pytest

from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit_gp.posterior import exact_likelihood
from surrokit_gp.rows import TrainingRows
from surrokit_gp.search import Hyperparameters, Space, given_hyperparameters, search


def of_values(positions, values, tail_sd=None):
    n = len(values)
    return TrainingRows(
        positions=positions,
        values=values,
        gradients=np.full_like(positions, np.nan),
        copies=np.ones(n),
        tail_sd=np.zeros(n) if tail_sd is None else tail_sd,
    )


@pytest.fixture
def observations(rng):
    """Draws from a process with length scale 1, signal 2 and noise 0.1."""
    positions = rng.uniform(-3.0, 3.0, (150, 2))
    squares = np.square(positions[:, None, :] - positions).sum(axis=2)
    covariance = 4.0 * np.exp(-0.5 * squares) + 0.01 * np.eye(150)
    values = np.linalg.cholesky(covariance) @ rng.standard_normal(150)
    return of_values(positions, values)


def climbed(observations, max_signal=5.0):
    """Return the hyperparameters that a search finds."""
    space = Space.of(observations, max_signal)

    def objective(vector):
        value, slopes = exact_likelihood(observations, space.unpack(vector))
        return value, space.slope(slopes, 2)

    return space.unpack(search(objective, space.starts, space.bounds, 50))


def test_hyperparameters_of_draws_are_found_at_a_maximum(observations):
    found = climbed(observations)
    assert found.length_scales == pytest.approx(1.0, rel=0.3)
    assert found.signal_sd == pytest.approx(2.0, rel=0.4)
    assert found.noise_sd == pytest.approx(0.1, rel=0.2)
    value = exact_likelihood(observations, found)[0]
    for name in ("length_scales", "signal_sd", "noise_sd"):  # curvatures are of the order of 100
        for factor in (0.9, 1.1):
            moved = attrs.evolve(found, **{name: factor * getattr(found, name)})
            assert exact_likelihood(observations, moved)[0] < value


def test_iterations_are_limited_and_starts_that_fail_passed_over():
    calls = []

    def hill(vector):
        calls.append(vector)
        if vector[0] > 1.0:
            raise SurrogateFitError("too long")
        return -np.square(vector).sum(), -2.0 * vector

    starts = np.array([[3.0, 0.0], [-4.0, 5.0], [0.5, 2.0]])
    found = search(hill, starts, np.array([[-5.0, 2.0], [-9.0, 9.0]]), 2)
    assert np.linalg.norm(found) < np.linalg.norm(starts[2])  # from the best of them
    assert len(calls) <= 3 + 2 * 2 + 2


@pytest.mark.parametrize("kind", ["raises", "is not a number", "has no factor"])
def test_if_every_start_fails(kind):
    def never(vector):
        if kind == "raises":
            raise SurrogateFitError("no luck")
        if kind == "has no factor":
            raise np.linalg.LinAlgError("no luck")
        return np.nan, np.zeros(3)

    reason = "it is not finite" if kind == "is not a number" else "no luck"
    message = f"from any of 3 starts \\(the last reason: {reason}\\); use whiten=True, give hyper"
    with pytest.raises(SurrogateFitError, match=message):
        search(never, np.zeros((3, 3)), np.array([[-1.0, 1.0]] * 3), 10)


def test_vectors_are_logarithms_of_hyperparameters(observations):
    space = Space.of(observations, 5.0)
    found = space.unpack(np.append(np.log([1.5, 3.0, 0.5]), 7.0))  # as of an inducing point
    assert (found.length_scales, found.signal_sd, found.noise_sd) == pytest.approx((1.5, 3.0, 0.5))
    np.testing.assert_array_equal(space.slope(np.array([1.0, 2.0, 3.0, 4.0, 9.0]), 2), [3, 3, 4, 9])
    assert (space.bounds[:, 0] <= space.starts).all()
    assert (space.starts <= space.bounds[:, 1]).all()


def test_the_far_tail_does_not_set_the_scale(observations):
    values, tail_sd = observations.values.copy(), np.zeros(150)
    values[:5], tail_sd[:5] = 1e6, 1e5
    spoilt = of_values(observations.positions, values, tail_sd=tail_sd)
    assert np.exp(Space.of(spoilt, 5.0).bounds[1, 1]) < 5.0 * 10.0


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
    one = attrs.evolve(found, length_scales=np.array(3.0))
    np.testing.assert_array_equal(one.scales(2), [3.0, 3.0])


@pytest.mark.parametrize("max_signal", [5.0, 1e3])
def test_the_signal_is_bounded_as_asked(rng, max_signal):
    # a quadratic is the limit of processes with ever longer scales and larger signals
    positions = rng.standard_normal((60, 2))
    values = 0.5 * np.square(positions).sum(axis=1)
    found = climbed(of_values(positions, values), max_signal=max_signal)
    height = np.sqrt(np.mean(values**2))
    assert found.signal_sd <= max_signal * height * (1 + 1e-9)
    assert (found.signal_sd > 6.0 * height) == (max_signal > 5.0)
