"""Beyond the rows that a network has learnt from, its potential rises as densities fall."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose
from smooth import DIM, evaluations, gradient, potential

import surrokit as sk
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit_networks.border import TAIL


def learner(is_density=True, name="additive", **settings):
    surrogate = sk.make("surrogate", name, **{"ridge": 1e-4, "n_nodes": 60, **settings})
    problem = LearningProblem(dim=DIM, capabilities=frozenset({"gradient"}), is_density=is_density)
    return surrogate.learner(problem, np.random.default_rng(1))


def fitted(**how):
    learns = learner(**how)
    learns.observe(evaluations(120, gradients=True, spread=1.5))
    return learns.fit()


@pytest.fixture(scope="module", params=["additive", "rbf"])
def network(request):
    return fitted(name=request.param)


def at(network, *distances, seed=2):
    """Return positions at whitened distances, in parts of the radius, in random directions."""
    normals = np.random.default_rng(seed).standard_normal((len(distances), DIM))
    units = normals / np.linalg.norm(normals, axis=1)[:, None]
    border = network.border
    return border.whitening.undo(border.radius * np.array(distances)[:, None] * units)


def test_within_the_border_nothing_changes(network):
    inside = at(network, 0.2, 0.6, 0.99)
    plain = attrs.evolve(network, border=None)
    assert network.value(inside).tolist() == plain.value(inside).tolist()
    assert network.gradient(inside).tolist() == plain.gradient(inside).tolist()
    assert network.is_beyond(at(network, 0.5, 1.01, 0.99, 9.0)).tolist() == [False, True] * 2
    assert not network.is_beyond(
        evaluations(120, gradients=True, spread=1.5).positions * (1.0 - 1e-12)
    ).any()


def test_far_out_it_is_a_proper_tail(network):
    """The slope of V by log r is dim + TAIL, so the integral of exp(-V) r^(dim - 1) is finite."""
    near, far = at(network, 200.0, 2e4, seed=3), at(network, 400.0, 4e4, seed=3)
    rise = (network.value(far) - network.value(near)) / np.log(2.0)
    assert_allclose(rise, DIM + TAIL, rtol=0.01)
    assert (network.value(near) > network.value(at(network, 0.1))).all()


def test_gradients_are_those_of_the_values_everywhere(network):
    positions = at(network, 0.5, 0.999, 1.001, 1.1, 1.2, 1.4, 3.0)
    value, gradient = network.value_and_gradient(positions)
    assert_allclose(network.value(positions), value, rtol=1e-12)
    assert_allclose(gradient, network.gradient(positions), rtol=1e-12)
    step = 1e-6 * network.border.radius
    for k in range(DIM):
        move = step * np.eye(DIM)[k]
        rise = network.value(positions + move) - network.value(positions - move)
        assert_allclose(rise / (2 * step), gradient[:, k], atol=1e-4)
    # among many rows within, few beyond
    among = network.gradient(np.concatenate([at(network, *[0.5] * 40), positions]))[40:]
    assert_allclose(among, gradient, rtol=1e-9)


def test_where_the_network_overflows_the_tail_does_not(network):
    positions = np.array([[1e160, 0.0, 0.0], [0.0, -1e12, 1e12]])
    value, gradient = network.value_and_gradient(positions[1:])
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()
    with np.errstate(all="ignore"):
        assert not np.isnan(network.value(positions)).any()


def test_a_network_that_would_fall_for_ever_does_not():
    """Of rows on one side of the mode a linear trend makes a slope without end."""
    excluded = evaluations(120, gradients=True, spread=1.5).positions / 5.0 + np.array(
        [2.0, 0.0, 0.0]
    )
    shown = Evaluations(
        positions=excluded, values=potential(excluded), gradients=gradient(excluded)
    )
    lows = {}
    for is_density in (False, True):
        learns = learner(is_density, "rbf", trend="linear")
        learns.observe(shown)
        network = learns.fit()
        far = excluded.mean(axis=0) - np.array([[100.0, 0.0, 0.0], [1000.0, 0.0, 0.0]])
        lows[is_density] = network.value(far).min() - shown.values.min()
    assert lows[False] < -50.0
    assert lows[True] > 10.0


def test_a_fit_that_goes_on_widens_its_border():
    learns = learner(updates="greville", tail="full")
    learns.observe(evaluations(120, gradients=True, spread=1.5))
    first = learns.fit().border
    learns.observe(evaluations(60, seed=5, gradients=True, spread=1.5))
    same = learns.fit().border
    far = 1.3 * first.whitening.undo(first.radius * np.eye(DIM))
    learns.observe(Evaluations(positions=far, values=potential(far), gradients=gradient(far)))
    wider = learns.fit().border
    assert first.radius <= same.radius < wider.radius
    again = learner(updates="greville", tail="full").restore(learns.state()).fit().border
    assert (again.radius, again.height) == (wider.radius, wider.height)


@pytest.mark.parametrize("settings", [{"whiten": False}, {"is_density": False}])
def test_what_is_no_density_or_not_whitened_has_no_border(settings):
    assert fitted(**settings).border is None


@pytest.mark.long
def test_a_run_on_a_surrogate_of_a_heavy_tail_reaches_beyond_its_border():
    """Student's t with five degrees of freedom: proposals from the tail let chains get there."""
    target = sk.potential(
        lambda q: 3.5 * np.log1p(q @ q / 5.0), lambda q: 7.0 * q / (5.0 + q @ q), dim=2
    )
    run = sk.sample(
        target, sampler="sub-chain", surrogate="additive", explorer="rounds", seed=1, progress=False
    )
    sd = run.draws.std(axis=(0, 1))
    assert_allclose(sd, np.sqrt(5.0 / 3.0), rtol=0.1)
    assert run.acceptance.mean() > 0.8
