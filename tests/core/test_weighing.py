"""Runs of weighted answers: what they say, when they end, and when they are refused."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import warnings
from contextlib import redirect_stdout

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

import surrokit as sk
from surrokit.cli.show import print_run
from surrokit.errors import (
    BudgetSpent,
    ConfigurationError,
    SamplingWarning,
    SurrogateFitError,
    TargetError,
)
from surrokit.run import weighing
from surrokit.run.attempt import Attempt
from surrokit.run.learning import Learning
from surrokit.run.weighing import EDGES, Weighing
from surrokit.weighted import rounds as quality
from surrokit.weighted.answer import Answer, Figures
from surrokit.weighted.round import Round
from surrokit.weighted.rounds import FOLDS, CrossFit, LookedAt

FEW = {"chains": 8, "warmup": 60, "effective": 800}
PARTS = {"sampler": "hmc", "surrogate": "quadratic", "explorer": "rounds"}
OPTIONS = {"seed": 3, "progress": False, "correction": ("weights", FEW)}

PRECISION = np.array([[1.0, 0.6], [0.6, 1.5]])
COVARIANCE = np.linalg.inv(PRECISION)


def normal(q):
    return float(0.5 * q @ PRECISION @ q)


def slope(q):
    return PRECISION @ q


NORMAL = {"value": normal, "gradient": slope, "dim": 2}


def bent(q):
    return normal(q) + 0.1 * math.log(math.cosh(2.0 * q[0]))


def bent_slope(q):
    return slope(q) + np.array([0.2 * math.tanh(2.0 * q[0]), 0.0])


BENT = {"value": bent, "gradient": bent_slope, "dim": 2}


def weigh(target=None, **options):
    """Draw, without the warnings of its verdict."""
    target = sk.potential(**NORMAL) if target is None else target
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        return sk.sample(target, **{**PARTS, **OPTIONS, **options})


def normals(q):
    return 0.5 * np.einsum("ni,ij,nj->n", q, PRECISION, q)


def known(values, gradients):
    """Return a surrogate that learns nothing, and is the same whatever it observes."""
    target = sk.potential(values, gradients, dim=2, batched=True)
    return sk.batch_surrogate(lambda evaluations, rng: target)


def shifted(by):
    """Return a surrogate that is off by so much along each axis."""
    return known(lambda q: normals(q - by), lambda q: (q - by) @ PRECISION)


def scaled(by):
    return known(lambda q: by * normals(q), lambda q: by * q @ PRECISION)


def messages(run, name="weights"):
    return [each.message for each in run.verdict if each.name == name]


def warned(run, name="weights"):
    return [each.message for each in run.verdict if each.name == name and each.warns]


@pytest.fixture(scope="module")
def healthy():
    """A run that ends as its calls do."""
    return weigh(sk.potential(**NORMAL, parameters={"a": None, "b": None}), max_calls=200)


# --- answers ---


def truths_of_normal():
    sd = np.sqrt(np.diag(COVARIANCE))
    quantiles = {f"q{100 * p:02.0f}": sd * norm.ppf(p) for p in (0.05, 0.5, 0.95)}
    return {"mean": np.zeros(2), "sd": sd, **quantiles}


def truths_of_bent():
    """Return figures of the bent target from a fine grid."""
    axis = np.linspace(-9.0, 9.0, 901)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    exponent = 0.5 * np.einsum("...i,ij,...j", grid, PRECISION, grid)
    density = np.exp(-exponent - 0.1 * np.log(np.cosh(2.0 * grid[..., 0])))
    found = {name: np.zeros(2) for name in truths_of_normal()}
    for i in range(2):
        mass = density.sum(axis=1 - i) / density.sum()
        below = np.cumsum(mass) - 0.5 * mass
        found["mean"][i] = mass @ axis
        found["sd"][i] = np.sqrt(mass @ np.square(axis))
        for p in (0.05, 0.5, 0.95):
            found[f"q{100 * p:02.0f}"][i] = np.interp(p, below, axis)
    return found


def misses(answer, truths):
    """Return figures that are outside of intervals that miss one in 10,000."""
    outside = []
    for name, estimate in Figures.of(answer).named.items():
        low, high = estimate.interval(1.0 - 1e-4)
        outside += [name] * int(((truths[name] < low) | (truths[name] > high)).sum())
    return outside


@pytest.mark.statistical
@pytest.mark.parametrize(
    "surrogate",
    [shifted(0.3), pytest.param("additive", marks=pytest.mark.long)],
    ids=["shifted", "learnt"],
)
def test_figures_are_right_within_their_errors(surrogate):
    """Ten figures, each outside of its interval at 1e-4: a false alarm at 1e-3."""
    run = weigh(sk.potential(**BENT), surrogate=surrogate, max_calls=200)
    truths = truths_of_bent()
    assert misses(run.answer, truths) == []
    if surrogate != "additive":
        mutant = tuple(
            attrs.evolve(e, log_weights=e.log_surrogate_weights) for e in run.answer.rounds
        )
        assert "mean" in misses(Answer(rounds=mutant, calls=0.0), truths)


@pytest.fixture(scope="module")
def bent_run():
    return weigh(sk.potential(**BENT), max_calls=200)


@pytest.mark.parametrize("correction", ["weights", "metropolis"])
def test_learners_are_told_whether_answers_are_weighted(correction):
    told = []

    class Listening:
        def learner(self, problem, rng):
            told.append(problem.is_weighed)
            return sk.make("surrogate", "quadratic").learner(problem, rng)

    settings = FEW if correction == "weights" else {}
    weigh(surrogate=Listening(), correction=(correction, settings), draws=7, chains=4)
    assert told == [correction == "weights"]


@pytest.mark.long
def test_every_round_is_looked_back_at_by_the_latest_surrogate(bent_run, monkeypatch):
    rounds = bent_run.answer.rounds
    assert len(rounds) >= 2
    assert all(
        each.predictive_variance.size > 100 and each.predictive_variance.max() > 0.0
        for each in rounds
    )

    def blind(sample, evaluations, later, density_ratios):
        return np.zeros_like(LookedAt.of(sample).values)

    monkeypatch.setattr(weighing, "predict_variances", blind)
    other = weigh(sk.potential(**BENT), max_calls=200).answer
    assert all((each.predictive_variance == 0.0).all() for each in other.rounds)
    assert (other.mean().error <= bent_run.answer.mean().error).all()


@pytest.fixture
def always(monkeypatch):
    """Rounds are cross-fitted whether they gain by it or not."""
    monkeypatch.setattr(weighing, "is_worth_it", lambda found: True)
    monkeypatch.setattr(CrossFit, "improves", lambda others, found: True)


@pytest.mark.usefixtures("always")
def test_rounds_are_corrected_by_payments_that_their_surrogates_do_not_know(monkeypatch):
    """Surrogates of parts learn from all that the round's own has, and from the other parts."""
    fit_from, pay, known, paid = Learning.fit_from, Weighing._evaluate, [], {}

    def note(learning, state, rows):
        known.append((len(state["rows"]["values"]), rows.positions))
        return fit_from(learning, state, rows)

    def pay_and_note(weighing, positions):
        paid[weighing._learning.n_observed] = positions[:-EDGES]
        return pay(weighing, positions)

    monkeypatch.setattr(Learning, "fit_from", note)
    monkeypatch.setattr(Weighing, "_evaluate", pay_and_note)
    run = weigh(sk.potential(**BENT), max_calls=200)
    assert len(run.answer.rounds) >= 2
    assert len(known) >= FOLDS * len(run.answer.rounds)
    for number in range(0, len(known), FOLDS):
        parts = known[number : number + FOLDS]
        (learnt,) = {before for before, _ in parts}
        inside = [(paid[learnt][:, None] == part).all(axis=2).any(axis=1) for _, part in parts]
        assert_array_equal(np.sum(inside, axis=0), FOLDS - 1)


