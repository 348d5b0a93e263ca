"""Surrogates in scikit-learn's form, beyond what its own checks look at."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

import surrokit_sklearn
from surrokit.capabilities import GRADIENT, HESSIAN
from surrokit.compose import make
from surrokit.contracts.learner import Evaluations, LearningProblem
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.registry.catalogue import default_catalogue
from surrokit_sklearn import (
    AdditiveNetworkRegressor,
    FITCRegressor,
    GPRegressor,
    RBFNetworkRegressor,
)

DIM = 3
REGRESSORS = [
    AdditiveNetworkRegressor(n_nodes=150, random_state=3),
    RBFNetworkRegressor(n_nodes=150, random_state=3),
    GPRegressor(n_starts=1, max_iterations=15, n_search=100, random_state=3),
    FITCRegressor(n_starts=1, max_iterations=15, n_search=100, random_state=3),
]
NETWORKS = REGRESSORS[:2]
PROCESSES = REGRESSORS[2:]
ON_PURPOSE = {"tail": "full", "trend": "constant", "mean": "constant"}
"""Defaults that make sense for any target, where those of a potential do not."""


def named(regressor):
    return type(regressor).__name__


def function(inputs):
    return 3.0 - np.square(inputs).sum(axis=1) + np.sin(inputs[:, 0])


def slopes(inputs):
    return -2.0 * inputs + np.cos(inputs[:, :1]) * np.array([1.0, 0.0, 0.0])


def data(n=90, seed=0):
    inputs = np.random.default_rng(seed).uniform(-2.0, 2.0, (n, DIM))
    return inputs, function(inputs)


@pytest.fixture(params=REGRESSORS, ids=named)
def regressor(request):
    return clone(request.param)


@pytest.fixture(params=NETWORKS, ids=named)
def network(request):
    return clone(request.param)


@pytest.fixture(params=PROCESSES, ids=named)
def process(request):
    return clone(request.param)


@pytest.mark.parametrize("regressor", REGRESSORS, ids=named)
def test_parameters_are_the_settings_of_the_surrogate(regressor):
    settings = default_catalogue().get("surrogate", regressor._surrogate).settings()
    own = {
        name: parameter.default
        for name, parameter in inspect.signature(type(regressor)).parameters.items()
    }
    assert own.pop("random_state") is None
    assert sorted(own) == sorted(settings)
    defaults = {name: setting.default for name, setting in settings.items()}
    assert own == defaults | {k: v for k, v in ON_PURPOSE.items() if k in settings}


def test_they_are_imported_from_the_package():
    assert surrokit_sklearn.GPRegressor is GPRegressor
    with pytest.raises(AttributeError, match="has no attribute 'Regressor'"):
        surrokit_sklearn.Regressor  # noqa: B018


def test_a_smooth_function_is_learnt(regressor):
    fresh = np.random.default_rng(9).uniform(-1.5, 1.5, (200, DIM))
    regressor.fit(*data(200))
    assert regressor.score(fresh, function(fresh)) > 0.97
    error = regressor.predict_gradient(fresh) - slopes(fresh)
    assert np.linalg.norm(error) < 0.25 * np.linalg.norm(slopes(fresh))


def test_gradients_are_those_of_predictions(regressor, differences):
    regressor.fit(*data())
    inputs = np.random.default_rng(1).uniform(-1.5, 1.5, (5, DIM))
    expected = differences(regressor.predict, inputs, step=1e-4)
    found = regressor.predict_gradient(inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_the_sign_and_the_units_of_the_target_do_not_matter(regressor):
    inputs, targets = data()
    one = clone(regressor).fit(inputs, targets).predict(inputs[:5])
    other = clone(regressor).fit(inputs, 100.0 - 1e3 * targets).predict(inputs[:5])
    # Hyperparameters are searched for from other starts then, so processes agree less closely.
    room = 1.0 if type(regressor) in map(type, NETWORKS) else 50.0
    np.testing.assert_allclose(other, 100.0 - 1e3 * one, rtol=1e-3, atol=room)


def test_a_partial_fit_is_a_fit_to_all(regressor):
    inputs, targets = data()
    fresh, _ = data(10, seed=2)
    whole = clone(regressor).fit(inputs, targets)
    parts = clone(regressor).partial_fit(inputs[:40], targets[:40])
    parts.partial_fit(inputs[40:41], targets[40:41]).partial_fit(inputs[41:], targets[41:])
    np.testing.assert_allclose(parts.predict(fresh), whole.predict(fresh), rtol=1e-10)
    np.testing.assert_allclose(
        parts.predict_gradient(fresh), whole.predict_gradient(fresh), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("with_gradients", [False, True])
def test_a_partial_fit_can_go_on_learning_online(network, with_gradients):
    """It equals the surrogate's own online learner, and a fit to all rows in the first frame."""
    inputs, targets = data()
    known = slopes(inputs) if with_gradients else None
    network.set_params(n_nodes=40, ridge=1e-4, updates="greville", **_ONE_SCALE[named(network)])
    fresh, _ = data(10, seed=2)
    learner = online_learner(network)
    for i in range(0, 90, 30):
        rows = slice(i, i + 30)
        part = None if known is None else known[rows]
        network.partial_fit(inputs[rows], targets[rows], part)
        learner.observe(Evaluations(positions=inputs[rows], values=targets[rows], gradients=part))
        surrogate = learner.fit()
    np.testing.assert_array_equal(network.predict(fresh), surrogate.value(fresh))
    np.testing.assert_array_equal(network.predict_gradient(fresh), surrogate.gradient(fresh))
    # A fit to all rows differs in its frame alone: without whitening and trend there is none.
    network.set_params(whiten=False, level="minimum", trend="constant", draws="gaussian")
    whole = clone(network).fit(inputs, targets, known)
    low = int(np.argmin(targets))  # the level is that of the first rows
    order = np.r_[low, np.delete(np.arange(90), low)]
    parts = clone(network)
    for rows in np.split(order, 3):
        parts.partial_fit(inputs[rows], targets[rows], None if known is None else known[rows])
    np.testing.assert_allclose(parts.predict(fresh), whole.predict(fresh), rtol=1e-6)
    assert sum(map(len, parts._rows)) == 0


