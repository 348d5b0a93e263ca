"""Surrogates in scikit-learn's form, beyond what its own checks look at."""

import inspect
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
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
    GPRegressor(n_search=100, random_state=3),
    FITCRegressor(n_search=100, random_state=3),
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
    with pytest.raises(AttributeError, match="has no attribute 'Regressor'"):
        surrokit_sklearn.Regressor  # noqa: B018


def test_a_smooth_function_is_learnt(regressor):
    regressor.fit(*data(200))
    assert HESSIAN in regressor.surrogate_.capabilities
    assert regressor.surrogate_.quality.n_points > 0
    assert regressor.score(MIDDLE, function(MIDDLE)) > 0.97
    error = regressor.predict_gradient(MIDDLE) - slopes(MIDDLE)
    assert np.linalg.norm(error) < 0.25 * np.linalg.norm(slopes(MIDDLE))


# --- more rows ---


def test_a_partial_fit_is_a_fit_to_all(regressor):
    inputs, targets = data()
    whole = clone(regressor).fit(inputs, targets)
    parts = clone(regressor).partial_fit(inputs[:40], targets[:40])
    parts.partial_fit(inputs[40:41], targets[40:41]).partial_fit(inputs[41:], targets[41:])
    assert_allclose(parts.predict(NEW), whole.predict(NEW), rtol=1e-10)
    assert_allclose(
        parts.predict_gradient(NEW), whole.predict_gradient(NEW), rtol=1e-10, atol=1e-10
    )
    again = clone(regressor).fit(inputs[:30], -targets[:30]).fit(inputs, targets)
    assert_array_equal(again.predict(NEW), whole.predict(NEW))


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
    assert_array_equal(network.predict(NEW), surrogate.value(NEW))
    assert_array_equal(network.predict_gradient(NEW), surrogate.gradient(NEW))
    assert sizes[2] - sizes[1] <= 30 * DIM * 8  # of rows positions alone are kept
    # A fit to all rows differs in its frame alone: without whitening and trend there is none.
    network.set_params(whiten=False, level="minimum", trend="constant")
    whole = clone(network).fit(inputs, targets, known)
    low = int(np.argmin(targets))  # the level is that of the first rows
    order = np.r_[low, np.delete(np.arange(90), low)]
    parts = clone(network)
    for rows in np.split(order, 3):
        parts.partial_fit(inputs[rows], targets[rows], None if known is None else known[rows])
    assert_allclose(parts.predict(NEW), whole.predict(NEW), rtol=1e-6)


# --- gradients, weights, several outputs ---


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


# --- standard deviations ---


def test_standard_deviations_of_processes_grow_away_from_the_data(process):
    process.fit(*data())
    mean, std = process.predict(NEW, return_std=True)
    assert_array_equal(mean, process.predict(NEW))
    assert std.shape == (20,)
    assert (std > 0.0).all()
    _, far = process.predict(NEW + 10.0, return_std=True)
    assert far.min() > std.max()


def test_the_posterior_of_the_linear_layer_is_that_of_a_ridge_regression(network):
    """With nodes as features: s^2 phi' (H'H + lambda I)^-1 phi, the level free of the ridge."""
    inputs, targets = data(120, seed=1, noise=0.3)
    settings = {"n_nodes": 12, "ridge": 0.3, **_ONE_SCALE[named(network)]}
    fitted = network.set_params(**settings).fit(inputs, targets)
    learner = online_learner(network)
    learner.observe(Evaluations(positions=inputs, values=targets))
    frame = learner.make_fit()[0]

    def features(at):
        return frame.basis.features(frame.whitening.apply(at))

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
    wrong = slopes(inputs)
    wrong[7, 1] = np.inf
    with pytest.raises(ValueError, match="finite, or NaN where they are not known, but row 7 is"):
        network.fit(inputs, targets, gradients=wrong)
