"""How many draws a limit allows for: fixed before the first of them, where that matters."""

from __future__ import annotations

import math
import re
import types

import attrs
import numpy as np
import pytest
from scipy.special import ndtr

import surrokit as sk
from surrokit.cost import budget as run_clock
from surrokit.cost.budget import Budget, Clock, Pace, length_bias, limit_draws
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import BudgetSpent, SamplingWarning
from surrokit.plan.recipe import Recipe, ending
from surrokit.plan.stopping import GRACE, Stopping
from surrokit.result.advice import advice
from surrokit.result.verdict import judge
from surrokit.testing.statistics import CHECK_RATE
from surrokit.testing.targets import Gaussian

WALK = ("random-walk", {"step_size": 1.5})
ALONE = {"sampler": WALK, "chains": 1, "seed": 4, "progress": False, "initial": [0.0, 0.0]}
FEW = "max_seconds cut the draws off after .* of each chain, and an iteration costs more"


# --- the number of draws ---


@pytest.mark.parametrize("rest", [0.0, 2.9, 30.0, 31.5])
def test_of_equal_costs_the_limit_holds_as_many_as_fit(rest):
    assert limit_draws(np.full(5, 3.0), rest, 1.0) == math.floor(rest / 3.0)


def test_a_margin_is_left_where_costs_vary(rng):
    costs = 1.0 + 9.0 * (rng.random(40) < 0.2)
    mean = costs.mean()
    assert limit_draws(costs, 20 * mean, 0.0) == 20
    most = limit_draws(costs, 20 * mean, 1.0)
    assert 8 < most < 17
    # the standard error of what so many cost, and of how it was predicted
    error = costs.std() * (math.sqrt(most) + most / math.sqrt(40))
    assert most * mean + error <= 20 * mean < (most + 2) * mean + error


def test_nothing_is_settled_where_it_does_not_matter(rng):
    costs = 1.0 + 0.3 * rng.standard_normal(100)
    assert limit_draws(costs, 3.0, 1.0) < math.inf
    assert limit_draws(costs, 50.0, 1.0) == math.inf
    wild = 1.0 + 9.0 * (rng.random(100) < 0.2)
    assert limit_draws(wild, 50.0 * wild.mean(), 1.0) < math.inf
    assert limit_draws(wild, 1e4, 1.0) == math.inf


@pytest.mark.parametrize("costs", [[], [1.0, 2.0, 9.0], [0.0] * 10])
def test_nothing_is_settled_where_nothing_is_known(costs):
    assert limit_draws(np.array(costs), 10.0, 1.0) == math.inf


def test_few_costs_do_not_show_that_all_are_equal():
    """Of five equal ones a sixth may differ: a dozen draws are fixed, though none did."""
    assert limit_draws(np.ones(5), 12.0, 1.0) == 12
    assert limit_draws(np.ones(250), 12.0, 1.0) == math.inf


def test_costs_are_those_of_the_third_quarter():
    pace = Pace()
    pace.begin(100.0)
    for i in range(1, 41):
        pace.add(100.0 + (7.0 * i if i <= 20 else 120.0 + i if i <= 30 else 144.0 + 0.2 * i))
    assert pace.limit_draws(0, 9.1, 1.0) == 9
    pace.begin(7.0)
    assert pace.limit_draws(0, 12.0, 1.0) == math.inf


def test_the_bias_of_a_limit_is_half_the_relative_error_of_the_mean_cost(rng):
    costs = 1.0 + rng.random(400)
    expected = 0.5 * costs.std() / costs.mean() / 20.0
    assert length_bias(costs) == pytest.approx(expected, rel=0.3)
    assert length_bias(np.ones(10)) == 0.0
    assert math.isnan(length_bias(np.ones(3)))


# --- a distribution ---


class Hand:
    """A clock that is moved by hand."""

    is_plain = False

    def __init__(self):
        self.now = 0.0
        self.seconds = {"training": 0.0}

    def elapsed(self):
        return self.now


def autoregressive(rng, n, phi=0.5):
    noise = rng.standard_normal(n) * math.sqrt(1.0 - phi**2)
    x = [rng.standard_normal()]
    for i in range(1, n):
        x.append(phi * x[-1] + noise[i])
    return np.array(x)


