"""The umbrella: as much of the tails as told, its gradient, and what it sees."""

from __future__ import annotations

import math

import numpy as np
import pytest
from known_rounds import fewest_hits
from numpy.testing import assert_allclose

from surrokit.interfaces import OuterSample, SurrogateSample
from surrokit.surrogate.umbrella import FLATTEST, RAREST, STEEPEST, Umbrella
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
    believed, and how often the interval of the standard deviation then holds."""
    believed, holds, truth = 0, 0, math.sqrt(DEGREES / (DEGREES - 2))
    for _ in range(100):
        x, outer = rng.standard_normal((8, 1250)), None
        if umbrella is not None:
            far = draw(rng, on_line(umbrella), (2000, 1))
            outer = OuterSample(positions=far, chances=umbrella.chances)
        sample = SurrogateSample(positions=x[..., None], values=normal(x), outer=outer)
        payments = choose(sample, Line(), n, rng)
        paid = payments.positions
        exact = 0.5 * (DEGREES + 1) * np.log1p(np.square(paid[:, 0]) / DEGREES)
        found = Round(
            draws=sample.positions,
            paid=paid,
            log_weights=payments.weigh(exact),
            log_evens=payments.log_evens,
            learnt=0,
        )
        if complaint(found) is None:
            low, high = Answer(rounds=(found,), calls=0.0).sd().interval()
            believed, holds = believed + 1, holds + bool(low[0] <= truth <= high[0])
    return believed, holds


@pytest.mark.statistical
def test_a_missing_tail_is_seen(rng):
    """A normal surrogate lacks the tails of a Student's t: ours fail at 1e-4, draws of the
    surrogate alone are sure of a standard deviation that is too small."""
    believed, holds = believe(rng, over_line(rng))
    assert believed >= 50
    assert holds >= fewest_hits(believed)
    believed, holds = believe(rng, None)
    assert believed >= 10
    assert holds < fewest_hits(believed)


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


def test_beyond_the_rarest_draws_it_goes_on_as_the_surrogate(rng):
    umbrella = over_line(rng)
    far = umbrella.chances(np.array([50.0, 500.0, np.inf]))
    assert_allclose(far, 1.0 / RAREST / umbrella.scale, rtol=1e-4)


@pytest.mark.parametrize(
    ("values", "slope"), [(np.zeros(10), STEEPEST), (np.linspace(0, 1e6, 100), FLATTEST)]
)
def test_slopes_stay_within_bounds(values, slope):
    assert Umbrella.about(Line(), values).slope == slope


def test_it_offers_a_gradient_where_the_surrogate_has_one(rng):
    assert over_line(rng).capabilities == {"gradient"}
    assert over_line(rng).dim == 1
