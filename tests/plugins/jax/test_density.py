"""Log densities in JAX: ways to give them, derivatives, draws, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import surrokit as sk
from surrokit.coordinates import parameters as declare
from surrokit.errors import ConfigurationError, ResultTypeError, ShapeError
from surrokit.result.density import SurrogateDensity
from surrokit.targets.bounds import transform_of
from surrokit.testing import check_potential
from surrokit_jax import from_jax

PARAMETERS = {"mu": None, "tau": (0.0, None), "w": sk.interval(-1.0, 2.0, 3)}


def density(mu, tau, w):
    """Any smooth function, also of NumPy's arrays."""
    return -0.5 * mu**2 / tau - tau - (w**4).sum() + mu * w[0] * w[1]


def of_vector(q):
    return density(q[0], q[1], q[2:])


@pytest.fixture
def target(jax):
    return from_jax(density, PARAMETERS)


@pytest.fixture
def positions(rng):
    return rng.normal(size=(5, 5))


def test_values_are_those_of_plain_functions_and_of_one_vector(target, positions):
    plain = sk.potential(log_density=of_vector, parameters=PARAMETERS)
    assert_allclose(target.value(positions), plain.value(positions), rtol=1e-12)
    assert_array_equal(from_jax(of_vector, PARAMETERS).value(positions), target.value(positions))
    assert sk.check_gradient(target, [0.3, 0.7, 0.1, -0.2, 1.5]).ok


def test_a_number_of_numbers_is_enough(jax):
    for target in (
        from_jax(lambda q: -(q @ q), dim=3),
        sk.make("potential", "jax", log_density=lambda q: -(q @ q), dim=3),
    ):
        assert_allclose(target.value(np.ones((2, 3))), 3.0)
        assert list(target.parameters.specs) == ["q"]


def test_an_example_declares_names_and_shapes(jax):
    tree = {"layer": {"weights": np.zeros((2, 3)), "bias": 0.0}, "scale": [np.zeros(2)]}

    def log_density(tree):
        assert tree["layer"]["weights"].shape == (2, 3)
        return tree["layer"]["bias"] + 10.0 * tree["layer"]["weights"][1, 2] - tree["scale"][0][1]

    target = from_jax(log_density, example=tree)
    assert list(target.parameters.specs) == ["layer.bias", "layer.weights", "scale.0"]
    values = {"layer.bias": 1.0, "layer.weights": np.arange(6.0).reshape(2, 3), "scale.0": [7, 9]}
    assert_allclose(target.value(target.parameters.position(values)[None]), -(1.0 + 50.0 - 9.0))


@pytest.mark.long
@pytest.mark.parametrize("tied", [False, True])
def test_the_contract_holds(jax, target, tied):
    def log_density(p, c):
        return 3.0 * jax.numpy.log(p[0]) + jax.numpy.log(p).sum() - c[0, 1] ** 2

    if tied:
        target = from_jax(log_density, {"p": declare.simplex(3), "c": declare.correlation(3)})
    for each in (target,) if tied else (target, target.inner):
        results = check_potential(lambda each=each: each)  # one, or each is compiled anew
        assert [result.message for result in results if result.outcome != "passed"] == []


def test_what_cannot_be_differentiated_so_often_offers_less(jax):
    """An adjoint of a program outside, and one by differential equations: traces do not tell."""
    from jax.experimental.ode import odeint

    @jax.custom_vjp
    def once(q):
        return -(q @ q)

    def pull(q, weight):
        slope = jax.pure_callback(lambda q: -2.0 * q, q, q, vmap_method="sequential")
        return (weight * slope,)

    once.defvjp(lambda q: (once(q), q), pull)
    target = from_jax(once, dim=2)
    assert target.capabilities == {"gradient"}
    assert_allclose(target.value_and_gradient(np.ones((3, 2)))[1], 2.0)

    def decay(q):
        times = np.array([0.0, 1.0])
        return -(odeint(lambda y, t, rate: -(rate**2) * y, np.ones(1), times, q[0])[1] ** 2).sum()

    target = from_jax(decay, dim=1)
    assert target.capabilities == {"gradient"}
    slope = target.value_and_gradient(np.ones((1, 1)))[1]
    assert_allclose(slope, -4.0 * np.exp(-2.0), rtol=1e-6)

    def endless(q):
        return jax.lax.while_loop(lambda x: x < 3.0, lambda x: x + 1.0, q[0])

    with pytest.raises(ConfigurationError, match=r"differentiate log_density: .* for its values"):
        from_jax(endless, dim=2)


