"""The two surrogates from settings to fitted potential."""

import pickle

import numpy as np
import pytest

from surrokit.capabilities import GRADIENT, GRADIENT_ALONE, HESSIAN
from surrokit.errors import ConfigurationError, ShapeError, SurrogateFitError
from surrokit.records import Evaluations, LearningProblem
from surrokit_networks import plugin
from surrokit_networks.additive import Additive
from surrokit_networks.rbf import Rbf

DIM = 3
COMPONENTS = {component.name: component for component in plugin.surrokit_register_surrogates()}
EXAMPLES = [
    (name, settings) for name in ("additive", "rbf") for settings in COMPONENTS[name].examples
]


def potential(positions):
    return 0.5 * (positions**2).sum(axis=1) + np.log1p(np.exp(positions[:, 0] - positions[:, 1]))


def gradient(positions):
    slope = 1.0 / (1.0 + np.exp(positions[:, 1] - positions[:, 0]))
    return positions + slope[:, None] * np.array([1.0, -1.0, 0.0])


def evaluations(n=150, seed=0, shift=0.0):
    positions = np.random.default_rng(seed).standard_normal((n, DIM))
    return Evaluations(positions=positions, values=potential(positions) + shift)


def learner(surrogate, seed=7, dim=DIM):
    problem = LearningProblem(dim=dim, capabilities=frozenset())
    return surrogate.learner(problem, np.random.default_rng(seed))


def fitted(surrogate, rows=None, seed=7):
    learns = learner(surrogate, seed)
    learns.observe(evaluations() if rows is None else rows)
    return learns.fitted()


@pytest.fixture(params=EXAMPLES, ids=[f"{name}-{settings}" for name, settings in EXAMPLES])
def surrogate(request):
    name, settings = request.param
    return COMPONENTS[name].factory(**settings)


@pytest.fixture(params=[Additive(), Rbf()], ids=["additive", "rbf"])
def default(request):
    return request.param


def test_every_example_is_a_potential(surrogate):
    network = fitted(surrogate)
    positions = np.random.default_rng(1).standard_normal((5, DIM))
    positions.setflags(write=False)
    value, slope = network.value_and_gradient(positions)
    np.testing.assert_allclose(network.value(positions), value, rtol=1e-12)
    np.testing.assert_allclose(network.gradient(positions), slope, rtol=1e-12)
    assert value.shape == (5,)
    assert slope.shape == (5, DIM)
    assert network.hessian(positions).shape == (5, DIM, DIM)
    assert network.gradient(positions) is not network.gradient(positions)
    assert network.dim == DIM
    assert network.n_points == 150


def test_defaults_learn_a_smooth_target(default):
    network = fitted(default)
    fresh = np.random.default_rng(2).standard_normal((200, DIM))
    error = network.gradient(fresh) - gradient(fresh)
    assert np.sqrt(np.mean(error**2)) < 0.1
    spread = np.var(network.value(fresh) - potential(fresh))
    assert spread < 0.02
    assert network.gcv_error < 10 * spread


def test_the_paper_s_scheme_learns_too():
    fresh = np.random.default_rng(2).standard_normal((200, DIM))
    for surrogate in (Additive.paper(200), Rbf.paper(200)):
        network = fitted(surrogate)
        assert network.ridge == 1e-6
        assert network.level == evaluations().values.min()
        assert np.corrcoef(network.value(fresh), potential(fresh))[0, 1] > 0.8


def test_the_paper_s_scheme_is_what_the_authors_code_computes():
    rows = evaluations(400)
    learns = learner(Additive.paper(50, ridge=1e-4))
    learns.observe(rows)
    nodes = learns.draw(400, np.random.default_rng(learns.seed))
    features = np.log1p(np.exp(rows.positions @ nodes.directions.T + nodes.biases))
    targets = rows.values - rows.values.min()
    weights = np.linalg.solve(features.T @ features + 1e-4 * np.eye(50), features.T @ targets)
    expected = features @ weights + rows.values.min()
    np.testing.assert_allclose(learns.fitted().value(rows.positions), expected, atol=1e-6)
    np.testing.assert_allclose(nodes.directions.std(), 1 / np.sqrt(DIM), rtol=0.2)


