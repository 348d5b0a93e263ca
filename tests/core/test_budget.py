"""Budgets: what stops a run, and that draws in hand are always returned."""

from __future__ import annotations

import math
import types

import numpy as np
import pytest

import surrokit as sk
from surrokit.cost import budget as run_clock
from surrokit.cost.budget import Budget, Clock, count_calls, join_limits
from surrokit.cost.recording import RecordingPotential
from surrokit.diagnostics import relative_error
from surrokit.errors import BudgetSpent, ConfigurationError
from surrokit.plan import stopping as stopping_file
from surrokit.plan.recipe import Recipe
from surrokit.plan.stopping import FIRST_LOOK, Stopping
from surrokit.result.advice import advice
from surrokit.result.verdict import judge
from surrokit.testing.targets import Gaussian
from surrokit.testing.wrappers import CountingPotential

SMALL = {"chains": 3, "warmup": 40, "draws": 30, "seed": 4, "progress": False}
OPEN = {"chains": 3, "seed": 4, "progress": False}


LIMITS = ["max_calls", "max_seconds", "target_ess", "target_rhat", "target_mcse"]


# --- the record ---


@pytest.mark.parametrize("name", LIMITS)
def test_limits_out_of_range_are_refused(name):
    odd = {"max_calls": [2.5], "target_rhat": [1.0, math.inf]}.get(name, [math.inf])
    zero = [] if name == "max_calls" else [0]  # which asks for what is known already
    for value in (*zero, -1, math.nan, "3", True, *odd):
        with pytest.raises(ConfigurationError, match=f"{name} must be "):
            Budget(**{name: value})
    if name in PLAIN:  # given alone it is checked likewise, and given twice it is refused
        with pytest.raises(ConfigurationError, match=f"{name} must be .*, or None for"):
            sk.sample(Gaussian(), **{name: -1})
        message = f"{name} is given twice, alone and in budget; leave one out"
        with pytest.raises(ConfigurationError, match=message):
            sk.sample(Gaussian(), budget=Budget(**{name: 2 * PLAIN[name]}), **PLAIN)


def test_no_limit_on_calls_is_infinity_and_none_is_the_default():
    assert Budget(max_calls=math.inf).spent(1e12, 0.0) is None
    assert Budget(max_calls=math.inf).calls is Budget().calls is None
    assert Budget(max_calls=math.inf).part(0.5) == Budget()


PLAIN = {"max_calls": 300, "max_seconds": 60.0, "target_ess": 50.0}


def test_a_limit_alone_and_a_budget_make_one():
    budget = join_limits(Budget(target_rhat=1.01), {"max_calls": 300, "target_ess": None})
    assert budget == Budget(max_calls=300, target_rhat=1.01)
    assert join_limits(None, PLAIN) == Budget(**PLAIN)


@pytest.mark.parametrize("given", [3, 1.01, {"max_calls": 3}, Budget, sk.Compute()])
def test_what_is_no_budget_is_refused(given):
    message = r"budget must be a surrokit.Budget\(...\), got .*; pass budget=sk.Budget\(target_rhat"
    with pytest.raises(ConfigurationError, match=message):
        sk.sample(Gaussian(), budget=given)


def test_a_limit_may_just_be_reached():
    budget = Budget(max_calls=10, max_seconds=2.0)
    assert budget.spent(10, 2.0) is None
    assert budget.spent(10.5, 0.0) == "max_calls"
    assert budget.spent(0, 2.1) == "max_seconds"


def test_a_part_and_the_tighter_of_two_limits():
    half = Budget(max_calls=11, max_seconds=3.0, target_ess=5.0).part(0.5)
    assert half == Budget(max_calls=5, max_seconds=1.5)
    assert half.within(Budget(max_calls=3)) == Budget(max_calls=3, max_seconds=1.5)
    assert Budget().part(0.5) == Budget()


def test_data_rows_count_as_parts_of_an_evaluation():
    calls = {"value": 3, "gradient": 4, "rows": 50}
    assert count_calls(calls, 100) == 7.5
    assert count_calls(calls, None) == 7


# --- calls ---


@pytest.mark.filterwarnings("ignore:not verified")
@pytest.mark.parametrize("max_calls", [1, 2, 3, 7, 100, 177])
@pytest.mark.parametrize("options", [{}, {"sampler": "hmc"}, {"surrogate": "additive"}], ids=str)
def test_never_a_call_too_many(options, max_calls):
    exact = CountingPotential(Gaussian())
    run = sk.sample(exact, max_calls=max_calls, **options, **SMALL)
    paid = exact.gradients() + exact.positions["value"] + exact.positions["hessian"]
    assert paid == run.total_calls <= max_calls
    assert run.stopped == "max_calls"
    assert run.complete