_ONE_SCALE = {
    "AdditiveNetworkRegressor": {"weight_scale": 1.0},
    "RBFNetworkRegressor": {"width_scale": 2.0},
}


def online_learner(network):
    """What a surrogate of the same settings and seed learns by."""
    settings = network.get_params()
    seed = int(check_random_state(settings.pop("random_state")).randint(2**31 - 1))
    problem = LearningProblem(dim=DIM, capabilities=frozenset({GRADIENT}))
    surrogate = make("surrogate", network._surrogate, **settings)
    return surrogate.learner(problem, np.random.default_rng(seed))


def test_a_fit_forgets_what_was_there_before(network):
    inputs, targets = data()
    again = clone(network).fit(inputs[:30], -targets[:30]).fit(inputs, targets)
    fresh, _ = data(10, seed=2)
    expected = network.fit(inputs, targets).predict(fresh)
    np.testing.assert_array_equal(again.predict(fresh), expected)


def test_a_partial_fit_keeps_the_seed_that_was_drawn():
    network = AdditiveNetworkRegressor(n_nodes=20, weight_scale=1.0)
    inputs, targets = data()
    first = network.fit(inputs, targets).predict(inputs[:3])
    # A row that is there already changes nothing but its weight.
    again = network.partial_fit(inputs[:1], targets[:1]).predict(inputs[:3])
    np.testing.assert_allclose(again, first, atol=0.2)
    other = clone(network).fit(inputs, targets).predict(inputs[:3])
    assert np.abs(other - first).max() > 1e-8


def test_gradients_help(network):
    inputs, targets = data(20)
    fresh = np.random.default_rng(9).uniform(-1.5, 1.5, (200, DIM))
    values = clone(network).fit(inputs, targets)
    both = clone(network).fit(inputs, targets, gradients=slopes(inputs))
    some = slopes(inputs)
    some[::2] = np.nan
    part = clone(network).fit(inputs, targets, gradients=some)

    def error(regressor):
        return np.std(regressor.predict(fresh) - function(fresh))

    assert error(both) < error(part) < error(values)


