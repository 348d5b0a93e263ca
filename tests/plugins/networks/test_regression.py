"""How the ridge is chosen, the trend found, and a network put together."""

import attrs
import numpy as np
import pytest

from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit.interfaces import Evaluations
from surrokit.surrogate.whitening import Whitening
from surrokit_networks.activations import TANH
from surrokit_networks.equations import Basis, Equations, normal_equations
from surrokit_networks.least_squares import Projected, Solver, dual_spectrum, solve
from surrokit_networks.nodes import Nodes
from surrokit_networks.regression import Regression
from surrokit_networks.training_rows import TrainingRows
from surrokit_networks.trend import TrendColumns

DIM = 3


def problem(n_rows, n_nodes, *, noise=0.1, seed=0):
    """A basis of random nodes, and noisy values of a smooth function."""
    rng = np.random.default_rng(seed)
    whitened = rng.standard_normal((n_rows, DIM))
    targets = np.sin(whitened).sum(axis=1) + noise * rng.standard_normal(n_rows)
    nodes = Nodes.additive(rng.standard_normal((n_nodes, DIM)), rng.standard_normal(n_nodes), TANH)
    equations = Equations(
        whitened=whitened,
        targets=targets[:, None],
        gradients=None,
        value_weights=rng.uniform(0.2, 1.0, n_rows),
        gradient_weights=np.zeros(n_rows),
        count=float(n_rows),
        trains_level=True,
    )
    return Basis(trend=TrendColumns(dim=DIM, degree=0), network=nodes), equations


def predicted(basis, solution, whitened):
    return basis.features(whitened) @ solution.weights[:, 0] + solution.level


@pytest.mark.parametrize(("n_rows", "n_nodes"), [(150, 60), (60, 200)])
def test_chosen_ridge_is_nearly_the_best(n_rows, n_nodes):
    for seed in range(3):
        basis, equations = problem(n_rows, n_nodes, seed=seed, noise=0.3)
        fresh = np.random.default_rng(100 + seed).standard_normal((500, DIM))
        truth = np.sin(fresh).sum(axis=1)
        found = (
            dual_spectrum(basis, equations)
            if n_rows < n_nodes
            else Projected.of(normal_equations(basis, equations), 0, True).spectrum()
        )

        def error(ridge, found=found, basis=basis, equations=equations, fresh=fresh, truth=truth):
            solution = found.solution(equations, ridge)
            return np.sqrt(np.mean((predicted(basis, solution, fresh) - truth) ** 2))

        best = min(error(ridge) for ridge in np.logspace(-8, 3, 45))
        assert error(found.cross_validated(equations.count)) < 1.3 * best


def worst_error_near_the_threshold(n_rows, choose):
    """Largest error over draws of 100 nodes; the best ridge would give at most 0.3."""
    fresh = np.random.default_rng(1).standard_normal((300, DIM))
    truth = np.sin(fresh).sum(axis=1)
    errors = []
    for seed in range(40):
        basis, equations = problem(n_rows, 100, seed=seed)
        left = predicted(basis, choose(basis, equations), fresh) - truth
        errors.append(np.sqrt(np.mean(left**2)))
    return max(errors)


def with_chosen_ridge(basis, equations):
    return Solver(ridge=None, choose_ridge="gcv").solve(basis, equations, None)[0]


@pytest.mark.parametrize("n_rows", [95, 99, 100, 101, 105])
def test_as_many_rows_as_nodes_does_not_explode(n_rows):
    assert worst_error_near_the_threshold(n_rows, with_chosen_ridge) < 0.5


def by_the_books(basis, equations):
    spectrum = (
        dual_spectrum(basis, equations)
        if len(equations) < basis.n_nodes
        else Projected.of(normal_equations(basis, equations), 0, True).spectrum()
    )
    return spectrum.solution(equations, spectrum.cross_validated(equations.count, cost=1.0))


def test_as_many_rows_as_nodes_would_explode():
    # Controls: no ridge, and generalised cross-validation as it is in the books.
    without = worst_error_near_the_threshold(101, lambda *each: solve(*each, 0.0))
    assert without > 5.0
    assert worst_error_near_the_threshold(101, by_the_books) > 2.0