def kept(rng, *, settles):
    """Return which of the draws of a chain are above 1, where such take five times as long."""
    n_warmup, clock = 60, Hand()
    above = autoregressive(rng, n_warmup + 60) > 1.0
    seconds = 2.84 + 12.0 * above
    budget = Budget(max_seconds=seconds[:n_warmup].sum() + 57.0)
    recorded = RecordingPotential(Gaussian(), keep=False)
    stopping = Stopping(Recipe(exact=Gaussian(), chains=1, budget=budget), recorded, clock)
    stopping.warmup_begins()
    for cost in seconds[:n_warmup]:
        clock.now += cost
        stopping.iteration_done()
    found = []
    n_draws = stopping.draws_begin(60) if settles else 60
    try:
        for i in range(n_warmup, n_warmup + n_draws):
            stopping.check()
            clock.now += seconds[i]
            if settles:
                stopping.check()
            found.append(above[i])
    except BudgetSpent:
        pass
    return found


def p_value(*, settles):
    rng = np.random.default_rng(3)
    runs = [kept(rng, settles=settles) for _ in range(1000)]
    parts = np.array([np.mean(run) for run in runs if run])
    z = (parts.mean() - (1.0 - ndtr(1.0))) / (parts.std() / math.sqrt(len(parts)))
    return 2.0 * float(ndtr(-abs(z)))


@pytest.mark.statistical
def test_where_draws_are_dear_there_are_not_more_of_them():
    """A dozen draws a run: P(x > 1) is 0.159, and 0.197 where the iteration under way is kept.

    A false alarm has a probability of at most 1e-6, but for what little bias is left.
    """
    assert p_value(settles=True) > CHECK_RATE


@pytest.mark.statistical
def test_a_limit_that_keeps_the_iteration_under_way_would_be_seen():
    assert p_value(settles=False) < CHECK_RATE


# --- in a run ---


class Dear(Gaussian):
    """A standard normal that takes three times as long where q[0] > 1, by a clock of its own."""

    capabilities = frozenset()
    gradient = value_and_gradient = None

    def __init__(self, monkeypatch, seconds=(1.0, 3.0)):
        super().__init__(mean=[0.0, 0.0], covariance=np.eye(2))
        object.__setattr__(self, "now", [0.0])
        object.__setattr__(self, "seconds", list(seconds))
        time = types.SimpleNamespace(perf_counter=lambda: self.now[0])
        monkeypatch.setattr(run_clock, "time", time)

    def value(self, positions):
        cheap, dear = self.seconds
        self.now[0] += float(np.where(positions[:, 0] > 1.0, dear, cheap).sum())
        return super().value(positions)

    def after(self, iteration, cheap, dear):
        """Return an observer that changes the costs after an iteration."""

        def done(run, state, info):
            if info.iteration == iteration:
                self.seconds[:] = cheap, dear

        return types.SimpleNamespace(surrokit_transition_done=done)


def timed(monkeypatch, cheap, dear, **options):
    target = Dear(monkeypatch)
    watch = [target.after(40, cheap, dear)]
    options = {"warmup": 40, "max_seconds": 100.0, **ALONE, **options}
    return target, sk.sample(target, observers=watch, **options)


def test_what_draws_cost_does_not_change_how_many_there_are(monkeypatch):
    runs = [timed(monkeypatch, *costs)[1] for costs in ((1.0, 3.0), (0.6, 3.5), (1.2, 1.3))]
    assert [run.stopped for run in runs] == ["max_seconds"] * 3
    assert [run.length for run in runs] == ["fixed"] * 3
    for run in runs:
        np.testing.assert_array_equal(run.draws, runs[0].draws)
    assert 10 < len(runs[0].kept) < 60
    fixed = "max_seconds allowed no more draws, as decided before the first"
    assert fixed in judge(runs[0]).messages


def test_a_settled_number_may_take_somewhat_longer(monkeypatch):
    target, run = timed(monkeypatch, 1.05, 3.15)
    assert run.length == "fixed"
    assert 100.0 < target.now[0] <= 100.0 * (1.0 + GRACE)


def test_a_gross_excess_is_cut_and_said(monkeypatch):
    with pytest.warns(SamplingWarning, match=FEW):
        target, run = timed(monkeypatch, 10.0, 30.0)
    assert (run.stopped, run.length) == ("max_seconds", "cut")
    assert 0 < len(run.kept) < 8
    assert target.now[0] <= 100.0 * (1.0 + GRACE) + 30.0
    assert "the run stopped because max_seconds was reached" in judge(run).messages