@pytest.mark.usefixtures("always")
@pytest.mark.long
def test_cross_fitting_leaves_what_is_paid(monkeypatch):
    """Answers are others, and figures are right within their errors: ten of them at 1e-4."""
    run = weigh(sk.potential(**BENT), max_calls=200, budget=sk.Budget(target_mcse=1e-6))
    assert all(each.is_reweighted for each in run.answer.rounds)
    assert misses(run.answer, truths_of_bent()) == []
    monkeypatch.setattr(weighing, "is_worth_it", lambda found: False)
    plain = weigh(sk.potential(**BENT), max_calls=200, budget=sk.Budget(target_mcse=1e-6))
    assert not any(each.is_reweighted for each in plain.answer.rounds)
    assert_array_equal(run.answer.draws, plain.answer.draws)
    assert_array_equal(run.answer.log_weights, plain.answer.log_weights)
    assert (run.answer.mean().value != plain.answer.mean().value).all()


@pytest.mark.usefixtures("always")
def test_rounds_are_the_same_when_a_run_is_opened(tmp_path):
    path = tmp_path / "run.surrokit"
    run = weigh(sk.potential(**BENT), path=path, max_calls=200)
    assert all(each.is_reweighted for each in run.answer.rounds)
    opened = sk.open_run(path).answer
    for one, other in zip(run.answer.rounds, opened.rounds, strict=True):
        for field in attrs.fields(Round):
            assert_array_equal(getattr(other, field.name), getattr(one, field.name))
    assert_array_equal(opened.quantile(0.05).value, run.answer.quantile(0.05).value)


