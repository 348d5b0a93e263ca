"""Both ways to the spectrum of a regression against one plain least-squares problem."""

import attrs
import numpy as np
import pytest
from equations_by_hand import equations_of, nodes_of, rows_of
from numpy.testing import assert_allclose

from surrokit_networks.least_squares import Basis, Spectrum, normal_equations, solve, write_out

DIM, RIDGE = 3, 0.03


def basis_of(kind="additive", n_nodes=12, degree=1, level=True):
    return Basis(nodes=nodes_of(kind, DIM, n_nodes), degree=degree, level=level)


@pytest.fixture(params=[(k, d) for k in (None, "additive", "rbf") for d in (0, 1, 2)], ids=str)
def basis(request):
    return basis_of(request.param[0], 7, request.param[1])


@pytest.mark.parametrize("scratch", [None, 1])
@pytest.mark.parametrize(
    ("level", "how"),
    [
        (True, {}),
        (True, {"gradients": "some", "n_outputs": 3}),
        (False, {"gradients": "all"}),
    ],
    ids=str,
)
def test_products_are_those_of_rows(basis, level, how, scratch, monkeypatch):
    if scratch is not None:  # blocks of 64 positions
        monkeypatch.setattr("surrokit_networks.least_squares.SCRATCH", scratch)
    basis, equations = attrs.evolve(basis, level=level), equations_of(150, DIM, **how)
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


def test_columns_are_a_polynomial_and_nodes(basis, differences):
    rng = np.random.default_rng(1)
    z, coefficients = rng.standard_normal((5, DIM)), rng.standard_normal((len(basis), 2))
    level, slope, matrices = basis.polynomial(coefficients)
    bent = np.zeros((2, DIM, DIM)) if matrices is None else matrices
    assert_allclose(bent, bent.transpose(0, 2, 1))
    expected = level + z @ slope + 0.5 * np.einsum("ni,mij,nj->nm", z, bent, z)
    expected += basis.nodes.features(z) @ coefficients[basis.n_free :]
    assert_allclose(basis.features(z) @ coefficients, expected, rtol=1e-12)
    slopes = differences(basis.features, z).transpose(0, 2, 1)
    assert_allclose(basis.jacobian(z), slopes, atol=1e-8)


def test_parts_of_equations_count_by_their_number():
    equations = equations_of(30, DIM, gradients="all")
    assert equations.n_rows == 30 * (1 + DIM)
    assert equations.take(slice(0, 15)).count == pytest.approx(equations.count / 2)
    assert equations_of(30, DIM).take(np.zeros(30, dtype=bool)).count == 0.0
    idle = attrs.evolve(equations, value_weights=equations.value_weights * (np.arange(30) % 3 > 0))
    assert idle.n_rows == 30 * DIM + 20


def of_rows(basis, equations):
    m = equations.targets.shape[1]
    return Spectrum.of_rows(write_out(basis, equations), basis.n_free, m, equations.total_weight)


def of_sums(basis, equations):
    sums = normal_equations(basis, equations)
    return Spectrum.of_sums(sums, basis.n_free, equations.total_weight)


def plain(basis, equations, ridge):
    """Coefficients, degrees and error, from one augmented problem."""
    left, right = rows_of(basis, equations)
    penalty = np.sqrt(ridge) * np.eye(len(basis))[basis.n_free :]
    whole = np.vstack([left, penalty])
    targets = np.vstack([right, np.zeros((len(basis.nodes), right.shape[1]))])
    found = np.linalg.lstsq(whole, targets, rcond=None)[0]
    degrees = np.trace(left @ np.linalg.pinv(whole)[:, : len(left)])
    weight = equations.value_weights.sum() + DIM * equations.gradient_weights.sum()
    squares = np.sum((right - left @ found) ** 2) / weight
    return found, degrees, squares / (1.0 - degrees / equations.count) ** 2


@pytest.mark.parametrize("way", [of_rows, of_sums])
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
def test_both_ways_are_the_plain_solution(way, gradients, kind, degree, level, n, n_nodes):
    basis = basis_of(kind, n_nodes, degree, level)
    equations = equations_of(n, DIM, n_outputs=2, gradients=gradients)
    coefficients, degrees, error = plain(basis, equations, RIDGE)
    found = way(basis, equations).solution(equations, RIDGE)
    assert_allclose(found.coefficients, coefficients, rtol=1e-7, atol=1e-8)
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
    found, _ = solve(basis, equations, 0.0)
    assert_allclose(found.coefficients[1 + DIM :], expected, rtol=1e-6, atol=1e-8)
    if gradients == "none" and n < n_nodes:  # through every point: no error is claimed
        assert found.error == np.inf


