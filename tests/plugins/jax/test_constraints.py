"""Maps from the line in JAX are those of the core, with which draws come back."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.coordinates import parameters as declare
from surrokit.coordinates.parameters import Parameters
from surrokit.coordinates.transforms import map_of
from surrokit_jax.constraints import to_user

KINDS = {
    "real": None,
    "above": (2.0, None),
    "positive": (0.0, None),
    "below": (None, -1.0),
    "between": (-1.0, 3.0),
    "vector": sk.positive(3),
    "simplex": declare.simplex(4),
    "ordered": declare.ordered(3),
    "unit_vector": declare.unit_vector(3),
    "circular": declare.circular((2,)),
    "correlation": declare.correlation(4),
}


@pytest.fixture(params=[[name] for name in KINDS] + [list(KINDS)], ids="-".join)
def parameters(request):
    return Parameters.declare({name: KINDS[name] for name in request.param})


@pytest.fixture
def positions(parameters, rng):
    return rng.normal(scale=2.0, size=(9, parameters.free))


def test_positions_and_volumes_are_those_of_the_core(jax, parameters, positions):
    q, log_jacobian = jax.vmap(lambda z: to_user(parameters, z))(positions)
    core = map_of(parameters)
    assert_allclose(q, core.to_bounded(positions), rtol=1e-12, atol=1e-13)
    assert_allclose(
        np.broadcast_to(log_jacobian, 9), core.log_jacobian(positions), rtol=1e-12, atol=1e-12
    )


def test_slopes_are_those_of_the_core(jax, parameters, positions, rng):
    core, weights = map_of(parameters), rng.normal(size=(9, parameters.dim))
    pulled = jax.vmap(jax.grad(lambda z, w: to_user(parameters, z)[0] @ w))(positions, weights)
    of_volume = jax.vmap(jax.grad(lambda z: 0.0 * z.sum() + to_user(parameters, z)[1]))(positions)
    assert_allclose(pulled, core.vjp(positions, weights), rtol=1e-9, atol=1e-12)
    assert_allclose(of_volume, core.volume(positions)[1], rtol=1e-9, atol=1e-12)


def test_the_slope_lasts_to_the_upper_bound(jax):
    """Near there 1 - q has few digits, and the slope must not be made of it."""
    parameters = Parameters.declare({"p": (0.0, 1.0)})
    slope = jax.grad(lambda z: to_user(parameters, z)[0][0])(np.array([30.0]))
    assert_allclose(slope, np.exp(-30.0) / (1.0 + np.exp(-30.0)) ** 2, rtol=1e-12)


@pytest.mark.parametrize("bounds", [(0.0, None), (None, 0.0), (-1.0, 1.0), (1.0, None)])
@pytest.mark.parametrize("z", [-760.0, 60.0, 745.0, -60.0])
def test_no_position_is_on_a_bound(jax, bounds, z):
    parameters = Parameters.declare({"p": bounds})
    q = float(jax.jit(lambda z: to_user(parameters, z)[0])(np.array([z]))[0])
    lower, upper = parameters.specs["p"].bounds
    assert lower < q < upper or np.isinf(q)


def test_curvature_is_right_at_the_middle(jax):
    parameters = Parameters.declare({"p": (0.0, 1.0), "c": declare.correlation(2)})
    of_volume = jax.hessian(lambda z: to_user(parameters, z)[1])(np.zeros(2))
    assert_allclose(of_volume, np.diag([-0.5, -2.0]), atol=1e-12)
