"""Sums over rows, and Proposition 1's updates, against the batch solution of the same equations."""

import numpy as np
import pytest

from surrokit_networks.online.moments import Moments
from surrokit_networks.online.row_updates import RowUpdates
from surrokit_networks.online.updates import cheaper
from surrokit_networks.solving.basis import Basis, combine
from surrokit_networks.solving.equations import join
from surrokit_networks.solving.orthogonal import solve
from surrokit_networks.solving.trend import TrendFeatures

DIM, SIZE = 3, 12
KINDS = ["additive", "rbf"]


def taken_in(engine, equations, sizes):
    start = 0
    for size in sizes:
        engine.absorb(equations.take(slice(start, start + size)))
        start += size
    assert start == len(equations)
    return engine


def coefficients(solution):
    return np.concatenate([solution.level[None], solution.trend, solution.weights])[:, 0]


@pytest.mark.parametrize("engine", [RowUpdates, Moments])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gradients", ["none", "some", "all"])
@pytest.mark.parametrize("values", [True, False])
@pytest.mark.parametrize(("ridge", "degree"), [(0.05, 0), (0.05, 1), (0.0, 1)])
def test_blocks_give_the_batch_solution(
    make_nodes, make_equations, engine, kind, gradients, values, ridge, degree
):
    if not values and gradients != "all":
        pytest.skip("rows without values and gradients ask for nothing")
    basis = Basis(trend=TrendFeatures(dim=DIM, degree=degree), network=make_nodes(kind, DIM, SIZE))
    equations = make_equations(60, DIM, gradients=gradients, values=values)
    found = taken_in(
        engine(basis=basis, ridge=ridge, trains_level=equations.trains_level),
        equations,
        [20, 1, 1, 8, 30],
    ).solution(equations)
    expected = solve(basis, equations, ridge)
    np.testing.assert_allclose(coefficients(found), coefficients(expected), rtol=1e-6, atol=1e-6)
    assert found.degrees == pytest.approx(expected.degrees, rel=1e-6)
    assert found.error == pytest.approx(expected.error, rel=1e-5)


@pytest.mark.parametrize("engine", [RowUpdates, Moments])
def test_asking_for_solutions_in_between_changes_nothing(make_nodes, make_equations, engine):
    basis = Basis(trend=TrendFeatures(dim=DIM, degree=1), network=make_nodes("additive", DIM, SIZE))
    equations = make_equations(60, DIM, gradients="some")
    often = engine(basis=basis, ridge=0.1, trains_level=True)
    for i in range(0, 60, 10):
        often.absorb(equations.take(slice(i, i + 10)))
        often.solution(equations)
    once = taken_in(engine(basis=basis, ridge=0.1, trains_level=True), equations, [10, 50])
    np.testing.assert_allclose(
        coefficients(often.solution(equations)),
        coefficients(once.solution(equations)),
        rtol=1e-8,
        atol=1e-10,
    )


@pytest.mark.parametrize("engine", [RowUpdates, Moments])
def test_wrong_weights_are_another_solution(make_nodes, make_equations, engine):
    """The negative control: rows whose gradients are not weighted give something else."""
    basis = Basis(trend=TrendFeatures(dim=DIM, degree=1), network=make_nodes("additive", DIM, SIZE))
    one = make_equations(60, DIM, gradients="all")
    other = make_equations(60, DIM, gradients="all")
    object.__setattr__(other, "gradient_weights", np.ones(60))
    pair = [
        coefficients(
            taken_in(engine(basis=basis, ridge=0.1, trains_level=True), e, [20, 40]).solution(e)
        )
        for e in (one, other)
    ]
    assert np.abs(pair[0] - pair[1]).max() > 1e-3


@pytest.mark.parametrize("kind", [*KINDS, None])
def test_combinations_are_what_the_columns_say(make_nodes, make_equations, kind):
    basis = Basis(trend=TrendFeatures(dim=DIM, degree=2), network=make_nodes(kind, DIM, SIZE))
    whitened = make_equations(7, DIM).whitened
    found = np.random.default_rng(3).standard_normal(len(basis))
    values, gradients = combine(basis, found, whitened)
    np.testing.assert_allclose(values, basis.features(whitened) @ found, rtol=1e-12)
    np.testing.assert_allclose(gradients, basis.jacobian(whitened) @ found, rtol=1e-10, atol=1e-12)


def test_equations_are_joined_with_and_without_gradients(make_equations):
    parts = [make_equations(5, DIM, gradients=kind) for kind in ("none", "all")]
    whole = join(parts)
    assert len(whole) == 10
    assert whole.count == parts[0].count + parts[1].count
    assert whole.total_weight == pytest.approx(sum(part.total_weight for part in parts))
    np.testing.assert_array_equal(whole.gradients[:5], 0.0)
    np.testing.assert_array_equal(whole.gradients[5:], parts[1].gradients)


class TestCost:
    """Which engine is taken, by what each has to do."""

    def test_sums_for_few_deployments_and_updates_for_many(self):
        assert cheaper(1000, 20, gradients=False, rate=1e-4) == "moments"
        assert cheaper(1000, 20, gradients=False, rate=1.0) == "greville"

    def test_gradients_make_rows_dear(self):
        assert cheaper(500, 5, gradients=False, rate=0.05) == "greville"
        assert cheaper(500, 50, gradients=True, rate=0.05) == "moments"

    def test_the_more_columns_the_sooner_updates_pay(self):
        choices = [cheaper(k, 20, gradients=False, rate=0.02) for k in (100, 300, 1000, 3000)]
        assert choices == sorted(choices, reverse=True)
        assert set(choices) == {"greville", "moments"}
