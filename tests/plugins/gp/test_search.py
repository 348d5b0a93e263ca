"""The search for hyperparameters."""

import attrs
import numpy as np
import pytest
from plain_observations import of_values

from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit_gp.fit.search import Search
from surrokit_gp.fit.space import Space
from surrokit_gp.kernel.hyperparameters import Hyperparameters, given_hyperparameters
from surrokit_gp.posterior.exact import exact_likelihood
from surrokit_gp.posterior.likelihood import Likelihood
from surrokit_gp.posterior.sparse import sparse_likelihood

SEARCH = Search(kernel_scales="isotropic", noise=None, n_starts=3, max_iterations=50)
PER_DIMENSION = attrs.evolve(SEARCH, kernel_scales="per-dimension")


@pytest.fixture
def observations(rng):
    """Draws from a process with length scales 1 and 3, signal 2 and noise 0.1."""
    positions = rng.uniform(-3.0, 3.0, (150, 2))
    scaled = positions / [1.0, 3.0]
    squares = np.square(scaled[:, None, :] - scaled).sum(axis=2)
    covariance = 4.0 * np.exp(-0.5 * squares) + 0.01 * np.eye(150)
    values = np.linalg.cholesky(covariance) @ rng.standard_normal(150)
    return of_values(positions, values)


def climbed(search, observations, rng=None, **options):
    def likelihood(hyperparameters, _):
        return exact_likelihood(observations, hyperparameters)

    starts = search.screen(observations, likelihood, rng or np.random.default_rng(0))
    return search.find(observations, likelihood, starts, **options).hyperparameters


def test_hyperparameters_of_draws_are_found(observations):
    found = climbed(PER_DIMENSION, observations)
    np.testing.assert_allclose(found.length_scales, [1.0, 3.0], rtol=0.3)
    assert found.signal_sd == pytest.approx(2.0, rel=0.4)
    assert found.noise_sd == pytest.approx(0.1, rel=0.2)


def test_what_is_found_is_a_maximum(observations):
    found = climbed(PER_DIMENSION, observations)
    at_top = exact_likelihood(observations, found)
    slopes = [*at_top.length_scales, at_top.signal, at_top.noise]
    np.testing.assert_allclose(slopes, 0.0, atol=0.5)  # curvatures are of the order of 100
    isotropic = exact_likelihood(observations, climbed(SEARCH, observations))
    assert isotropic.value < at_top.value


def test_fixed_noise_stays(observations):
    found = climbed(attrs.evolve(SEARCH, noise=0.3), observations)
    assert found.noise_sd == 0.3
    assert found.signal_sd > 1.0
    assert climbed(attrs.evolve(SEARCH, noise=0.0), observations).noise_sd == 0.0


def test_one_start_and_many(observations):
    values = []
    for n_starts in (1, 6):
        found = climbed(attrs.evolve(SEARCH, n_starts=n_starts), observations)
        values.append(exact_likelihood(observations, found).value)
    assert values[1] >= values[0] - 0.1


def test_iterations_are_limited(observations):
    calls = []

    def likelihood(hyperparameters, _):
        calls.append(hyperparameters)
        return exact_likelihood(observations, hyperparameters)

    search = attrs.evolve(SEARCH, max_iterations=2)
    starts = search.screen(observations, likelihood, np.random.default_rng(0))
    assert len(starts) == 3
    search.find(observations, likelihood, starts)
    few = len(calls)
    SEARCH.screen(observations, likelihood, np.random.default_rng(0))
    SEARCH.find(observations, likelihood, starts)
    assert few < 4 * 8
    assert len(calls) - few > 1.5 * few


def test_starts_that_fail_are_passed_over(observations):
    def picky(hyperparameters, _):
        if hyperparameters.length_scales > 2.0:
            raise SurrogateFitError("too long")
        return exact_likelihood(observations, hyperparameters)

    space = Space.of(observations, isotropic=True, noise=None)
    lengths = [np.exp(start[0]) for start in space.starts(3, np.random.default_rng(0))]
    assert min(lengths) < 2.0 < max(lengths)
    starts = SEARCH.screen(observations, picky, np.random.default_rng(0))
    assert 0 < len(starts) < 3
    long = attrs.evolve(starts[0], length_scales=5.0)
    found = SEARCH.find(observations, picky, [long, *starts])
    assert found.hyperparameters.length_scales <= 2.0
    every = SEARCH.find(observations, picky, [long, *starts], every=True)
    assert every.hyperparameters == found.hyperparameters