def test_the_iteration_that_the_limit_falls_into_is_dropped(monkeypatch):
    target = Dear(monkeypatch, seconds=(1.0, 1.0))
    with pytest.warns(SamplingWarning, match=FEW + ".*, unknown from so few. Ask for a"):
        run = sk.sample(target, warmup=0, max_seconds=9.5, draws=100, **ALONE)
    assert len(run.kept) == 8  # and the start
    assert target.now[0] == 10.0
    assert (run.stopped, run.length) == ("max_seconds", "cut")


def test_of_many_draws_nothing_is_said(monkeypatch):
    target = Dear(monkeypatch)
    run = sk.sample(target, warmup=200, max_seconds=4000.0, draws=5000, **ALONE)
    assert (run.stopped, run.length) == ("max_seconds", "cut")
    assert len(run.kept) > 1000
    assert advice(run) == []
    assert 4000.0 <= target.now[0] <= 4003.0


@pytest.mark.parametrize("dear_one", [12, 31])
def test_a_warm_up_of_open_length_goes_on_after_the_limit_has_found_it(monkeypatch, dear_one):
    """One iteration uses up its part of the seconds: the chains forget where they were then."""
    target = Dear(monkeypatch, seconds=(1.0, 1.0))
    watch = [target.after(dear_one - 1, 60.0, 60.0), target.after(dear_one, 1.0, 1.0)]
    run = sk.sample(target, max_seconds=130.0, draws=10, observers=watch, **ALONE)
    assert len(run.warmup) == ending(dear_one) > dear_one
    assert run.stopped == "draws"


def test_draws_that_are_all_made_are_fixed_and_judged_ones_are_not():
    options = {"sampler": "hmc", "warmup": 200, "seed": 1, "progress": False}
    assert sk.sample(Gaussian(), draws=5, **options).length == "fixed"
    judged = sk.sample(Gaussian(), target_ess=200, **options)
    assert judged.length == judged.to_dict()["length"] == "judged"


# --- calls ---


def test_where_every_draw_takes_as_many_calls_their_number_is_no_matter_of_chance():
    options = {"sampler": "random-walk", "warmup": 50, "max_calls": 502, "progress": False}
    runs = [sk.sample(Gaussian(), seed=seed, **options) for seed in range(5)]
    assert {len(run.kept) for run in runs} == {500 // 4 - 51}  # and the start
    assert [advice(run) for run in runs] == [[]] * 5


@pytest.mark.parametrize("max_calls", [600, 650, 700])
def test_draws_that_take_more_calls_in_places_are_settled_too(max_calls):
    """Trajectories of NUTS are as long as their place asks for."""
    options = {
        "sampler": ("nuts", {"slowed": 0.0, "target_acceptance": 0.95}),
        "warmup": 60,
        "chains": 2,
        "seed": 6,
        "progress": False,
    }
    whole = sk.sample(Gaussian(), draws=60, **options)
    assert len({int(n) for n in whole.kept.n_steps.ravel()}) > 2
    run = sk.sample(Gaussian(), draws=1000, max_calls=max_calls, **options)
    assert (run.stopped, run.length) == ("max_calls", "fixed")
    assert 5 < len(run.kept) < 60
    assert run.total_calls <= max_calls
    np.testing.assert_array_equal(run.draws, whole.draws[:, : len(run.kept)])


def test_calls_that_vary_and_cut_a_few_draws_off_are_complained_of(bounded_run):
    calls = {kind: 0 * n for kind, n in bounded_run.kept.calls.items()}
    kept = attrs.evolve(bounded_run.kept, calls={**calls, "value": np.arange(50) // 10 * 30})
    cut = attrs.evolve(bounded_run, kept=kept, stopped="max_calls", length="cut")
    (found,) = advice(cut)
    assert found.startswith("max_calls cut the draws off after 50 of each chain")
    assert re.search(
        r"means are biased by up to about 0\.[1-9]\d of their Monte Carlo error. Ask", found
    )
    assert advice(attrs.evolve(cut, length="fixed")) == []
    even = attrs.evolve(kept, calls={**calls, "value": 3 * np.arange(50)})
    assert advice(attrs.evolve(cut, kept=even)) == []


def test_a_stopping_begins_with_a_clock_of_its_own():
    recorded = RecordingPotential(Gaussian(), keep=False)
    stopping = Stopping(Recipe(exact=Gaussian(), chains=1), recorded, Clock())
    assert stopping.draws_begin(7) == stopping.expected == 7
    assert (stopping.stopped, stopping.length) == ("draws", "fixed")