def test_widths_of_the_authors_code():
    learns = learner(Rbf.paper(4000))
    widths = learns.draw(1, np.random.default_rng(0)).square_widths
    np.testing.assert_allclose(np.mean(1.0 / widths), 1.0, rtol=0.1)  # chi2(1) has mean 1


def test_a_constant_changes_values_and_no_gradient(default):
    plain, shifted = fitted(default), fitted(default, evaluations(shift=1000.0))
    fresh = np.random.default_rng(3).standard_normal((20, DIM))
    difference = shifted.value(fresh) - plain.value(fresh)
    np.testing.assert_allclose(difference, 1000.0, rtol=1e-6)
    np.testing.assert_allclose(shifted.gradient(fresh), plain.gradient(fresh), atol=1e-4)


def test_affine_reparametrisation_changes_nothing(default):
    rng = np.random.default_rng(4)
    matrix = np.tril(rng.standard_normal((DIM, DIM))) + 3.0 * np.eye(DIM)
    rows = evaluations()
    moved = Evaluations(positions=rows.positions @ matrix.T - 40.0, values=rows.values)
    fresh = rng.standard_normal((20, DIM))
    one, other = fitted(default, rows), fitted(default, moved)
    np.testing.assert_allclose(other.value(fresh @ matrix.T - 40.0), one.value(fresh), atol=1e-4)
    # Gradients in q are those in the other coordinates times the matrix.
    back = other.gradient(fresh @ matrix.T - 40.0) @ matrix
    np.testing.assert_allclose(back, one.gradient(fresh), atol=1e-3)


def test_duplicates_and_failures_do_no_harm(default):
    rows = evaluations(60)
    again = np.r_[np.arange(60), np.full(500, 3)]
    values = np.append(rows.values[again], [np.inf, np.nan])
    positions = np.vstack([rows.positions[again], np.full((2, DIM), 50.0)])
    network = fitted(default, Evaluations(positions=positions, values=values))
    assert network.n_points == 60
    fresh = np.random.default_rng(5).standard_normal((100, DIM))
    assert np.sqrt(np.mean((network.gradient(fresh) - gradient(fresh)) ** 2)) < 0.5


def test_a_burn_in_far_away_does_no_harm():
    rows = evaluations(100)
    far = np.random.default_rng(6).standard_normal((20, DIM)) * 100.0
    # Quartic, so that no network that grows linearly could fit both.
    values = np.append(rows.values, potential(far) ** 2)
    together = Evaluations(positions=np.vstack([rows.positions, far]), values=values)
    fresh = np.random.default_rng(7).standard_normal((100, DIM))
    error = fitted(Additive(), together).gradient(fresh) - gradient(fresh)
    assert np.sqrt(np.mean(error**2)) < 0.3


def test_restored_learners_go_on_bit_for_bit(surrogate):
    first = learner(surrogate)
    first.observe(evaluations(80, seed=1))
    first.fitted()
    first.observe(evaluations(40, seed=2))
    state = first.state()
    second = learner(surrogate, seed=99).restored(state)
    for each in (first, second):
        each.observe(evaluations(30, seed=3))
    positions = np.random.default_rng(8).standard_normal((10, DIM))
    one, other = first.fitted(), second.fitted()
    np.testing.assert_array_equal(one.value(positions), other.value(positions))
    np.testing.assert_array_equal(one.gradient(positions), other.gradient(positions))
    assert {type(value) for value in state.values()} <= {int, np.ndarray}


def test_a_state_before_any_fit_is_restored():
    first = learner(Additive())
    assert learner(Additive(), seed=1).restored(first.state()).seed == first.seed


def test_the_first_fit_fixes_the_whitening_and_nodes_stay():
    learns = learner(Additive())
    learns.observe(evaluations(50))
    early = learns.fitted()
    learns.observe(evaluations(800, seed=9))
    late = learns.fitted()
    assert late.n_nodes >= early.n_nodes
    np.testing.assert_array_equal(late.nodes.arguments[:, : early.n_nodes], early.nodes.arguments)


