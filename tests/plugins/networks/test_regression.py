"""The least-squares solutions against plain closed forms."""

import numpy as np
import pytest

from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit_networks.activations import TANH
from surrokit_networks.additive_nodes import AdditiveNodes
from surrokit_networks.design import Design
from surrokit_networks.orthogonal import solved
from surrokit_networks.regression import Regression
from surrokit_networks.spectrum import dual_spectrum, primal_spectrum, spectrum
from surrokit_networks.training_rows import TrainingRows
from surrokit_networks.whitening import Whitening

DIM = 3


def design(n_rows, n_nodes, *, trains_level=True, noise=0.1, seed=0, block_rows=None):
    rng = np.random.default_rng(seed)
    whitened = rng.standard_normal((n_rows, DIM))
    targets = np.sin(whitened).sum(axis=1) + noise * rng.standard_normal(n_rows)
    return Design(
        nodes=AdditiveNodes(
            directions=rng.standard_normal((n_nodes, DIM)),
            biases=rng.standard_normal(n_nodes),
            activation=TANH,
        ),
        whitened=whitened,
        targets=targets,
        weights=rng.uniform(0.2, 1.0, n_rows),
        count=float(n_rows),
        trains_level=trains_level,
        block_rows=block_rows,
    )


def plain(problem, ridge):
    """Weights and level from one augmented least-squares problem; the level is not penalised."""
    roots = np.sqrt(problem.weights)[:, None]
    features = problem.nodes.features(problem.whitened)
    n_rows, n_nodes = features.shape
    lead = np.ones((n_rows, 1)) if problem.trains_level else np.empty((n_rows, 0))
    top = roots * np.hstack([lead, features])
    bottom = np.hstack([np.zeros((n_nodes, lead.shape[1])), np.sqrt(ridge) * np.eye(n_nodes)])
    right = np.concatenate([roots[:, 0] * problem.targets, np.zeros(n_nodes)])
    solution = np.linalg.lstsq(np.vstack([top, bottom]), right, rcond=None)[0]
    level = solution[0] if problem.trains_level else 0.0
    return solution[lead.shape[1] :], level


@pytest.mark.parametrize("trains_level", [True, False])
@pytest.mark.parametrize(("n_rows", "n_nodes"), [(60, 12), (12, 12), (10, 25)])
def test_every_path_is_the_closed_form(n_rows, n_nodes, trains_level):
    problem = design(n_rows, n_nodes, trains_level=trains_level)
    weights, level = plain(problem, 0.01)
    for solution in (
        primal_spectrum(problem).solution(problem, 0.01),
        dual_spectrum(problem).solution(problem, 0.01),
        solved(problem, 0.01),
    ):
        np.testing.assert_allclose(solution.weights, weights, rtol=1e-8, atol=1e-10)
        assert solution.level == pytest.approx(level)
        assert solution.ridge == 0.01


@pytest.mark.parametrize(("n_rows", "n_nodes"), [(60, 12), (10, 25)])
def test_every_path_agrees_on_degrees_and_error(n_rows, n_nodes):
    problem = design(n_rows, n_nodes)
    roots = np.sqrt(problem.weights)[:, None]
    rows = roots * np.hstack([np.ones((n_rows, 1)), problem.nodes.features(problem.whitened)])
    penalty = np.diag([0.0] + [0.01] * n_nodes)
    hat = rows @ np.linalg.solve(rows.T @ rows + penalty, rows.T)
    targets = roots[:, 0] * problem.targets
    residual = np.sum((targets - hat @ targets) ** 2) / problem.weights.sum()
    expected = residual / (1.0 - np.trace(hat) / n_rows) ** 2
    for solution in (
        primal_spectrum(problem).solution(problem, 0.01),
        dual_spectrum(problem).solution(problem, 0.01),
        solved(problem, 0.01),
    ):
        assert solution.degrees == pytest.approx(np.trace(hat))
        assert solution.error == pytest.approx(expected)


@pytest.mark.parametrize("trains_level", [True, False])
def test_no_ridge_is_the_pseudoinverse(trains_level):
    for n_rows, n_nodes in ((40, 8), (8, 20)):
        problem = design(n_rows, n_nodes, trains_level=trains_level)
        features = problem.nodes.features(problem.whitened)
        targets, weights = problem.targets, problem.weights
        if trains_level:
            features = features - np.average(features, axis=0, weights=weights)
            targets = targets - np.average(targets, weights=weights)
        roots = np.sqrt(weights)
        expected = np.linalg.pinv(roots[:, None] * features) @ (roots * targets)
        np.testing.assert_allclose(solved(problem, 0.0).weights, expected, rtol=1e-7, atol=1e-9)


def test_an_interpolating_fit_does_not_claim_an_error():
    problem = design(8, 20)
    assert solved(problem, 0.0).error == np.inf


