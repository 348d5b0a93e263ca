"""A network must not be worth less than the trend under it, above all with N near s.

As many equations as nodes, and the fit of least squares explodes (see the controls in
test_regression.py); with the ridge chosen from the data it is as good as anywhere else.
"""

import numpy as np
import pytest

import surrokit as sk
from surrokit.interfaces import Evaluations, LearningProblem

NODES = 240


def target(dim):
    """A smooth potential that is not quadratic: |q|^2 / 4 and softplus ridges all round."""
    directions = np.random.default_rng([99, dim]).standard_normal((2 * dim, dim))

    def value_and_gradient(positions):
        along = positions @ directions.T
        slopes = 1.0 / (1.0 + np.exp(-along))
        values = 0.25 * np.square(positions).sum(axis=1) + np.logaddexp(0.0, along).sum(axis=1)
        return values, 0.5 * positions + slopes @ directions

    return value_and_gradient


def draws(function, n, dim, seed):
    """Draws from the target, by sixty steps of as many random walks."""
    rng = np.random.default_rng([seed, dim, 7])
    positions = rng.standard_normal((n, dim))
    values = function(positions)[0]
    for _ in range(60):
        proposed = positions + 0.7 * rng.standard_normal((n, dim))
        others = function(proposed)[0]
        taken = np.log(rng.uniform(size=n)) < values - others
        positions[taken], values[taken] = proposed[taken], others[taken]
    return positions


def fitted(surrogate, rows, seed):
    dim = rows.positions.shape[1]
    learner = surrogate.learner(
        LearningProblem(dim=dim, capabilities=frozenset()), np.random.default_rng(seed)
    )
    learner.observe(rows)
    return learner.fit()


def worst_against_the_trend(surrogate, dim, n_equations, gradients, seeds=(0, 1, 2)):
    """Largest error, of values about their mean or of gradients, in units of the trend's own."""
    function = target(dim)
    fresh = draws(function, 500, dim, 1000)
    values, slopes = function(fresh)
    factor = np.linalg.cholesky(np.cov(fresh.T))
    near = values < values.min() + 0.3 * (2 * dim + 10)  # beyond, rows are down-weighted
    fresh, values, slopes = fresh[near], values[near], slopes[near]

    def errors(fit):
        left = (fit.gradient(fresh) - slopes) @ factor
        return np.array([np.std(fit.value(fresh) - values), np.sqrt(np.mean(left**2))])

    n = round(n_equations / (1 + dim * gradients))
    worst = 0.0
    for seed in seeds:
        positions = draws(function, n, dim, seed * 1000 + n_equations)
        exact = function(positions)
        rows = Evaluations(
            positions=positions, values=exact[0], gradients=exact[1] if gradients else None
        )
        alone = errors(fitted(sk.make("surrogate", "quadratic"), rows, seed))
        worst = max(worst, np.max(errors(fitted(surrogate, rows, seed)) / alone))
    return worst


SURROGATES = {
    "additive": sk.make(
        "surrogate", "additive", n_nodes=NODES, trend="quadratic", weight_scale=0.3
    ),
    "rbf": sk.make("surrogate", "rbf", n_nodes=NODES, trend="quadratic", width_scale=4.0),
}


@pytest.mark.parametrize("kind", ["additive", "rbf"])
@pytest.mark.parametrize("gradients", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("n_equations", [216, 240, 264])
@pytest.mark.parametrize("dim", [2, 4])
def test_near_the_threshold(kind, gradients, n_equations, dim):
    assert worst_against_the_trend(SURROGATES[kind], dim, n_equations, gradients, (0, 1)) < 1.1


@pytest.mark.parametrize("kind", ["additive", "rbf"])
@pytest.mark.parametrize("gradients", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("n_equations", [240, 480])
def test_at_the_threshold_and_above(kind, gradients, n_equations):
    assert worst_against_the_trend(SURROGATES[kind], 3, n_equations, gradients) < 1.1


@pytest.mark.parametrize("kind", ["additive", "rbf"])
@pytest.mark.parametrize("dim", [2, 3, 4])
def test_below_the_threshold(kind, dim):
    assert worst_against_the_trend(SURROGATES[kind], dim, 120, gradients=False) < 1.1


@pytest.mark.parametrize(
    ("kind", "scale"), [("additive", {"weight_scale": 1.0}), ("rbf", {"width_scale": 4.0})]
)
def test_without_a_ridge_it_would_explode(kind, scale):
    # The control: the Moore-Penrose inverse, with as many values as columns.
    surrogate = sk.make("surrogate", kind, n_nodes=60, trend="quadratic", ridge=0.0, **scale)
    assert worst_against_the_trend(surrogate, 3, 70, gradients=False) > 5.0