def test_draws_come_back_in_the_users_coordinates(jax, tmp_path):
    """Means of a gamma and of a Dirichlet distribution, at five standard errors."""
    jnp = jax.numpy

    def log_density(rate, p):
        return jnp.log(rate) - rate + (jnp.array([2.0, 1.0, 0.0]) * jnp.log(p)).sum()

    target = from_jax(log_density, {"rate": (0.0, None), "p": declare.simplex(3)})
    path = tmp_path / "run.surrokit"
    run = sk.sample(target, sampler="hmc", draws=500, warmup=300, seed=3, progress=False, path=path)
    assert run["p"].shape == (4, 500, 3)
    assert_allclose(run["p"].sum(axis=2), 1.0)
    for draws, mean in ((run["rate"], 2.0), (run["p"][..., 0], 0.5), (run["p"][..., 2], 1 / 6)):
        error = draws.std() / np.sqrt(sk.effective_sample_size(draws[..., None], "bulk")[0])
        assert abs(draws.mean() - mean) < 5.0 * error
    more = sk.resume(path, target, draws=510, progress=False)
    assert_array_equal(more.draws[:, :500], run.draws)


@pytest.mark.parametrize("bounds", [(0.0, None), (None, 0.0)])
def test_a_position_beside_a_bound_of_0_is_not_on_it(jax, bounds):
    """Denormal numbers are 0 to JAX."""
    target = from_jax(lambda p: jax.numpy.log(jax.numpy.abs(p)), {"p": bounds})
    values, gradients = target.value_and_gradient(np.array([[-800.0]]))
    assert_allclose(values, 800.0 - np.log(np.finfo(float).tiny))
    assert np.isfinite(gradients).all()


def test_single_precision_is_refused(jax):
    with pytest.raises(ResultTypeError, match=r"double precision \(float64\), got float32"):
        from_jax(lambda q: q.astype("float32").sum(), dim=2)
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(ConfigurationError, match=r'jax.config.update\("jax_enable_x64", True\)'):
        from_jax(density, PARAMETERS)


GAMMA = {"rate": declare.positive(prior=stats.gamma(2.0))}


@pytest.mark.parametrize(
    ("function", "settings", "error", "message"),
    [
        (lambda q: q, {"dim": 2}, ShapeError, r"one number .* array of shape \(2,\)"),
        (lambda q: (q[0], q[1]), {"dim": 2}, ConfigurationError, "must return one array"),
        (lambda q: np.sin(np.asarray(q)).sum(), {"dim": 2}, ConfigurationError, "cannot be traced"),
        (lambda q: 1.0 if q[0] > 0 else 0.0, {"dim": 2}, ConfigurationError, "cannot be traced"),
        (lambda q: q[0], {"dim": 2, "example": 1.0}, ConfigurationError, "leave parameters"),
        (lambda q: q[0], {}, ConfigurationError, "pass dim="),
        (lambda a, b: a, {"parameters": {"x": None}}, ConfigurationError, "takes a, b"),
        (lambda q: q["a"], {"example": {"a": "text"}}, ConfigurationError, "arrays or numbers"),
        (lambda q: q["a"], {"example": {"a.b": 0, "a": {"b": 0}}}, ConfigurationError, "traced"),
        ("f", {"dim": 2}, ConfigurationError, "must be a function"),
        (
            lambda rate: -rate,
            {"parameters": GAMMA},
            ConfigurationError,
            r"prior of 'rate'.*jax\.scipy\.stats",
        ),
    ],
)
def test_what_cannot_be_a_target_is_refused(jax, function, settings, error, message):
    with pytest.raises(error, match=message):
        from_jax(function, **settings)


@pytest.mark.long
def test_the_enzyme_of_the_tutorial_runs(jax, run_example):
    names = run_example("jax_enzyme.py")
    assert 180.0 < names["run"]["top"].mean() < 240.0
    assert names["target"].dim == 2


def test_the_density_of_a_run_is_a_function_for_jax(jax):
    surrogate = sk.potential(
        lambda q: 0.5 * q @ q, lambda q: q, parameters={"a": None, "b": (0.0, None)}
    )
    density = SurrogateDensity(
        surrogate=surrogate, transform=transform_of(surrogate), log_constant=1.5
    )
    at, logpdf = np.array([[0.3, 0.5], [1.0, 0.2]]), density.to_jax()
    values, gradients = density.value_and_gradient(at)
    assert_allclose(jax.jit(logpdf)(at[0]), -values[0])
    found = jax.vmap(jax.value_and_grad(logpdf))(at)
    assert_allclose(found[0], -values)
    assert_allclose(found[1], -gradients)
