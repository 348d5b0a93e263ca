"""The safety net: what it sees, what it repairs in warm-up, and that kept draws do not feel it."""

from __future__ import annotations

import types
import warnings

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import ConfigurationError, SamplingWarning, SurrogateFitError
from surrokit.interfaces import StepInfo, Tuning
from surrokit.plan import plan as parts
from surrokit.plan.repair import MIXED, REPAIR_LENGTH, REPAIR_LENGTHS, Repairs
from surrokit.result.verdict import judge
from surrokit.run import learning
from surrokit.testing.parts import ReferenceCorrection
from surrokit.testing.samplers import N_CHAINS, NARROW, WIDE, invariance
from surrokit.testing.statistics import normality
from surrokit.testing.targets import Banana, Gaussian, Mixture

TWO_MODES = Mixture(half_distance=3.0, weight=0.5)
IN_BOTH = np.array([[-3.0, 0.0], [-3.0, 0.5], [3.0, 0.0], [3.0, 0.5]])
OFF = sk.Safety(repairs=0)
SIZES = {"warmup": 300, "draws": 100, "seed": 1, "progress": False}
PATHS = {"sampler": ("hmc", {"step_size": 0.4, "n_steps": 6, "metric": "identity"})}


@attrs.frozen(eq=False)
class LeftHalf:
    """An explorer that learns of one mode only, though its chains are in both."""

    inner: object

    needs = frozenset({"gradient"})

    def explore(self, start, rng):
        for each in self.inner.explore(start, rng):
            rows = each.rows
            left = None if rows is None else rows.take(rows.positions[:, 0] < 0)
            yield attrs.evolve(each, rows=left)


@attrs.frozen(eq=False)
class Unbordered:
    """A surrogate that is reliable everywhere, however far from what it has learnt."""

    inner: object

    def learner(self, problem, rng):
        return self.inner.learner(attrs.evolve(problem, is_density=False), rng)


def one_sided(**settings):
    """Draw from two modes on a surrogate that was trained on one."""
    burn_in = sk.make("explorer", "sampler", sampler="hmc", correction="metropolis", iterations=60)
    explorer = LeftHalf(attrs.evolve(burn_in, approach=None))  # which would find both
    # a given ridge keeps the nodes, which know nothing of the other mode
    surrogate = Unbordered(sk.make("surrogate", "rbf", ridge=1e-3))
    options = {"surrogate": surrogate, "initial": IN_BOTH, "explorer": explorer, **SIZES}
    options |= settings
    return sk.sample(TWO_MODES, **options)


def corrected(first, target=None, **settings):
    """Draw on a surrogate whose first fit is another potential, and every later one is right."""
    fits, right = [], Gaussian()

    def fit(evaluations, rng):
        fits.append(evaluations)
        return first if len(fits) == 1 else right

    options = {"surrogate": sk.batch_surrogate(fit), **SIZES, **settings}
    return sk.sample(right if target is None else target, **options), fits


SHIFTED = Gaussian(mean=(4.0, 4.0), covariance=((0.2, 0.0), (0.0, 0.2)))
"""A surrogate that is deliberately wrong: it draws chains to where the target has no mass."""

ELSEWHERE = Gaussian(mean=(3.0, 3.0), covariance=((0.3, 0.0), (0.0, 0.3)))
"""A surrogate on which paths work, and end where the target has no mass."""


@pytest.fixture(scope="module")
def repaired():
    return one_sided()


@pytest.fixture(scope="module")
def unrepaired():
    with warnings.catch_warnings():
        # chains that stand have hardly any energies, which may be said as well
        warnings.filterwarnings("ignore", "the energy fraction", SamplingWarning)
        with pytest.warns(
            SamplingWarning, match="did not move for|nearly all proposals were rejected"
        ):
            return one_sided(schedule=OFF)


