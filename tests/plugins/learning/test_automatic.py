"""What is picked where neither a sampler nor a surrogate is named, and what becomes of it."""

from __future__ import annotations

import types

import attrs
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surrokit as sk
from surrokit import compose
from surrokit.cost.budget import Budget
from surrokit.cost.measuring import Costs, measure_starts
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import (
    CapabilityError,
    ConfigurationError,
    SamplingWarning,
    StopRun,
    SurrogateFitError,
    TargetError,
)
from surrokit.plan.plan import SHORTEST, Plan, settling
from surrokit.plan.recipe import Recipe
from surrokit.registry.catalogue import Catalogue, Composer, default_catalogue
from surrokit.run import loop as first_phase
from surrokit.testing.targets import Gaussian
from surrokit.testing.wrappers import CountingPotential
from surrokit_learning import automatic
from surrokit_learning.automatic import (
    GRADIENTS_A_DRAW,
    Automatic,
    RowsForecast,
)

SMALL = {"chains": 3, "draws": 60, "seed": 4, "progress": False}


def costs(gradient, value=None, chains=3):
    value = gradient / 2 if value is None else value
    return Costs(
        value=value,
        gradient=gradient,
        values=chains * value,
        gradients=None if gradient is None else chains * gradient,
    )


DEAR, CHEAP = costs(0.002), costs(0.0002)
VALUES = costs(None, value=0.002)


def offering(*capabilities):
    """Return a target that must not be called."""
    return types.SimpleNamespace(dim=2, capabilities=frozenset(capabilities), n_rows=1000)


def composer(**without):
    """Return a composer; of the kinds named, parts of these names are not registered."""
    entries = {
        (kind, name): entry
        for (kind, name), entry in default_catalogue().entries.items()
        if name not in without.get(kind, ())
    }
    return Composer(Catalogue(entries=entries))


def asked(target, **given):
    return Recipe(**{"exact": target, "chains": 3, "initial": np.zeros((3, 2)), **given})


def picked(target, timed, given=None, **without):
    recipe, rng = asked(target, **given or {}), np.random.default_rng(1)
    return Automatic().choose(composer(**without), recipe, target, timed, rng)


# --- rules ---

ROWS = "gradient hessian rows"
EMULATED = "gradient forward jacobian"
FEW = RowsForecast(rows=20.0, n_rows=1000, acceptance=0.9)
MANY = RowsForecast(rows=2000.0, n_rows=1000, acceptance=None)
NORMAL = attrs.evolve(MANY, whole=0.8)
FEW_CALLS = {"budget": Budget(max_calls=150)}
LEARNT = "sampler='sub-chain', surrogate='additive', explorer='rounds', schedule='once'"
DRAWN = "sampler='gaussian', surrogate='quadratic', explorer='rounds', schedule='once'"


@pytest.fixture
def forecast(monkeypatch):
    def set_to(value):
        monkeypatch.setattr(automatic, "forecast_rows", lambda *_: value)

    set_to(None)
    return set_to


SLOW_JACOBIAN = attrs.evolve(DEAR, jacobian=0.02)
FAST_VALUES = costs(None, value=2e-5)


@pytest.mark.parametrize(
    ("offers", "timed", "rows", "parts", "reason"),
    [
        ("gradient", CHEAP, None, "sampler='hmc'", "gradient takes 0.2 ms, so plain HMC would do"),
        ("gradient", DEAR, None, LEARNT, "a gradient takes 2 ms, and the potential is learnt"),
        (EMULATED, costs(0.02), None, LEARNT, "a gradient takes 20 ms, and the outputs are learnt"),
        ("forward", VALUES, None, LEARNT, "no gradient, and the outputs are learnt from values"),
        ("", FAST_VALUES, None, LEARNT, "20 us, there is no gradient, and the potential is learnt"),
        # gradients of the misfit are learnt from, so that the outputs' thresholds do not apply
        ("gradient forward vjp", DEAR, None, LEARNT, "2 ms, and the potential is learnt"),
        (EMULATED + " vjp", SLOW_JACOBIAN, None, LEARNT, "a Jacobian 20 ms, and the outputs are"),
        (ROWS, DEAR, FEW, DRAWN + ", correction='subsampled'", f"2 ms, and {FEW}"),
        (ROWS, DEAR, NORMAL, DRAWN, f"2 ms, and {NORMAL}"),
    ],
)
def test_what_is_picked_and_why(forecast, offers, timed, rows, parts, reason):
    forecast(rows)
    choice = picked(offering(*offers.split()), timed).choice
    assert choice.startswith(parts + ": a ")
    assert reason in choice