def test_a_random_walk_stops_where_the_next_iteration_cannot_be_paid():
    run = sk.sample(Gaussian(), sampler="random-walk", max_calls=3 * 60 + 2, **SMALL)
    assert run.stopped == "max_calls"
    assert run.total_calls == 3 * 60
    assert len(run.warmup) == 40
    assert run.draws.shape == (3, 60 - 41, 2)


def test_a_warm_up_of_open_length_leaves_half_of_the_calls_to_draws():
    run = sk.sample(Gaussian(), sampler="random-walk", max_calls=600, **OPEN)
    assert 90 <= len(run.warmup) <= 100
    assert len(run.kept) >= 95
    assert run.kernel.step == run.kept.step_size[0] == run.kept.step_size[-1]


def test_an_exploration_of_open_length_ends_at_half_of_the_calls():
    run = sk.sample(Gaussian(), surrogate="additive", max_calls=400, **OPEN)
    (deployed,) = run.adaptation.deployments
    assert deployed < 250
    assert run.adaptation.training_rows <= 200 + 50
    assert len(run.kept) > 0
    assert run.adaptation.frozen_before_draws


# --- seconds ---


class SteppedClock:
    """A clock that a target moves on."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(run_clock, "time", types.SimpleNamespace(perf_counter=self))

    def __call__(self):
        return self.now


def slow(clock, seconds):
    """Return a standard normal each call of which takes so many seconds, whatever it is."""

    class Slow(Gaussian):
        def value(self, positions):
            clock.now += seconds
            return super().value(positions)

        def value_and_gradient(self, positions):
            clock.now += seconds
            return super().value_and_gradient(positions)

        gradient = None
        capabilities = frozenset({"gradient"})

    return Slow()


def test_a_run_stops_when_its_seconds_are_over(monkeypatch):
    clock = SteppedClock(monkeypatch)
    run = sk.sample(slow(clock, 1.0), sampler="random-walk", max_seconds=50.5, **SMALL)
    assert run.stopped == "max_seconds"
    assert clock.now == 50.0  # as was predicted
    assert len(run.warmup) == 40
    assert 9 <= len(run.kept) <= 10


# --- draws that are good enough ---


@pytest.mark.parametrize(
    ("goal", "reaches"),
    [
        ({"target_ess": 300}, lambda run: run.ess().min() >= 300),
        ({"target_rhat": 1.05}, lambda run: run.rhat().max() <= 1.05),
        ({"target_mcse": 0.1}, lambda run: relative_error(run.draws).max() <= 0.1),
    ],
)
def test_a_run_stops_at_its_goal(goal, reaches):
    run = sk.sample(Gaussian(), sampler="hmc", warmup=200, budget=sk.Budget(**goal), **OPEN)
    assert run.stopped in goal
    assert run.length == "judged"
    assert reaches(run)
    assert FIRST_LOOK <= run.draws.shape[1] < 1000
    assert run.exact


def test_draws_that_never_move_do_not_stop_a_run_by_their_errors():
    stopping = Stopping(asked(2, target_mcse=0.1), _recorded(), Clock())
    stopping.draws_begin(500)
    assert stopping.reached(_Still(100)) is None


def test_observers_hear_how_many_draws_are_expected():
    heard = []
    watch = types.SimpleNamespace(
        surrokit_transition_done=lambda run, state, info: heard.append((info.stage, run.draws))
    )
    options = {"sampler": "hmc", "warmup": 200, "observers": [watch], **OPEN}
    run = sk.sample(Gaussian(), target_ess=200, **options)
    draws = [expected for stage, expected in heard if stage == "sampling"]
    assert draws == sorted(draws)
    assert draws[0] >= FIRST_LOOK
    assert draws[-1] == len(draws) == run.draws.shape[1]


def test_whichever_comes_first():
    options = {"sampler": "hmc", "warmup": 200, **OPEN}
    run = sk.sample(Gaussian(), target_ess=1e6, budget=sk.Budget(target_rhat=1.2), **options)
    assert run.stopped == "target_rhat"
    run = sk.sample(Gaussian(), target_ess=1e6, max_calls=4000, **options)
    assert run.stopped == "max_calls"
    run = sk.sample(Gaussian(), target_ess=1e6, draws=60, **options)
    assert run.stopped == "draws"


def test_looks_become_rare(monkeypatch):
    looks = []

    def ess(draws, kind):
        looks.append((draws.shape[1], kind))
        return np.full(2, draws.shape[1] / (5.0 if kind == "bulk" else 10.0))

    monkeypatch.setattr(stopping_file, "effective_sample_size", ess)
    stopping = Stopping(asked(2, target_ess=1000.0), _recorded(), Clock())
    stopping.draws_begin(20_000)
    reached = [n for n in range(1, 10_500, 50) if stopping.reached(_Draws(n))]
    assert 10_001 <= reached[0] < 10_600
    counts = [n for n, _ in looks]
    assert counts[0] == 251
    assert len(set(counts)) <= 20
    # the other two kinds only where the first meets the target
    assert {n for n, kind in looks if kind == "bulk"} == {n for n in counts if n >= 10_000}


def test_antithetic_draws_do_not_stop_a_run_by_their_means():
    """At three steps of 1, successive draws of a standard normal lie on opposite sides."""
    opposite = ("hmc", {"n_steps": 3, "step_size": 1.0})
    run = sk.sample(Gaussian(), sampler=opposite, target_ess=400, seed=1, progress=False)
    squares = sk.effective_sample_size(np.square(run.draws - run.draws.mean((0, 1))), "bulk")
    assert run.stopped == "target_ess"
    assert min(squares.min(), run.ess("tail").min()) >= 400
    assert run.ess("bulk").min() > 2 * squares.min()


def _recorded():
    return RecordingPotential(Gaussian(), keep=False)


def asked(chains, **goal):
    return Recipe(exact=Gaussian(), chains=chains, budget=Budget(**goal))


class _Draws:
    """A history of so many independent draws."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def positions(self):
        return np.random.default_rng(self.n).standard_normal((2, self.n, 2))


