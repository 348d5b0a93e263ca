"""How trends are found, and networks put together; what the paper says of the estimator."""

import attrs
import numpy as np
import pytest
from equations_by_hand import equations_of, nodes_of
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.surrogate.whitening import Whitening
from surrokit_networks.least_squares import Basis, Equations, normal_equations
from surrokit_networks.nodes import Nodes
from surrokit_networks.training import Training, matrix_of_gradients
from surrokit_networks.training_rows import TrainingRows

DIM = 3
BARE = Nodes.none(DIM)


def rows_of(positions, values, gradients=None):
    observed = Evaluations(positions=positions, values=values, gradients=gradients)
    return TrainingRows.of(observed, "full")


def fit(training, *what):
    return training.fit(*what)[1]


def random_quadratic(rng, dim):
    half = rng.standard_normal((dim, 2 * dim))
    return rng.standard_normal(dim), half @ half.T / dim


def whitened_for(training, rows):
    known = rows.with_gradient
    if training.uses_gradients and known.any():
        return Whitening.of_gradients(
            rows.positions[known], rows.gradients[known], rows.weights[known]
        )
    return Whitening.of(rows.positions, rows.weights)


@pytest.mark.parametrize("kind", [None, "additive", "rbf"])
@pytest.mark.parametrize("trend", ["quadratic", "auto"])
def test_values_of_a_quadratic_are_recovered(kind, trend):
    rng = np.random.default_rng(2)
    for dim in (1, 2, 4):
        mode, hessian = random_quadratic(rng, dim)
        positions = mode + rng.standard_normal((60, dim))
        values = 0.5 * np.einsum("ni,ij,nj->n", positions - mode, hessian, positions - mode) + 7.0
        training = Training(trend=trend)
        rows = rows_of(positions, values)
        network = fit(training, nodes_of(kind, dim, 10), whitened_for(training, rows), rows)
        fresh = 5.0 * rng.standard_normal((20, dim))
        assert_allclose(network.gradient(fresh), (fresh - mode) @ hessian, atol=1e-3)
        if kind != "rbf":
            assert_allclose(network.hessian(fresh), [hessian] * 20, atol=1e-3)
        assert_allclose(network.value(mode[None]), 7.0, atol=1e-3)


@pytest.mark.parametrize("kind", [None, "additive", "rbf"])
@pytest.mark.parametrize("where", ["at the mode", "far away"])
def test_gradients_of_a_quadratic_need_one_point_more_than_dimensions(kind, where):
    # Far away, twenty standard deviations and more, a network may add a little of its own at the
    # mode: the trend's matrix is shrunk, if by little, and the network makes up for it out there.
    limit = 0.5 if kind and where == "far away" else 0.05
    rng = np.random.default_rng(3)
    for dim in (1, 2, 6):
        mode, hessian = random_quadratic(rng, dim)
        positions = (mode if where == "at the mode" else 10.0) + rng.standard_normal((dim + 1, dim))
        away = positions - mode
        values = 0.5 * np.einsum("ni,ij,nj->n", away, hessian, away) + 7.0
        training = Training(trend="quadratic")
        rows = rows_of(positions, values, away @ hessian)
        network = fit(training, nodes_of(kind, dim, 10), whitened_for(training, rows), rows)
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
def test_a_trend_is_positive_definite_whatever_the_target(target, with_gradients, kind):
    # Between the wells, where a quadratic that fits best has a negative curvature.
    rng = np.random.default_rng(4)
    positions = 0.4 * rng.standard_normal((60, 2))
    values, gradients = target(positions)
    for weight in (1.0, -1.0):  # and a target that falls in every direction
        rows = rows_of(positions, weight * values, weight * gradients if with_gradients else None)
        training = Training(trend="quadratic")
        whitening = whitened_for(training, rows)
        nodes = nodes_of(kind, 2, 60)
        network = fit(training, nodes, whitening, rows)
        matrix = network.network.trend.matrices[0]
        assert np.linalg.eigvalsh(matrix)[0] >= 0.1 - 1e-9
        if len(nodes):
            # The network makes up for what the trend was not allowed.
            left = network.value(positions) - weight * values
            assert np.var(left) < 1e-3 * np.var(values)