def rows_of(positions, values, gradients=None):
    observed = Evaluations(positions=positions, values=values, gradients=gradients)
    return TrainingRows.of(observed, "full")


def random_quadratic(rng, dim):
    half = rng.standard_normal((dim, 2 * dim))
    return rng.standard_normal(dim), half @ half.T / dim


def whitened_for(regression, rows):
    known = rows.with_gradient
    if regression.uses_gradients and known.any():
        return Whitening.of_gradients(
            rows.positions[known], rows.gradients[known], rows.weights[known]
        )
    return Whitening.of(rows.positions, rows.weights)


@pytest.mark.parametrize("kind", [None, "additive", "rbf"])
@pytest.mark.parametrize("trend", ["quadratic", "auto"])
def test_values_of_a_quadratic_are_recovered(kind, trend, make_nodes):
    rng = np.random.default_rng(2)
    for dim in (1, 2, 4):
        mode, hessian = random_quadratic(rng, dim)
        positions = mode + rng.standard_normal((60, dim))
        values = 0.5 * np.einsum("ni,ij,nj->n", positions - mode, hessian, positions - mode) + 7.0
        regression = Regression(trend=trend)
        rows = rows_of(positions, values)
        network = regression.fit(make_nodes(kind, dim, 10), whitened_for(regression, rows), rows)
        fresh = 5.0 * rng.standard_normal((20, dim))
        np.testing.assert_allclose(network.gradient(fresh), (fresh - mode) @ hessian, atol=1e-3)
        np.testing.assert_allclose(network.hessian(fresh), [hessian] * 20, atol=1e-3)
        np.testing.assert_allclose(network.value(mode[None]), 7.0, atol=1e-3)


@pytest.mark.parametrize("kind", [None, "additive", "rbf"])
@pytest.mark.parametrize("train_on", ["auto", "gradients"])
@pytest.mark.parametrize("where", ["at the mode", "far away"])
def test_gradients_of_a_quadratic_need_one_point_more_than_dimensions(
    kind, train_on, where, make_nodes
):
    # Far away, twenty standard deviations and more, a network may add a little of its own at the
    # mode: the trend's matrix is shrunk, if by little, and the network makes up for it out there.
    limit = 0.5 if kind and where == "far away" else 0.05
    rng = np.random.default_rng(3)
    for dim in (1, 2, 6):
        mode, hessian = random_quadratic(rng, dim)
        positions = (mode if where == "at the mode" else 10.0) + rng.standard_normal((dim + 1, dim))
        away = positions - mode
        values = 0.5 * np.einsum("ni,ij,nj->n", away, hessian, away) + 7.0
        regression = Regression(trend="quadratic", train_on=train_on)
        rows = rows_of(positions, values, away @ hessian)
        network = regression.fit(make_nodes(kind, dim, 10), whitened_for(regression, rows), rows)
        # in units of a standard deviation of the density
        root = np.linalg.cholesky(np.linalg.inv(hessian))
        fresh = mode + rng.standard_normal((20, dim)) @ root.T
        error = (network.gradient(fresh) - (fresh - mode) @ hessian) @ root
        assert np.abs(error).max() < limit
        truth = 0.5 * np.sum((fresh - mode) @ hessian * (fresh - mode), axis=1)
        assert np.ptp(network.value(fresh) - truth) < 2.0 * limit


def matrix_of(network):
    """The matrix of a network's trend, in raw coordinates."""
    inverse = network.network.whitening.inverse
    return inverse.T @ network.network.trend.matrices[0] @ inverse


def double_well(positions):
    """(x^2 - 1)^2 + |rest|^2 / 2 in two wells, and its gradient."""
    x = positions[:, 0]
    values = 2.0 * (x**2 - 1.0) ** 2 + 0.5 * np.square(positions[:, 1:]).sum(axis=1)
    gradients = positions.copy()
    gradients[:, 0] = 8.0 * x * (x**2 - 1.0)
    return values, gradients