class _Still(_Draws):
    """A history of draws that never moved."""

    def positions(self):
        return np.zeros((2, self.n, 2))


# --- a run without draws ---


@pytest.fixture(scope="module")
def empty():
    return sk.sample(Gaussian(), max_calls=2, **SMALL)


def test_an_empty_run_says_so_and_its_figures_are_nan(empty):
    assert empty.draws.shape == empty["q"].shape == (3, 0, 2)
    assert "0 draws" in repr(empty)
    assert judge(empty).warnings[0].message.startswith("there are no draws: max_calls")
    assert "the run stopped because max_calls was reached" in judge(empty).messages
    assert advice(empty) == []
    assert str(empty.summary())
    for figures in (empty.summary()["mean"], empty.ess(), empty.rhat(), empty.acceptance):
        assert np.isnan(figures).all()
    assert math.isnan(empty.calls_per_effective_draw())
    found = empty.to_dict()
    assert found["stopped"] == "max_calls"
    assert found["ess"]["min"] is None
    pytest.importorskip("arviz")
    assert empty.to_arviz().attrs["stopped"] == "max_calls"


def test_no_except_holds_up_a_budget():
    assert not issubclass(BudgetSpent, Exception)


# --- data rows ---


@pytest.fixture(scope="module")
def regression():
    rng = np.random.default_rng(3)
    design = np.column_stack([np.ones(2000), rng.standard_normal((2000, 2))])
    response = rng.random(2000) < 1.0 / (1.0 + np.exp(-design @ [0.3, 1.0, -0.5]))
    return sk.make("potential", "logistic", design=design, response=response.astype(float))


def test_rows_count_towards_the_calls(regression):
    parts = {"sampler": "gaussian", "surrogate": "quadratic", "explorer": "rounds"}
    options = {"correction": "subsampled", "draws": 50, "seed": 1, "progress": False}
    run = sk.sample(regression, max_calls=100, **parts, **options)
    positions = sum(n for kind, n in run.calls.items() if kind != "rows")
    assert run.n_rows == 2000
    assert run.calls["rows"] > 2000
    assert run.total_calls == pytest.approx(positions + run.calls["rows"] / 2000)


def test_rows_that_are_too_many_are_not_touched(regression):
    recording = RecordingPotential(regression, keep=False)
    stopping = Stopping(
        Recipe(exact=regression, chains=1, budget=Budget(max_calls=1)), recording, Clock()
    )
    recording.guard(stopping.guard)
    recording.select(np.arange(1999))
    recording.select(np.arange(1))
    with pytest.raises(BudgetSpent):
        recording.select(np.arange(1))
    assert recording.calls["rows"] == 2000
    recording.guard(None)
    recording.select(np.arange(1))