@pytest.fixture(scope="module")
def shifted():
    """A run that is repaired once, what it learnt from, and what observers were told of it."""
    reasons = []
    observer = types.SimpleNamespace(
        surrokit_surrogate_deployed=lambda run, surrogate, evaluations, reason: reasons.append(
            (evaluations, reason)
        )
    )
    return *corrected(SHIFTED, observers=[observer]), reasons


# --- a surrogate that is wrong costs mixing, never invariance ---


@pytest.mark.statistical
def test_exact_draws_stay_exact_on_a_surrogate_trained_on_one_mode(unrepaired):
    """From exact starts in both modes, no net; at most one false alarm in 10^6 (CHECK_RATE)."""
    target = Mixture(half_distance=2.0, weight=0.5)
    one_mode = Gaussian(mean=(-2.0, 0.0), covariance=((1.0, 0.0), (0.0, 1.0)))
    sampler = sk.make("sampler", "hmc", step_size=0.4, n_steps=6, metric="identity")
    for potential, name in ((one_mode, "one mode: "), (WIDE, "wrong: ")):
        verdict = invariance(
            sampler.bind(potential, Tuning(step_size=1.0)),
            ReferenceCorrection(potential=target),
            target,
            name,
        )
        verdict.require("a surrogate of one mode must leave exact draws in both as they are")


@pytest.mark.statistical
@pytest.mark.parametrize("mix", [0.0, 0.3])
@pytest.mark.parametrize("surrogate", [NARROW, WIDE], ids=["narrow", "wide"])
def test_kept_draws_with_exact_transitions_mixed_in_stay_exact(mix, surrogate):
    """Whole runs from exact starts; the last draws of all chains are compared with exact ones."""
    target = Mixture()
    run = sk.sample(
        target,
        surrogate=surrogate,
        chains=N_CHAINS,
        warmup=0,
        draws=10,
        initial=target.sample(np.random.default_rng(3), N_CHAINS),
        seed=7,
        progress=False,
        schedule=sk.Safety(mix=mix),
        **PATHS,
    )
    verdict = normality(target.to_normals(run.draws[:, -1]), f"mix {mix}: ")
    verdict.require("kept draws must stay exact")
    exact = (run.kept.path_acceptance == run.kept.acceptance).all(axis=0)
    assert exact.any() == (mix > 0)
    assert not exact.all()


def test_outputs_of_kept_draws_are_theirs_when_exact_transitions_are_mixed_in():
    target = Banana()
    run = sk.sample(target, surrogate=Banana(sd=1.2), schedule=sk.Safety(mix=0.3), **SIZES)
    flat = run.draws.reshape(-1, 2)
    assert_allclose(run.outputs.reshape(-1, 2), target.forward(flat))
    assert_allclose(run.kept.values.ravel(), target.value(flat))
    assert run.kept.calls["jacobian"][-1] > run.warmup.calls["jacobian"][-1]


def test_exact_transitions_come_at_their_probability_whatever_the_chains_do():
    """2000 tosses at 0.3, five standard errors: one false alarm in 10^6."""
    run = sk.sample(
        Gaussian(),
        surrogate=SHIFTED,
        initial=[0.5, -0.3],
        schedule=sk.Safety(mix=0.3),
        **{**SIZES, "warmup": 0, "draws": 2000},
        **PATHS,
    )
    exact = (run.kept.path_acceptance == run.kept.acceptance).all(axis=0)
    assert abs(exact.mean() - 0.3) < 5 * np.sqrt(0.21 / 2000)
    standing = ~run.kept.accepted.any(axis=0)
    after_standing = exact[1:][standing[:-1]]
    assert abs(after_standing.mean() - 0.3) < 5 * np.sqrt(0.21 / len(after_standing))
    assert run.adaptation.mix == 0.3
    assert any("exact transitions with probability 0.3" in note for note in judge(run).messages)