@pytest.mark.parametrize("ridge", [None, 0.0, 0.01])
@pytest.mark.parametrize("gradients", ["none", "some"])
@pytest.mark.parametrize(("n", "n_nodes"), [(60, 12), (14, 80)])
def test_twins_see_nothing_of_what_is_held_out(ridge, gradients, n, n_nodes):
    basis = basis_of("rbf", n_nodes)
    equations = equations_of(n, DIM, gradients=gradients)
    held = np.random.default_rng(5).permutation(n) < 4
    solution, twin = solve(basis, equations, ridge, held)
    assert ridge is None or solution.ridge == ridge
    features = basis.features(equations.whitened)
    for found, rows in ((twin, equations.take(~held)), (solution.coefficients, equations)):
        expected = of_rows(basis, rows).coefficients(solution.ridge)
        assert_allclose(features @ found, features @ expected, atol=1e-5)


@pytest.mark.parametrize(("n", "n_nodes"), [(60, 12), (20, 80)])
def test_the_ridge_by_cross_validation_has_the_least_score(n, n_nodes):
    basis = basis_of("additive", n_nodes)
    equations = equations_of(n, DIM, gradients="some", noise=0.3)
    found, twin = solve(basis, equations, None)
    assert twin is None

    def score(ridge):
        coefficients, degrees, _ = plain(basis, equations, ridge)
        left, right = rows_of(basis, equations)
        rest = right - left @ coefficients
        return np.sum(rest**2) / (equations.count - 1.05 * degrees) ** 2

    best = score(found.ridge)
    for factor in np.logspace(-3, 3, 13):
        assert best <= score(found.ridge * factor) * (1.0 + 1e-6)


def test_ill_conditioned_features_at_the_paper_s_ridge():
    # Squaring the condition number would lose this: the normal matrix has rounding errors as
    # large as the ridge.
    basis, equations = basis_of("additive", 80, 0, False), equations_of(200, DIM, noise=0.0)
    expected, _, _ = plain(basis, equations, 1e-12)
    found, _ = solve(basis, equations, 1e-12)
    features = basis.features(equations.whitened)
    assert_allclose(features @ found.coefficients, features @ expected, atol=1e-9)


def test_positions_that_never_move_in_one_direction():
    # The trend's own columns are then dependent; the fit goes on all the same.
    basis = basis_of()
    for n in (6, 40):
        equations = equations_of(n, DIM)
        still = attrs.evolve(equations, whitened=equations.whitened * [1.0, 1.0, 0.0])
        found, _ = solve(basis, still, None)
        predicted = basis.features(still.whitened) @ found.coefficients
        assert np.abs(predicted - still.targets).max() < 3.0


def test_as_many_rows_as_nodes_does_not_explode():
    """Nor does it where there are somewhat more or less; the controls without a ridge, and with
    cross-validation by the books, do."""

    def worst(n_rows, choose):
        errors = []
        fresh = np.random.default_rng(100).standard_normal((300, DIM))
        for seed in range(40):
            basis = Basis(nodes=nodes_of("additive", DIM, 100, seed), degree=0)
            equations = equations_of(n_rows, DIM, seed=seed)
            found = basis.features(fresh) @ choose(basis, equations)[:, 0]
            errors.append(np.sqrt(np.mean((found - np.sin(fresh).sum(axis=1)) ** 2)))
        return max(errors)

    def by_the_books(basis, equations):
        way = of_rows if equations.n_rows < len(basis.nodes) else of_sums
        spectrum = way(basis, equations)
        return spectrum.coefficients(spectrum.cross_validated(equations.count, cost=1.0))

    for n_rows in (99, 101, 105):
        assert worst(n_rows, lambda *each: solve(*each, None)[0].coefficients) < 0.6
    assert worst(101, lambda *each: solve(*each, 0.0)[0].coefficients) > 5.0
    assert worst(101, by_the_books) > 2.0