@pytest.mark.usefixtures("always")
def test_parts_that_cannot_be_fitted_leave_the_round_as_it_is(monkeypatch):
    def fail(learning, state, rows):
        raise SurrogateFitError("too few")

    monkeypatch.setattr(Learning, "fit_from", fail)
    run = weigh(sk.potential(**BENT), max_calls=200)
    assert len(run.answer.rounds) >= 2
    assert not any(each.is_reweighted for each in run.answer.rounds)


@pytest.mark.filterwarnings("ignore:no surrogate could be fitted")
def test_a_fit_that_fails_after_a_round_leaves_the_answers(monkeypatch):
    fit, pay, paid = Learning.fit, Weighing._evaluate, []

    def pay_and_note(weighing, positions):
        paid.append(len(positions))
        return pay(weighing, positions)

    def fit_before(learning):
        if paid:
            raise SurrogateFitError("no more")
        return fit(learning)

    monkeypatch.setattr(Weighing, "_evaluate", pay_and_note)
    monkeypatch.setattr(Learning, "fit", fit_before)
    rounds = weigh(surrogate="quadratic", max_calls=200).answer.rounds
    assert len(rounds) == len(paid) >= 2
    for each in rounds:
        assert_allclose(each.predictive_variance, 0.0, atol=1e-20)


def test_draws_weights_and_calls_agree(healthy):
    n = sum(map(len, healthy.answer.rounds))
    chains, draws, dim = healthy.kept.draws.shape
    assert (chains * draws, dim) == (n, 2)
    flat = healthy.kept.draws.transpose(1, 0, 2).reshape(n, dim)
    values = np.array([normal(q) for q in flat])
    assert_allclose(healthy.kept.values.T.ravel(), values, atol=1e-12)
    assert_allclose(healthy.answer.draws, flat)
    for logs in (healthy.log_weights, healthy.answer.log_weights):
        assert np.exp(logs).mean() == pytest.approx(1.0)
    assert healthy.log_weights.shape == healthy.draws.shape[:2]
    assert healthy.total_calls <= 200
    assert not healthy.exact
    assert np.isnan(healthy.acceptance).all()
    assert healthy.stopped == "max_calls"
    assert healthy.length == "cut"


@pytest.mark.long
def test_thousands_of_draws_are_handed_out_where_the_surrogate_is_good():
    """Else those that were evaluated, with weights: either have the means of the answers."""
    good, poor = weigh(max_calls=200), weigh(surrogate=shifted(0.3), max_calls=200)
    assert good.draws.shape[:2] == good.log_weights.shape
    assert good.log_weights.size > 10 * good.kept.draws[..., 0].size
    assert_array_equal(poor.draws, poor.kept.draws)
    for run in (good, poor):
        weights, flat = np.exp(run.log_weights).ravel(), run.draws.reshape(-1, 2)
        error = np.sqrt((weights**2).sum()) / weights.sum() + run.expectation(lambda q: q).error
        apart = weights @ flat / weights.sum() - run.expectation(lambda q: q).value
        assert (np.abs(apart) < 5.0 * error * run.summary().columns["sd"]).all()


