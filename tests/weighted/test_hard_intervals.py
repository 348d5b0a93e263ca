"""Errors of sharpened and weighted answers where they were too small, and events that none saw."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import scipy.stats

import surrokit as sk
from surrokit.diagnostics import mean_error
from surrokit.errors import ConfigurationError
from surrokit.weighted.answer import Answer
from surrokit.weighted.correction import chain_variance
from surrokit.weighted.round import Round

DATA = np.array([2.13, 1.49, 1.24, 0.95, 0.74, 0.55])
TIMES = np.arange(6) * 0.5
CENTRE = np.array([2.5, 0.5])
FEW = ("weights", {"chains": 16, "warmup": 100, "effective": 1000})

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


def two_modes(share):
    """Two normal densities, 5 apart in the first number and 1 in the second."""

    def both(q):
        logs = [
            math.log(part) - 0.5 * np.square(q - centre).sum(axis=1)
            for part, centre in ((share, CENTRE), (1.0 - share, -CENTRE))
        ]
        log_density = np.logaddexp(*logs)
        first = np.exp(logs[0] - log_density)[:, None]
        return -log_density, first * (q - CENTRE) + (1.0 - first) * (q + CENTRE)

    return sk.potential(value_and_gradient=both, dim=2, batched=True)


def normal(mean=0.0):
    def both(q):
        return 0.5 * np.square(q - mean).sum(axis=1), q - mean

    return sk.potential(value_and_gradient=both, dim=2, batched=True)


def as_surrogate(potential):
    return sk.batch_surrogate(lambda evaluations, rng: potential)


def decay():
    """An exponential decay with six data, in logarithms of height, rate and noise."""

    def both(z):
        height, rate, sd = np.exp(z).T
        curve = height[:, None] * np.exp(-rate[:, None] * TIMES)
        away, precision = DATA - curve, sd**-2
        squares = precision * np.square(away).sum(axis=1)
        far = 1.0 + sd**2 / 5.0
        value = 0.5 * squares + 5.0 * z[:, 2] - 2.0 * (z[:, 0] + z[:, 1] - rate) + height
        pulls = curve * away * precision[:, None]
        slopes = [
            height - pulls.sum(axis=1) - 2.0,
            rate * (pulls @ TIMES) - 2.0 + 2.0 * rate,
            5.0 - squares + 4.0 * (sd**2 / 5.0) / far,
        ]
        return value + 2.0 * np.log(far), np.stack(slopes, axis=1)

    return sk.potential(value_and_gradient=both, dim=3, batched=True)


@pytest.mark.long
def test_sharpened_means_are_right_where_the_surrogate_errs_along_a_slow_direction():
    """The second number follows the modes, whose shares the surrogate has wrong: E q1 = 0.1."""
    run = sk.sample(
        two_modes(0.6),
        sampler=("sub-chain", {"length": 4}),
        surrogate=two_modes(0.5),
        draws=500,
        seed=1,
        progress=False,
    )
    found = sk.sharpen(run, seed=1).expectation(lambda q: q[:, 1], batched=True)
    assert abs(found.value - 0.1) < 3.0 * found.error
    assert found.error <= mean_error(run.draws)[1]  # no worse than draws alone


@pytest.mark.long
def test_weighted_answers_warn_of_a_heavy_tail():
    """Squares of Student's t with three degrees of freedom have no variance."""

    def both(q):
        far = 1.0 + np.square(q).sum(axis=1) / 3.0
        return 2.5 * np.log(far), 5.0 / 3.0 * q / far[:, None]

    student = sk.potential(value_and_gradient=both, dim=2, batched=True)
    weighed = {"explorer": "rounds", "correction": FEW, "max_calls": 150, "sampler": "hmc"}
    run = sk.sample(student, surrogate=as_surrogate(student), seed=2, progress=False, **weighed)
    found = run.verdict.named("heavy_tails")
    assert all(finding.warns for finding in found)
    assert any(re.search(r"standard deviation of .*'q\[1\]'", each.message) for each in found)


@pytest.mark.long
def test_advice_where_surrogates_learn_little_of_heavy_tails_gives_right_quantiles():
    def both(q):
        return np.log1p(q**2).sum(axis=1), 2.0 * q / (1.0 + q**2)

    target = sk.potential(value_and_gradient=both, dim=3, batched=True)
    run = sk.sample(
        target,
        surrogate="quadratic",
        correction="weights",
        max_calls=600,
        seed=1,
        progress=False,
    )
    found = run.verdict.named("heavy_tails")
    assert any("Use sampler='hmc' without a surrogate and max_calls" in f.message for f in found)
    run = sk.sample(target, sampler="hmc", seed=1, progress=False)
    for p in (0.05, 0.5, 0.95):
        below = run.draws < scipy.stats.cauchy.ppf(p)
        error = mean_error(below.astype(float))
        np.testing.assert_array_less(np.abs(below.mean(axis=(0, 1)) - p), 3.5 * error)