@pytest.mark.parametrize(
    ("trend", "dim", "n", "has"),
    [
        ("constant", 3, 40, None),
        ("linear", 3, 40, "slope"),
        ("quadratic", 3, 40, "matrix"),
        # in 3 dimensions a full quadratic has 9 coefficients, and wants 23 equations
        ("auto", 3, 22, "slope"),
        ("auto", 3, 25, "matrix"),
        # in 8 dimensions 64 points are not enough for 44 coefficients, but for a covariance
        ("auto", 8, 63, "slope"),
        ("auto", 8, 70, "whitening"),
    ],
)
def test_trends_take_what_is_set_or_what_the_points_support(trend, dim, n, has):
    rng = np.random.default_rng(6)
    positions = rng.standard_normal((n, dim))
    rows = rows_of(positions, 3.0 * (positions**2).sum(axis=1) + positions[:, 0])
    whitening = Whitening.of(positions, np.ones(n))
    network = fit(Training(trend=trend), Nodes.none(dim), whitening, rows)
    found = network.network.trend
    assert found.linear.any() == (has is not None)
    if has in (None, "slope"):
        assert found.matrices is None
    else:
        covariance = whitening.factor @ whitening.factor.T
        expected = 6.0 * np.eye(dim) if has == "matrix" else np.linalg.inv(covariance)
        assert_allclose(matrix_of(network), expected, rtol=1e-6, atol=1e-6)


def test_too_few_equations_for_a_quadratic():
    rng = np.random.default_rng(9)
    for n in (10, 4):
        rows = rows_of(rng.standard_normal((n, DIM)), rng.standard_normal(n))
        with pytest.raises(
            SurrogateFitError,
            match=r"a trend of degree 2 in 3 dimensions has 10 coefficients, but there are only "
            rf"{n} equations; explore for longer, or use trend='auto'",
        ):
            fit(Training(trend="quadratic"), BARE, Whitening.identity(DIM), rows)
    rows = rows_of(rng.standard_normal((11, DIM)), rng.standard_normal(11))
    assert fit(Training(trend="quadratic"), BARE, Whitening.identity(DIM), rows).n_points == 11


def test_a_twin_that_could_not_fit_its_trend_is_not_asked():
    # Twelve values for ten coefficients: without the two held out nothing would be left to judge.
    rng = np.random.default_rng(10)
    for n, judged in ((11, False), (12, False), (14, True)):
        positions = rng.standard_normal((n, DIM))
        rows = rows_of(positions, np.cosh(positions).sum(axis=1))
        held = np.arange(n) < 2
        for nodes in (BARE, nodes_of("rbf", DIM, 5), nodes_of("rbf", DIM, 50)):
            network = fit(Training(trend="quadratic"), nodes, Whitening.identity(DIM), rows, held)
            assert (network.quality is not None) == judged
            assert np.isfinite(network.value(positions)).all()


def test_the_quality_is_that_of_a_twin_that_was_not_shown_the_rows():
    rng, held = np.random.default_rng(11), np.arange(40) < 8
    rows = rows_of(rng.standard_normal((40, DIM)), rng.standard_normal(40))
    training = Training(ridge=1e-10, trend="constant", train_on="values")
    network = fit(training, nodes_of("rbf", DIM, 80), Whitening.identity(DIM), rows, held)
    own = np.var((network.value(rows.positions) - rows.values)[held])
    assert own < 1e-3 < 0.1 < network.quality.variance


