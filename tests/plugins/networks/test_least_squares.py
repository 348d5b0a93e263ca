"""Every way of solving a regression against one plain least-squares problem."""

import attrs
import numpy as np
import pytest
from equations_by_hand import equations_of, nodes_of, rows_of
from numpy.testing import assert_allclose, assert_array_equal

from surrokit_networks.equations import Basis, normal_equations, write_out
from surrokit_networks.least_squares import Projected, dual_spectrum, solve, solve_with_twin
from surrokit_networks.trend import TrendColumns

DIM, RIDGE = 3, 0.03


def basis_of(kind="additive", n_nodes=12, degree=1):
    trend = TrendColumns(dim=DIM, degree=degree)
    return Basis(trend=trend, nodes=nodes_of(kind, DIM, n_nodes))


@pytest.fixture(params=[(k, d) for k in (None, "additive", "rbf") for d in (0, 1, 2)], ids=str)
def basis(request):
    return basis_of(request.param[0], 7, request.param[1])


@pytest.mark.parametrize("scratch", [None, 1])
@pytest.mark.parametrize(
    "how",
    [{}, {"gradients": "some", "n_outputs": 3}, {"gradients": "all", "level": False}],
    ids=str,
)
def test_products_are_those_of_rows(basis, how, scratch, monkeypatch):
    if scratch is not None:  # blocks of 64 positions
        monkeypatch.setattr("surrokit_networks.equations.SCRATCH", scratch)
    equations = equations_of(150, DIM, **how)
    left, right = rows_of(basis, equations)
    rows = np.hstack([left, right])
    rows = rows[np.abs(rows).sum(axis=1) > 0.0]
    written = np.vstack(list(write_out(basis, equations)))
    assert len(written) == equations.n_rows
    order = [np.lexsort(each.T.round(9)) for each in (written, rows)]
    assert_allclose(written[order[0]], rows[order[1]], rtol=1e-9, atol=1e-12)
    first = np.arange(150) < 11
    parts = [normal_equations(basis, equations.take(some)) for some in (first, ~first)]
    for found in (normal_equations(basis, equations), parts[0] + parts[1]):
        assert_allclose(found.gram, left.T @ left, rtol=1e-9, atol=1e-9)
        assert_allclose(found.right, left.T @ right, rtol=1e-9, atol=1e-9)
        assert_allclose(found.squares, np.square(right).sum(axis=0), rtol=1e-10)


def test_columns_are_monomials_then_nodes(basis, differences):
    z = np.random.default_rng(1).standard_normal((5, DIM))
    first, second = np.triu_indices(DIM, 1)
    columns = [z, 0.5 * z**2, z[:, first] * z[:, second] / np.sqrt(2.0)]
    expected = np.concatenate([np.empty((5, 0)), *columns[: (0, 1, 3)[basis.trend.degree]]], axis=1)
    features = basis.features(z)
    assert_allclose(features[:, : len(basis.trend)], expected, rtol=1e-12, atol=1e-12)
    assert_array_equal(features[:, len(basis.trend) :], basis.nodes.features(z))
    slopes = differences(basis.features, z).transpose(0, 2, 1)
    assert_allclose(basis.jacobian(z), slopes, atol=1e-8)


def test_parts_of_equations_count_by_their_number():
    equations = equations_of(30, DIM, gradients="all")
    assert equations.n_rows == 30 * (1 + DIM)
    assert equations.take(slice(0, 15)).count == pytest.approx(equations.count / 2)
    assert equations_of(30, DIM).take(np.zeros(30, dtype=bool)).count == 0.0
    idle = attrs.evolve(equations, value_weights=equations.value_weights * (np.arange(30) % 3 > 0))
    assert idle.n_rows == 30 * DIM + 20


def projected(basis, equations):
    normal = normal_equations(basis, equations)
    return Projected.of(normal, len(basis.trend), equations.trains_level)


