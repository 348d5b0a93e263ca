"""The umbrella, and edges: where a surrogate ends though the target goes on."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest
from known_rounds import fewest_hits
from numpy.testing import assert_allclose

from surrokit.interfaces import OuterSample, SurrogateSample
from surrokit.modes import Modes
from surrokit.potentials import Straight
from surrokit.surrogate.umbrella import Edges, Umbrella
from surrokit.testing.targets import Gaussian
from surrokit.weighted.answer import Answer
from surrokit.weighted.round import Round
from surrokit.weighted.rounds import choose, complaint

GRID = np.linspace(-12.0, 12.0, 60_001)
DEGREES = 5


def normal(x):
    return 0.5 * np.square(x)


class Line:
    """A standard normal in one dimension."""

    dim = 1
    capabilities = frozenset({"gradient", "convex"})

    def value(self, positions):
        return normal(positions[:, 0])

    def value_and_gradient(self, positions):
        return self.value(positions), positions


def over_line(rng):
    umbrella = Umbrella.about(Line(), normal(rng.standard_normal(5000)))
    return umbrella.normalise(normal(draw(rng, on_line(umbrella), 20_000)))


def on_line(umbrella):
    return lambda x: normal(x) - np.log(umbrella.chances(normal(x)))


def draw(rng, law, size):
    """Draw from a density on the line by the inverse of its distribution function."""
    density = np.exp(-law(GRID))
    return GRID[np.searchsorted(np.cumsum(density) / density.sum(), rng.random(size))]


def believe(rng, umbrella, n=40):
    """Weigh a Student's t by a normal surrogate, a hundred times; return how often the weights are
    reliable, and how often the interval of the standard deviation then holds."""
    reliable, holds, truth = 0, 0, math.sqrt(DEGREES / (DEGREES - 2))
    for _ in range(100):
        x, outer = rng.standard_normal((8, 1250)), None
        if umbrella is not None:
            far = draw(rng, on_line(umbrella), (2000, 1))
            outer = OuterSample(
                positions=far, values=normal(far[:, 0]), chances=lambda _, v: umbrella.chances(v)
            )
        sample = SurrogateSample(positions=x[..., None], values=normal(x), outer=outer)
        payments = choose(sample, n, rng)
        paid = payments.positions
        exact = 0.5 * (DEGREES + 1) * np.log1p(np.square(paid[:, 0]) / DEGREES)
        found = Round(
            draws=sample.positions,
            evaluated=paid,
            log_weights=payments.weigh(exact),
            log_surrogate_weights=payments.log_surrogate_weights,
            learnt=0,
        )
        if complaint(found) is None:
            low, high = Answer(rounds=(found,), calls=0.0).sd().interval()
            reliable, holds = reliable + 1, holds + bool(low[0] <= truth <= high[0])
    return reliable, holds


@pytest.mark.statistical
def test_a_missing_tail_is_seen(rng):
    """A normal surrogate lacks the tails of a Student's t: ours fail at 1e-4, draws of the
    surrogate alone are sure of a standard deviation that is too small."""
    reliable, holds = believe(rng, over_line(rng))
    assert reliable >= 50
    assert holds >= fewest_hits(reliable)
    reliable, holds = believe(rng, None)
    assert reliable >= 10
    assert holds < fewest_hits(reliable)


def test_draws_lie_evenly_over_the_log_tail_probability(rng):
    """In part, as tails fall faster than told: beyond a tail probability of 1e-3 lies a quarter of
    the draws, where V has a thousandth. Under V c has mean one."""
    umbrella, density = over_line(rng), np.exp(-normal(GRID))
    chances, shares = umbrella.chances(normal(GRID)), density / density.sum()
    assert shares @ chances == pytest.approx(1.0, abs=0.05)
    far = draw(rng, on_line(umbrella), 20_000)
    assert np.mean(np.abs(far) > 3.29) == pytest.approx(0.25, abs=0.05)


def test_the_gradient_is_that_of_the_value(rng):
    umbrella = Umbrella.about(Gaussian(), rng.exponential(size=2000))
    at, step = rng.normal(0.0, 4.0, (50, 2)), 1e-5
    values, gradients = umbrella.value_and_gradient(at)
    assert_allclose(umbrella.value(at), values)
    for i in range(2):
        move = step * np.eye(2)[i]
        slopes = (umbrella.value(at + move) - umbrella.value(at - move)) / (2 * step)
        assert_allclose(gradients[:, i], slopes, rtol=1e-5, atol=1e-6)


def test_it_rises_where_the_surrogate_does(rng):
    """No pit and no way out is made: W never falls where V rises."""
    umbrella, values = over_line(rng), np.linspace(0.0, 60.0, 2000)
    assert (np.diff(values - np.log(umbrella.chances(values))) >= 0.0).all()


@pytest.mark.parametrize(
    ("values", "slope"), [(np.zeros(10), 1.0), (np.linspace(0, 1e6, 100), 0.02)]
)
def test_slopes_stay_within_bounds(values, slope):
    assert Umbrella.about(Line(), values).slope == slope


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
    assert (apart[np.triu_indices(len(edges), 1)] >= 0.375).all()


class Arm:
    """A thin curved arm, with coordinates in which it is straight and ends at 1.2."""

    dim = 2
    capabilities = frozenset()

    def apply(self, positions):
        return (positions - [0.0, 1.0] * np.square(positions[:, :1])) * [1.0, 50.0]

    def undo(self, straight):
        return straight / [1.0, 50.0] + [0.0, 1.0] * np.square(straight[:, :1])

    @property
    def straight(self):
        return Straight(Cut(), self.apply, self.undo)

    def value(self, positions):
        return Cut().value(self.apply(positions))


def test_the_end_of_a_thin_arm_is_found_along_it(rng):
    """A step across it leads to where neither the surrogate nor the target has any density."""
    arm, flat = Arm(), rng.standard_normal((20_000, 2))
    kept = arm.undo(flat[rng.random(len(flat)) < np.exp(Cut(0.0).value(flat) - Cut().value(flat))])
    edges = Edges.of(kept, arm.value(kept), arm, 4, rng)
    assert_allclose(edges.values, arm.value(edges.positions))
    assert (edges.positions[:, 0] > 1.2).all()
    assert edges.missed(Cut(0.0).value(arm.apply(edges.positions)), 0.0) >= 1


@attrs.frozen
class TwoCut:
    """Two standard normals in two dimensions, far apart, that end in one direction too early."""

    modes: Modes
    dim: int = 2
    capabilities: frozenset[str] = frozenset()

    def value(self, q):
        away = self.modes.away(q)
        return 0.5 * np.square(away).sum(axis=1) + 50.0 * np.maximum(away[:, 0] - 1.0, 0.0)


def test_edges_of_several_modes_lie_at_each_in_its_own_scale(rng):
    """A standard deviation of all draws would lead past everything that is known."""
    places = np.array([[-60.0, -60.0], [60.0, 60.0]])
    modes = Modes(
        positions=places, values=np.zeros(2), covariances=np.stack([np.eye(2)] * 2), ended=[1, 1]
    )
    own = rng.standard_normal((3000, 2))
    draws = places[rng.integers(2, size=3000)] + own
    draws, potential = draws[own[:, 0] < 1.0], TwoCut(modes)
    edges = Edges.of(draws, potential.value(draws), potential, 4, rng)
    away = modes.away(edges.positions)
    assert np.bincount(modes.nearest(edges.positions)).tolist() == [2, 2]
    assert (np.abs(away) < 4.0).all()
    assert ((away[:, 0] > 1.0) & (away[:, 0] < 2.0)).all()


def test_an_end_of_the_target_is_none_of_the_surrogates_alone(rng):
    edges = edges_of(rng, Cut())
    assert_allclose(edges.values, Cut().value(edges.positions))
    assert edges.missed(edges.values + 5.0, -5.0) == 0
    # nor is anything where little is at stake
    assert edges.missed(np.full(len(edges), edges.typical + 0.1), 0.0) == 0


def test_a_smooth_surrogate_has_edges_that_lie_where_they_should(rng):
    smooth = Cut(0.0)
    edges = edges_of(rng, smooth)
    assert len(edges) == 4
    assert edges.missed(smooth.value(edges.positions), 0.0) == 0