def test_calls_are_those_of_the_target():
    seen = []

    def value(q):
        seen.append(q.copy())
        return normal(q)

    run = weigh(sk.potential(value, dim=2), max_calls=200)
    assert len(seen) == run.total_calls <= 200
    last = run.answer.rounds[-1].evaluated
    at = len(seen) - len(last) - EDGES
    assert_allclose(seen[at : at + len(last)], last)


def test_log_weights_are_differences_of_potentials():
    run = weigh(surrogate=shifted(0.3), max_calls=150)
    for each in run.answer.rounds:
        differences = [normal(q - 0.3) - normal(q) for q in each.evaluated]
        assert_allclose(each.log_ratios, differences, atol=1e-10)
    logs = run.log_weights.T.ravel()[: len(run.answer.rounds[0])]
    first = run.answer.rounds[0]
    assert_allclose(logs - logs[0], first.log_weights - first.log_weights[0], atol=1e-10)


def test_outputs_are_those_of_the_draws():
    target = sk.forward_potential(
        lambda q: [q[0] + q[1], q[0] - 2.0 * q[1], 0.5 * q[0]],
        lambda q: [[1.0, 1.0], [1.0, -2.0], [0.5, 0.0]],
        data=[1.0, 0.0, 0.2],
        noise_sd=0.7,
        prior=sk.gaussian_prior(),
        dim=2,
    )
    run = weigh(target, surrogate="additive", max_calls=140)
    assert not run.exact
    first, second = run.draws[..., 0], run.draws[..., 1]
    assert_allclose(
        run.outputs, np.stack([first + second, first - 2.0 * second, 0.5 * first], axis=-1)
    )


def test_bounded_parameters_come_back_in_their_own_coordinates():
    """An exponential distribution: mean and sd 1, each within an interval that misses 1e-4."""
    target = sk.potential(
        log_density=lambda q: -q[0],
        gradient=lambda q: np.array([-1.0]),
        parameters={"rate": (0, None)},
    )
    run = weigh(target, surrogate="gp", max_calls=150)
    assert not run.exact
    assert (run.draws > 0).all()
    for name in ("mean", "sd"):
        low, high = Figures.of(run.answer).named[name].interval(1.0 - 1e-4)
        assert low < 1.0 < high


# --- ends ---

MCSE = {"budget": sk.Budget(target_mcse=0.08)}


@pytest.mark.parametrize(
    ("options", "stopped", "length"),
    [
        (MCSE, "target_mcse", "judged"),
        ({"target_ess": 300}, "target_ess", "judged"),
        pytest.param({"draws": 1000, **MCSE}, "target_mcse", None, marks=pytest.mark.long),
        pytest.param({"draws": 20}, "draws", "fixed", marks=pytest.mark.long),
        ({"draws": 500, "max_calls": 120}, "max_calls", "cut"),
    ],
)
def test_ends(options, stopped, length):
    run = weigh(**options)
    assert run.stopped == stopped
    assert length is None or run.length == length
    assert run.kept.draws[..., 0].size == sum(map(len, run.answer.rounds))
    if stopped == "target_mcse":
        assert Figures.of(run.answer).relative_error.max() <= 0.08
        assert len(run.answer.rounds) >= 2
    if stopped == "target_ess":
        assert run.ess().min() >= 300
    if stopped == "draws":
        assert run.kept.draws.shape == (4, 20, 2)
        assert messages(run, "stopped") == []
    assert run.total_calls <= options.get("max_calls", math.inf)


@pytest.mark.parametrize(("chains", "max_calls"), [(7, 120), (40, 250)])
def test_rounds_are_whole_for_any_number_of_chains(chains, max_calls):
    run = weigh(chains=chains, max_calls=max_calls)
    assert len(run.kept.draws) == chains
    assert run.kept.draws[..., 0].size == sum(map(len, run.answer.rounds))
    assert [len(each) % chains for each in run.answer.rounds] == [0] * len(run.answer.rounds)
    assert run.total_calls <= max_calls


# --- refusals ---


def two_modes(q):
    return -np.logaddexp(-0.5 * (q[0] - 5.0) ** 2, -0.5 * (q[0] + 5.0) ** 2) + q[1] ** 2 / 2


def to_two_modes(q):
    return np.array([q[0] - 5.0 * np.tanh(5.0 * q[0]), q[1]])


IN_BOTH = np.array([[-5.0, 0.0], [5.0, 0.0], [-5.0, 1.0], [5.0, 1.0]])


