"""Sums over rows with a rest that need be no quadratic."""

from __future__ import annotations

import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import ShapeError
from surrokit.targets.summed import Nothing, SumAndRest
from surrokit.testing import check_potential

RNG = np.random.default_rng(8)
X = RNG.standard_normal((50, 2))
Y = RNG.poisson(1.0, 50).astype(float)


class Bent:
    """A rest that is no quadratic: sum exp(q), and nothing but that."""

    dim = 2
    capabilities = frozenset({"gradient", "hessian"})

    def value(self, positions):
        return np.exp(positions).sum(axis=1)

    def value_and_gradient(self, positions):
        return self.value(positions), np.exp(positions)

    def hessian(self, positions):
        return np.exp(positions)[:, :, None] * np.eye(2)


def rows(**more):
    return sk.rows_potential("poisson", X, Y, **more)


@pytest.mark.parametrize("rest", [Bent(), Nothing(2)], ids=["bent", "nothing"])
def test_a_sum_and_its_rest_keep_to_the_contract(rest):
    results = check_potential(lambda: SumAndRest(rows(), rest, level=2.0))
    assert len(results) > 8
    assert [result for result in results if result.outcome == "failed"] == []


def test_what_one_of_both_lacks_is_not_offered():
    class Plain(Bent):
        capabilities = frozenset({"gradient"})

    both = SumAndRest(rows(prior=1.0), Plain())
    assert both.capabilities >= {"gradient", "gradient-alone", "rows", "rows-in-balls"}
    assert not both.capabilities & {"hessian", "hessian-product", "convex"}
    with pytest.raises(ShapeError, match="the sum takes 2 numbers and the rest 3; give a rest"):
        SumAndRest(rows(), Nothing(3))
