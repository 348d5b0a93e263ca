"""Failures of a target: overflow far from the draws is no alarm, and nothing else goes untold."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import surrokit as sk
from surrokit import failures
from surrokit.errors import EvaluationWarning, SamplingWarning, TargetError
from surrokit.failures import FailureLog

SIZES = {"warmup": 200, "draws": 100, "seed": 1, "progress": False}
X = 2.0 * np.random.default_rng(0).standard_normal((2000, 3))
Y = np.random.default_rng(1).random(2000) < 1.0 / (1.0 + np.exp(-X @ [1.0, -1.0, 0.5]))


def probability(q):
    z = X @ q
    return np.exp(z) / (1.0 + np.exp(z))


def naive(q):
    """A logistic regression as it is often written: NaN where a predictor is beyond 37."""
    p = probability(q)
    return -np.sum(Y * np.log(p) + (1 - Y) * np.log(1 - p)) + 0.5 * q @ q


def naive_gradient(q):
    return X.T @ (probability(q) - Y) + q


def failing_from(edge, failure=lambda: np.nan):
    """A normal potential that fails where q[0] is larger."""

    def value(q):
        return failure() if q[0] > edge else 0.5 * q @ q

    return sk.potential(value, lambda q: q, parameters={"a": None, "b": None})


def raising(error):
    def failure():
        raise error

    return failure


def warned(target, **options):
    """Return a run and what it warned of failures."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = sk.sample(target, **{**SIZES, **options})
    return run, [str(w.message) for w in caught if w.category is EvaluationWarning]


# --- whole runs ---


@pytest.mark.parametrize("parts", [{"sampler": "hmc"}, {"surrogate": "quadratic"}, {}])
def test_a_sound_model_that_overflows_far_out_is_no_alarm(parts):
    target = sk.potential(naive, naive_gradient, dim=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "R-hat is|the draws of", SamplingWarning)
        run = sk.sample(target, **parts, **{**SIZES, "seed": 3})
    assert run.failures > 0  # they are counted all the same


EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def eight_schools(q):
    """Centred, a funnel: where a path runs off to scales of e^-1000, inf - inf comes of it."""
    mean, log_scale, theta = q[0], q[1], q[2:]
    scale = np.exp(log_scale)
    prior = 0.5 * (mean / 5) ** 2 + 0.5 * (scale / 5) ** 2 - log_scale
    between = 0.5 * np.sum(((theta - mean) / scale) ** 2) + 8 * log_scale
    return prior + between + 0.5 * np.sum(((EFFECTS - theta) / ERRORS) ** 2)


def slope_of_eight_schools(q):
    mean, scale, theta = q[0], np.exp(q[1]), q[2:]
    r = (theta - mean) / scale
    of_log_scale = scale * scale / 25 - 1 - np.sum(r**2) + 8
    of_theta = r / scale - (EFFECTS - theta) / ERRORS**2
    return np.concatenate([[mean / 25 - np.sum(r) / scale, of_log_scale], of_theta])


@pytest.mark.long
def test_paths_that_diverge_among_the_draws_may_overflow_too():
    target = sk.potential(eight_schools, slope_of_eight_schools, dim=10)
    run, said = warned(target, sampler="hmc", seed=8)
    assert run.divergences.sum() > 0
    assert said == []


@pytest.mark.parametrize(
    ("parts", "failure"),
    [
        ({"sampler": "hmc"}, lambda: np.nan),
        ({"surrogate": "quadratic"}, raising(OverflowError("too much"))),
    ],
)
def test_a_target_that_fails_in_its_bulk_is_reported(parts, failure):
    run, said = warned(failing_from(1.0, failure), **parts)
    assert run.failures > 0
    (message,) = said
    assert message.startswith(("the target returned NaN", "the target raised OverflowError"))


def test_a_failure_that_is_no_overflow_is_reported_at_once():
    told_at = []

    class Listener:
        def surrokit_transition_done(self, run, state, info):
            if caught and not told_at:
                told_at.append((info.stage, info.iteration))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sk.sample(
            failing_from(1.0, raising(KeyError("rate"))), sampler="hmc", observers=[Listener()],
            **{**SIZES, "warmup": 20, "draws": 10},
        )  # fmt: skip
    assert told_at[0][0] == "exploration"