@pytest.mark.parametrize("block_rows", [1, 7, 60])
def test_blocks_change_nothing(block_rows):
    whole, blocks = design(60, 12), design(60, 12, block_rows=block_rows)
    for ridge in (0.0, 0.01):
        np.testing.assert_allclose(
            solved(blocks, ridge).weights, solved(whole, ridge).weights, rtol=1e-7
        )
    np.testing.assert_allclose(
        primal_spectrum(blocks).solution(blocks, 0.01).weights,
        primal_spectrum(whole).solution(whole, 0.01).weights,
        rtol=1e-9,
    )


@pytest.mark.parametrize(("n_rows", "n_nodes"), [(150, 60), (60, 200)])
def test_chosen_ridge_is_nearly_the_best(n_rows, n_nodes):
    for seed in range(3):
        problem = design(n_rows, n_nodes, seed=seed, noise=0.3)
        fresh = np.random.default_rng(100 + seed).standard_normal((500, DIM))
        truth, features = np.sin(fresh).sum(axis=1), problem.nodes.features(fresh)
        found = spectrum(problem)

        def error(ridge, found=found, problem=problem, features=features, truth=truth):
            solution = found.solution(problem, ridge)
            return np.sqrt(np.mean((features @ solution.weights + solution.level - truth) ** 2))

        best = min(error(ridge) for ridge in np.logspace(-8, 3, 45))
        assert error(found.chosen(problem)) < 1.3 * best


def worst_error_near_the_threshold(n_rows, choose):
    """Largest error over draws of 100 nodes; the best ridge would give at most 0.3."""
    fresh = np.random.default_rng(1).standard_normal((300, DIM))
    truth = np.sin(fresh).sum(axis=1)
    errors = []
    for seed in range(40):
        problem = design(n_rows, 100, seed=seed)
        solution = choose(problem)
        predicted = problem.nodes.features(fresh) @ solution.weights + solution.level
        errors.append(np.sqrt(np.mean((predicted - truth) ** 2)))
    return max(errors)


def with_chosen_ridge(problem):
    found = spectrum(problem)
    return found.solution(problem, found.chosen(problem))


@pytest.mark.parametrize("n_rows", [95, 99, 100, 101, 105])
def test_as_many_rows_as_nodes_does_not_explode(n_rows):
    assert worst_error_near_the_threshold(n_rows, with_chosen_ridge) < 0.5


def test_as_many_rows_as_nodes_would_explode(monkeypatch):
    # Controls: no ridge, and generalised cross-validation as it is in the books.
    assert worst_error_near_the_threshold(101, lambda problem: solved(problem, 0.0)) > 5.0
    monkeypatch.setattr("surrokit_networks.spectrum._PRICE", 1.0)
    assert worst_error_near_the_threshold(101, with_chosen_ridge) > 2.0


def test_constant_targets_give_a_flat_network():
    problem = design(30, 10)
    flat = Design(
        nodes=problem.nodes,
        whitened=problem.whitened,
        targets=np.zeros(30),
        weights=problem.weights,
        count=30.0,
        trains_level=True,
    )
    for found in (primal_spectrum(flat), dual_spectrum(flat)):
        solution = found.solution(flat, found.chosen(flat))
        np.testing.assert_allclose(solution.weights, 0.0, atol=1e-12)


def test_ill_conditioned_features_at_the_paper_s_ridge():
    # Squaring the condition number would lose this: the normal matrix has rounding errors as
    # large as the ridge.
    problem = design(200, 80, trains_level=False, noise=0.0)
    weights, _ = plain(problem, 1e-12)
    features = problem.nodes.features(problem.whitened)
    np.testing.assert_allclose(
        features @ solved(problem, 1e-12).weights, features @ weights, atol=1e-9
    )


def test_overflowing_targets_are_refused():
    nodes = design(10, 5).nodes
    rows = TrainingRows(
        positions=np.random.default_rng(0).standard_normal((10, DIM)),
        values=np.linspace(0.0, 1e308, 10),
        trust=np.ones(10),
        copies=np.ones(10),
    )
    with (
        np.errstate(all="ignore"),
        pytest.raises(SurrogateFitError, match="rescale the parameters"),
    ):
        Regression().fitted(nodes, Whitening.identity(DIM), rows)


@pytest.mark.parametrize("ridge", [-1.0, np.inf, np.nan])
def test_impossible_ridges_are_refused(ridge):
    with pytest.raises(
        ConfigurationError, match="ridge must be a finite number that is not negative, or None"
    ):
        Regression(ridge=ridge)


def test_impossible_level_is_refused():
    with pytest.raises(ConfigurationError, match="level must be one of 'trained', 'minimum', got"):
        Regression(level="mean")