def refuse(**options):
    """Return a run whose surrogate is right and whose chains on it are apart."""
    target = sk.potential(two_modes, to_two_modes, dim=2)
    surrogate = known(lambda q: two_modes(q.T), lambda q: to_two_modes(q.T).T)
    parts = {"surrogate": surrogate, "explorer": None, "initial": IN_BOTH}
    return weigh(target, **parts, **options)


def test_chains_that_are_apart_are_refused_and_exact_ones_go_on():
    run = refuse(warmup=60, draws=30)
    assert run.exact
    assert run.answer is None
    assert run.log_weights is None
    assert run.weights.rejected == weighing.PATIENCE
    assert run.draws.shape == (4, 30, 2)
    assert "chains on the surrogate alone are apart" in warned(run)[0]
    assert "on which the exact potential decided" in warned(run)[0]
    assert not np.isnan(run.acceptance).any()


def test_draws_on_which_nothing_decided_do_not_judge_the_surrogate(monkeypatch):
    """Their acceptance is missing, and would count as none."""
    seen, begin = [], Attempt.begin_warmup

    def watch(self, found):
        seen.append(self._book.since_explored)
        return begin(self, found)

    monkeypatch.setattr(Attempt, "begin_warmup", watch)
    refuse(warmup=60, draws=10)
    assert seen == [0]


def test_where_no_calls_are_left_draws_are_the_surrogates_and_marked():
    run = refuse(warmup=40, max_calls=190)
    assert run.unchecked is not None
    assert run.answer is None
    assert not run.exact
    first = run.verdict.messages[0]
    assert first.startswith("not verified")
    assert "Raise max_calls" in first


def test_bad_weights_are_refused_and_their_draws_are_warm_up():
    """The surrogate is thirty times too narrow in variance: weights have no variance."""
    run = weigh(surrogate=scaled(30.0), draws=40, warmup=60, seed=1)
    assert run.weights.rejected >= 1
    paid = run.warmup.values.shape[1]
    assert paid >= 28 // 4
    if run.exact:
        assert "weighted answers are rejected" in warned(run)[0]
        decided = ~np.isnan(run.kept.acceptance)
        assert decided.any()


@pytest.mark.parametrize("learns", [True, False])
def test_a_small_uneven_round_is_not_corrected_by_surrogates_that_change_much(learns):
    """Weights of 20 draws are uneven; though a surrogate of 16 of them predicts the other four."""

    def fit(evaluations, rng):
        by = 0.0 if learns and len(evaluations.positions) > 18 else 0.3
        return sk.potential(
            lambda q: normals(q - by), lambda q: (q - by) @ PRECISION, dim=2, batched=True
        )

    run = weigh(
        surrogate=sk.batch_surrogate(fit), max_calls=42, explorer=("rounds", {"evaluations": 12})
    )
    assert run.answer is None
    assert "20 weights tell of their tail only where" in warned(run, "unchecked")[0]


def test_draws_of_refused_rounds_are_not_kept(monkeypatch):
    doubts = iter([None, "of a test", None, None])
    monkeypatch.setattr(weighing, "complaint", lambda found: next(doubts))
    run = weigh(max_calls=230)
    assert len(run.answer.rounds[0]) > 28
    assert run.weights.rejected == 1
    n = sum(map(len, run.answer.rounds))
    assert run.kept.draws[..., 0].size == n
    flat = run.kept.draws.transpose(1, 0, 2).reshape(n, 2)
    assert_allclose(flat, run.answer.draws)


def test_a_round_that_others_disagree_with_stands_alone(monkeypatch):
    apart = iter(["two rounds are apart", None])
    monkeypatch.setattr(weighing, "disagreement", lambda one, other: next(apart))
    run = weigh(max_calls=140)
    assert len(run.answer.rounds) == 1
    assert run.kept.draws[..., 0].size == len(run.answer.rounds[0])
    assert any("two rounds are apart" in message for message in warned(run))
    assert "and no other to compare it with" in warned(run, "one_round")[0]


def test_too_few_calls_for_any_round_are_told():
    run = weigh(max_calls=30, warmup=5)
    assert run.answer is None
    assert re.search(
        r"too few calls were left.*; at least [1-9]\d* more", warned(run, "unchecked")[0]
    )