def saddle(positions):
    values = 0.5 * (positions[:, 0] ** 2 - positions[:, 1] ** 2) + 0.1 * positions[:, 1] ** 4
    gradients = positions.copy()
    gradients[:, 1] = -positions[:, 1] + 0.4 * positions[:, 1] ** 3
    return values, gradients


@pytest.mark.parametrize("target", [double_well, saddle])
@pytest.mark.parametrize("with_gradients", [False, True])
@pytest.mark.parametrize("kind", [None, "additive", "rbf"])
def test_a_trend_is_positive_definite_whatever_the_target(target, with_gradients, kind, make_nodes):
    # Between the wells, where a quadratic that fits best has a negative curvature.
    rng = np.random.default_rng(4)
    positions = 0.4 * rng.standard_normal((60, 2))
    values, gradients = target(positions)
    for weight in (1.0, -1.0):  # and a target that falls in every direction
        rows = rows_of(positions, weight * values, weight * gradients if with_gradients else None)
        regression = Regression(trend="quadratic")
        whitening = whitened_for(regression, rows)
        nodes = make_nodes(kind, 2, 60)
        network = regression.fit(nodes, whitening, rows)
        matrix = network.network.trend.matrices[0]
        assert np.linalg.eigvalsh(matrix)[0] >= 0.1 - 1e-9
        if nodes is not None:
            # The network makes up for what the trend was not allowed.
            left = network.value(positions) - weight * values
            assert np.var(left) < 1e-3 * np.var(values)


def test_the_trend_of_the_whitening_is_half_the_squared_distance():
    rng = np.random.default_rng(5)
    positions = rng.standard_normal((30, DIM))
    rows = rows_of(positions, rng.standard_normal(30))
    whitening = Whitening.of(positions, np.ones(30))
    network = Regression(trend="laplace").fit(None, whitening, rows)
    covariance = whitening.factor @ whitening.factor.T
    np.testing.assert_allclose(matrix_of(network), np.linalg.inv(covariance), rtol=1e-9)


def test_what_a_trend_has_by_setting():
    rng = np.random.default_rng(6)
    positions = rng.standard_normal((40, DIM))
    rows = rows_of(positions, (positions**2).sum(axis=1))
    whitening = Whitening.of(positions, np.ones(40))
    by_setting = {
        trend: Regression(trend=trend).fit(None, whitening, rows)
        for trend in ("constant", "linear", "quadratic", "auto")
    }
    np.testing.assert_array_equal(by_setting["constant"].network.trend.linear, 0.0)
    assert by_setting["constant"].network.trend.matrices is None
    assert by_setting["linear"].network.trend.linear.any()
    assert by_setting["linear"].network.trend.matrices is None
    np.testing.assert_allclose(matrix_of(by_setting["quadratic"]), 2.0 * np.eye(DIM), atol=1e-9)
    np.testing.assert_allclose(matrix_of(by_setting["auto"]), 2.0 * np.eye(DIM), atol=1e-9)


@pytest.mark.parametrize(
    ("n", "curvature"), [(9, "none"), (22, "none"), (25, "whitening"), (100, "fitted")]
)
def test_automatic_trends_take_what_the_points_support(n, curvature):
    # In 3 dimensions a full quadratic has 9 coefficients, and wants 23 equations.
    dim = 3
    rng = np.random.default_rng(7)
    positions = rng.standard_normal((n, dim))
    rows = rows_of(positions, 3.0 * (positions**2).sum(axis=1))
    whitening = Whitening.of(positions, np.ones(n))
    network = Regression(trend="auto").fit(None, whitening, rows)
    if curvature == "none":
        assert network.network.trend.matrices is None
    else:
        np.testing.assert_allclose(matrix_of(network), 6.0 * np.eye(dim), atol=1e-6)


