"""Surrogates in scikit-learn's form, beyond what its own checks look at."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

import surrokit_sklearn
from surrokit.capabilities import GRADIENT, HESSIAN
from surrokit.compose import make
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.registry.catalogue import default_catalogue
from surrokit_sklearn import (
    AdditiveNetworkRegressor,
    FITCRegressor,
    GPRegressor,
    RBFNetworkRegressor,
)
from surrokit_sklearn.regressors import SURROGATES

DIM = 3
REGRESSORS = [
    AdditiveNetworkRegressor(n_nodes=150, random_state=3),
    RBFNetworkRegressor(n_nodes=150, random_state=3),
    GPRegressor(max_iterations=15, n_search=100, random_state=3),
    FITCRegressor(max_iterations=15, n_search=100, random_state=3),
]
NETWORKS, PROCESSES = REGRESSORS[:2], REGRESSORS[2:]
ON_PURPOSE = {"tail": "full", "trend": "constant", "mean": "constant"}
"""Defaults that make sense for any target, where those of a potential do not."""


def named(regressor):
    return type(regressor).__name__


def function(inputs):
    return 3.0 - np.square(inputs).sum(axis=1) + np.sin(inputs[:, 0])


def slopes(inputs):
    return -2.0 * inputs + np.cos(inputs[:, :1]) * np.array([1.0, 0.0, 0.0])


def data(n=90, seed=0, noise=0.0):
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(-2.0, 2.0, (n, DIM))
    return inputs, function(inputs) + noise * rng.standard_normal(n)


NEW = data(20, seed=9)[0]
MIDDLE = np.random.default_rng(9).uniform(-1.5, 1.5, (200, DIM))


@pytest.fixture(params=REGRESSORS, ids=named)
def regressor(request):
    return clone(request.param)


@pytest.fixture(params=NETWORKS, ids=named)
def network(request):
    return clone(request.param)


@pytest.fixture(params=PROCESSES, ids=named)
def process(request):
    return clone(request.param)


# --- what they are ---


def test_parameters_are_the_settings_of_the_surrogate(regressor):
    settings = default_catalogue().get("surrogate", SURROGATES[named(regressor)]).settings()
    own = {
        name: parameter.default
        for name, parameter in inspect.signature(type(regressor)).parameters.items()
    }
    assert own.pop("random_state") is None
    defaults = {name: setting.default for name, setting in settings.items()}
    assert own == defaults | {k: v for k, v in ON_PURPOSE.items() if k in settings}
    for name, setting in settings.items():
        assert f"{name} : " in type(regressor).__doc__
        assert setting.help in type(regressor).__doc__


def test_they_are_imported_from_the_package():
    assert surrokit_sklearn.GPRegressor is GPRegressor
    with pytest.raises(AttributeError, match="has no attribute 'Regressor'"):
        surrokit_sklearn.Regressor  # noqa: B018


def test_a_smooth_function_is_learnt(regressor):
    regressor.fit(*data(200))
    assert HESSIAN in regressor.surrogate_.capabilities
    assert regressor.surrogate_.quality.n_points > 0
    assert regressor.score(MIDDLE, function(MIDDLE)) > 0.97
    error = regressor.predict_gradient(MIDDLE) - slopes(MIDDLE)
    assert np.linalg.norm(error) < 0.25 * np.linalg.norm(slopes(MIDDLE))


def test_gradients_are_those_of_predictions(regressor, differences):
    regressor.fit(*data())
    expected = differences(regressor.predict, MIDDLE[:5], step=1e-4)
    found = regressor.predict_gradient(MIDDLE[:5])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_clones_and_pickles(regressor):
    inputs, targets = data()
    regressor.fit(inputs, targets)
    expected = regressor.predict(inputs)
    copy = pickle.loads(pickle.dumps(regressor))
    np.testing.assert_array_equal(copy.predict(inputs), expected)
    np.testing.assert_array_equal(
        copy.partial_fit(inputs[:1], targets[:1]).predict(inputs),
        regressor.partial_fit(inputs[:1], targets[:1]).predict(inputs),
    )
    fresh = clone(regressor)
    assert not hasattr(fresh, "surrogate_")
    np.testing.assert_array_equal(fresh.fit(inputs, targets).predict(inputs), expected)


def test_pipelines_and_grid_searches(network):
    inputs, targets = data(60)
    name = named(network).lower()
    grid = {f"{name}__n_nodes": [5, 80], f"{name}__ridge": [1e-6, 1e4]}
    made = make_pipeline(StandardScaler(), network)
    search = GridSearchCV(made, grid, cv=KFold(3), error_score="raise").fit(inputs, targets)
    assert search.best_params_ == {f"{name}__n_nodes": 80, f"{name}__ridge": 1e-6}
    assert search.best_score_ > 0.5


# --- more rows ---


def test_a_partial_fit_is_a_fit_to_all(regressor):
    inputs, targets = data()
    whole = clone(regressor).fit(inputs, targets)
    parts = clone(regressor).partial_fit(inputs[:40], targets[:40])
    parts.partial_fit(inputs[40:41], targets[40:41]).partial_fit(inputs[41:], targets[41:])
    np.testing.assert_allclose(parts.predict(NEW), whole.predict(NEW), rtol=1e-10)
    np.testing.assert_allclose(
        parts.predict_gradient(NEW), whole.predict_gradient(NEW), rtol=1e-10, atol=1e-10
    )
    again = clone(regressor).fit(inputs[:30], -targets[:30]).fit(inputs, targets)
    np.testing.assert_array_equal(again.predict(NEW), whole.predict(NEW))


_ONE_SCALE = {
    "AdditiveNetworkRegressor": {"weight_scale": 1.0},
    "RBFNetworkRegressor": {"width_scale": 2.0},
}


def online_learner(network):
    """What a surrogate of the same settings and seed learns by."""
    settings = network.get_params()
    seed = int(check_random_state(settings.pop("random_state")).randint(2**31 - 1))
    problem = LearningProblem(dim=DIM, capabilities=frozenset({GRADIENT}))
    surrogate = make("surrogate", SURROGATES[named(network)], **settings)
    return surrogate.learner(problem, np.random.default_rng(seed))


@pytest.mark.parametrize("with_gradients", [False, True])
def test_a_partial_fit_can_go_on_learning_online(network, with_gradients):
    """It equals the surrogate's own online learner, and a fit to all rows in the first frame."""
    inputs, targets = data()
    known = slopes(inputs) if with_gradients else None
    network.set_params(n_nodes=40, ridge=1e-4, updates="greville", **_ONE_SCALE[named(network)])
    learner = online_learner(network)
    sizes = []
    for i in range(0, 90, 30):
        rows = slice(i, i + 30)
        part = None if known is None else known[rows]
        network.partial_fit(inputs[rows], targets[rows], part)
        learner.observe(Evaluations(positions=inputs[rows], values=targets[rows], gradients=part))
        surrogate = learner.fit()
        sizes.append(len(pickle.dumps(network)))
    np.testing.assert_array_equal(network.predict(NEW), surrogate.value(NEW))
    np.testing.assert_array_equal(network.predict_gradient(NEW), surrogate.gradient(NEW))
    assert sizes[2] - sizes[1] <= 30 * DIM * 8  # of rows positions alone are kept
    # A fit to all rows differs in its frame alone: without whitening and trend there is none.
    network.set_params(whiten=False, level="minimum", trend="constant", draws="gaussian")
    whole = clone(network).fit(inputs, targets, known)
    low = int(np.argmin(targets))  # the level is that of the first rows
    order = np.r_[low, np.delete(np.arange(90), low)]
    parts = clone(network)
    for rows in np.split(order, 3):
        parts.partial_fit(inputs[rows], targets[rows], None if known is None else known[rows])
    np.testing.assert_allclose(parts.predict(NEW), whole.predict(NEW), rtol=1e-6)


