"""Forward maps in JAX."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import ConfigurationError, ResultTypeError, ShapeError
from surrokit.testing import check_potential
from surrokit_jax import forward_from_jax

TIMES = np.linspace(0.0, 2.0, 7)
SETTINGS = {
    "parameters": {"size": (0.0, None), "rate": (0.0, None)},
    "data": 3.0 * np.exp(-TIMES),
    "noise_sd": 0.2,
    "prior": sk.gaussian_prior(np.ones(2), np.ones(2)),
}


@pytest.fixture
def decay(jax):
    return lambda size, rate: size * jax.numpy.exp(-rate * TIMES)


@pytest.fixture
def target(decay):
    return forward_from_jax(decay, **SETTINGS)


def by_hand():
    def forward(q):
        return q[0] * np.exp(-q[1] * TIMES)

    def jacobian(q):
        shape = np.exp(-q[1] * TIMES)
        return np.stack([shape, -q[0] * TIMES * shape], axis=1)

    return sk.forward_potential(forward, jacobian, **SETTINGS)


@pytest.mark.parametrize("scale", ["estimate", sk.estimated([0] * 3 + [1] * 4)])
def test_errors_may_be_unknown(decay, scale, rng, differences):
    settings = {**SETTINGS, "data": 3.0 * np.exp(-TIMES), "noise_sd": scale}
    target = forward_from_jax(decay, **settings)
    plain = sk.forward_potential(lambda size, rate: size * np.exp(-rate * TIMES), **settings)
    z = rng.normal(size=(3, plain.dim))
    assert target.parameters.labels == plain.parameters.labels
    assert_allclose(target.value(z), plain.value(z), rtol=1e-12)
    slopes = differences(target.value, z)
    assert_allclose(target.value_and_gradient(z)[1], slopes, rtol=1e-5, atol=1e-5)


def test_the_contract_holds(jax):
    target = forward_from_jax(
        lambda q: jax.numpy.concatenate([q[1:] - q[:1], jax.numpy.sin(q)]),
        {"q": sk.interval(-3.0, 4.0, 2)},
        data=np.zeros(3),
        noise_sd=0.5,
    )
    results = check_potential(lambda: target)
    assert [result.name for result in results if result.outcome == "failed"] == []


def test_it_is_the_target_of_plain_functions_with_all_derivatives(target, rng):
    z, plain = rng.normal(size=(3, 2)), by_hand()
    assert_allclose(target.value(z), plain.value(z), rtol=1e-12)
    assert_allclose(target.value_and_gradient(z)[1], plain.value_and_gradient(z)[1], rtol=1e-9)
    assert_allclose(target.metric(z), plain.metric(z), rtol=1e-9)
    more = {"vjp", "metric-derivative"}
    assert target.capabilities == plain.capabilities | more
    run = sk.sample(target, sampler="hmc", warmup=50, draws=20, chains=2, seed=1, progress=False)
    expected = run["size"][..., None] * np.exp(-run["rate"][..., None] * TIMES)
    assert_allclose(run.outputs, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("order", "lacking"), [(0, {"gradient", "vjp"}), (1, {"metric-derivative"})]
)
def test_derivatives_may_be_limited(decay, order, lacking):
    assert not lacking & forward_from_jax(decay, derivatives=order, **SETTINGS).capabilities


def test_a_map_without_reverse_mode_offers_its_jacobian(jax):
    def loop(q):
        return jax.lax.fori_loop(
            0, jax.numpy.int64(3) + 0 * q[0].astype(int), lambda i, x: x * q[0], q
        )

    target = forward_from_jax(loop, dim=1, data=[1.0], noise_sd=1.0)
    assert "vjp" not in target.capabilities
    outputs, jacobian = target.forward_and_jacobian(np.full((1, 1), 2.0))
    assert_allclose([outputs[0, 0], jacobian[0, 0, 0]], [16.0, 32.0])


@pytest.mark.parametrize(
    ("forward", "settings", "error", "message"),
    [
        (lambda q: q[None], {}, ShapeError, "one vector of outputs"),
        (lambda q: q.astype("float32"), {}, ResultTypeError, "forward must return .* float32"),
        (lambda q: q, {"derivatives": 3}, ConfigurationError, "between 0 and 2"),
        (lambda q: q, {"data": None}, ConfigurationError, "data is missing"),
    ],
)
def test_what_cannot_be_a_map_is_refused(jax, forward, settings, error, message):
    with pytest.raises(error, match=message):
        forward_from_jax(forward, **{"dim": 2, "data": [0, 0], "noise_sd": 1.0, **settings})


def test_what_cannot_be_differentiated_is_told(jax):
    @jax.custom_vjp
    def once(q):
        return 2.0 * q

    def pull(_, weights):
        return (jax.pure_callback(lambda w: 2.0 * w, weights, weights, vmap_method="sequential"),)

    once.defvjp(lambda q: (once(q), None), pull)
    data = {"data": [0.0, 0.0], "noise_sd": 1.0, "dim": 2}
    target = forward_from_jax(once, **data)
    assert target.capabilities >= {"jacobian", "vjp"}
    assert "metric-derivative" not in target.capabilities
    with pytest.raises(ConfigurationError, match=r"differentiate forward twice.*derivatives=1"):
        forward_from_jax(once, derivatives=2, **data)

    def loop(q):
        return jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct((2,), "float64"), q)

    with pytest.raises(ConfigurationError, match=r"differentiate forward once.*derivatives=0"):
        forward_from_jax(loop, **data)