def test_a_failure_that_only_the_warm_up_met_is_reported_in_the_end():
    """Where the first calls of the warm-up failed the draws are, though none of them fails."""
    calls = []

    def value(q):
        calls.append(q)
        return np.nan if len(calls) == 50 else 0.5 * q @ q

    target = sk.potential(value, lambda q: q, parameters={"a": (0, 5), "b": None})
    run, said = warned(target, sampler="hmc")
    assert run.failures == 1
    (message,) = said
    assert "the target returned NaN, at one position in the region of the chains" in message
    assert f"first at (a = {calls[49][0]:.6g}, b = {calls[49][1]:.6g})" in message
    assert "the draws lack the probability there" in message


def test_without_draws_failures_are_reported_all_the_same():
    run, said = warned(failing_from(-0.5), sampler="hmc", max_calls=40)
    assert run.unchecked is not None
    (message,) = said
    assert "before there were any draws, first at (a =" in message


def test_failures_before_an_error_are_reported():
    target = sk.potential(lambda q: np.nan, dim=12)
    with (
        pytest.warns(EvaluationWarning, match=r"400 positions before .* q\[9\] = .*, and 2 more\)"),
        pytest.raises(TargetError, match="no start was found in 100 attempts"),
    ):
        sk.sample(target, sampler="random-walk", **SIZES)


def test_without_a_warm_up_nothing_waits():
    sampler = ("hmc", {"step_size": 0.5})
    _, said = warned(failing_from(1.0), sampler=sampler, warmup=0, initial=[0.0, 0.0])
    (message,) = said
    assert message.startswith("the target returned NaN; such positions are rejected and counted")


# --- the log itself ---


SQUARE = np.array([[0.0, 0.0], [1.0, 1.0]])
TARGET = sk.potential(lambda q: 0.0, dim=2)


def late(positions, draws=SQUARE, before=SQUARE, expected=None):
    """Return what is said in the end of failures in a warm-up."""
    log = FailureLog()
    log.waits = True
    log.failed("returned NaN", np.array(positions, dtype=float), overflow=True)
    if expected is not None:
        log.draws_begin(expected)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        log.settle(draws, before, TARGET)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("position", "is_near"),
    [
        ([0.5, 0.5], True),
        ([1.9, -0.9], True),  # beside the draws, as what cuts them off is
        ([2.1, 0.5], False),
        ([0.5, -1e6], False),
        ([np.nan, 0.5], False),
    ],
)
def test_near_is_within_a_width_of_the_draws(position, is_near):
    assert bool(late([position])) == is_near


def test_near_is_also_between_places_where_chains_have_been():
    wide = np.array([[-50.0, -50.0], [50.0, 50.0]])
    assert late([[30.0, -30.0]], before=wide)
    assert not late([[51.0, 0.0]], before=wide)


def test_of_draws_that_do_not_move_no_region_is_known():
    still = np.array([[0.5, 0.0], [0.5, 1.0]])
    assert late([[1e6, 0.0]], draws=still)
    assert not late([[1e6, 0.0]], draws=still, expected=SQUARE)


def test_positions_are_counted_once():
    (message,) = late([[0.5, 0.5], [0.5, 0.5], [0.2, 0.5], [1e6, 0.0]])
    assert (
        "at 2 positions in the region of the chains, first at (q[0] = 0.5, q[1] = 0.5)" in message
    )


def test_columns_beyond_the_position_do_not_matter():
    (message,) = late([[0.5, 0.5, 7.0, 1e9]])
    assert "first at (q[0] = 0.5, q[1] = 0.5)" in message


def test_among_draws_what_is_near_is_told_at_once_and_only_once():
    log = FailureLog()
    log.waits = True
    log.draws_begin(SQUARE)
    log.failed("returned NaN", np.array([[1e6, 0.0]]), overflow=True)
    with pytest.warns(EvaluationWarning, match="the target returned NaN; such positions"):
        log.failed("returned NaN", np.array([[0.5, 0.5]]), overflow=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log.failed("returned NaN", np.array([[0.5, 0.5]]), overflow=True)
        log.settle(SQUARE, SQUARE, TARGET)


def test_very_many_failures_do_not_wait(monkeypatch):
    monkeypatch.setattr(failures, "MOST_NUMBERS", 10)
    log = FailureLog()
    log.waits = True
    far = np.full((3, 2), 1e6)
    log.failed("returned NaN", far, overflow=True)
    with pytest.warns(EvaluationWarning, match="returned NaN"):
        log.failed("returned NaN", far, overflow=True)