# --- gradients, weights, several outputs ---


def test_gradients_help(network):
    inputs, targets = data(20)
    some = slopes(inputs)
    some[::2] = np.nan

    def error(gradients):
        fitted = clone(network).fit(inputs, targets, gradients=gradients)
        return np.std(fitted.predict(MIDDLE) - function(MIDDLE))

    assert error(slopes(inputs)) < error(some) < error(None)
    parts = clone(network).fit(inputs[:10], targets[:10], slopes(inputs[:10]))
    parts.partial_fit(inputs[10:], targets[10:])  # without gradients after rows with some
    assert 0.0 < np.std(parts.predict(MIDDLE) - function(MIDDLE)) < error(None)


def test_a_weight_counts_as_so_many_rows(regressor):
    inputs, targets = data(120, seed=1, noise=0.3)
    weights = np.random.default_rng(2).integers(0, 3, len(inputs))
    weighted = regressor.fit(inputs, targets, sample_weight=weights)
    found = weighted.predict(NEW, return_std=True)
    repeated = clone(regressor).fit(inputs.repeat(weights, axis=0), targets.repeat(weights))
    assert np.allclose(found, repeated.predict(NEW, return_std=True), rtol=1e-9)
    plain = clone(regressor).fit(inputs, targets)
    assert not np.allclose(found[0], plain.predict(NEW))
    ones = clone(regressor).fit(inputs, targets, sample_weight=np.ones(len(inputs)))
    assert np.array_equal(ones.predict(NEW), plain.predict(NEW))
    parts = clone(regressor).fit(inputs[:60], targets[:60], sample_weight=weights[:60])
    parts.partial_fit(inputs[60:], targets[60:], sample_weight=weights[60:])
    assert np.allclose(parts.predict(NEW), found[0])


