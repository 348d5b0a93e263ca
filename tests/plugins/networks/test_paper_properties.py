"""What the paper says of the estimator: potential matching, and Algorithm 2."""

import numpy as np
import pytest

from surrokit.interfaces import Evaluations
from surrokit.surrogate.whitening import Whitening
from surrokit_networks.additive import Additive
from surrokit_networks.equations import Basis, Equations
from surrokit_networks.rbf import Rbf
from surrokit_networks.regression import Regression
from surrokit_networks.training_rows import TrainingRows
from surrokit_networks.trend import TrendColumns

DIM, NODES, N = 2, 15, 80


def rows_of(shift=0.0, copies=False):
    rng = np.random.default_rng(4)
    positions = rng.standard_normal((N, DIM))
    if copies:
        positions = positions[rng.integers(0, N, 2 * N)]
    values = 0.25 * (positions**4).sum(axis=1) + positions[:, 0] * positions[:, 1] + shift
    return TrainingRows.of(Evaluations(positions=positions, values=values), "full")


def coefficients_of(nodes, rows, degree):
    """Features with the trend first, and the least-squares coefficients of them all."""
    basis = Basis(trend=TrendColumns(dim=DIM, degree=degree), network=nodes)
    equations = Equations(
        whitened=rows.positions,
        targets=rows.values[:, None],
        gradients=None,
        value_weights=rows.weights,
        gradient_weights=np.zeros(len(rows)),
        count=float(len(rows)),
        trains_level=True,
    )
    solution = Regression(ridge=0.0).solve(basis, equations, None)[0]
    return basis.features(rows.positions), np.vstack([solution.trend, solution.weights])[:, 0]


@pytest.mark.parametrize("kind", ["additive", "rbf"])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("copies", [False, True])
def test_least_squares_with_a_trained_level_is_potential_matching(kind, degree, copies, make_nodes):
    # Equation (15): of all weights these give the least sample variance of V - U. A state that a
    # chain stayed at counts as often as it was seen.
    rows, nodes = rows_of(copies=copies), make_nodes(kind, DIM, NODES)
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
    np.testing.assert_allclose((rows.copies * left) @ centred, 0.0, atol=1e-7)


@pytest.mark.parametrize("kind", ["additive", "rbf"])
def test_a_shift_of_the_potential_changes_the_level_alone(kind, make_nodes):
    nodes = make_nodes(kind, DIM, NODES)
    regression, identity = Regression(ridge=0.0, train_on="values"), Whitening.identity(DIM)
    one, other = (regression.fit(nodes, identity, rows_of(shift)) for shift in (0.0, 1000.0))
    positions = np.random.default_rng(6).standard_normal((9, DIM))
    np.testing.assert_allclose(other.network.weights, one.network.weights, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(other.value(positions) - one.value(positions), 1000.0)
    np.testing.assert_allclose(other.gradient(positions), one.gradient(positions), atol=1e-6)
    rows = rows_of()
    assert np.mean(one.value(rows.positions) - rows.values) == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize("n_nodes", [15, 120])
@pytest.mark.parametrize("kind", ["additive", "rbf"])
def test_without_ridge_weights_are_those_of_algorithm_2(kind, n_nodes, make_nodes):
    # v = H^+ T, with the level of the authors' code: T = U - min U.
    rows = rows_of()
    nodes = make_nodes(kind, DIM, n_nodes)
    regression = Regression(ridge=0.0, train_on="values", level="minimum")
    network = regression.fit(nodes, Whitening.identity(DIM), rows)
    features = nodes.features(rows.positions)
    targets = rows.values - rows.values.min()
    expected = np.linalg.lstsq(features, targets, rcond=None)[0]
    np.testing.assert_allclose(
        network.value(rows.positions) - rows.values.min(), features @ expected, atol=1e-7
    )
    assert network.level == rows.values.min()
    # Of all solutions the one of least length, where there is more than one.
    assert np.linalg.norm(network.network.weights) == pytest.approx(
        np.linalg.norm(expected), rel=1e-5
    )


def test_settings_of_the_paper_s_experiments():
    for surrogate in (Additive.paper(50, 1e-7), Rbf.paper(50, 1e-7)):
        training = surrogate.training
        assert surrogate.n_nodes == 50
        assert training.regression.ridge == 1e-7
        assert training.regression.level == "minimum"
        assert training.regression.trend == "constant"
        assert training.regression.train_on == "values"
        assert (training.whiten, training.tail, training.hold_out) == (False, "full", 0.0)
