"""When a sampler that stands by takes over."""

from __future__ import annotations

import math

import attrs
import pytest

import surrokit as sk
from surrokit.plan.repair import LATELY, SOONER, Pace, Standby

STANDBY = Standby(name="hmc", sampler=sk.make("sampler", "hmc"), most_steps=4, wanted=1000)
GOOD = Pace(
    iterations=LATELY, steps=2.0, explorer_steps=6.0, seconds=0.02, draws=math.inf, used=0.0
)


def complaint(**changes):
    return STANDBY.complaint(attrs.evolve(GOOD, **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"steps": 6.0},
        {"steps": 4.0, "explorer_steps": 2.0},
        {"steps": 30.0, "explorer_steps": math.inf},
        {"steps": 30.0, "iterations": LATELY - 1},
        {"draws": 250.0},
        {"draws": 10.0, "iterations": LATELY - 1, "used": 0.05},
        {"draws": 10.0, "iterations": SOONER - 1, "used": 0.9},
    ],
)
def test_a_sampler_that_pays_stays(changes):
    assert complaint(**changes) is None


def test_more_steps_than_the_explorer_took_do_not_pay():
    assert complaint(steps=7.0) == (
        "its paths took 7 steps, as longer ones failed, where 6 were enough while exploring; to "
        "keep it, give its n_steps"
    )


@pytest.mark.parametrize("iterations", [SOONER, LATELY])
def test_a_forecast_of_few_draws_is_told_with_its_figures(iterations):
    assert complaint(draws=249.0, iterations=iterations, used=0.2) == (
        "an iteration took 20 ms, and the time left would allow 249 draws of 1000"
    )
