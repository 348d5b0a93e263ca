"""A surrogate as a normalised density, and as a prior of other data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import CapabilityError, ConfigurationError, ShapeError

TIMES = np.linspace(0.0, 4.0, 12)
PARTS = {"sampler": "sub-chain", "surrogate": "additive"}
SETTINGS = {"seed": 1, "warmup": 300, "draws": 300, "progress": False}
POSITIVE = {"height": (0, None), "rate": (0, None)}
PRIOR = sk.gaussian_prior([2.0, 1.0], 1.0)


def curve(q):
    return q[0] * np.exp(-q[1] * TIMES)


def slopes(q):
    return np.column_stack([curve(q) / q[0], -TIMES * curve(q)])


def twice(function):
    return lambda q: np.concatenate([function(q), function(q)])


FIRST, SECOND = (
    curve([2.0, 0.7]) + 0.1 * np.random.default_rng(seed).normal(size=12) for seed in (1, 2)
)


@pytest.fixture(scope="module")
def model():
    near = {"height": (1, 3), "rate": (0.3, 1)}
    return sk.model(curve, slopes, parameters=POSITIVE, plausible=near)


@pytest.fixture(scope="module")
def run(model):
    target = model.posterior(data=FIRST, noise_sd=0.1, prior=PRIOR)
    return sk.sample(target, **PARTS, **SETTINGS)


@pytest.mark.long
def test_the_density_is_normalised_and_ends_where_the_support_does(run):
    axes = np.linspace(1.4, 2.6, 300), np.linspace(0.3, 1.2, 300)
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    grid = np.stack(np.meshgrid(*axes), axis=-1)
    assert np.exp(run.density.logpdf(grid)).sum() * cell == pytest.approx(1.0, abs=0.01)
    assert run.density.logpdf([-1.0, 0.5]) == -np.inf
    with pytest.raises(ShapeError):
        run.density.logpdf([1.0, 0.5, 0.2])


def test_its_gradient_is_that_of_its_logarithm(run):
    places, step = np.array([[2.1, 0.65], [1.9, 0.8]]), 1e-5
    values, gradients = run.density.value_and_gradient(places)
    assert_allclose(values, -run.density.logpdf(places))
    moved = places[:, None, None] + step * np.array([1.0, -1.0])[:, None] * np.eye(2)[:, None]
    logs = run.density.logpdf(moved)
    assert_allclose(gradients, (logs[..., 1] - logs[..., 0]) / (2 * step), rtol=1e-5)


@pytest.mark.long
def test_a_posterior_is_the_prior_of_the_next_data(run, model):
    """Means within 0.1 sd, and evidences that multiply, of one run on both."""
    after = sk.sample(
        model.posterior(data=SECOND, noise_sd=0.1, prior=run.density), **PARTS, **SETTINGS
    )
    both = sk.sample(
        sk.forward_potential(
            twice(curve),
            twice(slopes),
            data=np.concatenate([FIRST, SECOND]),
            noise_sd=0.1,
            prior=PRIOR,
            parameters=POSITIVE,
        ),
        **PARTS,
        **SETTINGS,
    )
    scales = both.draws.std(axis=(0, 1))
    assert_allclose((after.draws - both.draws.mean(axis=(0, 1))).mean((0, 1)) / scales, 0, atol=0.1)
    assert_allclose(after.draws.std(axis=(0, 1)) / scales, 1.0, atol=0.1)
    logs = [each.log_evidence().value for each in (run, after, both)]
    assert logs[0] + logs[1] == pytest.approx(logs[2], abs=0.03)
    assert after.log_evidence().unnormalized == ()


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_weighted_answers_have_a_density(model):
    target = model.posterior(data=FIRST, noise_sd=0.1, prior=PRIOR)
    weights = "weights", {"effective": 2000}
    found = sk.sample(
        target, **PARTS, correction=weights, max_calls=150, **SETTINGS | {"draws": None}
    )
    places = found.draws.reshape(-1, 2)
    error = found.density.logpdf(places) - (
        found.log_evidence().value * -1.0 - _potential(target, places)
    )
    assert np.median(np.abs(error)) < 0.05


def _potential(target, places):
    from surrokit.targets.bounds import transform_of

    line = transform_of(target).to_unbounded(places)
    return target.value(line) + transform_of(target).log_jacobian(line)


def test_what_has_no_density_is_refused(run):
    plain = sk.sample("gaussian", sampler="hmc", **SETTINGS)
    with pytest.raises(ConfigurationError, match=r"no surrogate.*name one in surrogate="):
        plain.density  # noqa: B018
    tied = sk.potential(
        log_density=lambda q: 3.0 * np.log(q).sum(),
        gradient=lambda q: 3.0 / q,
        parameters={"p": sk.simplex(3)},
    )
    with pytest.raises(ConfigurationError, match="tie numbers together"):
        sk.sample(tied, **PARTS, **SETTINGS).density  # noqa: B018


def test_a_surrogate_without_gradient_gives_values_alone(run):
    class Values:
        capabilities = frozenset()

        def value(self, q):
            return 0.5 * (q**2).sum(axis=1)

    import attrs

    bare = attrs.evolve(run.density, surrogate=Values())
    assert np.isfinite(bare.logpdf([2.0, 0.7]))
    with pytest.raises(CapabilityError, match="learn one that has"):
        bare.value_and_gradient(np.ones((1, 2)))