def test_draws_beyond_the_border_are_refused():
    class Bordered:
        dim, capabilities = 2, frozenset({"gradient"})

        def value(self, positions):
            return normals(positions)

        def value_and_gradient(self, positions):
            return self.value(positions), positions @ PRECISION

        def gradient(self, positions):
            return positions @ PRECISION

        def is_beyond(self, positions):
            return positions[:, 0] > 1.0

    surrogate = sk.batch_surrogate(lambda evaluations, rng: Bordered())
    run = weigh(surrogate=surrogate, max_calls=200, seed=4)
    assert run.answer is None
    assert "lie beyond all that it has learnt from" in warned(run, "unchecked")[0]


def test_few_effective_draws_are_told(healthy):
    assert warned(healthy, "effective_draws") == []
    few = weigh(surrogate=shifted(1.2), max_calls=90, seed=2)
    assert few.answer is None or warned(few, "effective_draws") or few.ess().min() >= 100


def test_a_surrogate_that_cannot_be_fitted_is_told():
    def fail(evaluations, rng):
        raise sk.errors.SurrogateFitError("it is of a test")

    with pytest.warns(SamplingWarning, match="no surrogate could be fitted"):
        run = sk.sample(
            sk.potential(**NORMAL),
            **{**PARTS, **OPTIONS, "surrogate": sk.batch_surrogate(fail)},
            warmup=60,
            draws=10,
        )
    assert run.exact
    assert "no surrogate could be fitted" in warned(run)[0]


# --- failures and interrupts ---


def count_down(calls, error):
    """Return a target that raises at one of its calls."""
    left = [calls]

    def value(q):
        left[0] -= 1
        if left[0] == 0:
            raise error
        return normal(q)

    return sk.potential(value, dim=2)


def rounds_begin(target):
    """Return the calls of the exploration, and of the first rounds."""
    run = weigh(target, max_calls=200)
    sizes = [len(each) for each in run.answer.rounds]
    return int(run.total_calls) - sum(sizes), sizes


@pytest.fixture(scope="module")
def beginning():
    return rounds_begin(sk.potential(normal, dim=2))


@pytest.mark.parametrize(
    ("error", "stopped"),
    [(KeyboardInterrupt(), "interrupted"), (BudgetSpent("max_seconds"), "max_seconds")],
)
def test_an_end_in_the_second_round_leaves_the_first(beginning, error, stopped):
    explored, sizes = beginning
    run = weigh(count_down(explored + sizes[0] + 3, error), max_calls=200)
    assert run.stopped == stopped
    assert [len(each) for each in run.answer.rounds] == sizes[:1]
    assert run.kept.draws[..., 0].size == sizes[0]
    assert run.complete == (stopped != "interrupted")
    assert any("interrupted" in m or "max_seconds" in m for m in messages(run, "stopped"))


def test_an_interrupt_in_the_first_round_leaves_nothing(beginning):
    run = weigh(count_down(beginning[0] + 3, KeyboardInterrupt()), max_calls=200)
    assert run.stopped == "interrupted"
    assert run.draws.shape[1] == 0
    assert "no round came to its end" in warned(run)[0]


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("after", ["fit_from", "fit"])
def test_an_interrupt_after_the_payments_loses_none(monkeypatch, after):
    """Of the fits that follow: those of parts, and the one that looks back."""
    fitted, pay, begun = getattr(Learning, after), Weighing._evaluate, []

    def pay_and_note(weighing, positions):
        begun.append(len(positions) - EDGES)
        return pay(weighing, positions)

    def interrupt(learning, *args):
        if begun:
            raise KeyboardInterrupt
        return fitted(learning, *args)

    monkeypatch.setattr(Weighing, "_evaluate", pay_and_note)
    monkeypatch.setattr(Learning, after, interrupt)
    run = weigh(sk.potential(**BENT), max_calls=200)
    assert run.stopped == "interrupted"
    assert [len(each) for each in run.answer.rounds] == begun
    assert run.kept.draws[..., 0].size == sum(begun)


@attrs.define
class Stops:
    """An observer that raises after so many draws."""

    left: int
    error: BaseException

    def surrokit_transition_done(self, run, state, info):
        if info.stage == "sampling":
            self.left -= 1
            if self.left == 0:
                raise self.error