@pytest.mark.parametrize("kind", ["raises", "is not a number", "has no factor"])
def test_if_every_start_fails(observations, kind):
    def never(hyperparameters, _):
        if kind == "raises":
            raise SurrogateFitError("no luck")
        if kind == "has no factor":
            raise np.linalg.LinAlgError("no luck")
        return Likelihood(value=np.nan, length_scales=np.zeros(2), signal=0.0, noise=0.0)

    reason = "it is not finite" if kind == "is not a number" else "no luck"
    message = (
        f"could not be computed from any of 3 starts \\(the last reason: {reason}\\); use "
        "whiten=True and a larger noise, give hyperparameters, or rescale the parameters"
    )
    with pytest.raises(SurrogateFitError, match=message):
        SEARCH.screen(observations, never, np.random.default_rng(0))
    start = Hyperparameters(length_scales=1.0, signal_sd=1.0, noise_sd=1.0)
    with pytest.raises(SurrogateFitError, match="from any of 1 starts"):
        SEARCH.find(observations, never, [start])


def test_inducing_points_move_to_a_larger_likelihood(observations):
    inducing = observations.positions[:6]

    def likelihood(hyperparameters, moved):
        where = inducing if moved is None else moved
        return sparse_likelihood(observations, hyperparameters, where)

    start = Hyperparameters(length_scales=1.5, signal_sd=2.0, noise_sd=0.3)
    fixed = SEARCH.find(observations, likelihood, [start])
    assert fixed.inducing is None
    moved = SEARCH.find(observations, likelihood, [fixed.hyperparameters], inducing)
    assert moved.inducing.shape == inducing.shape
    before = likelihood(fixed.hyperparameters, None).value
    assert likelihood(moved.hyperparameters, moved.inducing).value > before + 10.0


@pytest.mark.parametrize("noise", [None, 0.2])
@pytest.mark.parametrize("isotropic", [True, False])
def test_vectors_and_hyperparameters(observations, isotropic, noise):
    space = Space.of(observations, isotropic, noise, observations.positions[:2])
    lengths = 1.5 if isotropic else (1.5, 0.7)
    values = Hyperparameters(length_scales=lengths, signal_sd=3.0, noise_sd=noise or 0.5)
    point = space.pack(values)
    assert len(point) == len(space.bounds) == (2 if isotropic else 3) + (noise is None) + 4
    again = space.hyperparameters(point)
    np.testing.assert_allclose(again.length_scales, lengths)
    assert (again.signal_sd, again.noise_sd) == (pytest.approx(3.0), noise or pytest.approx(0.5))
    np.testing.assert_array_equal(space.inducing(point), observations.positions[:2])
    for start in space.starts(5, np.random.default_rng(0)):
        low, high = zip(*space.bounds[:-4], strict=True)
        assert (np.array(low) <= start[:-4]).all()
        assert (start[:-4] <= np.array(high)).all()


def test_the_far_tail_does_not_set_the_scale(observations):
    values = observations.values.copy()
    values[:5] = 1e6
    tail_sd = np.zeros(150)
    tail_sd[:5] = 1e5
    spoilt = attrs.evolve(observations, values=values, tail_sd=tail_sd)
    assert Space.of(spoilt, isotropic=True, noise=None).height < 10.0


def test_values_that_are_all_equal_have_a_space(observations):
    equal = attrs.evolve(observations, values=np.full(150, 7.0), basis=np.ones((150, 1)))
    space = Space.of(equal, isotropic=True, noise=None)
    assert space.height > 0.0
    assert np.isfinite(space.starts(3, np.random.default_rng(0))).all()


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
    found = climbed(attrs.evolve(SEARCH, max_signal=max_signal), observations)
    height = np.sqrt(np.mean(values**2))
    assert found.signal_sd <= max_signal * height * (1 + 1e-9)
    assert (found.signal_sd > 6.0 * height) == (max_signal > 5.0)