class Unit:
    """One dimension: N(0, sd^2)."""

    dim = 1
    capabilities = frozenset({"gradient"})

    def __init__(self, sd=1.0):
        self.precision = sd**-2

    def value(self, q):
        return 0.5 * self.precision * np.square(q[:, 0])

    def value_and_gradient(self, q):
        return self.value(q), self.precision * q


def error_of_second_moment(surrogate, n_draws=2500):
    """Standard errors by which E q^2 of one long chain is off."""
    run = sk.sample(
        Unit(),
        sampler=("hmc", {"step_size": 0.3, "n_steps": 8, "metric": "identity"}),
        surrogate=surrogate,
        chains=1,
        warmup=0,
        draws=n_draws,
        initial=[0.5],
        seed=3,
        progress=False,
        schedule=sk.Safety(mix=0.2),
    )
    squares = run.draws**2
    error = squares.std() / np.sqrt(sk.effective_sample_size(squares, "bulk")[0])
    return (squares.mean() - 1.0) / error


def called_by_a_stuck_chain(net, surrogate, rng):
    """What a net must not do among kept draws: answer to rejections."""
    called = net.standing >= 5
    net.standing = 0 if called else net.standing
    return called


def count_rejections(net, info):
    net.standing = 0 if info.accepted[0] else net.standing + 1


@pytest.mark.statistical
def test_exact_transitions_that_answer_to_a_stuck_chain_would_be_seen(monkeypatch):
    """The net as it is stays within five standard errors (one false alarm in 10^6)."""
    sticky = Unit(sd=0.4)  # its chains stand still in the tails
    assert abs(error_of_second_moment(sticky)) < 5
    monkeypatch.setattr(Repairs, "mixes", called_by_a_stuck_chain)
    monkeypatch.setattr(Repairs, "saw", count_rejections)
    monkeypatch.setattr(Repairs, "standing", 0, raising=False)
    assert error_of_second_moment(sticky) < -7


# --- repair in warm-up ---


def test_a_surrogate_of_one_mode_is_repaired(repaired, unrepaired):
    before = unrepaired.kept.acceptance.mean(axis=1)
    after = repaired.kept.acceptance.mean(axis=1)
    assert before.min() < 0.1
    assert after.min() > 0.7
    (rescue, *_) = repaired.adaptation.repairs
    seen = slice(rescue.iteration - 40, rescue.iteration)
    assert repaired.warmup.acceptance[:, seen].mean(axis=1).min() < 0.1
    assert repaired.adaptation.frozen_before_draws


def test_a_surrogate_that_is_wrong_on_purpose_is_repaired(shifted):
    run, (_, second), reasons = shifted
    (rescue,) = run.adaptation.repairs
    assert rescue.iteration < 150
    before = run.warmup.acceptance[:, 75 : rescue.iteration].mean()
    assert before < 0.1
    assert run.kept.acceptance.mean() > 0.75
    assert run.adaptation.deployments == (75, rescue.iteration + 10)
    # and observers are told why
    (_, first), (rows, why) = reasons
    assert first == "schedule, after iteration 75"
    assert why.startswith("repair, after iteration ")
    assert rescue.reason in why
    assert rows == len(second)


def test_the_net_learns_from_proposals_and_from_its_exact_transitions(shifted):
    run, (first, second), _ = shifted
    (rescue,) = run.adaptation.repairs
    calls = {
        kind: n[[74, rescue.iteration - 1, rescue.iteration + 9]]
        for kind, n in run.warmup.calls.items()
    }
    paid = sum(int(n[2] - n[0]) for n in calls.values())
    assert calls["value"][1] > calls["value"][0]  # proposals on the surrogate
    assert calls["gradient"][2] > calls["gradient"][1]  # exact transitions
    assert len(second) == len(first) + paid
    assert run.adaptation.training_rows == len(second)