@pytest.mark.parametrize(
    ("ridge", "wrong", "message"),
    [
        (0.1, {"targets": np.full((20, 1), np.nan)}, "weights of the network are not finite; use"),
        (None, {"value_weights": np.full(20, np.inf)}, r"network could not be solved \(.*\); use"),
    ],
)
def test_problems_that_cannot_be_solved_are_reported(ridge, wrong, message):
    basis = Basis(nodes=nodes_of("additive", DIM, 5), degree=0)
    with pytest.raises(SurrogateFitError, match=message):
        Training(ridge=ridge).solve(basis, attrs.evolve(equations_of(20, DIM), **wrong), None)


def symmetric(rng, dim):
    half = rng.standard_normal((dim, dim))
    return half + half.T


def at_ridge(whitened, gradients, weights, ridge):
    """The minimiser of sum w |g - M z|^2 + ridge |M - I|_F^2 over symmetric M, entry by entry."""
    n, dim = whitened.shape
    away = whitened - np.average(whitened, axis=0, weights=weights)
    left = gradients - np.average(gradients, axis=0, weights=weights) - away
    first, second = np.triu_indices(dim)
    columns, penalties = [], []
    for row, column in zip(first, second, strict=True):
        unit = np.zeros((dim, dim))
        unit[row, column] = unit[column, row] = 1.0
        columns.append((np.sqrt(weights)[:, None] * (away @ unit)).ravel())
        penalties.append(np.sqrt(ridge * np.sum(unit**2)))
    design = np.vstack([np.array(columns).T, np.diag(penalties)])
    targets = np.concatenate([(np.sqrt(weights)[:, None] * left).ravel(), np.zeros(len(first))])
    found = np.linalg.lstsq(design, targets, rcond=None)[0]
    change = np.zeros((dim, dim))
    change[first, second] = change[second, first] = found
    degrees = np.trace(design[: n * dim] @ np.linalg.pinv(design)[:, : n * dim]) + dim
    residual = np.sum((targets[: n * dim] - design[: n * dim] @ found) ** 2)
    return np.eye(dim) + change, residual, degrees


@pytest.mark.parametrize(("n", "dim"), [(4, 3), (9, 3), (5, 6)])
def test_the_matrix_is_the_best_of_the_ridges_tried(n, dim):
    rng = np.random.default_rng(n)
    whitened, weights = rng.standard_normal((n, dim)), rng.uniform(0.3, 1.0, n)
    gradients = whitened @ symmetric(rng, dim) + 0.2 * rng.standard_normal((n, dim))
    count = dim * weights.sum() ** 2 / np.sum(weights**2)

    def score(ridge):
        matrix, residual, degrees = at_ridge(whitened, gradients, weights, ridge)
        spare = count - 1.05 * degrees
        return (residual / spare**2 if spare > 0 else np.inf), matrix

    tried = [score(weights.sum() * ridge) for ridge in np.logspace(-4.0, 2.0, 25)]
    _, expected = min(tried, key=lambda pair: pair[0])
    found = matrix_of_gradients(whitened, gradients, weights, np.eye(dim))
    assert_allclose(found, expected, atol=1e-8)
    assert_allclose(found, found.T, atol=1e-12)


def test_what_one_point_cannot_tell_stays_the_identity():
    found = matrix_of_gradients(np.ones((1, 3)), np.full((1, 3), 9.0), np.ones(1), np.eye(3))
    assert_array_equal(found, np.eye(3))


PLANE, NODES, N = 2, 15, 80


def paper_rows(shift=0.0, copies=False):
    rng = np.random.default_rng(4)
    positions = rng.standard_normal((N, PLANE))
    if copies:
        positions = positions[rng.integers(0, N, 2 * N)]
    values = 0.25 * (positions**4).sum(axis=1) + positions[:, 0] * positions[:, 1] + shift
    return TrainingRows.of(Evaluations(positions=positions, values=values), "full")