WAYS = {
    "rows": lambda b, e, ridge: dual_spectrum(b, e).solution(e, ridge),
    "sums": lambda b, e, ridge: projected(b, e).spectrum().solution(e, ridge),
    "one factorisation": lambda b, e, ridge: projected(b, e).solution(e, ridge),
    "orthogonal": solve,
}


def plain(basis, equations, ridge):
    """Level, trend and weights, degrees and error, from one augmented problem."""
    left, right = rows_of(basis, equations)
    free = left.shape[1] - len(basis.nodes)
    penalty = np.sqrt(ridge) * np.eye(left.shape[1])[free:]
    whole = np.vstack([left, penalty])
    targets = np.vstack([right, np.zeros((len(basis.nodes), equations.targets.shape[1]))])
    found = np.linalg.lstsq(whole, targets, rcond=None)[0]
    hat = left @ np.linalg.pinv(whole)[:, : len(left)]
    weight = equations.value_weights.sum() + DIM * equations.gradient_weights.sum()
    squares = np.sum((right - left @ found) ** 2) / weight
    degrees = np.trace(hat)
    lead = int(equations.trains_level)
    level = found[0] if lead else np.zeros(equations.targets.shape[1])
    error = squares / (1.0 - degrees / equations.count) ** 2
    return level, found[lead:free], found[free:], degrees, error


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("gradients", ["none", "some"])
@pytest.mark.parametrize(
    ("kind", "degree", "level"),
    [
        ("additive", 0, True),
        ("rbf", 2, True),
        ("additive", 1, False),
        (None, 0, True),
        (None, 2, True),
    ],
)
@pytest.mark.parametrize(("n", "n_nodes"), [(40, 12), (14, 40)])
def test_every_way_is_the_plain_solution(way, gradients, kind, degree, level, n, n_nodes):
    basis = basis_of(kind, n_nodes, degree)
    equations = equations_of(n, DIM, n_outputs=2, gradients=gradients, level=level)
    constant, trend, weights, degrees, error = plain(basis, equations, RIDGE)
    found = way(basis, equations, RIDGE)
    assert_allclose(found.level, constant, rtol=1e-7, atol=1e-8)
    assert_allclose(found.trend, trend, rtol=1e-7, atol=1e-8)
    assert_allclose(found.weights, weights, rtol=1e-7, atol=1e-8)
    assert found.degrees == pytest.approx(degrees, rel=1e-8)
    assert found.error == pytest.approx(error, rel=1e-6)
    assert found.ridge == RIDGE


@pytest.mark.parametrize("gradients", ["none", "some"])
@pytest.mark.parametrize(("n", "n_nodes"), [(40, 8), (8, 50)])
def test_no_ridge_is_the_pseudoinverse(gradients, n, n_nodes):
    basis = basis_of("additive", n_nodes)
    equations = equations_of(n, DIM, gradients=gradients)
    left, right = rows_of(basis, equations)
    known, _ = np.linalg.qr(left[:, : 1 + DIM])
    features = left[:, 1 + DIM :] - known @ (known.T @ left[:, 1 + DIM :])
    expected = np.linalg.pinv(features, rcond=1e-10) @ (right - known @ (known.T @ right))
    found, _ = solve_with_twin(basis, equations, 0.0, None)
    assert_allclose(found.weights, expected, rtol=1e-6, atol=1e-8)
    if gradients == "none" and n < n_nodes:  # through every point: no error is claimed
        assert found.error == np.inf


@pytest.mark.parametrize("ridge", [None, 0.0, 0.01])
@pytest.mark.parametrize("gradients", ["none", "some"])
@pytest.mark.parametrize(("n", "n_nodes"), [(60, 12), (14, 80)])
def test_twins_see_nothing_of_what_is_held_out(ridge, gradients, n, n_nodes):
    basis = basis_of("rbf", n_nodes)
    equations = equations_of(n, DIM, gradients=gradients)
    held = np.random.default_rng(5).permutation(n) < 4
    solution, twin = solve_with_twin(basis, equations, ridge, held)
    assert twin.ridge == solution.ridge
    assert ridge is None or solution.ridge == ridge
    features = basis.features(equations.whitened)
    for found, rows in ((twin, equations.take(~held)), (solution, equations)):
        expected = solve(basis, rows, found.ridge)
        assert_allclose(
            features @ np.vstack([found.trend, found.weights]) + found.level,
            features @ np.vstack([expected.trend, expected.weights]) + expected.level,
            atol=1e-5,
        )