def test_gradients_help_a_process_and_come_in_parts():
    inputs, targets = data(20)
    fresh = np.random.default_rng(9).uniform(-1.5, 1.5, (200, DIM))
    process = clone(PROCESSES[0])
    values = process.fit(inputs, targets).score(fresh, function(fresh))
    whole = clone(process).fit(inputs, targets, slopes(inputs))
    assert whole.score(fresh, function(fresh)) > max(values, 0.97)
    process.fit(inputs[:10], targets[:10], slopes(inputs[:10]))
    process.partial_fit(inputs[10:], targets[10:], slopes(inputs[10:]))
    np.testing.assert_allclose(process.predict(fresh), whole.predict(fresh), rtol=1e-10)
    # Rows without gradients after rows with some.
    process.partial_fit(fresh[:5], function(fresh[:5]))
    assert process.surrogate_.n_gradients == 20


def test_standard_deviations(process):
    inputs, targets = data()
    process.fit(inputs, targets)
    fresh, _ = data(10, seed=2)
    mean, std = process.predict(fresh, return_std=True)
    np.testing.assert_array_equal(mean, process.predict(fresh))
    assert std.shape == (10,)
    assert (std > 0.0).all()
    _, far = process.predict(fresh + 10.0, return_std=True)
    assert far.min() > std.max()


def test_the_fitted_surrogate_is_a_potential(regressor):
    regressor.fit(*data())
    assert HESSIAN in regressor.surrogate_.capabilities
    assert regressor.surrogate_.hessian(np.zeros((2, DIM))).shape == (2, DIM, DIM)
    assert regressor.surrogate_.quality.n_points > 0


def test_pipelines_and_grid_searches(network):
    inputs, targets = data(60)
    made = make_pipeline(StandardScaler(), network)
    name = type(network).__name__.lower()
    grid = {f"{name}__n_nodes": [5, 80], f"{name}__ridge": [1e-6, 1e4]}
    search = GridSearchCV(made, grid, cv=KFold(3), error_score="raise").fit(inputs, targets)
    assert search.best_params_ == {f"{name}__n_nodes": 80, f"{name}__ridge": 1e-6}
    assert search.best_score_ > 0.5
    assert search.predict(inputs).shape == (60,)


def test_a_grid_search_hands_on_the_gradients_of_its_folds(network):
    inputs, targets = data(30)
    network.set_params(train_on="values-and-gradients")
    search = GridSearchCV(network, {"ridge": [1e-6]}, cv=KFold(3), error_score="raise")
    search.fit(inputs, targets, gradients=slopes(inputs))
    plain = clone(network).set_params(ridge=1e-6, train_on="values")
    plain_score = GridSearchCV(plain, {"ridge": [1e-6]}, cv=KFold(3)).fit(inputs, targets)
    assert search.best_score_ > plain_score.best_score_


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


def test_random_states_may_be_generators_of_the_old_kind():
    inputs, targets = data(30)
    states = (5, np.random.RandomState(5))
    one, other = (
        AdditiveNetworkRegressor(n_nodes=20, random_state=state).fit(inputs, targets)
        for state in states
    )
    np.testing.assert_array_equal(one.predict(inputs), other.predict(inputs))


def test_too_few_rows(regressor):
    inputs, targets = data(3)
    with pytest.raises(
        ValueError, match=rf"{named(regressor)} cannot be fitted to n_samples=3: .* needs at least"
    ):
        regressor.fit(inputs, targets)
    with pytest.raises(ValueError, match="1 sample"):
        regressor.fit(inputs[:1], targets[:1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_nodes": 0}, "n_nodes must be a whole number of at least 1"),
        ({"trend": "cubic"}, "trend must be one of"),
        ({"activation": "relu"}, "activation must be one of"),
    ],
)
def test_parameters_are_looked_at_when_fitting(settings, message):
    network = AdditiveNetworkRegressor(**settings)
    with pytest.raises(ConfigurationError, match=message):
        network.fit(*data(20))