def test_the_net_leaves_a_good_surrogate_alone():
    one, two = (
        sk.sample(Gaussian(), surrogate="additive", schedule=safety, **SIZES)
        for safety in (None, OFF)
    )
    assert one.adaptation.repairs == ()
    assert len(one.adaptation.deployments) == 1
    assert_array_equal(one.draws, two.draws)
    assert one.calls == two.calls


def test_kept_draws_pay_values_only(repaired):
    for kind in set(repaired.calls) - {"value"}:
        assert repaired.kept.calls[kind][-1] == repaired.warmup.calls[kind][-1], kind


def test_step_size_and_metric_are_tuned_on_after_a_repair(repaired):
    (rescue, *_) = repaired.adaptation.repairs
    assert len(np.unique(repaired.warmup.step_size[rescue.iteration + 10 :])) > 10
    assert 0.6 < repaired.kept.path_acceptance.mean() < 0.98


@pytest.mark.long
def test_the_metric_after_a_repair_is_that_of_both_modes(repaired):
    """The ratio of variances is 1 in each mode, and 1.4 to 2.9 in runs whose rounding differs: the
    mean of five runs is that of a repair."""
    runs = [repaired, *(one_sided(seed=seed) for seed in range(2, 6))]
    assert all(run.adaptation.repairs for run in runs)
    variances = np.array([np.diag(run.sampler.tuning.covariance) for run in runs])
    assert np.log(variances[:, 0] / variances[:, 1]).mean() > np.log(1.6)


def test_without_gradients_the_net_walks_at_random():
    class Values(Gaussian):
        @property
        def capabilities(self):
            return frozenset()

    run, _ = corrected(SHIFTED, target=Values(), warmup=500)
    assert len(run.adaptation.repairs) == 1
    assert {kind for kind, n in run.calls.items() if n} == {"value"}
    assert run.kept.acceptance.mean() > 0.7
    # gradients may be there, and the exploration without
    assert corrected(SHIFTED, explorer=("sampler", {"sampler": "random-walk"}))[
        0
    ].adaptation.repairs


def test_repairs_are_limited():
    run_safety = sk.Safety(repairs=2, patience=20, block=5)
    with pytest.warns(SamplingWarning, match="surrogate is wrong where the chains are"):
        run = sk.sample(
            Gaussian(),
            surrogate=sk.batch_surrogate(lambda evaluations, rng: SHIFTED),
            schedule=run_safety,
            **SIZES,
        )
    assert len(run.adaptation.repairs) == 2
    assert len(run.adaptation.deployments) == 3


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_no_repair_begins_that_leaves_no_time_to_tune():
    run, _ = corrected(SHIFTED, schedule=sk.Safety(patience=80, block=80))
    assert run.adaptation.repairs == ()
    assert run.kept.acceptance.mean() < 0.5


def test_a_repair_whose_fit_fails_leaves_the_old_surrogate():
    fits = []

    def fit(evaluations, rng):
        fits.append(1)
        if len(fits) > 1:
            raise SurrogateFitError("no luck")
        return SHIFTED

    with pytest.warns(SamplingWarning) as caught:
        run = sk.sample(
            Gaussian(), surrogate=sk.batch_surrogate(fit), schedule=sk.Safety(repairs=1), **SIZES
        )
    assert any("goes on without a new one: no luck" in str(w.message) for w in caught)
    assert run.surrogate is SHIFTED
    assert len(run.adaptation.deployments) == 1


def test_a_ready_surrogate_is_not_repaired_but_warned_of():
    with pytest.warns(SamplingWarning, match="nearly all proposals were rejected"):
        run = sk.sample(Gaussian(), surrogate=ELSEWHERE, initial=[0.5, -0.3], **SIZES, **PATHS)
    assert run.adaptation.repairs == ()


# --- what the output says ---