@pytest.mark.parametrize(
    ("offers", "dim", "given", "few"),
    [
        ("", 2, FEW_CALLS, {"evaluations": 150 - automatic.LAST_ROUND}),
        ("", 20, {"budget": Budget(max_calls=60)}, {"evaluations": 59}),  # too few for a round
        ("", 21, FEW_CALLS, None),
        ("", 2, {}, None),
        ("gradient", 2, FEW_CALLS, None),
        ("forward", 2, FEW_CALLS, None),
    ],
)
def test_few_values_alone_are_spent_on_a_process_however_fast_they_are(offers, dim, given, few):
    target = offering(*offers.split())
    target.dim, target.n_calls = dim, 3.0
    found = picked(target, costs(1e-5 if "gradient" in offers else None, value=1e-5), given)
    if few is None:
        assert found.surrogate != "quadratic-gp"
        return
    assert (found.surrogate, found.explorer) == ("quadratic-gp", ("active", few))
    assert found.correction == "weights"


def test_a_forecast_is_told_in_words():
    few = "decisions are expected to touch 20 of 1000 rows"
    assert str(attrs.evolve(FEW, acceptance=None)) == few
    assert str(FEW) == f"{few}, with an acceptance of 0.90"
    assert str(NORMAL) == (
        "decisions would touch all 1000 rows; with all rows normal draws would be accepted with "
        "0.80"
    )


BY_ROWS = {"surrogate": "rows", "correction": None}


@pytest.mark.parametrize(
    ("rows", "timed", "given", "without", "expected"),
    [
        (FEW, CHEAP, {}, {}, {"correction": "subsampled"}),
        (FEW, costs(5e-5), {}, {}, {"sampler": "hmc"}),
        (MANY, CHEAP, {}, {}, {"sampler": "hmc"}),
        # four chains of them take more than a millisecond
        (MANY, costs(0.0004, chains=4), {}, {}, BY_ROWS),
        (attrs.evolve(MANY, whole=0.6), DEAR, {}, {}, BY_ROWS),
        (MANY, DEAR, {}, {}, {"sampler": "sub-chain", **BY_ROWS}),
        (None, DEAR, {}, {}, BY_ROWS),
        (FEW, DEAR, {"correction": "metropolis"}, {}, {"surrogate": "rows"}),
        (FEW, DEAR, {"correction": ("subsampled", {})}, {}, {"correction": ("subsampled", {})}),
        (FEW, DEAR, {}, {"sampler": ("gaussian",)}, BY_ROWS),
        (FEW, DEAR, {}, {"surrogate": ("quadratic", "rows")}, {"surrogate": "additive"}),
        (FEW, DEAR, {}, {"explorer": ("rounds",)}, BY_ROWS),
    ],
)
def test_a_few_rows_decide_where_that_is_clearly_better(
    forecast, rows, timed, given, without, expected
):
    forecast(rows)
    choice = picked(offering(*ROWS.split()), timed, given, **without)
    assert {name: getattr(choice, name) for name in expected} == expected


