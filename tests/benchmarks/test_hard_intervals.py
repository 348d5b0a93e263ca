"""Intervals of 95 % hold where chains mix slowly, and in heavy tails; minutes in all."""

from __future__ import annotations

import pytest

NAMES = ("modes", "three-modes", "ridge", "decay", "student")
REPEATS, DRAWS, EFFECTIVE = 40, 2000, 3000


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
@pytest.mark.parametrize("name", NAMES)
def test_intervals_hold_in_92_to_97_of_a_hundred(name):
    """Figures of a repeat depend on one another; the part of all is known to about 0.012."""
    from hard_intervals import CASES, count, repeat

    case = CASES[name]
    answers = repeat(case, 1, REPEATS, EFFECTIVE if case.weighted else DRAWS)
    held, _ = count(case.truth(), answers)
    assert len(held) == REPEATS
    assert 0.92 <= held.mean() <= 0.97