def test_the_output_says_what_the_net_did(repaired):
    (rescue, *_) = repaired.adaptation.repairs
    assert "had not moved for 40 iterations" in rescue.reason or "where that of its paths" in (
        rescue.reason
    )
    told = [
        note for note in judge(repaired).messages if note.startswith("the surrogate was repaired")
    ]
    assert len(told) == 1
    assert rescue.reason in told[0]
    assert f"after iteration {rescue.iteration}" in told[0]
    figures = repaired.to_dict()["adaptation"]
    assert figures["repairs"] == [attrs.asdict(r) for r in repaired.adaptation.repairs]
    assert figures["n_deployments"] == len(repaired.adaptation.deployments)
    assert figures["last_deployment"] == repaired.adaptation.deployments[-1]


@pytest.mark.parametrize("into", [1, 11])
def test_an_interrupt_within_a_repair_returns_what_was_drawn(shifted, into):
    full = shifted[0]
    iteration = full.adaptation.repairs[0].iteration + into

    def interrupt(run, state, info):
        if info.iteration == iteration:
            raise KeyboardInterrupt

    observer = types.SimpleNamespace(surrokit_transition_done=interrupt)
    run, _ = corrected(SHIFTED, observers=[observer])
    assert not run.complete
    assert_array_equal(run.warmup.draws, full.warmup.draws[:, :iteration])
    assert len(run.adaptation.repairs) == 1


# --- a collapse among kept draws ---


class Spoilt(Gaussian):
    """Right for so many paths' starts, then wrong: what no warm-up can see coming."""

    def __init__(self, limit):
        super().__init__()
        object.__setattr__(self, "left", [limit])

    def derivative(self, order, q):
        self.left[0] -= order == 0
        return (super() if self.left[0] > 0 else SHIFTED).derivative(order, q)


def test_a_late_collapse_is_a_warning_and_nothing_is_refitted():
    with pytest.warns(SamplingWarning, match="did not move for .* kept iterations"):
        run = sk.sample(
            Gaussian(),
            surrogate=sk.batch_surrogate(lambda evaluations, rng: Spoilt(450)),
            schedule=sk.Safety(repairs=0),
            **{**SIZES, "draws": 400},
            **PATHS,
        )
    assert len(run.adaptation.deployments) == 1
    assert len(run.kept) == 400


# --- what it looks at ---


def info(accepted, acceptance, paths):
    accepted = np.asarray(accepted)
    return StepInfo(
        accepted=accepted,
        acceptance=np.asarray(acceptance),
        path_acceptance=np.asarray(paths),
        status=np.zeros(len(accepted), dtype=np.int64),
        divergent=np.zeros(len(accepted), dtype=bool),
        n_steps=np.ones(len(accepted), dtype=np.int64),
    )


def watched(step, times=40):
    net = Repairs(sk.Safety(), len(step.accepted), repairs=True)
    for _ in range(times):
        net.saw(step)
    return net


@pytest.mark.parametrize(
    ("step", "promised", "complaint"),
    [
        (info([True, True], [0.8, 0.7], [0.9, 0.9]), 0.9, None),
        (info([True, True], [0.2, 0.3], [0.9, 0.9]), None, None),
        (info([True, False], [0.8, 0.5], [0.9, 0.9]), 0.9, "chain 1 had not moved for 40"),
        (info([False, False], [0.5, 0.5], [0.9, 0.9]), 0.9, "chains 0, 1 had not moved for 40"),
        (info([True, True], [0.8, 0.02], [0.9, 0.9]), 0.9, "of chain 1 was 0.020, where that of"),
        (info([True, True], [0.2, 0.2], [0.9, 0.9]), 0.95, "own error promised 0.950"),
        (info([True, True], [0.2, 0.2], [0.3, 0.3]), 0.95, None),
        (info([True, True], [0.01, 0.0], [0.01, 0.02]), 0.9, None),  # the step is too large
    ],
)
def test_what_counts_as_a_collapse(step, promised, complaint):
    found = watched(step).complaint(promised)
    assert found is None if complaint is None else complaint in found