def test_a_mode_that_was_evaluated_is_where_the_last_chain_begins(forecast):
    one, mode = np.zeros((1, 2)), np.full(2, 7.0)
    before = np.vstack([one, one + 1.0, one + 2.0])
    for found in (FEW, NORMAL):
        forecast(attrs.evolve(found, mode=mode))
        after = picked(offering(*ROWS.split()), DEAR, {"initial": before}).initial
        assert_array_equal(after, [*before[:-1], mode])
        assert_array_equal(picked(offering(*ROWS.split()), DEAR, {"initial": one}).initial, one)


# --- weighted answers ---


def test_where_dear_calls_are_too_few_for_chains_answers_are_weighted():
    choice = picked(offering("gradient"), costs(0.004), FEW_CALLS)
    assert choice.choice == (
        f"{LEARNT}, correction='weights': a gradient takes 4 ms, and the potential is learnt; "
        "chains would take 3000 calls, so answers are weighted"
    )


SOME_CALLS = {"budget": Budget(max_calls=500)}
FAST_VALUE = costs(0.0015, value=0.0002)


@pytest.mark.parametrize(
    ("timed", "given", "correction"),
    [
        (costs(0.004), {}, None),
        (costs(0.004), {"budget": Budget(max_calls=50_000)}, None),
        (costs(0.004), {**FEW_CALLS, "draws": 1000}, None),
        (costs(0.004), {"budget": Budget(max_calls=150, target_rhat=1.05)}, None),
        (costs(0.004), {**FEW_CALLS, "warmup": 0}, None),
        (FAST_VALUE, SOME_CALLS, None),
        (CHEAP, SOME_CALLS, None),
        (CHEAP, {**FEW_CALLS, "draws": 1000}, None),
        # very few calls, however fast they are
        (FAST_VALUE, FEW_CALLS, "weights"),
        (CHEAP, FEW_CALLS, "weights"),
        # a goal says what chains would take
        (costs(0.004), {"budget": Budget(max_calls=150, target_ess=100)}, None),
        (costs(0.004), {"budget": Budget(max_calls=150, target_ess=400)}, "weights"),
        (costs(0.004), {"budget": Budget(max_calls=2000, target_mcse=0.02)}, "weights"),
        # what is given stays
        (costs(0.004), {**FEW_CALLS, "correction": "metropolis"}, "metropolis"),
    ],
)
def test_when_answers_are_weighted(timed, given, correction):
    assert picked(offering("gradient"), timed, given).correction == correction


# --- what is fixed, and what is not registered ---


@pytest.mark.parametrize(
    ("timed", "given", "without", "expected"),
    [
        (costs(0.004), FEW_CALLS, {"correction": ("weights",)}, {"correction": None}),
        (CHEAP, {"correction": "weights"}, {}, {"surrogate": "additive", "correction": "weights"}),
        (
            CHEAP,
            {"explorer": "sampler", "schedule": "greville"},
            {},
            {"surrogate": "additive", "explorer": "sampler", "schedule": "greville"},
        ),
        (DEAR, {"warmup": 0}, {}, {"surrogate": None}),
        (DEAR, {}, {"surrogate": ("additive",)}, {"sampler": "hmc", "surrogate": None}),
        (DEAR, {}, {"sampler": ("sub-chain",)}, {"sampler": "hmc", "surrogate": "additive"}),
        (DEAR, {}, {"explorer": ("rounds",)}, {"sampler": "sub-chain", "explorer": "sampler"}),
    ],
)
def test_what_is_given_stays_and_what_is_not_registered_is_not_picked(
    timed, given, without, expected
):
    choice = picked(offering("gradient"), timed, given, **without)
    assert {name: getattr(choice, name) for name in expected} == expected


def test_reasons_name_what_is_missing_and_objects():
    choice = picked(offering("gradient"), DEAR, surrogate=("additive",))
    assert choice.choice.endswith(": a gradient takes 2 ms, but no surrogate is the default")
    choice = picked(offering("gradient"), DEAR, {"explorer": Gaussian()})
    assert "explorer=<Gaussian>" in choice.choice
    assert picked(offering(), VALUES, {"warmup": 0}).sampler == "random-walk"