def test_several_outputs_are_learnt_at_once(regressor):
    inputs, targets = data()
    both = np.column_stack([targets, inputs[:, 1] ** 2])
    bent = np.zeros_like(inputs)
    bent[:, 1] = 2.0 * inputs[:, 1]
    gradients = np.stack([slopes(inputs), bent], axis=1)
    found = regressor.fit(inputs, both, gradients=gradients)
    std = found.predict(NEW, return_std=True)[1]
    for k in range(2):
        alone = clone(regressor).fit(inputs, both[:, k], gradients=gradients[:, k])
        assert np.array_equal(found.predict(NEW)[:, k], alone.predict(NEW))
        assert np.array_equal(found.predict_gradient(NEW)[:, k], alone.predict_gradient(NEW))
        assert np.array_equal(std[:, k], alone.predict(NEW, return_std=True)[1])
    assert len(found.surrogate_) == 2
    assert found.score(NEW, np.column_stack([function(NEW), NEW[:, 1] ** 2])) > 0.9
    more, values = data(20, seed=4)
    found.partial_fit(more, np.column_stack([values, more[:, 1] ** 2]))
    assert found.predict(NEW).shape == (20, 2)
    with pytest.raises(ValueError, match="as many columns as in the first fit, 2, got 1"):
        found.partial_fit(more, values)


# --- standard deviations ---


def test_standard_deviations_of_processes_grow_away_from_the_data(process):
    process.fit(*data())
    mean, std = process.predict(NEW, return_std=True)
    np.testing.assert_array_equal(mean, process.predict(NEW))
    assert std.shape == (20,)
    assert (std > 0.0).all()
    _, far = process.predict(NEW + 10.0, return_std=True)
    assert far.min() > std.max()