def test_automatic_trends_between_few_points_and_plenty():
    # In 8 dimensions 64 points are not enough for 44 coefficients, but for a covariance.
    rng = np.random.default_rng(8)
    positions = rng.standard_normal((70, 8))
    rows = rows_of(positions, (positions**2).sum(axis=1))
    whitening = Whitening.of(positions, np.ones(70))
    automatic = Regression(trend="auto").fit(None, whitening, rows)
    laplace = Regression(trend="laplace").fit(None, whitening, rows)
    np.testing.assert_array_equal(matrix_of(automatic), matrix_of(laplace))


def test_too_few_equations_for_a_quadratic():
    rng = np.random.default_rng(9)
    for n, wanted in ((10, "10 coefficients, but there are only 10"), (4, "only 4")):
        rows = rows_of(rng.standard_normal((n, DIM)), rng.standard_normal(n))
        with pytest.raises(
            SurrogateFitError,
            match=r"a trend of degree 2 in 3 dimensions has 10 coefficients, but there are only "
            rf"{n} equations; explore for longer, or use trend='auto'",
        ) as caught:
            Regression(trend="quadratic").fit(None, Whitening.identity(DIM), rows)
        assert wanted in str(caught.value)
    rows = rows_of(rng.standard_normal((11, DIM)), rng.standard_normal(11))
    assert Regression(trend="quadratic").fit(None, Whitening.identity(DIM), rows).n_points == 11


def test_a_twin_that_could_not_fit_its_trend_is_not_asked(make_nodes):
    # Twelve values for ten coefficients: without the two held out nothing would be left to judge.
    rng = np.random.default_rng(10)
    for n, judged in ((11, False), (12, False), (14, True)):
        positions = rng.standard_normal((n, DIM))
        rows = rows_of(positions, np.cosh(positions).sum(axis=1))
        held = np.arange(n) < 2
        for choose_ridge in ("gcv", "held-out"):
            regression = Regression(trend="quadratic", choose_ridge=choose_ridge)
            for nodes in (None, make_nodes("rbf", DIM, 5), make_nodes("rbf", DIM, 50)):
                network = regression.fit(nodes, Whitening.identity(DIM), rows, held)
                assert (network.quality is not None) == judged
                assert np.isfinite(network.value(positions)).all()


def test_overflowing_targets_are_refused(make_nodes):
    rows = rows_of(np.random.default_rng(0).standard_normal((10, DIM)), np.linspace(0.0, 1e308, 10))
    with (
        np.errstate(all="ignore"),
        pytest.raises(SurrogateFitError, match="rescale the parameters"),
    ):
        Regression().fit(make_nodes("additive", DIM, 5), Whitening.identity(DIM), rows)


def test_weights_that_are_not_finite_are_refused():
    basis, equations = problem(20, 5)
    strange = attrs.evolve(equations, targets=equations.targets * np.nan)
    with pytest.raises(
        SurrogateFitError,
        match="the least-squares weights of the network are not finite; use whiten=True and ridge=",
    ):
        Regression(ridge=0.1).solve(basis, strange, None)


def test_problems_that_cannot_be_solved_are_reported():
    basis, equations = problem(20, 5)
    strange = attrs.evolve(equations, value_weights=equations.value_weights * np.inf)
    with pytest.raises(
        SurrogateFitError, match=r"problem of the network could not be solved \(.*\); use whiten"
    ):
        Regression().solve(basis, strange, None)


@pytest.mark.parametrize("ridge", [-1.0, np.inf, np.nan])
def test_impossible_ridges_are_refused(ridge):
    with pytest.raises(
        ConfigurationError, match="ridge must be a finite number that is not negative, or None"
    ):
        Regression(ridge=ridge)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": "mean"}, "level must be one of 'trained', 'minimum', got 'mean'"),
        ({"trend": "cubic"}, "trend must be one of 'auto', .*'laplace', got 'cubic'"),
        ({"train_on": "all"}, "train_on must be one of 'auto', 'values', .* got 'all'"),
        ({"choose_ridge": "aic"}, "choose_ridge must be one of 'gcv', 'held-out', got 'aic'"),
        ({"gradient_weight": 0.0}, "gradient_weight must be a positive finite number, got 0.0"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        Regression(**settings)