# --- limits and the way back ---


def test_exploring_may_cost_a_tenth_of_what_hmc_would_and_some_of_what_it_is_spared():
    target = offering("gradient")
    limit = picked(target, DEAR).exploration
    iterations = 0.1 * 2000 + 0.5 * 700
    assert limit.max_calls == pytest.approx(GRADIENTS_A_DRAW * iterations * 3)
    assert limit.max_seconds == pytest.approx(GRADIENTS_A_DRAW * iterations * 0.006)
    short = picked(target, DEAR, {"draws": 100}).exploration
    assert short.max_calls == pytest.approx(GRADIENTS_A_DRAW * 3 * (0.1 * 1100 + 0.5 * 700))
    assert picked(offering(), VALUES).exploration == Budget()
    # a Jacobian that takes as long as ten gradients is limited by the seconds alone, since calls
    # do not go by the clock
    assert picked(target, attrs.evolve(DEAR, jacobian=0.02)).exploration == limit


def test_a_surrogate_is_worth_it_or_not():
    fallback = picked(offering("gradient", "gradient-alone"), DEAR, {"draws": 300}).fallback
    assert fallback.name == "hmc"
    assert fallback.seconds_per_draw == pytest.approx(0.06 * (1 + 0.1 + 1))
    # 3 ms for an iteration, 126 ms for a draw of HMC: worth it from a / (2 - a) = 1 / 42 on
    assert fallback.complaint(0.05) is None
    assert fallback.complaint(0.045) == (
        "a draw on the surrogate would be worth 0.023 independent ones; each of these would take "
        "130 ms, but 126 ms with hmc"
    )
    assert fallback.complaint(0.9, seconds=0.1) is None
    assert "on the surrogate" in fallback.complaint(0.9, seconds=0.12)
    assert fallback.complaint(0.0) == "an iteration on the surrogate would forget 0.000 only"
    assert fallback.complaint(np.nan) is not None
    # where a sub-chain takes 80 steps, HMC is expected to take 20 and not 10
    assert fallback.complaint(0.9, seconds=0.2, steps=80.0) is None
    assert fallback.complaint(0.9, seconds=0.2, steps=40.0) is not None


def test_a_black_box_falls_back_on_a_random_walk():
    target = types.SimpleNamespace(dim=6, capabilities=frozenset())
    fallback = picked(target, VALUES).fallback
    assert fallback.name == "random-walk"
    assert fallback.seconds_per_draw == pytest.approx(20 * 0.006 * 1.4)
    assert picked(target, VALUES, sampler=("random-walk",)).fallback is None


# --- measuring ---


class Ticking:
    """A normal whose calls take time by a clock of its own."""

    dim = 2
    capabilities = frozenset({"gradient"})

    def __init__(self, seconds, first=0.0):
        self.now, self.seconds, self.first = 0.0, seconds, first

    def value(self, positions):
        self.now += 0.5 * self.seconds * len(positions)
        return Gaussian().value(positions)

    def value_and_gradient(self, positions):
        self.now += self.seconds * len(positions) + self.first
        self.first = 0.0
        return Gaussian().value_and_gradient(positions)


def timed(target, initial=None):
    recording = RecordingPotential(target, keep=True)
    rng = np.random.default_rng(1)
    starts, found = measure_starts(recording, initial, 3, rng, now=lambda: target.now)
    return recording, starts, found


def test_calls_are_timed_one_by_one_and_for_all_chains():
    _, _, found = timed(Ticking(0.01))
    assert found.gradient == pytest.approx(0.01)
    assert found.gradients == pytest.approx(0.03)
    assert found.value == pytest.approx(0.005)
    assert found.values == pytest.approx(0.015)
    # the first call may compile
    assert timed(Ticking(0.01, first=3.0))[2].gradients == pytest.approx(0.03)