@pytest.mark.statistical
def test_standard_deviations_of_networks_are_those_of_errors(network):
    """Twelve fits to other noise: the mean square of errors in units of these is near 1.

    A mean of 12 fits' mean squares, each of about 20 parameters, is wrong by 0.2 at most in 99.9
    of 100 cases; what the network cannot be comes on top.
    """
    rng = np.random.default_rng(3)
    inputs = rng.uniform(-2.0, 2.0, (150, 2))
    new = rng.uniform(-1.7, 1.7, (50, 2))
    squares = []
    for seed in range(12):
        noise = np.random.default_rng(seed).standard_normal(150)
        targets = inputs[:, 0] - inputs[:, 1] ** 2 + 0.3 * noise
        fitted = network.set_params(n_nodes=60, random_state=0)
        fitted.fit(inputs, targets, sample_weight=np.full(150, 4.0))
        mean, std = fitted.predict(new, return_std=True)
        squares.append(np.square((mean - new[:, 0] + new[:, 1] ** 2) / std).mean() / 4.0)
    assert 0.5 < np.mean(squares) < 1.6


def test_the_posterior_of_the_linear_layer_is_that_of_a_ridge_regression(network):
    """With nodes as features: s^2 phi' (H'H + lambda I)^-1 phi, the level free of the ridge."""
    inputs, targets = data(120, seed=1, noise=0.3)
    settings = {"n_nodes": 12, "ridge": 0.3, **_ONE_SCALE[named(network)]}
    fitted = network.set_params(**settings).fit(inputs, targets)
    learner = online_learner(network)
    learner.observe(Evaluations(positions=inputs, values=targets))
    frame = learner.make_fit(keeps_idle=False).frame

    def features(at):
        columns = frame.basis.features(frame.whitening.apply(at))
        return np.column_stack([np.ones(len(at)), columns])

    held = np.diag([0.0, *[0.3] * 12])
    matrix = features(inputs).T @ features(inputs) + held
    right = features(inputs).T @ targets
    left = targets - features(inputs) @ np.linalg.solve(matrix, right)
    degrees = np.trace(np.linalg.solve(matrix, features(inputs).T @ features(inputs)))
    noise = left @ left / (len(targets) - degrees)
    phi = features(NEW)
    expected = noise * np.einsum("ni,ij,nj->n", phi, np.linalg.inv(matrix), phi)
    mean, std = fitted.predict(NEW, return_std=True)
    assert np.allclose(mean, phi @ np.linalg.solve(matrix, right))
    assert np.allclose(std**2, expected)


# --- what is refused ---


def test_standard_deviations_need_the_rows():
    online = AdditiveNetworkRegressor(n_nodes=20, updates="greville", random_state=0)
    with pytest.raises(ValueError, match="return_std needs the rows of the fit, which updates="):
        online.fit(*data()).predict(NEW, return_std=True)


def test_too_few_rows(regressor):
    inputs, targets = data(3)
    message = rf"{named(regressor)} cannot be fitted to n_samples=3: .* needs at least"
    with pytest.raises(ValueError, match=message):
        regressor.fit(inputs, targets)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_nodes": 0}, "n_nodes must be a whole number of at least 1"),
        ({"activation": "relu"}, "activation must be one of"),
    ],
)
def test_parameters_are_checked_when_fitting(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        AdditiveNetworkRegressor(**settings).fit(*data(20))


def test_gradients_that_make_no_sense(network):
    inputs, targets = data(20)
    with pytest.raises(ShapeError, match=r"the shape of X, \(20, 3\), got \(20,\)"):
        network.fit(inputs, targets, gradients=targets)
    both = np.column_stack([targets, targets])
    with pytest.raises(ShapeError, match=r"an axis for outputs in its middle, \(20, 2, 3\)"):
        network.fit(inputs, both, gradients=slopes(inputs))
    wrong = slopes(inputs)
    wrong[7, 1] = np.inf
    with pytest.raises(ValueError, match="finite, or NaN where they are not known, but row 7 is"):
        network.fit(inputs, targets, gradients=wrong)
