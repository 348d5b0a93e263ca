"""Models that fail by chance: whether a run finds out, and what it says of what is lost."""

from __future__ import annotations

import re

import numpy as np
import pytest

import surrokit as sk

pytestmark = pytest.mark.filterwarnings(
    "ignore::surrokit.errors.SamplingWarning", "ignore::surrokit.errors.EvaluationWarning"
)
WALK = {"sampler": ("random-walk", {"step_size": 1.5}), "chains": 2, "progress": False}


def no_solution():
    raise RuntimeError("no solution")


def run_of(
    rate,
    seed=1,
    fails=lambda q: q[0] > 0,
    always=lambda _: False,
    failure=no_solution,
    **settings,
):
    """Return a run of a normal that fails by chance in a half, and perhaps always elsewhere."""
    rng = np.random.default_rng(seed)

    def value(q):
        if always(q) or (fails(q) and rng.random() < rate):
            return failure()
        return 0.5 * q @ q

    sizes = {"warmup": 100, "draws": 150, "seed": seed}
    return sk.sample(sk.potential(value, dim=2), **{**WALK, **sizes, **settings})


def retried(retries):
    return sk.Compute(on_error="retry", retries=retries)


def lost(finding):
    """Return the part of the density that a finding says is lost."""
    (share,) = re.findall(r"about ([\d.e-]+)(%?) of the density is lost", finding.message)
    return float(share[0]) * (0.01 if share[1] else 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_failures_of_nine_calls_in_ten_are_found(seed):
    """A run misses them with probability 0.005; of five positions tried again it was 0.59."""
    run = run_of(0.9, seed)
    (finding,) = run.verdict.named("fails_by_chance")
    assert finding.warns
    assert 0.5 < lost(finding) < 0.99


def test_positions_that_retries_lost_are_warned_of():
    """Of the density where half of the calls fail, (1/2)^3 is lost with two retries."""
    run = run_of(0.5, compute=retried(2), draws=400)
    (finding,) = run.verdict.named("fails_by_chance")
    assert finding.warns
    assert not run.verdict.named("retried")
    assert 0.08 < lost(finding) < 0.18
    (retries,) = map(int, re.findall(r"more retries=(\d+)", finding.message))
    assert 0.5 ** (retries + 1) < 1e-3


def test_positions_that_retries_lost_are_told_without_a_second_look():
    """The counts alone tell, where a limit of calls leaves none to try positions again."""
    whole = run_of(0.5, compute=retried(2))
    run = run_of(0.5, compute=retried(2), max_calls=whole.total_calls // 8)
    assert run.recheck.worked == 0 or run.total_calls <= whole.total_calls // 8
    assert run.failures
    assert run.verdict.named("fails_by_chance")


def test_the_advice_on_retries_is_enough():
    (finding,) = run_of(0.5).verdict.named("fails_by_chance")
    (retries,) = map(int, re.findall(r"retries=(\d+)", finding.message))
    cured = run_of(0.5, compute=retried(retries))
    assert not cured.verdict.named("fails_by_chance")
    assert cured.verdict.named("retried")


def test_a_region_that_fails_always_is_not_taken_for_chance():
    """Beside rare failures by chance, which retries cure."""
    run = run_of(0.05, fails=lambda _: True, always=lambda q: q[0] > 1.0, compute=retried(3))
    assert run.failures > 20
    assert not run.verdict.named("fails_by_chance")
    (finding,) = run.verdict.named("retried")
    assert "these fail for another reason" in finding.message


def test_a_second_look_is_cheap():
    """At most 50 positions are tried again, and few where failures by chance are common."""
    region = run_of(0.0, always=lambda q: q[0] > 1.0)
    assert region.recheck.tried == 50
    assert not region.verdict.named("fails_by_chance")
    common = run_of(0.5)
    assert common.recheck.worked == 5
    assert common.recheck.tried < 25
    for run in (region, common):
        decided = 2 * (1 + 100 + 150)
        assert run.total_calls <= decided + run.recheck.tried + 1


def test_a_small_run_spends_a_quarter_on_a_second_look_at_most():
    run = run_of(0.0, always=lambda q: q[0] > 0.3, warmup=20, draws=20)
    decided = 2 * (1 + 20 + 20)
    assert run.failures >= run.recheck.tried > 5
    assert run.total_calls <= decided + 0.25 * decided + 3


@pytest.mark.parametrize(
    ("answer", "name"), [(np.nan, "fails_by_chance"), (np.inf, "infinite_by_chance")]
)
def test_a_model_that_returns_no_finite_potential_by_chance_is_found(answer, name):
    run = run_of(0.5, failure=lambda: answer)
    (finding,) = run.verdict.named(name)
    assert finding.warns
    assert 0.3 < lost(finding) < 0.7
    assert "compute=sk.Compute(on_error='retry', retries=" in finding.message


def test_the_end_of_a_support_is_not_taken_for_chance_and_looked_at_cheaply():
    run = run_of(0.0, always=lambda q: q[0] > 0.3, failure=lambda: np.inf)
    assert run.recheck.infinite >= 5
    assert run.recheck.finite == 0
    assert not run.verdict.named("infinite_by_chance")
    decided = 2 * (1 + 100 + 150)
    assert run.total_calls <= decided + max(5, 0.01 * decided) + 1