def test_a_chain_that_has_nowhere_to_go_is_stuck():
    step = info([False, True], [np.nan, 0.9], [1e-9, 0.9])
    assert watched(step).complaint(None) == ("chain 0 had not moved for 40 iterations")


def test_nothing_is_said_before_there_is_enough_to_see():
    bad = info([False, False], [0.0, 0.0], [0.9, 0.9])
    surrogate, room = Gaussian(), 1000
    assert watched(bad, 39).trouble(surrogate, room) is None
    assert watched(bad, 40).trouble(surrogate, room) is not None
    moved = watched(bad)
    moved.saw(info([True, True], [1.0, 1.0], [0.9, 0.9]))
    assert "had not moved" not in (moved.trouble(surrogate, room) or "")


# --- what is refused ---


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("patience", 0, "patience must be a whole number of at least 1, got 0"),
        ("block", 1.5, "block must be a whole number of at least 1, got 1.5"),
        ("repairs", -1, "repairs must be a whole number of at least 0, got -1"),
        ("collapse", 1.0, "collapse must be a number between 0 and 1, got 1.0"),
        ("promise", 0, "promise must be a number between 0 and 1, got 0"),
        ("mix", 1.0, "mix must be None or a probability of at least 0 and below 1, got 1.0"),
        ("mix", -0.1, "mix must be None or a probability of at least 0 and below 1, got -0.1"),
        (
            "mix",
            "often",
            "mix must be None or a probability of at least 0 and below 1, got 'often'",
        ),
    ],
)
def test_settings_out_of_range_are_refused(setting, value, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.Safety(**{setting: value})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"sampler": "hmc", "schedule": sk.Safety(mix=0.1)},
            "without a surrogate all transitions are exact; leave mix out",
        ),
    ],
)
def test_a_net_that_cannot_work_is_refused(options, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.sample(Gaussian(), **SIZES, **options)


@pytest.mark.parametrize("safety", ["on", sk.Safety, {"mix": 0.1}])
def test_a_net_is_a_safety(safety):
    with pytest.raises(ConfigurationError, match="a schedule must be a registered name"):
        sk.sample(Gaussian(), surrogate="additive", schedule=(sk.make("schedule", "once"), safety))


@pytest.mark.parametrize("schedule", ["once", ("once", {}), sk.make("schedule", "once")])
def test_a_net_stands_beside_a_schedule(schedule):
    """Alone it goes with the schedule by default."""
    settings = {"surrogate": SHIFTED, **SIZES, "warmup": 20, "draws": 20}
    settings["surrogate"] = sk.batch_surrogate(lambda evaluations, rng: Gaussian())
    alone = sk.sample(Gaussian(), schedule=sk.Safety(mix=0.5), **settings)
    beside = sk.sample(Gaussian(), schedule=(schedule, sk.Safety(mix=0.5)), **settings)
    assert alone.adaptation.mix == beside.adaptation.mix == 0.5
    assert_array_equal(alone.draws, beside.draws)


def test_exact_transitions_need_a_sampler_that_can_make_them(monkeypatch):
    monkeypatch.setattr(parts, "_exact_sampler", lambda composer, exact: None)
    with pytest.raises(
        ConfigurationError, match=r"no sampler for exact transitions suits the target.*leave mix"
    ):
        sk.sample(Gaussian(), surrogate=SHIFTED, schedule=sk.Safety(mix=0.1), **SIZES)


# --- warnings of the run itself ---


def test_a_step_size_that_is_too_large_is_a_warning_with_advice():
    with pytest.warns(SamplingWarning, match="step size of 50 is too large. Give the sampler a sm"):
        run = sk.sample(Gaussian(), sampler=("hmc", {"step_size": 50.0, "n_steps": 5}), **SIZES)
    assert run.adaptation.repairs == ()


def test_the_net_gives_up_where_exact_transitions_fail_too():
    with pytest.warns(SamplingWarning, match="step size of 50 is too large"):
        run = sk.sample(
            Gaussian(),
            sampler=("hmc", {"step_size": 50.0, "n_steps": 5}),
            surrogate="additive",
            **SIZES,
        )
    assert len(run.adaptation.repairs) == 1


def test_a_healthy_run_is_not_complained_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "R-hat is|the draws of", SamplingWarning)
        sk.sample(Gaussian(), sampler="random-walk", **SIZES)