def coefficients_of(nodes, rows, degree):
    """Features with the trend first, and the least-squares coefficients of them all."""
    basis = Basis(nodes=nodes, degree=degree)
    equations = Equations(
        whitened=rows.positions,
        targets=rows.values[:, None],
        gradients=np.zeros((len(rows), 1, PLANE)),
        value_weights=rows.weights,
        gradient_weights=np.zeros(len(rows)),
        count=float(len(rows)),
    )
    solution = Training(ridge=0.0).solve(basis, equations, None)[0]
    return basis.features(rows.positions), solution.coefficients[:, 0]


@pytest.mark.parametrize("kind", ["additive", "rbf"])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("copies", [False, True])
def test_least_squares_with_a_trained_level_is_potential_matching(kind, degree, copies):
    # Equation (15): of all weights these give the least sample variance of V - U. A state that a
    # chain stayed at counts as often as it was seen.
    rows, nodes = paper_rows(copies=copies), nodes_of(kind, PLANE, NODES)
    features, found = coefficients_of(nodes, rows, degree)

    def variance(coefficients):
        left = features @ coefficients - rows.values
        return np.average((left - np.average(left, weights=rows.copies)) ** 2, weights=rows.copies)

    least = variance(found)
    rng = np.random.default_rng(5)
    for scale in (1e-4, 1e-2, 1.0):
        for _ in range(20):
            assert variance(found + scale * rng.standard_normal(len(found))) > least
    # The variance is a quadratic, and flat at the least.
    left = features @ found - rows.values
    centred = features - np.average(features, axis=0, weights=rows.copies)
    assert_allclose((rows.copies * left) @ centred, 0.0, atol=1e-7)


NOISE, LENGTH = 0.3, 0.8


def kernel(first, second):
    """exp(-|x - y|^2 / (2 l^2)), shape (len(first), len(second))."""
    squares = ((first[:, None, :] - second[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-0.5 * squares / LENGTH**2)


@pytest.mark.parametrize("name", ["gp", "fitc"])
def test_the_mean_of_a_process_is_a_network(name):
    """Section 3.3: centres at the data, or at the inducing points, and a kernel for a ridge."""
    rng = np.random.default_rng(11)
    grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), axis=-1).reshape(-1, 2) - 2.0
    points, fresh = 0.8 * grid + 0.1 * rng.standard_normal(grid.shape), rng.uniform(-2, 2, (40, 2))
    values = np.sin(points).sum(axis=1) + NOISE * rng.standard_normal(len(points))
    given = {"length_scales": LENGTH, "signal_sd": 1.0, "noise_sd": NOISE}
    sparse = {"n_inducing": 9, "inducing": "data"} if name == "fitc" else {}
    surrogate = sk.make(
        "surrogate",
        name,
        **{"mean": "constant", "whiten": False, "tail": "full", "hyperparameters": given, **sparse},
    )
    problem = LearningProblem(dim=2, capabilities=frozenset())
    learner = surrogate.learner(problem, np.random.default_rng(0))
    learner.observe(Evaluations(positions=points, values=values))
    process = learner.fit()
    centres = process.centres if sparse else points
    own, cross = kernel(centres, centres), kernel(centres, points)
    short = 1.0 - np.einsum("ij,ij->j", cross, np.linalg.solve(own, cross))
    equations = Equations(
        whitened=points,
        targets=values[:, None],
        gradients=np.zeros((len(points), 1, 2)),
        value_weights=1.0 / (short + NOISE**2),
        gradient_weights=np.zeros(len(points)),
        count=float(len(points)),
    )
    nodes = Nodes.radial(centres=centres, square_widths=np.full(len(centres), LENGTH**2))
    sums = normal_equations(Basis(nodes=nodes, degree=0), equations)
    ridge = np.zeros_like(sums.gram)
    ridge[1:, 1:] = own
    level, *weights = np.linalg.solve(sums.gram + ridge, sums.right[:, 0])
    assert_allclose(process.value(fresh), nodes.features(fresh) @ weights + level, atol=1e-7)