class TickingMap(Ticking):
    """The same as a forward map, whose Jacobian takes ten times as long as a gradient."""

    capabilities = frozenset({"gradient", "forward", "jacobian", "vjp"})
    energy = sk.forward_potential(lambda q: q, data=[0.0, 0.0], noise_sd=1.0, dim=2).energy

    def forward(self, positions):
        self.now += 0.5 * self.seconds * len(positions)
        return positions

    def forward_and_gradient(self, positions):
        self.now += self.seconds * len(positions)
        return positions, positions

    def forward_and_jacobian(self, positions):
        self.now += 10 * self.seconds * len(positions)
        return positions, np.stack([np.eye(2)] * len(positions))


def test_a_jacobian_is_timed_beside_the_adjoint():
    recording, _, found = timed(TickingMap(0.01))
    assert found.gradient == pytest.approx(0.01)
    assert found.jacobian == pytest.approx(0.1)
    assert found.value == pytest.approx(0.005)
    calls = {kind: n for kind, n in recording.calls.items() if n}
    assert calls == {"forward": 2, "vjp": 3 + 2, "jacobian": 2}
    assert timed(Ticking(0.01))[2].jacobian is None


def test_the_starts_are_not_paid_for_twice():
    recording, starts, _ = timed(Ticking(0.01), initial=np.ones((3, 2)))
    assert_array_equal(starts, np.ones((3, 2)))
    before = recording.calls
    values, gradients = recording.value_and_gradient(starts)
    assert recording.calls == before
    np.testing.assert_array_equal(values, Gaussian().value(starts))
    np.testing.assert_array_equal(gradients, Gaussian().value_and_gradient(starts)[1])
    np.testing.assert_array_equal(recording.drain().positions, starts)
    recording.value_and_gradient(starts)
    assert recording.calls["gradient"] == before["gradient"] + 3
    # they serve whoever wants gradients alone, too
    recording, starts, _ = timed(Ticking(0.01))
    before = recording.calls
    alone = recording.fork(keep=False).gradient(starts)
    assert_array_equal(alone, Gaussian().value_and_gradient(starts)[1])
    assert recording.calls == before


# --- whole runs ---


@pytest.fixture
def dear(monkeypatch):
    """Make every target seem dear."""

    def measure(target, initial, chains, rng, now, left):
        starts, found = measure_starts(target, initial, chains, rng, now, left=left)
        factor = 1.0 if found.gradient is None else 50.0 / found.gradient
        return starts, attrs.evolve(
            found,
            value=found.value * factor,
            values=found.values * factor,
            gradient=None if found.gradient is None else found.gradient * factor,
            gradients=None if found.gradients is None else found.gradients * factor,
        )

    monkeypatch.setattr(first_phase, "measure_starts", measure)


def test_a_cheap_target_gets_hmc_and_says_so():
    run = sk.sample(Gaussian(), warmup=40, **SMALL)
    assert run.choice.startswith("sampler='hmc': a gradient takes")
    assert run.parts["surrogate"] == "none"
    assert run.to_dict()["choice"] == run.choice


def test_where_a_part_is_named_nothing_is_picked():
    for options in ({"sampler": "hmc"}, {"surrogate": "additive"}, {"surrogate": "none"}):
        run = sk.sample(Gaussian(), warmup=40, **options, **SMALL)
        assert run.choice is None
        assert run.parts["sampler"] == "hmc"


def test_a_dear_target_gets_a_surrogate(dear):
    exact = CountingPotential(Gaussian())
    run = sk.sample(exact, **SMALL)
    assert run.parts["surrogate"] == "additive"
    assert run.parts["sampler"] == "sub-chain"
    assert run.choice.endswith("a gradient takes 50 s, and the potential is learnt")
    assert run.kept.acceptance.mean() > 0.9
    assert run.calls["gradient"] == exact.gradients()
    assert run.calls["value"] == exact.positions["value"]
    assert run.calls["gradient"] < 120
    # the exploration has tuned the sampler, so that the warm-up is short
    (deployed,) = run.adaptation.deployments
    assert len(run.warmup) == SHORTEST + deployed


