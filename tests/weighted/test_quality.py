"""Whether weights may be believed: Pareto's k, complaints, rounds that disagree."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from known_rounds import chains, pay, tilted

from surrokit.weighted.rounds import (
    FEWEST,
    LARGEST_K,
    complaint,
    disagreement,
    pareto_k,
    stay_refused,
)


def heavy(rng, n=200, k=1.5):
    return k * rng.exponential(size=n)  # of weights whose tail has Pareto's k


@pytest.mark.statistical
def test_k_is_that_of_the_largest_weights(rng):
    """At 1,000 weights the error of k is about 0.15; five times that is a false alarm."""
    logs = heavy(rng, 1000)
    assert abs(pareto_k(logs) - 1.5) < 0.75
    assert pareto_k(-logs) < 0.0  # bounded from above
    assert pareto_k(logs - 700.0) == pytest.approx(pareto_k(logs), rel=1e-6)


@pytest.mark.parametrize(
    ("logs", "k"),
    [
        (np.full(30, 5.0), -np.inf),
        (0.01 * np.arange(4.0), -np.inf),
        (np.append(np.zeros(20), np.full(20, -5.0)), -np.inf),
        (np.append(0.001 * np.arange(20), np.full(8, -7.0)), -np.inf),
        (np.full(30, -np.inf), np.inf),
        (np.append(np.zeros(3), 4.0), np.inf),
        (np.append(np.full(29, -np.inf), 0.0), np.inf),
    ],
    ids=[
        "same",
        "nearly the same",
        "many largest",
        "many near the largest",
        "all zero",
        "few",
        "one",
    ],
)
def test_k_at_its_ends(logs, k):
    assert pareto_k(logs) == k


@pytest.mark.statistical
def test_good_weights_are_believed(rng):
    """Of 100 rounds of log weights with standard deviation 0.3 few are not: 0.8 % were in 2,000."""
    found = (pay(rng, chains(rng), 60, lambda z: 0.3 * z[:, 0]) for _ in range(100))
    assert sum(complaint(each) is not None for each in found) <= 7


@pytest.mark.parametrize(
    ("logs", "told"),
    [
        (lambda rng: heavy(rng, 200), f"above {LARGEST_K}"),
        # one draw in sixteen weighs as much as 25 others: a variance of 5.4, and no tail
        (lambda rng: np.tile(np.append(np.log(25.0), np.zeros(15)), 20), "variance of the weights"),
        (lambda rng: np.zeros(FEWEST - 1), f"{FEWEST} are the least"),
        (lambda rng: np.full(30, -np.inf), "the target is zero at all draws of the surrogate"),
        (lambda rng: np.append(np.full(95, -np.inf), np.zeros(5)), "Pareto's k of the weights"),
    ],
    ids=["heavy", "wide", "few", "zero", "worth few"],
)
def test_bad_weights_are_not_believed(rng, logs, told):
    logs = logs(rng)
    assert told in complaint(pay(rng, chains(rng), len(logs), lambda z: logs))


def test_weights_that_are_enough_or_half_of_them_zero_are_believed(rng):
    assert complaint(tilted(rng, n=FEWEST, tilt=0.01)) is None
    halves = pay(rng, chains(rng), 80, lambda z: np.where(z[:, 0] > 0, 0.0, -np.inf))
    assert complaint(halves) is None


class Bordered:
    """Has learnt from positions within a radius."""

    def __init__(self, radius):
        self.radius = radius

    def is_beyond(self, positions):
        return np.linalg.norm(positions, axis=1) > self.radius


def test_short_chains_are_refused_where_longer_ones_would_be(rng):
    together, shifts = rng.standard_normal((8, 200, 2)), np.linspace(-1.0, 1.0, 8)[:, None, None]
    assert not stay_refused(together, None, 8.0)
    # R-hat 1.06 may become less than 1.02 in chains of eight times the length
    near = together + 0.5 * shifts
    assert not stay_refused(near, None, 8.0)
    assert stay_refused(near, None, 1.1)
    assert stay_refused(together + 3.0 * shifts, None, 8.0)
    # of a normal density 0.011 is beyond 3, and 0.14 beyond 2
    assert not stay_refused(together, Bordered(3.0), 8.0)
    assert stay_refused(together, Bordered(2.0), 8.0)


@pytest.mark.statistical
def test_rounds_of_one_target_agree(rng):
    """A false alarm has probability 1e-3 each: two in fifty pairs have one of 1.2e-3."""
    pairs = [(tilted(rng, dim=2, tilt=0.1), tilted(rng, dim=2, tilt=0.1)) for _ in range(50)]
    assert sum(disagreement(*pair) is not None for pair in pairs) <= 1


def test_rounds_of_two_places_or_widths_disagree(rng):
    one = tilted(rng, dim=2, tilt=0.1)
    other = attrs.evolve(one, draws=one.draws + np.array([0.0, 0.5]))
    assert "the mean of number 1" in disagreement(one, other)
    assert "standard errors apart" in disagreement(one, other)
    one = tilted(rng, dim=2, tilt=0.0)
    wide = attrs.evolve(one, draws=one.draws * [2.0, 1.0])
    assert "mean square of number 0" in disagreement(one, wide)


def test_constants_agree_if_they_are_equal(rng):
    draws = np.concatenate([chains(rng), np.ones((4, 100, 1))], axis=2)
    one = pay(rng, draws, 40, lambda z: 0.0 * z[:, 0])
    assert disagreement(one, one) is None
    moved = np.array([0.0, 1e-3])
    other = attrs.evolve(one, draws=one.draws + moved, paid=one.paid + moved)
    assert "number 1 inf standard errors" in disagreement(one, other)
