"""Every way of solving a regression against one plain least-squares problem."""

import attrs
import numpy as np
import pytest

from surrokit_networks.equations import Basis, normal_equations
from surrokit_networks.least_squares import (
    Projected,
    Solver,
    dual_spectrum,
    solve,
    squared_errors,
)
from surrokit_networks.trend import TrendColumns

DIM = 3
RIDGE = 0.03


def by_rows(basis, equations, ridge):
    return dual_spectrum(basis, equations).solution(equations, ridge)


def projected(basis, equations):
    normal = normal_equations(basis, equations)
    return Projected.of(normal, basis.n_trend, equations.trains_level)


def by_moments(basis, equations, ridge):
    return projected(basis, equations).spectrum().solution(equations, ridge)


def by_one_factorisation(basis, equations, ridge):
    return projected(basis, equations).solution(equations, ridge)


WAYS = [by_rows, by_moments, by_one_factorisation, solve]


def rows_of(basis, equations):
    """sqrt(w) [1, columns] and sqrt(w) targets of values, then of components of gradients."""
    roots = np.sqrt(equations.value_weights)[:, None]
    features = np.hstack([np.ones((len(equations), 1)), basis.features(equations.whitened)])
    left, right = [roots * features], [roots * equations.targets]
    if equations.gradients is not None:
        jacobian = basis.jacobian(equations.whitened)
        roots = np.sqrt(equations.gradient_weights)[:, None]
        for k in range(equations.whitened.shape[1]):
            slopes = np.hstack([np.zeros((len(equations), 1)), jacobian[:, k]])
            left.append(roots * slopes)
            right.append(roots * equations.gradients[:, :, k])
    first = 0 if equations.trains_level else 1
    return np.vstack(left)[:, first:], np.vstack(right)


def plain(basis, equations, ridge):
    """Level, trend and weights, degrees and error, from one augmented problem."""
    left, right = rows_of(basis, equations)
    free = left.shape[1] - basis.n_nodes
    penalty = np.sqrt(ridge) * np.eye(left.shape[1])[free:]
    whole = np.vstack([left, penalty])
    targets = np.vstack([right, np.zeros((basis.n_nodes, equations.n_outputs))])
    found = np.linalg.lstsq(whole, targets, rcond=None)[0]
    hat = left @ np.linalg.pinv(whole)[:, : len(left)]
    weight = equations.value_weights.sum() + DIM * equations.gradient_weights.sum()
    squares = np.sum((right - left @ found) ** 2) / weight
    degrees = np.trace(hat)
    lead = int(equations.trains_level)
    level = found[0] if lead else np.zeros(equations.n_outputs)
    error = squares / (1.0 - degrees / equations.count) ** 2
    return level, found[lead:free], found[free:], degrees, error


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("gradients", ["none", "some"])
@pytest.mark.parametrize("kind", ["additive", "rbf"])
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize(("n", "n_nodes"), [(40, 12), (14, 40)])
def test_every_way_is_the_plain_solution(
    way, gradients, kind, degree, n, n_nodes, make_nodes, make_equations
):
    basis = Basis(
        trend=TrendColumns(dim=DIM, degree=degree), network=make_nodes(kind, DIM, n_nodes)
    )
    equations = make_equations(n, DIM, n_outputs=2, gradients=gradients)
    level, trend, weights, degrees, error = plain(basis, equations, RIDGE)
    found = way(basis, equations, RIDGE)
    np.testing.assert_allclose(found.level, level, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found.trend, trend, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found.weights, weights, rtol=1e-7, atol=1e-8)
    assert found.degrees == pytest.approx(degrees, rel=1e-8)
    assert found.error == pytest.approx(error, rel=1e-6)
    assert found.ridge == RIDGE
    assert found.finite


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("values", [True, False])
def test_no_level(way, values, make_nodes, make_equations):
    # Without a trained level, or without values, which alone could give it.
    basis = Basis(trend=TrendColumns(dim=DIM, degree=1), network=make_nodes("rbf", DIM, 12))
    equations = make_equations(40, DIM, gradients="some", values=values, level=False)
    _, trend, weights, degrees, error = plain(basis, equations, RIDGE)
    found = way(basis, equations, RIDGE)
    np.testing.assert_array_equal(found.level, 0.0)
    np.testing.assert_allclose(found.trend, trend, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found.weights, weights, rtol=1e-7, atol=1e-8)
    assert found.degrees == pytest.approx(degrees)
    assert found.error == pytest.approx(error)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_a_trend_alone(way, degree, make_equations):
    basis = Basis(trend=TrendColumns(dim=DIM, degree=degree), network=None)
    equations = make_equations(40, DIM, n_outputs=2, gradients="some")
    level, trend, _, degrees, error = plain(basis, equations, RIDGE)
    found = way(basis, equations, RIDGE)
    np.testing.assert_allclose(found.level, level, atol=1e-9)
    np.testing.assert_allclose(found.trend, trend, atol=1e-9)
    assert found.weights.shape == (0, 2)
    assert found.degrees == pytest.approx(degrees)
    assert found.error == pytest.approx(error)