@pytest.mark.long
def test_few_draws_of_a_heavy_tail_leave_few_degrees():
    run = sk.sample(
        decay(),
        surrogate=as_surrogate(decay()),
        sampler="hmc",
        explorer="rounds",
        correction=FEW,
        max_calls=150,
        seed=1,
        progress=False,
    )
    rate = run.weights.answer.expectation(lambda z: np.square(np.exp(z[:, 1:2]) - 0.54))
    assert rate.degrees[0] < 4.0
    low, high = rate.interval()
    assert low[0] < np.square(0.0545) < high[0]


def test_errors_of_good_chains_are_not_too_large(rng):
    """300 variances have a mean within 4.4 standard errors of the truth; the larger of both
    estimates, whatever chance explains, is a twelfth too large."""
    draws = rng.standard_normal((32, 100, 300))
    found, _ = chain_variance(draws)
    means = draws.mean(axis=1)
    larger = np.fmax(np.square(mean_error(draws)), means.var(axis=0, ddof=1) / 32.0)
    assert abs(3200.0 * found.mean() - 1.0) < 0.04 < 3200.0 * larger.mean() - 1.0


def test_a_chain_that_is_away_once_makes_errors_large(rng):
    """Thirty-two chains, of which one spends a part of its time in a tail."""
    draws = rng.standard_normal((32, 200, 1))
    draws[0, 50:150] += 6.0
    flat = draws.reshape(-1, 1)
    found = Round(draws=draws, evaluated=flat[::200], log_weights=np.zeros(32), learnt=1)
    mean = Answer(rounds=(found,), calls=0.0).mean()
    means = draws.mean(axis=1)
    assert mean.error[0] >= 0.999 * means.std(ddof=1) / math.sqrt(32.0)
    low, high = mean.interval()
    assert low[0] < 0.0 < high[0]
    assert mean.degrees[0] < 6.0


def test_normal_draws_of_a_surrogate_have_many_degrees(rng):
    draws = rng.standard_normal((32, 500, 2))
    paid = draws.reshape(-1, 2)[::400]
    found = Round(draws=draws, evaluated=paid, log_weights=np.zeros(len(paid)), learnt=1)
    answer = Answer(rounds=(found,), calls=0.0)
    for estimate in (answer.mean(), answer.sd(), answer.quantile(0.05)):
        assert (estimate.degrees > 8.0).all()


@pytest.mark.statistical
def test_errors_in_a_tail_without_a_variance_are_not_too_small(rng):
    """Squares of Student's t with three degrees have none: 95 % intervals hold in 90 % at least."""
    truth, hits, repeats = math.sqrt(3.0), 0, 40
    for _ in range(repeats):
        draws = scipy.stats.t.rvs(3.0, size=(32, 100, 1), random_state=rng)
        paid = draws.reshape(-1, 1)[::80]
        found = Round(draws=draws, evaluated=paid, log_weights=np.zeros(len(paid)), learnt=1)
        low, high = Answer(rounds=(found,), calls=0.0).sd().interval()
        hits += bool(low[0] <= truth <= high[0])
    assert hits >= 36


def runs_that_see_no_event():
    plain = {"draws": 100, "seed": 1, "progress": False}
    ready = {**plain, "sampler": "sub-chain", "surrogate": normal(0.02)}
    few = {"correction": FEW, "surrogate": as_surrogate(normal()), "explorer": "rounds"}
    yield sk.sample(normal(), sampler="hmc", **plain)
    yield sk.sharpen(sk.sample(normal(), **ready), seed=1, moves=400)
    yield sk.sample(normal(), sampler="hmc", max_calls=150, **few, **{**plain, "draws": None})


@pytest.mark.long
def test_an_event_that_no_draw_saw_has_an_upper_bound():
    """The rule of three: 3 over the effective draws, and the same below one."""
    for run in runs_that_see_no_event():
        n = run.ess().min()
        never, always = (
            run.expectation(lambda q, sign=sign: float(sign * (q[0] - 9.0) > 0.0))
            for sign in (1.0, -1.0)
        )
        assert (never.value, always.value) == (0.0, 1.0)
        assert never.interval()[1] == pytest.approx(3.0 / n, rel=1e-3)
        assert always.interval()[0] == pytest.approx(1.0 - 3.0 / n, rel=1e-3)
        assert never.effective == pytest.approx(n)
        assert not run.verdict.named("heavy_tails")


def extended(tmp_path, **options):
    options |= {"seed": 1, "progress": False, "path": tmp_path / "run"}
    return sk.sample(normal(), sampler="hmc", **options)


def test_an_extension_draws_more_though_a_goal_was_reached(tmp_path):
    run = extended(tmp_path, budget=sk.Budget(target_rhat=1.2, target_mcse=0.5))
    assert run.stopped in ("target_rhat", "target_mcse")
    longer = run.extend(50)
    assert longer.draws.shape[1] == run.draws.shape[1] + 50
    np.testing.assert_array_equal(longer.draws[:, : run.draws.shape[1]], run.draws)
    # a goal that is given again holds
    assert longer.extend(1000, target_ess=100.0).stopped == "target_ess"


def test_an_extension_says_which_limit_leaves_no_room(tmp_path):
    run = extended(tmp_path, max_calls=2500)
    assert run.stopped == "max_calls"
    with pytest.raises(ConfigurationError, match="pass a larger max_calls too, or None"):
        run.extend(20)
    assert run.extend(20, max_calls=None).draws.shape[1] == run.draws.shape[1] + 20
