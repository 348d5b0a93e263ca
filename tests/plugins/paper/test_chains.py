"""What experiments measure with: processor time, ends of runs, marginals, fits outside a run."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

import surrokit as sk
from surrokit.diagnostics import effective_sample_size
from surrokit.progress import IterationInfo
from surrokit_paper.chains import Clock, largest_by_chance, marginals, one_chain
from surrokit_paper.figure_7 import Figure7
from surrokit_paper.methods import Method

HMC = {"sampler": ("hmc", {"metric": "identity", "step_size": 0.5, "n_steps": 3})}


@pytest.mark.parametrize("settings", [{"warmup": 30, "sampler": "hmc"}, {"warmup": 0, **HMC}])
def test_only_the_kept_draws_are_timed(monkeypatch, settings):
    clock = iter(range(1000))
    timed = Clock()
    monkeypatch.setattr(time, "process_time", lambda: next(clock))
    sk.sample("gaussian", draws=20, seed=1, progress=False, observers=[timed], **settings)
    assert timed.sampling == 20


def test_training_after_the_warm_up_is_not_in_the_seconds_of_sampling(monkeypatch):
    clock = [0.0]

    class Tick(Clock):
        def surrokit_surrogate_deployed(self, **told):
            clock[0] += 1000.0  # as if the fit had taken so long
            super().surrokit_surrogate_deployed(**told)

        def surrokit_transition_done(self, **told):
            clock[0] += 1.0
            super().surrokit_transition_done(**told)

    monkeypatch.setattr(time, "process_time", lambda: clock[0])
    timed = Tick()
    sizes = {"warmup": 40, "draws": 15, "chains": 1, "seed": 1, "progress": False}
    explorer = ("sampler", {"iterations": 40})
    sk.sample("gaussian", surrogate="additive", explorer=explorer, observers=[timed], **sizes)
    assert (clock[0] >= 1000.0, timed.sampling) == (True, 15.0)


def paid(value, gradient, jacobian=0):
    calls = {"value": value, "gradient": gradient, "forward": 1, "vjp": 0, "jacobian": jacobian}
    return IterationInfo(stage="sampling", iteration=1, step=None, calls=calls, seconds=9.0)


def test_a_run_ends_when_its_time_is_over_or_enough_is_paid(monkeypatch):
    now = iter([0.0, 10.0, 11.5, 12.5, 13.0, 13.0, 13.0])
    monkeypatch.setattr(time, "process_time", lambda: next(now))
    stop = Clock(seconds=2.0)
    stop.surrokit_run_started()
    stop.surrokit_transition_done(info=paid(50, 50))
    assert not stop.reached
    with pytest.raises(KeyboardInterrupt):
        stop.surrokit_transition_done(info=paid(50, 50))
    assert (stop.reached, stop.elapsed) == (True, [1.5, 2.5])
    stop = Clock(evaluations=10)
    stop.surrokit_transition_done(info=paid(4, 2, 2))
    with pytest.raises(KeyboardInterrupt):
        stop.surrokit_transition_done(info=paid(4, 2, 3))


def test_a_chain_that_somebody_else_ends_is_no_result():
    class AtTwelve(Clock):
        def surrokit_transition_done(self, info, **_):
            if info.iteration == 12:
                raise KeyboardInterrupt

    target, problem = sk.make("potential", "gaussian"), Figure7().problem("simulated")
    with pytest.raises(KeyboardInterrupt):
        one_chain(target, problem, np.zeros(2), 1, clock=AtTwelve(seconds=9), warmup=0, draws=20)
    run = one_chain(target, problem, np.zeros(2), 1, clock=Clock(evaluations=30), draws=99)
    assert len(run.draws[0]) < 99


# --- marginals ---


def test_independent_draws_have_the_errors_of_the_textbook():
    draws = np.random.default_rng(1).normal([1.0, -2.0], [0.5, 3.0], (2, 4000, 2))
    found = marginals(draws)
    assert_allclose(found["mean"], draws.reshape(-1, 2).mean(axis=0))
    assert_allclose(found["sd"], draws.reshape(-1, 2).std(axis=0, ddof=1))
    assert_allclose(found["mean_error"], found["sd"] / 8000**0.5, rtol=0.1)
    assert_allclose(found["sd_error"], found["sd"] / 16_000**0.5, rtol=0.1)
    assert_allclose(found["ess_bulk"], effective_sample_size(draws, "bulk"))
    stuck = marginals(np.ones((1, 50, 1)))
    assert np.isnan([stuck["mean_error"], stuck["sd_error"]]).all()


def test_errors_are_as_large_as_the_scatter_of_chains_that_depend_on_their_past():
    # x' = -0.5 x + noise: means are better known than from independent draws, squares worse
    rng = np.random.default_rng(1)
    steps = [rng.standard_normal((40, 8))]
    for _ in range(299):
        steps.append(-0.5 * steps[-1] + 0.75**0.5 * rng.standard_normal((40, 8)))
    found = [marginals(draws[None]) for draws in np.stack(steps, axis=1)]
    for values, errors in (("mean", "mean_error"), ("sd", "sd_error")):
        scatter = np.std([one[values] for one in found], axis=0, ddof=1)
        claimed = np.mean([one[errors] for one in found], axis=0)
        # 8 standard deviations, each of 40 chains: together good to 4 %
        assert 0.85 < (scatter / claimed).mean() < 1.15


def test_a_correlation_has_an_error_of_root_2_times_that_of_an_sd():
    draws = np.random.default_rng(1).standard_normal((400, 500, 2))
    scatter = np.std([np.corrcoef(chain.T)[0, 1] for chain in draws], ddof=1)
    one = marginals(draws[:1])
    assert_allclose((2.0 * np.prod(one["sd_error"] / one["sd"])) ** 0.5, scatter, rtol=0.15)


def test_what_chance_brings():
    assert_allclose(largest_by_chance(1, 0.95), norm.ppf(0.975))
    largest = np.abs(np.random.default_rng(1).standard_normal((20_000, 50))).max(axis=1)
    # 200 of 20000 expected above, 14 is one standard deviation: 4 of them, false alarm 6e-5
    assert abs((largest > largest_by_chance(50)).sum() - 200) < 56


# --- fits outside a run, and looks ---


def evaluations():
    positions = np.random.default_rng(2).standard_normal((40, 2))
    values = 0.5 * np.square(positions).sum(axis=1)
    return sk.Evaluations(positions=positions, values=values, gradients=positions)


@pytest.mark.parametrize("gradients", [False, True])
def test_a_surrogate_is_fitted_to_given_evaluations_and_knows_whether_it_gets_gradients(
    monkeypatch, gradients
):
    told, real = [], sk.make("surrogate", "additive")

    class Watched:
        def learner(self, problem, rng):
            told.append(problem.capabilities)
            return real.learner(problem, rng)

    monkeypatch.setattr(sk, "make", lambda kind, name, **settings: Watched())
    data = evaluations()
    fit = Method("ours", "ours", gradients=gradients).train(data, np.random.default_rng(1))
    assert_allclose(fit.potential.value(data.positions), data.values, atol=0.1)
    assert fit.seconds > 0
    assert told == [frozenset({"gradient"} if gradients else ())]