@pytest.mark.parametrize("left", [3, 9])
def test_half_a_round_is_not_among_the_draws(left):
    """Draws of the surrogate without weights would be called exact."""
    run = weigh(max_calls=200, observers=[Stops(left, KeyboardInterrupt())])
    assert run.stopped == "interrupted"
    rounds = [] if run.answer is None else run.answer.rounds
    assert len(rounds) == (left > 7)
    assert run.kept.draws[..., 0].size == sum(map(len, rounds))
    if rounds:
        assert run.log_weights.shape == run.draws.shape[:2]
        assert np.isfinite(run.log_evidence().value)


def test_an_error_carries_the_rounds_before(beginning):
    explored, sizes = beginning
    target = count_down(explored + sizes[0] + 3, ValueError("of a test"))
    with pytest.raises(TargetError) as caught:
        weigh(target, max_calls=200, compute=sk.Compute(on_error="raise"))
    partial = caught.value.partial
    assert partial.stopped == "error"
    assert [len(each) for each in partial.answer.rounds] == sizes[:1]


def test_a_failed_call_is_a_weight_of_zero(beginning):
    target = count_down(beginning[0] + 5, ValueError("of a test"))
    with pytest.warns(sk.errors.EvaluationWarning, match="of a test"):
        run = weigh(target, max_calls=200)
    assert run.failures == 1
    assert np.isneginf(run.answer.log_weights).sum() == 1
    assert misses(run.answer, truths_of_normal()) == []
    assert not np.isneginf(np.log(run.resampled(5, 1) ** 2)).any()


def test_where_all_calls_fail_there_are_no_answers(beginning):
    left = [beginning[0]]

    def value(q):
        left[0] -= 1
        return normal(q) if left[0] >= 0 else math.inf

    run = weigh(sk.potential(value, dim=2), max_calls=200)
    assert run.answer is None
    assert "the target is zero at all draws of the surrogate" in warned(run, "unchecked")[0]


# --- what cannot be weighed ---


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"surrogate": "none", "explorer": None}, "need a surrogate .* there is none; name one"),
        ({"surrogate": sk.potential(**NORMAL), "explorer": None}, "a ready one does not; name one"),
        ({"draws": 3}, "draws=3 of 4 chains are fewer than a round"),
        (
            {"budget": sk.Budget(target_rhat=1.01)},
            "target_rhat is for chains, and weighted answers have none",
        ),
    ],
)
def test_what_cannot_be_weighed_is_refused_before_the_first_call(options, message):
    def never(q):
        raise AssertionError("the target was called")

    with pytest.raises(ConfigurationError, match=message):
        weigh(sk.potential(never, slope, dim=2), compute=sk.Compute(on_error="raise"), **options)


# --- mutants ---


class Interpolating:
    """A surrogate that is right at all that it has learnt, and off everywhere else."""

    dim, capabilities = 2, frozenset({"gradient"})

    def __init__(self, evaluations):
        self._known = {
            q.tobytes(): u for q, u in zip(evaluations.positions, evaluations.values, strict=True)
        }

    def value(self, positions):
        return np.array([self._known.get(q.tobytes(), normal(q - 0.4)) for q in positions])

    def gradient(self, positions):
        return (positions - 0.4) @ PRECISION

    def value_and_gradient(self, positions):
        return self.value(positions), self.gradient(positions)


@pytest.mark.statistical
@pytest.mark.long
def test_points_for_correcting_are_not_those_for_learning(monkeypatch):
    """Ten figures at 1e-4: ours are right but for a false alarm at 1e-3, the mutant's are not."""
    surrogate = sk.batch_surrogate(lambda evaluations, rng: Interpolating(evaluations))
    assert misses(weigh(surrogate=surrogate, max_calls=250).answer, truths_of_normal()) == []
    pay = Weighing._evaluate

    def learn_first(self, positions):
        values, rows = pay(self, positions)
        late = self._learning.fit().value(positions) - values

        def build(log_surrogate_weights, **known):
            known["log_weights"] = late[: len(log_surrogate_weights)] + log_surrogate_weights
            return Round(**known, log_surrogate_weights=log_surrogate_weights)

        monkeypatch.setattr(weighing, "Round", build)
        return values, rows

    monkeypatch.setattr(Weighing, "_evaluate", learn_first)
    mutant = weigh(surrogate=surrogate, max_calls=250)
    assert "mean" in misses(mutant.answer, truths_of_normal())