def test_gradients_of_another_shape(network):
    inputs, targets = data(20)
    with pytest.raises(
        ShapeError,
        match=r"gradients must have the shape of X, \(20, 3\), got \(20,\); pass one row for each",
    ):
        network.fit(inputs, targets, gradients=targets)


def test_infinite_gradients(network):
    inputs, targets = data(20)
    wrong = slopes(inputs)
    wrong[7, 1] = np.inf
    with pytest.raises(ValueError, match="finite, or NaN where they are not known, but row 7 is"):
        network.fit(inputs, targets, gradients=wrong)


@pytest.mark.parametrize("method", ["predict", "predict_gradient"])
def test_nothing_is_predicted_before_a_fit(regressor, method):
    with pytest.raises(NotFittedError, match=f"This {named(regressor)} instance is not fitted"):
        getattr(regressor, method)(np.zeros((1, DIM)))


def test_other_features(network):
    network.fit(*data(20))
    for method in ("predict", "predict_gradient"):
        with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
            getattr(network, method)(np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
        network.partial_fit(np.zeros((5, 2)), np.zeros(5))


# --- weights, several outputs, standard deviations ---


def noisy(n=120, seed=1):
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(-2.0, 2.0, (n, DIM))
    return inputs, function(inputs) + 0.3 * rng.standard_normal(n)


def test_a_weight_counts_as_so_many_rows(regressor):
    inputs, targets = noisy()
    weights = np.random.default_rng(2).integers(0, 3, len(inputs))
    new = data(40, seed=9)[0]
    weighted = regressor.fit(inputs, targets, sample_weight=weights)
    found = weighted.predict(new, return_std=True)
    repeated = clone(regressor).fit(inputs.repeat(weights, axis=0), targets.repeat(weights))
    assert np.allclose(found, repeated.predict(new, return_std=True), rtol=1e-9)
    plain = clone(regressor).fit(inputs, targets)
    assert not np.allclose(found[0], plain.predict(new))
    ones = clone(regressor).fit(inputs, targets, sample_weight=np.ones(len(inputs)))
    assert np.array_equal(ones.predict(new), plain.predict(new))


def test_more_rows_may_have_weights(regressor):
    inputs, targets = noisy()
    weights = np.random.default_rng(2).integers(1, 3, len(inputs))
    new = data(40, seed=9)[0]
    parts = regressor.fit(inputs[:60], targets[:60])
    parts.partial_fit(inputs[60:], targets[60:], sample_weight=weights[60:])
    whole = clone(regressor).fit(inputs, targets, sample_weight=np.r_[np.ones(60), weights[60:]])
    assert np.allclose(parts.predict(new), whole.predict(new))


@pytest.mark.parametrize("with_gradients", [False, True])
def test_several_outputs_are_learnt_at_once(regressor, with_gradients):
    inputs, targets = data()
    both = np.column_stack([targets, inputs[:, 1] ** 2])
    bent = np.zeros_like(inputs)
    bent[:, 1] = 2.0 * inputs[:, 1]
    gradients = np.stack([slopes(inputs), bent], axis=1) if with_gradients else None
    found = regressor.fit(inputs, both, gradients=gradients)
    new = data(40, seed=9)[0]
    for k in range(2):
        one = None if gradients is None else gradients[:, k]
        alone = clone(regressor).fit(inputs, both[:, k], gradients=one)
        assert np.array_equal(found.predict(new)[:, k], alone.predict(new))
        assert np.array_equal(found.predict_gradient(new)[:, k], alone.predict_gradient(new))
        std = found.predict(new, return_std=True)[1]
        assert np.array_equal(std[:, k], alone.predict(new, return_std=True)[1])
    assert len(found.surrogate_) == 2
    assert found.score(new, np.column_stack([function(new), new[:, 1] ** 2])) > 0.9
    more, values = data(20, seed=4)
    found.partial_fit(more, np.column_stack([values, more[:, 1] ** 2]))
    assert found.predict(new).shape == (40, 2)
    with pytest.raises(ValueError, match="as many columns as in the first fit, 2, got 1"):
        found.partial_fit(more, values)


def test_gradients_of_several_outputs_have_an_axis_for_them(regressor):
    inputs, targets = data()
    both = np.column_stack([targets, targets])
    with pytest.raises(ShapeError, match=r"gradients must have shape \(90, 2, 3\) for targets"):
        regressor.fit(inputs, both, gradients=slopes(inputs))


@pytest.mark.statistical
@pytest.mark.parametrize(("regressor", "weight"), [*zip(NETWORKS, [1.0, 4.0], strict=True)])
def test_standard_deviations_of_networks_are_those_of_errors(regressor, weight):
    """Forty fits to other noise: the mean square of errors in units of these is near 1.

    A mean of 40 fits' mean squares, each of about 20 parameters, is wrong by 0.1 at most in 99.9
    of 100 cases; what the network cannot be comes on top.
    """
    rng = np.random.default_rng(3)
    inputs = rng.uniform(-2.0, 2.0, (150, 2))
    new = rng.uniform(-1.7, 1.7, (50, 2))
    squares = []
    for seed in range(40):
        noise = np.random.default_rng(seed).standard_normal(150)
        targets = inputs[:, 0] - inputs[:, 1] ** 2 + 0.3 * noise
        fitted = clone(regressor).set_params(n_nodes=60, random_state=0)
        fitted.fit(inputs, targets, sample_weight=np.full(150, weight))
        mean, std = fitted.predict(new, return_std=True)
        squares.append(np.square((mean - new[:, 0] + new[:, 1] ** 2) / std).mean() / weight)
    assert 0.6 < np.mean(squares) < 1.5


@pytest.mark.parametrize("regressor", NETWORKS, ids=named)
def test_the_posterior_of_the_linear_layer_is_that_of_a_ridge_regression(regressor):
    """With nodes as features: s^2 phi' (H'H + lambda I)^-1 phi, the level free of the ridge."""
    inputs, targets = noisy()
    fitted = clone(regressor).set_params(n_nodes=12, ridge=0.3).fit(inputs, targets)
    learner = fitted._learner(fitted._seed)
    learner.observe(fitted._rows[0])
    fit = learner.make_fit(keeps_idle=False)

    def features(at):
        columns = fit.frame.basis.features(fit.frame.whitening.apply(at))
        return np.column_stack([np.ones(len(at)), columns])

    held = np.diag([0.0, *[0.3] * 12])
    matrix = features(inputs).T @ features(inputs) + held
    right = features(inputs).T @ targets
    left = targets - features(inputs) @ np.linalg.solve(matrix, right)
    degrees = np.trace(np.linalg.solve(matrix, features(inputs).T @ features(inputs)))
    noise = left @ left / (len(targets) - degrees)
    new = data(20, seed=9)[0]
    phi = features(new)
    expected = noise * np.einsum("ni,ij,nj->n", phi, np.linalg.inv(matrix), phi)
    mean, std = fitted.predict(new, return_std=True)
    assert np.allclose(mean, phi @ np.linalg.solve(matrix, right))
    assert np.allclose(std**2, expected)


def test_standard_deviations_need_the_rows():
    inputs, targets = noisy()
    online = AdditiveNetworkRegressor(n_nodes=20, updates="greville", random_state=0)
    with pytest.raises(ValueError, match="return_std needs the rows of the fit, which updates="):
        online.fit(inputs, targets).predict(inputs, return_std=True)


@pytest.mark.parametrize("regressor", NETWORKS, ids=named)
def test_standard_deviations_are_those_of_the_last_fit(regressor):
    inputs, targets = noisy()
    new = data(20, seed=9)[0]
    fitted = regressor.fit(inputs, targets)
    before = fitted.predict(new, return_std=True)[1]
    after = pickle.loads(pickle.dumps(fitted)).predict(new, return_std=True)[1]
    assert np.array_equal(before, after)
    fitted.fit(inputs, 2.0 * targets)
    assert np.allclose(fitted.predict(new, return_std=True)[1], 2.0 * before)