@pytest.mark.parametrize("n_nodes", [20, 200])
def test_nodes_that_see_nothing_give_a_flat_network(n_nodes):
    rows = evaluations(50)
    away = Evaluations(positions=rows.positions + 1e4, values=rows.values)
    network = fitted(Rbf(whiten=False, n_nodes=n_nodes), away)
    np.testing.assert_allclose(network.value(away.positions), rows.values.mean())
    np.testing.assert_array_equal(network.gradient(away.positions), 0.0)


def test_networks_and_learners_can_be_pickled(surrogate):
    learns = learner(surrogate)
    learns.observe(evaluations())
    positions = np.random.default_rng(8).standard_normal((10, DIM))
    expected = learns.fitted().value(positions)
    for again in (pickle.loads(pickle.dumps(learns)).fitted(), learns.fitted()):
        network = pickle.loads(pickle.dumps(again))
        np.testing.assert_array_equal(network.value(positions), expected)


def test_seeds_decide(default):
    positions = np.zeros((1, DIM))
    rows = evaluations()
    assert fitted(default, rows, 1).value(positions) == fitted(default, rows, 1).value(positions)
    assert fitted(default, rows, 1).value(positions) != fitted(default, rows, 2).value(positions)


def test_what_a_learner_declares(default):
    learns = learner(default)
    assert learns.needs == learns.uses == {"value"}
    assert learns.provides == {GRADIENT, GRADIENT_ALONE, HESSIAN}
    assert fitted(default).capabilities == learns.provides


def test_repr_says_what_matters():
    text = repr(fitted(Additive(n_nodes=20)))
    assert text.startswith("FittedNetwork(dim=3, n_nodes=20, n_points=150, ridge=")
    assert "gcv_error=" in text


def test_too_few_points(default):
    learns = learner(default)
    with pytest.raises(SurrogateFitError, match="needs at least 5 distinct points"):
        learns.fitted()
    learns.observe(Evaluations(positions=np.eye(3), values=np.full(3, np.nan)))
    with pytest.raises(SurrogateFitError, match="got 0 \\(3 rows were observed, 3 of them not"):
        learns.fitted()


def test_the_fewest_points_give_a_fit(default):
    assert fitted(default, evaluations(5)).n_points == 5


def test_evaluations_of_another_dimension():
    with pytest.raises(ShapeError, match=r"must have shape \(n, 3\), got \(2, 4\); pass eval"):
        learner(Additive()).observe(Evaluations(positions=np.ones((2, 4)), values=np.ones(2)))


@pytest.mark.parametrize("method", ["value", "gradient", "value_and_gradient", "hessian"])
def test_positions_must_be_rows(method):
    network = fitted(Additive(n_nodes=20))
    with pytest.raises(
        ShapeError,
        match=r"positions must have shape \(n, 3\), got \(3,\); pass one row for each point",
    ):
        getattr(network, method)(np.zeros(3))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_nodes": 0}, "n_nodes must be a whole number of at least 1"),
        ({"n_nodes": 2.5}, "n_nodes must be a whole number of at least 1"),
        ({"weight_scale": 0.0}, "weight_scale must be a positive finite number, got 0.0"),
        ({"bias_scale": -1.0}, "bias_scale must be a positive finite number, got -1.0"),
        ({"ridge": -1.0}, "ridge must be a finite number that is not negative, or None, got -1.0"),
        ({"level": "mean"}, "level must be one of 'trained', 'minimum', got 'mean'"),
        ({"tail": "cut"}, "tail must be one of 'down-weighted', 'full', got 'cut'"),
        ({"activation": "relu"}, "activation must be one of softplus, tanh, cosine, or an Act"),
    ],
)
def test_impossible_settings_of_the_additive_network(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        plugin.additive(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width_scale": 0.0}, "width_scale must be a positive finite number, got 0.0"),
        ({"centre_scale": np.inf}, "centre_scale must be a positive finite number, got inf"),
        ({"widths": "wide"}, "widths must be one of 'dimension', 'chi-square', got 'wide'"),
    ],
)
def test_impossible_settings_of_the_radial_network(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        plugin.rbf(**settings)


def test_factories_have_the_defaults_of_the_classes():
    assert plugin.additive() == Additive()
    assert plugin.rbf() == Rbf()