def test_a_mean_that_is_less_sure_than_one_draw_is_no_answer():
    """With this tail a mean was 34 sds off by its own figures, and the sd as much too large."""

    def both(q):
        x, square = np.arcsinh(q), 1.0 + np.square(q)
        return (0.5 * np.square(x) + 0.5 * np.log(square)).sum(axis=1), x / square**0.5 + q / square

    target = sk.potential(value_and_gradient=both, dim=2, batched=True)
    run = weigh(target, surrogate="additive", max_calls=60, seed=0)
    assert not run.accepted
    assert "has an error above its standard deviation" in run.weights.reason
    assert "not verified" in run.verdict.messages[0]


def test_an_unconfined_surrogate_is_refused():
    """The surrogate falls without end where it has learnt nothing; confined, it is accepted."""

    @attrs.frozen
    class Falling:
        confined: bool
        dim = 2
        capabilities = frozenset({"gradient"})

        def value(self, positions):
            return self.value_and_gradient(positions)[0]

        def gradient(self, positions):
            return self.value_and_gradient(positions)[1]

        def value_and_gradient(self, positions):
            at = np.clip(positions, -1e6, 1e6)
            squares = np.square(at).sum(axis=1)
            beyond = np.maximum(squares - 8.0, 0.0)
            sign = 1.0 if self.confined else -1.0
            values = 0.5 * np.einsum("ni,ij,nj->n", at, PRECISION, at) + sign * np.square(beyond)
            return values, at @ PRECISION + 4.0 * sign * (beyond[:, None] * at)

    def run(confined):
        surrogate = sk.batch_surrogate(lambda evaluations, rng: Falling(confined))
        return weigh(surrogate=surrogate, explorer=None, warmup=60, max_calls=400)

    assert run(confined=True).answer is not None
    falling = run(confined=False)
    assert falling.answer is None
    assert warned(falling, "unchecked")


# --- what is written ---


def test_a_run_says_that_it_is_weighted(healthy):
    assert "weighted draws of the surrogate" in repr(healthy)
    assert "the answers are weighted" in str(healthy.summary())
    columns = healthy.summary().columns
    assert {"mcse", "mcse_sd", "mcse_q05", "mcse_q50", "mcse_q95"} <= set(columns)
    assert_array_equal(columns["ess"], healthy.ess())
    figures = json.loads(json.dumps(healthy.to_dict(), allow_nan=False))
    assert figures["exact"] is False
    assert figures["stopped"] == "max_calls"
    assert healthy.rhat().max() < quality.LARGEST_RHAT


def test_tables_have_log_weights(healthy, tmp_path):
    path = tmp_path / "draws.csv"
    healthy.save(path)
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["chain", "draw", "log_weight", "a", "b"]
    assert_array_equal([float(row["log_weight"]) for row in rows], healthy.log_weights.ravel())
    assert_array_equal([float(row["a"]) for row in rows], healthy["a"].ravel())


def test_arviz_has_draws_of_equal_weight(healthy):
    """ArviZ knows no weights: averages over what it gets are those under the weights."""
    pytest.importorskip("arviz")
    tree, weights = healthy.to_arviz(), np.exp(healthy.log_weights)
    n = healthy.log_weights.size
    values = tree.posterior["a"].values
    assert values.shape == (1, n)
    assert tree.attrs["exact"] == 0
    assert tree.attrs["resampled"] == 1
    assert tree.attrs["weights_worth"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    different, of = np.unique(healthy["a"], return_inverse=True)  # chains may stay where they are
    times = (values.ravel() == different[:, None]).sum(axis=1)
    shares = np.bincount(of.ravel(), n * weights.ravel() / weights.sum())
    assert (np.abs(times - shares) < np.bincount(of.ravel())).all()  # as often as weights say
    assert_array_equal(values, healthy.to_arviz().posterior["a"].values)
    assert (healthy.to_arviz(seed=1).posterior["a"].values != values).any()


def test_the_command_prints_errors(healthy, capsys):
    with redirect_stdout(io.StringIO()) as out:
        print_run(healthy)
    text = out.getvalue() or capsys.readouterr().out
    assert "error" in text
    assert "acceptance rate" not in text