# --- a poor acceptance that an exploration predicts ---


@attrs.frozen(eq=False)
class Foretelling:
    """An explorer that predicts an acceptance, and perhaps brings a tuning."""

    inner: object
    acceptance: float
    tuning: Tuning | None = None

    needs = frozenset({"gradient"})

    def explore(self, start, rng):
        for each in self.inner.explore(start, rng):
            tuning = self.tuning or each.findings.tuning
            found = attrs.evolve(each.findings, acceptance=self.acceptance, tuning=tuning)
            yield attrs.evolve(each, findings=found)


def predicted(acceptance, *, tuning=None, **settings):
    burn_in = sk.make("explorer", "sampler", sampler="hmc", correction="metropolis", iterations=60)
    explorer = Foretelling(burn_in, acceptance, tuning)
    return corrected(ELSEWHERE, explorer=explorer, **settings)[0]


def lessons(run):
    return [rescue for rescue in run.adaptation.repairs if "was predicted" in rescue.reason]


def test_a_surrogate_that_foretells_little_learns_from_exact_paths_first():
    run = predicted(0.3)
    (first, *_) = run.adaptation.repairs
    assert (first.iteration, first.reason) == (60, "an acceptance of 0.30 was predicted")
    gradients = run.warmup.calls["gradient"]
    assert (np.diff(gradients[59 : 59 + REPAIR_LENGTH]) > 0).all()
    draws = run.draws.reshape(-1, run.draws.shape[2])
    errors = run.surrogate.value(draws) - Gaussian().value(draws)
    assert np.ptp(errors) < 1e-9  # the second fit is right
    assert "an acceptance of 0.30 was predicted" in str(run.verdict)


def test_exact_paths_tell_of_scales_that_a_poor_surrogate_did_not():
    narrow = Tuning(step_size=0.5, covariance=1e-3 * np.eye(2))
    run = predicted(0.3, tuning=narrow)
    assert len(lessons(run)) == REPAIR_LENGTHS
    assert_allclose(run.sampler.tuning.covariance, Gaussian().covariance, rtol=0.2)


@pytest.mark.parametrize(
    ("acceptance", "settings"),
    [
        (0.9, {}),
        (0.3, {"schedule": OFF}),
        (0.3, {"warmup": 60 + REPAIR_LENGTH}),  # no time is left to tune after it
    ],
)
def test_nothing_is_learnt_so_where_it_is_not_needed_or_not_wanted(acceptance, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = predicted(acceptance, **settings)
    assert lessons(run) == []
    assert run.adaptation.mix == 0.0


@pytest.mark.parametrize(
    ("after", "safety", "mix"),
    [
        (0.4, sk.Safety(), MIXED),
        (0.95, sk.Safety(), 0.0),
        (0.4, sk.Safety(mix=0.0), 0.0),
        (0.4, sk.Safety(mix=0.05), 0.05),
    ],
)
def test_exact_transitions_are_mixed_in_where_exact_paths_did_not_help(
    after, safety, mix, monkeypatch
):
    quality = types.SimpleNamespace(acceptance=after)
    monkeypatch.setattr(learning, "fit_quality_of", lambda fitted: quality)
    run = predicted(0.3, schedule=safety)
    assert run.adaptation.mix == mix
    assert ("exact transitions with probability" in str(run.verdict)) == (mix > 0)
    along_paths = np.diff(run.kept.calls["gradient"], prepend=run.warmup.calls["gradient"][-1])
    assert (along_paths > 0).mean() == pytest.approx(mix, abs=0.1)
