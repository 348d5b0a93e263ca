"""Answers of chains on a surrogate that have its draws for a control."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest
from known_rounds import fewest_hits

from surrokit.diagnostics import mean_error
from surrokit.weighted.sharpened import Sharpened

REPEATS, CHAINS, DRAWS, MOVES = 100, 4, 200, 8
QUANTILE = 1.6448536269514722  # of a standard normal, at 0.95


def sharpened(rng, *, shift=0.2, keep=0.0, mixed=0.0):
    """Answers about N(0, 1) by moves y = a x + noise that keep the surrogate's N(shift, 1.2^2).

    A part of the moves, ``mixed``, are independent draws of the target instead.
    """
    sd = 1.2
    n = (CHAINS, DRAWS)
    x, draws, ends = rng.standard_normal(CHAINS), np.empty(n), np.full(n, np.nan)
    for t in range(DRAWS):
        if rng.random() < mixed:
            x = rng.standard_normal(CHAINS)
        else:
            noise = math.sqrt(1.0 - keep**2) * sd * rng.standard_normal(CHAINS)
            y = shift + keep * (x - shift) + noise
            ratio = 0.5 * (x**2 - y**2) - 0.5 * ((x - shift) ** 2 - (y - shift) ** 2) / sd**2
            x = np.where(np.log(rng.random(CHAINS)) < ratio, y, x)
            ends[:, t] = y
        draws[:, t] = x
    noise = math.sqrt(1.0 - keep**2) * sd * rng.standard_normal((MOVES, *n))
    moves = shift + keep * (draws - shift) + noise
    return Sharpened(
        draws=draws[..., None], ends=ends[..., None], moves=moves[..., None], calls=0.0
    )


TRUTHS = (0.0, 1.0, QUANTILE)


def holds(rng, **settings):
    """Return how often each of three intervals holds the truth."""
    hits = np.zeros(3, dtype=int)
    for _ in range(REPEATS):
        answers = sharpened(rng, **settings)
        found = (answers.mean(), answers.sd(), answers.quantile(0.95))
        ends = [(low[0], high[0]) for low, high in (each.interval() for each in found)]
        hits += [low <= truth <= high for (low, high), truth in zip(ends, TRUTHS, strict=True)]
    return hits


@pytest.mark.statistical
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, marks=pytest.mark.long),
        pytest.param({"keep": 0.3}, marks=pytest.mark.long),
        pytest.param({"mixed": 0.3}, marks=pytest.mark.long),
        {"keep": 0.3, "mixed": 0.3},
    ],
)
def test_intervals_hold(rng, settings):
    """Each of three in as many of a hundred repeats as 95 % intervals do: ours fail at 1e-4."""
    assert (holds(rng, **settings) >= fewest_hits(REPEATS)).all()


@pytest.mark.statistical
@pytest.mark.long
def test_moves_from_elsewhere_than_the_draws_are_no_control(rng):
    """A negative control: moves that begin at draws of the surrogate leave means off."""

    def off(wrong):
        found = sharpened(rng, shift=0.4, keep=0.45)
        if wrong:
            moves = 0.4 + 1.2 * rng.standard_normal(found.moves.shape)
            found = attrs.evolve(found, moves=moves)
        mean = found.mean()
        return mean.value / mean.error

    assert abs(np.mean([off(True) for _ in range(REPEATS)])) > 0.5
    assert abs(np.mean([off(False) for _ in range(REPEATS)])) < 0.45


def test_a_surrogate_without_a_rejection_is_not_believed_for_certain(rng):
    found = sharpened(rng)
    same = attrs.evolve(found, ends=found.draws, moves=np.tile(found.moves, (60, 1, 1, 1)))
    assert same.mean().error[0] >= math.sqrt(2.0) * same.draws.std() / same.draws.size


def test_moves_are_a_control_also_where_they_forget_little(rng):
    near = sharpened(rng, shift=0.02)
    assert near.mean().error[0] < 0.8 * near.draws.std() / math.sqrt(near.draws.size)
    assert near.mean().effective[0] > 1.5 * near.draws.size
    found = sharpened(rng, keep=0.9)
    plain = mean_error(found.draws)
    assert found.mean().value[0] != pytest.approx(found.draws.mean())
    assert found.mean().error[0] < 1.2 * plain[0]


def test_moves_elsewhere_leave_plain_means(rng):
    found = sharpened(rng, mixed=1.0)
    assert found.mean().value[0] == pytest.approx(found.draws.mean())


def test_constants_are_exact(rng):
    found = sharpened(rng).expectation(lambda q: np.full((len(q), 1), 3.0))
    assert found.value[0] == pytest.approx(3.0, rel=1e-14)
    assert found.error[0] == 0.0
    assert found.effective[0] == np.inf
