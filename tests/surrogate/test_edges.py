"""Edges: where a surrogate ends though the target goes on."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from surrokit.surrogate.umbrella import APART, Edges


class Cut:
    """A normal potential in two dimensions that turns up beyond 1.2 in the first."""

    dim = 2
    capabilities = frozenset()

    def __init__(self, steep=40.0):
        self.steep = steep

    def value(self, positions):
        beyond = np.maximum(positions[:, 0] - 1.2, 0.0)
        return 0.5 * np.square(positions).sum(axis=1) + self.steep * np.square(beyond)


def edges_of(rng, potential, n=4):
    flat = rng.standard_normal((20_000, 2))
    kept = flat[rng.random(len(flat)) < np.exp(Cut(0.0).value(flat) - potential.value(flat))]
    return Edges.of(kept, potential.value(kept), potential, n, rng)


def test_an_end_that_the_target_does_not_have_is_found(rng):
    edges = edges_of(rng, Cut())
    assert (edges.positions[:, 0] > 1.2).all()
    assert edges.missed(Cut(0.0).value(edges.positions), 0.0) >= 1
    apart = np.linalg.norm(edges.positions[:, None] - edges.positions, axis=2)
    assert (apart[np.triu_indices(len(edges), 1)] >= 0.5 * APART).all()


def test_an_end_of_the_target_is_none_of_the_surrogates_alone(rng):
    edges = edges_of(rng, Cut())
    assert_allclose(edges.values, Cut().value(edges.positions))
    assert edges.missed(edges.values + 5.0, -5.0) == 0


def test_a_smooth_surrogate_has_edges_that_lie_where_they_should(rng):
    smooth = Cut(0.0)
    edges = edges_of(rng, smooth)
    assert len(edges) == 4
    assert edges.missed(smooth.value(edges.positions), 0.0) == 0


def test_where_little_is_at_stake_nothing_is_missed(rng):
    edges = edges_of(rng, Cut())
    assert edges.missed(np.full(len(edges), edges.typical + 0.1), 0.0) == 0


def test_how_much_is_too_high_may_be_said():
    edges = Edges(positions=np.zeros((3, 1)), values=np.full(3, 3.0), typical=2.5)
    exact = np.array([0.5, 1.5, 2.5])
    assert edges.missed(exact, 0.0) == 1
    assert edges.missed(exact, 0.0, 1.0) == 2