@pytest.mark.parametrize(("predicted", "n"), [(None, 25), (0.79, 25), (0.9999, 4), (1.0, 4)])
def test_the_length_of_a_warm_up_after_an_exploration_has_bounds(predicted, n):
    """Fewer iterations leave a chain where it began about as rarely."""
    assert settling(predicted) == n
    for each in (0.8, 0.9, 0.95, 0.99):
        m = settling(each)
        assert (1.0 - each) ** m < 1.1e-7 < (1.0 - each) ** (m - 1)


def test_any_part_but_those_that_are_picked_can_be_fixed(dear):
    run = sk.sample(Gaussian(), explorer=("sampler", {"iterations": 12}), warmup=80, **SMALL)
    assert run.adaptation.deployments == (12,)
    assert run.parts["sampler"] == "sub-chain"
    assert "explorer=('sampler', {'iterations': 12})" in run.choice


def test_evaluations_ask_for_a_surrogate(dear):
    paid = np.random.default_rng(1).standard_normal((40, 2))
    run = sk.sample(Gaussian(), warm_start=(paid, Gaussian().value(paid)), **SMALL)
    assert run.parts["surrogate"] == "additive"
    assert run.adaptation.training_rows >= 40  # the known ones may be enough


# --- the way back to an exact kernel ---


def wrong(evaluations, rng):
    """Fit nothing: a normal so wide that next to none of its draws are any good."""
    return Gaussian(covariance=((900.0, 0.0), (0.0, 900.0)))


@pytest.fixture
def misled(monkeypatch, dear):
    """Let the surrogate that is picked be wrong on purpose."""
    found = default_catalogue()
    component = sk.Component(
        kind="surrogate",
        name="wrong",
        factory=lambda: sk.batch_surrogate(wrong),
        summary="Wrong",
        default=True,
    )
    entries = {**found.entries, ("surrogate", "wrong"): component}
    del entries["surrogate", "additive"]
    monkeypatch.setattr(compose, "default_catalogue", lambda: Catalogue(entries=entries))


@pytest.mark.parametrize(
    "explorer",
    [pytest.param(None, marks=pytest.mark.long), ("sampler", {"iterations": 20})],
    ids=str,
)
def test_a_bad_surrogate_is_dropped_before_any_draw_is_kept(misled, explorer):
    options = {} if explorer is None else {"explorer": explorer, "warmup": 300}
    safety = sk.Safety(repairs=0)
    run = sk.sample(Gaussian(), schedule=safety, **options, **SMALL)
    assert "; then hmc instead: " in run.choice
    assert run.surrogate is None
    assert (run.parts["sampler"], run.parts["surrogate"]) == ("hmc", "none")
    assert run.parts["correction"] == "metropolis"
    assert run.kept.acceptance.mean() > 0.5
    assert (run.kept.acceptance == run.kept.path_acceptance).all()
    assert run.kept.step_size[0] == run.kept.step_size[-1]
    assert run.adaptation.frozen_before_draws
    assert np.isfinite(run.kept.values).all()


def test_a_fit_that_fails_is_no_end(monkeypatch, misled):
    def fail(evaluations, rng):
        raise SurrogateFitError("too few points")

    monkeypatch.setitem(globals(), "wrong", fail)
    with pytest.warns(SamplingWarning, match="no surrogate could be fitted"):
        run = sk.sample(Gaussian(), **SMALL)
    assert run.choice.endswith("; then hmc instead: no surrogate could be fitted")
    assert run.draws.shape == (3, 60, 2)


# --- another policy ---