@pytest.mark.parametrize("way", WAYS)
def test_several_outputs_are_as_many_fits(way, make_nodes, make_equations):
    basis = Basis(trend=TrendColumns(dim=DIM, degree=2), network=make_nodes("additive", DIM, 12))
    equations = make_equations(40, DIM, n_outputs=3, gradients="all")
    together = way(basis, equations, RIDGE)
    errors = 0.0
    for m in range(3):
        one = attrs.evolve(
            equations,
            targets=equations.targets[:, m : m + 1],
            gradients=equations.gradients[:, m : m + 1],
        )
        alone = way(basis, one, RIDGE)
        np.testing.assert_allclose(together.weights[:, m], alone.weights[:, 0], atol=1e-9)
        np.testing.assert_allclose(together.trend[:, m], alone.trend[:, 0], atol=1e-9)
        np.testing.assert_allclose(together.level[m], alone.level[0], atol=1e-9)
        assert together.degrees == pytest.approx(alone.degrees)
        errors += alone.error
    assert together.error == pytest.approx(errors)


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("gradients", ["none", "some"])
@pytest.mark.parametrize(("n", "n_nodes"), [(40, 8), (8, 50)])
def test_no_ridge_is_the_pseudoinverse(degree, gradients, n, n_nodes, make_nodes, make_equations):
    network = make_nodes("additive", DIM, n_nodes)
    basis = Basis(trend=TrendColumns(dim=DIM, degree=degree), network=network)
    equations = make_equations(n, DIM, gradients=gradients)
    left, right = rows_of(basis, equations)
    free = 1 + basis.n_trend
    known, _ = np.linalg.qr(left[:, :free])
    features = left[:, free:] - known @ (known.T @ left[:, free:])
    expected = np.linalg.pinv(features, rcond=1e-10) @ (right - known @ (known.T @ right))
    for found in (
        solve(basis, equations, 0.0),
        Solver(ridge=0.0, choose_ridge="gcv").solve(basis, equations, None)[0],
    ):
        np.testing.assert_allclose(found.weights, expected, rtol=1e-6, atol=1e-8)


def test_an_interpolating_fit_does_not_claim_an_error(make_nodes, make_equations):
    basis = Basis(trend=TrendColumns(dim=DIM, degree=0), network=make_nodes("additive", DIM, 20))
    assert solve(basis, make_equations(8, DIM), 0.0).error == np.inf


@pytest.mark.parametrize("n", [14, 40])
@pytest.mark.parametrize("gradients", ["none", "some"])
def test_a_matrix_for_a_ridge(n, gradients, make_nodes, make_equations):
    basis = Basis(trend=TrendColumns(dim=DIM, degree=1), network=make_nodes("rbf", DIM, 12))
    equations = make_equations(n, DIM, n_outputs=2, gradients=gradients)
    half = np.random.default_rng(3).standard_normal((12, 12))
    ridge = half @ half.T + 0.1 * np.eye(12)
    left, right = rows_of(basis, equations)
    penalty = np.zeros((left.shape[1], left.shape[1]))
    penalty[4:, 4:] = ridge
    found = solve(basis, equations, ridge)
    expected = np.linalg.solve(left.T @ left + penalty, left.T @ right)
    np.testing.assert_allclose(found.level, expected[0], atol=1e-8)
    np.testing.assert_allclose(found.trend, expected[1:4], atol=1e-8)
    np.testing.assert_allclose(found.weights, expected[4:], rtol=1e-7, atol=1e-8)
    hat = left @ np.linalg.solve(left.T @ left + penalty, left.T)
    assert found.degrees == pytest.approx(np.trace(hat))
    assert found.ridge == pytest.approx(np.diag(ridge).mean())


def held_rows(n, n_held=6):
    return np.random.default_rng(5).permutation(n) < n_held