@pytest.mark.parametrize(("n", "n_nodes"), [(60, 12), (20, 80)])
def test_the_ridge_by_cross_validation_has_the_least_score(n, n_nodes):
    basis = basis_of("additive", n_nodes)
    equations = equations_of(n, DIM, gradients="some", noise=0.3)
    found, twin = solve_with_twin(basis, equations, None, None)
    assert twin is None

    def score(ridge):
        level, trend, weights, degrees, _ = plain(basis, equations, ridge)
        left, right = rows_of(basis, equations)
        rest = right - left @ np.vstack([level[None], trend, weights])
        return np.sum(rest**2) / (equations.count - 1.05 * degrees) ** 2

    best = score(found.ridge)
    for factor in np.logspace(-3, 3, 13):
        assert best <= score(found.ridge * factor) * (1.0 + 1e-6)


def test_ill_conditioned_features_at_the_paper_s_ridge():
    # Squaring the condition number would lose this: the normal matrix has rounding errors as
    # large as the ridge.
    basis = basis_of("additive", 80, 0)
    equations = equations_of(200, DIM, level=False, noise=0.0)
    _, _, weights, _, _ = plain(basis, equations, 1e-12)
    found, _ = solve_with_twin(basis, equations, 1e-12, None)
    features = basis.features(equations.whitened)
    assert_allclose(features @ found.weights, features @ weights, atol=1e-9)


def test_positions_that_never_move_in_one_direction():
    # The trend's own columns are then dependent; the fit goes on all the same.
    basis = basis_of()
    for n in (6, 40):
        equations = equations_of(n, DIM)
        still = attrs.evolve(equations, whitened=equations.whitened * [1.0, 1.0, 0.0])
        found, _ = solve_with_twin(basis, still, None, None)
        predicted = basis.features(still.whitened) @ np.vstack([found.trend, found.weights])
        assert np.abs(predicted + found.level - still.targets).max() < 3.0


def error_at_fresh_points(basis, solution):
    fresh = np.random.default_rng(100).standard_normal((300, DIM))
    left = basis.features(fresh) @ solution.weights[:, 0] + solution.level
    return np.sqrt(np.mean((left - np.sin(fresh).sum(axis=1)) ** 2))


def by_the_books(basis, equations):
    """Generalised cross-validation that counts every degree of freedom once."""
    if equations.n_rows < len(basis.nodes):
        spectrum = dual_spectrum(basis, equations)
    else:
        spectrum = projected(basis, equations).spectrum()
    return spectrum.solution(equations, spectrum.cross_validated(equations.count, cost=1.0))


def test_as_many_rows_as_nodes_does_not_explode():
    """Nor does it where there are somewhat more or less; the controls without a ridge, and with
    that of the books, do."""

    def worst(n_rows, choose):
        errors = []
        for seed in range(40):
            trend = TrendColumns(dim=DIM, degree=0)
            basis = Basis(trend=trend, nodes=nodes_of("additive", DIM, 100, seed))
            solution = choose(basis, equations_of(n_rows, DIM, seed=seed))
            errors.append(error_at_fresh_points(basis, solution))
        return max(errors)

    for n_rows in (99, 101, 105):
        assert worst(n_rows, lambda *each: solve_with_twin(*each, None, None)[0]) < 0.6
    assert worst(101, lambda *each: solve(*each, 0.0)) > 5.0
    assert worst(101, by_the_books) > 2.0