class Plain(Automatic):
    """Never looks for a surrogate."""

    def choose(self, composer, recipe, target, costs, rng):
        return self.plain(composer, recipe, "this policy is plain")


def test_another_policy_may_pick(dear):
    run = sk.sample(Gaussian(), sampler=Plain(), **SMALL)
    assert run.choice == "sampler='hmc': this policy is plain"
    patient = ("automatic", {"cheap": 60.0})
    assert sk.sample(Gaussian(), sampler=patient, **SMALL).parts["sampler"] == "hmc"


@pytest.mark.parametrize("target", [Gaussian(), sk.potential(lambda q: 0.5 * q @ q, dim=2)])
def test_the_policy_that_picks_by_default_may_be_named(dear, target):
    """A target of values alone has its gradient made of differences in either case."""

    def end(run):
        raise StopRun

    at_once = types.SimpleNamespace(surrokit_run_started=end)
    one, two = (
        sk.sample(target, sampler=sampler, observers=[at_once], **SMALL)
        for sampler in (None, "automatic")
    )
    assert one.parts == two.parts
    assert one.chosen.parts == two.chosen.parts
    assert one.calls == two.calls


# --- refusals come before the first call ---


class Refusing(Gaussian):
    """A normal that must not be called."""

    def value(self, positions):
        pytest.fail("the target was called before the settings were checked")

    value_and_gradient = gradient = value


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sampler": ("automatic", {"cheap": -1.0})}, ConfigurationError, "cheap must be a finite"),
        ({"explorer": "round"}, LookupError, "did you mean 'rounds'"),
        ({"schedule": ("once", {"x": 1})}, ConfigurationError, "has no setting 'x'"),
        ({"correction": "subsampled"}, CapabilityError, "the correction needs .*rows"),
        ({"max_calls": -1}, ConfigurationError, "max_calls must be a whole number of at least 0"),
        (
            {"sampler": Automatic},
            ConfigurationError,
            "the class Automatic is given; make",
        ),
        (
            {"sampler": "automatic", "surrogate": "additive"},
            ConfigurationError,
            "a policy picks the surrogate, but a surrogate is named; leave one",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_the_first_call(options, error, message):
    with pytest.raises(error, match=message):
        sk.sample(Refusing(), **options, **SMALL)


# --- a budget, or an interrupt, may come first ---


def test_a_budget_may_be_spent_before_anything_is_known():
    run = sk.sample(Gaussian(), max_calls=2, **SMALL)
    assert run.stopped == "max_calls"
    assert run.choice == "sampler='hmc': nothing was measured, max_calls came first"
    assert run.draws.shape == (3, 0, 2)
    assert run.total_calls <= 2


def test_what_is_raised_before_anything_is_known_carries_what_was_paid():
    calls = []

    def breaks(q):
        calls.append(1)
        if len(calls) > 5:
            raise ValueError("early")
        return 0.5 * q @ q

    with pytest.raises(TargetError, match="early") as caught:
        sk.sample(sk.potential(breaks, dim=2), compute=sk.Compute(on_error="raise"), **SMALL)
    partial = caught.value.partial
    assert partial.stopped == "error"
    assert partial.draws.shape == (3, 0, 2)
    assert partial.total_calls == len(calls)
    assert partial.choice.endswith("nothing was measured, error came first")


def test_a_slow_first_call_does_not_end_the_way_to_the_mass():
    """As one that compiles is: the limit in seconds is of a search for a surrogate."""
    target, hurry = offering("gradient"), Budget(max_calls=1, max_seconds=0.01)
    recipe = attrs.evolve(picked(target, CHEAP), exploration=hurry)
    plan = Plan(recipe=recipe, sampler=None, correction=None, schedule=None, described={})
    assert plan.exploration_limit.max_seconds is None
    assert attrs.evolve(plan, learner=object()).exploration_limit.max_seconds == 0.01