@pytest.mark.parametrize("choose_ridge", ["gcv", "held-out"])
@pytest.mark.parametrize("ridge", [None, 0.0, 0.01])
@pytest.mark.parametrize("gradients", ["none", "some"])
@pytest.mark.parametrize(("n", "n_nodes"), [(60, 12), (14, 80)])
def test_twins_see_nothing_of_what_is_held_out(
    choose_ridge, ridge, gradients, n, n_nodes, make_nodes, make_equations
):
    network = make_nodes("rbf", DIM, n_nodes)
    basis = Basis(trend=TrendColumns(dim=DIM, degree=1), network=network)
    equations, held = make_equations(n, DIM, gradients=gradients), held_rows(n, 4)
    solution, twin = Solver(ridge=ridge, choose_ridge=choose_ridge).solve(basis, equations, held)
    assert twin.ridge == solution.ridge
    if ridge is not None:
        assert solution.ridge == ridge
    features = basis.features(equations.whitened)
    for found, rows in ((twin, equations.take(~held)), (solution, equations)):
        expected = solve(basis, rows, found.ridge)
        np.testing.assert_allclose(
            features @ np.vstack([found.trend, found.weights]) + found.level,
            features @ np.vstack([expected.trend, expected.weights]) + expected.level,
            atol=1e-5,
        )


def error_where_held(basis, equations, held, solution):
    """Squared error at rows held out, values about their mean difference."""
    away = equations.take(held)
    weights = away.value_weights[:, None]
    coefficients = np.vstack([solution.trend, solution.weights])
    left = basis.features(away.whitened) @ coefficients - away.targets
    if weights.sum() > 0:
        left = left - (weights * left).sum(axis=0) / weights.sum()
    total = np.sum(weights * left**2)
    if away.gradients is not None:
        slopes = basis.jacobian(away.whitened) @ coefficients
        left = slopes.transpose(0, 2, 1) - away.gradients
        total += np.sum(away.gradient_weights[:, None, None] * left**2)
    return total


@pytest.mark.parametrize(("values", "gradients"), [(True, "none"), (True, "some"), (False, "some")])
def test_errors_where_rows_are_held_out(values, gradients, make_nodes, make_equations):
    basis = Basis(trend=TrendColumns(dim=DIM, degree=2), network=make_nodes("rbf", DIM, 12))
    equations = make_equations(60, DIM, n_outputs=2, gradients=gradients, values=values)
    held = held_rows(60, 20)
    kept = equations.take(~held)
    fits = [solve(basis, kept, ridge) for ridge in (1e-3, 1.0)]
    found = squared_errors(
        normal_equations(basis, equations.take(held)),
        np.array([fit.trend for fit in fits]),
        np.array([fit.weights for fit in fits]),
    )
    expected = [error_where_held(basis, equations, held, fit) for fit in fits]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize(("n", "n_nodes"), [(60, 12), (20, 80)])
def test_the_ridge_by_held_out_error_is_the_best_of_those_tried(
    n, n_nodes, make_nodes, make_equations
):
    network = make_nodes("additive", DIM, n_nodes)
    basis = Basis(trend=TrendColumns(dim=DIM, degree=1), network=network)
    equations, held = make_equations(n, DIM, gradients="some", noise=0.3), held_rows(n)
    _, twin = Solver(ridge=None, choose_ridge="held-out").solve(basis, equations, held)
    best = error_where_held(basis, equations, held, twin)
    kept = equations.take(~held)
    spectrum = (
        dual_spectrum(basis, kept)
        if equations.n_rows < n_nodes
        else projected(basis, kept).spectrum()
    )
    assert twin.ridge in spectrum.ridges
    for ridge in spectrum.ridges[::7]:
        other = error_where_held(basis, equations, held, spectrum.solution(kept, ridge))
        assert best <= other * (1.0 + 1e-6)


@pytest.mark.parametrize(("n", "n_nodes"), [(60, 12), (20, 80)])
def test_the_ridge_by_cross_validation_has_the_least_score(n, n_nodes, make_nodes, make_equations):
    network = make_nodes("additive", DIM, n_nodes)
    basis = Basis(trend=TrendColumns(dim=DIM, degree=1), network=network)
    equations = make_equations(n, DIM, gradients="some", noise=0.3)
    found, twin = Solver(ridge=None, choose_ridge="gcv").solve(basis, equations, None)
    assert twin is None

    def score(ridge):
        level, trend, weights, degrees, _ = plain(basis, equations, ridge)
        left, right = rows_of(basis, equations)
        rest = right - left @ np.vstack([level[None], trend, weights])
        return np.sum(rest**2) / (equations.count - 1.05 * degrees) ** 2

    best = score(found.ridge)
    for factor in np.logspace(-3, 3, 13):
        assert best <= score(found.ridge * factor) * (1.0 + 1e-6)


@pytest.mark.parametrize("choose_ridge", ["gcv", "held-out"])
@pytest.mark.parametrize("gradients", ["none", "some"])
def test_a_network_that_does_worse_than_its_trend_is_not_kept(
    choose_ridge, gradients, make_nodes, make_equations
):
    # Targets with nothing in them but a slope and noise: the twin must not lose to its trend.
    for n, n_nodes in ((60, 40), (20, 100)):
        network = make_nodes("additive", DIM, n_nodes)
        basis = Basis(trend=TrendColumns(dim=DIM, degree=1), network=network)
        for seed in range(10):
            equations = make_equations(n, DIM, gradients=gradients, seed=seed)
            noise = np.random.default_rng(seed).standard_normal((n, 1))
            equations = attrs.evolve(
                equations,
                targets=noise + equations.whitened[:, :1],
                gradients=None if equations.gradients is None else 0.0 * equations.gradients,
            )
            held = held_rows(n)
            _, twin = Solver(ridge=None, choose_ridge=choose_ridge).solve(basis, equations, held)
            alone = Basis(trend=basis.trend, network=None)
            trend = solve(alone, equations.take(~held), 0.0)
            worst = error_where_held(alone, equations, held, trend)
            assert error_where_held(basis, equations, held, twin) <= 1.05 * worst


@pytest.mark.parametrize("choose_ridge", ["gcv", "held-out"])
def test_a_trend_alone_is_solved_whichever_way_ridges_are_chosen(choose_ridge, make_equations):
    basis = Basis(trend=TrendColumns(dim=DIM, degree=2), network=None)
    equations, held = make_equations(60, DIM), held_rows(60)
    found, _ = Solver(ridge=None, choose_ridge=choose_ridge).solve(basis, equations, held)
    level, trend, *_ = plain(basis, equations, 0.0)
    np.testing.assert_allclose(found.trend, trend, atol=1e-9)
    np.testing.assert_allclose(found.level, level, atol=1e-9)


@pytest.mark.parametrize("gradients", ["none", "some"])
def test_constant_targets_give_a_flat_network(gradients, make_nodes, make_equations):
    basis = Basis(trend=TrendColumns(dim=DIM, degree=1), network=make_nodes("additive", DIM, 10))
    for n in (6, 30):
        equations = make_equations(n, DIM, gradients=gradients)
        flat = attrs.evolve(
            equations,
            targets=np.zeros((n, 1)),
            gradients=None if equations.gradients is None else 0.0 * equations.gradients,
        )
        for way in (by_rows, by_moments):
            np.testing.assert_allclose(way(basis, flat, 1e-9).weights, 0.0, atol=1e-12)
        chosen = dual_spectrum(basis, flat).cross_validated(flat.count)
        assert np.isfinite(chosen)
        assert chosen > 0.0


def test_ill_conditioned_features_at_the_paper_s_ridge(make_nodes, make_equations):
    # Squaring the condition number would lose this: the normal matrix has rounding errors as
    # large as the ridge.
    basis = Basis(trend=TrendColumns(dim=DIM, degree=0), network=make_nodes("additive", DIM, 80))
    equations = make_equations(200, DIM, level=False, noise=0.0)
    _, _, weights, _, _ = plain(basis, equations, 1e-12)
    found = Solver(ridge=1e-12, choose_ridge="gcv").solve(basis, equations, None)[0]
    features = basis.features(equations.whitened)
    np.testing.assert_allclose(features @ found.weights, features @ weights, atol=1e-9)


def test_positions_that_never_move_in_one_direction(make_nodes, make_equations):
    # The trend's own columns are then dependent; the fit goes on all the same.
    basis = Basis(trend=TrendColumns(dim=DIM, degree=1), network=make_nodes("additive", DIM, 12))
    for n in (6, 40):
        equations = make_equations(n, DIM)
        still = attrs.evolve(equations, whitened=equations.whitened * [1.0, 1.0, 0.0])
        found = Solver(ridge=None, choose_ridge="gcv").solve(basis, still, None)[0]
        assert found.finite
        predicted = basis.features(still.whitened) @ np.vstack([found.trend, found.weights])
        assert np.abs(predicted + found.level - still.targets).max() < 3.0
