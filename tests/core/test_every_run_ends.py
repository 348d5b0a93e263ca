"""Runs end within their limits, with whatever they have, and say what they found."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import SamplingWarning, TargetError

QUIET = {"seed": 1, "progress": False}


class ReadClock:
    """A clock that goes on by so many seconds whenever it is read, and when a target says so."""

    def __init__(self, monkeypatch, by: float = 0.0) -> None:
        self.now, self._by = 0.0, by
        monkeypatch.setattr("time.perf_counter", self)

    def __call__(self) -> float:
        self.now += self._by
        return self.now


def sample_quietly(*args, **options):
    """Return a run whose verdict is looked at by the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        return sk.sample(*args, **options, **QUIET)


def finding(run, name):
    return next(each for each in run.verdict.findings if each.name == name)


# --- limits of time ---


def normal(dim):
    return sk.potential(
        value=lambda q: 0.5 * q @ q + 0.01 * np.sum(q**4),
        gradient=lambda q: q + 0.04 * q**3,
        dim=dim,
    )


@pytest.mark.parametrize("surrogate", ["additive", "quadratic", "gp"])
def test_fits_and_chains_on_a_surrogate_look_at_the_clock(monkeypatch, surrogate):
    clock = ReadClock(monkeypatch, by=1.0)
    run = sample_quietly(normal(3), surrogate=surrogate, explorer="rounds", max_seconds=400.0)
    assert run.stopped == "max_seconds"
    assert clock.now < 430.0  # it ends within a few readings: calls that are counted make two each
    assert run.total_calls < 200


def test_many_dimensions_end_in_time_with_what_there_is(monkeypatch):
    clock = ReadClock(monkeypatch, by=1.0)
    run = sample_quietly(normal(300), surrogate="quadratic", max_seconds=1200.0)
    assert run.stopped == "max_seconds"
    assert run.draws.shape[1] > 0
    assert clock.now < 1210.0


def dear(clock, dim):
    """Return a normal density of values alone, each of which takes a second."""

    def log_density(q):
        clock.now += 1.0
        return -0.5 * np.sum((q - 1.0) ** 2)

    return sk.potential(log_density=log_density, dim=dim)


def test_a_second_a_call_and_a_minute_give_draws(monkeypatch):
    clock = ReadClock(monkeypatch)
    run = sample_quietly(dear(clock, 4), max_seconds=60.0)
    assert run.stopped == "max_seconds"
    assert clock.now <= 64.0  # the batch of four in progress is waited for
    assert run.draws.shape[1] > 0
    assert run.verdict.warnings  # so few draws are not enough, whatever they are


def test_draws_that_the_target_has_not_checked_say_so_first(monkeypatch):
    clock = ReadClock(monkeypatch)
    with pytest.warns(SamplingWarning, match="the draws are not exact"):
        run = sk.sample(dear(clock, 2), max_seconds=30.0, **QUIET)
    assert run.unchecked is not None
    assert not run.exact
    assert run.verdict.findings[0].name == "unchecked"
    assert "max_seconds ended the run before its first draw" in run.verdict.findings[0].message
    assert "which are not exact" in repr(run)
    np.testing.assert_allclose(run.draws.mean(axis=(0, 1)), 1.0, atol=0.5)
    assert np.isnan(run.acceptance).all()


def test_a_warm_up_that_a_limit_ends_is_returned_and_marked():
    with pytest.warns(SamplingWarning, match="the draws are not exact"):
        run = sk.sample(normal(2), sampler="random-walk", warmup=1000, max_calls=400, **QUIET)
    assert (run.stopped, run.exact) == ("max_calls", False)
    assert run.draws.shape[1] == pytest.approx(50, abs=2)
    np.testing.assert_array_equal(run.draws, run.warmup.draws[:, -run.draws.shape[1] :])


# --- a limit of its own ---


def cliffs(q):
    """Return the log density of 1 / s on the real line, which no limit at 0 makes proper."""
    return -math.log(q[0]) if q[0] > 0 else -math.inf


def test_paths_that_are_far_too_long_end_at_a_default_limit():
    target = sk.potential(log_density=lambda q: -0.5 * q[0] ** 2, dim=1)
    long = {"n_steps": 400, "step_size": 0.01, "chains": 1, "warmup": 0}
    run = sample_quietly(target, **long)
    assert run.stopped == "default_max_calls"
    assert run.total_calls <= 50 * 1000
    assert "max_calls=math.inf" in finding(run, "stopped").message
    assert 0 < run.draws.shape[1] < 1000
    assert run.exact


@pytest.mark.long
def test_a_target_that_cannot_end_is_ended_at_a_default_limit_and_named():
    target = sk.potential(log_density=cliffs, dim=1)
    run = sample_quietly(target, chains=2, warmup=300, draws=10)
    assert run.stopped == "default_max_calls"
    assert run.total_calls < 200_000
    assert "max_calls=math.inf" in finding(run, "stopped").message
    assert finding(run, "improper").warns


@pytest.mark.long
def test_infinity_lifts_the_default_limit():
    target = sk.potential(log_density=lambda q: -0.5 * q[0] ** 2, dim=1)
    long = {"n_steps": 1000, "step_size": 0.01, "chains": 1, "warmup": 0, "draws": 60}
    run = sample_quietly(target, max_calls=math.inf, **long)
    assert run.stopped == "draws"
    assert run.total_calls > 50_000


# --- what a run found ---


def test_a_logarithm_without_a_prior_is_named_as_improper():
    for bounds in (sk.positive(), (0.0, math.inf)):
        target = sk.potential(log_density=lambda s: -math.log(s), parameters={"s": bounds})
        with pytest.raises(
            TargetError, match="does not depend on s: it is the same at any distance of its log"
        ):
            sk.sample(target, **QUIET)


@pytest.mark.parametrize("half", [True, False])
def test_a_density_that_does_not_fall_is_named(half):
    def gradient(q):
        return np.where(q < 0, 1.0, 0.0) if half else np.zeros_like(q)

    def log_density(q):
        return float(np.minimum(q, 0.0).sum()) if half else 0.0

    target = sk.potential(log_density=log_density, gradient=gradient, dim=1)
    run = sample_quietly(target, sampler="hmc", warmup=100, draws=200)
    assert run.endless == ("q[0]",)
    assert "no distribution has it" in finding(run, "improper").message


def test_heavy_tails_are_not_called_improper():
    target = sk.potential(
        log_density=lambda q: -1.2 * float(np.log1p(q[0] ** 2 / 1e-4)),
        gradient=lambda q: -2.4 * q / (1e-4 + q**2),
        dim=1,
    )
    run = sample_quietly(target, sampler="random-walk", warmup=20, draws=150)
    assert np.nan_to_num(run.rhat(), nan=9.0).max() > 1.1
    assert run.endless == ()


# --- steps and flat densities ---


def switch_point():
    """Return the times at which counts change, with rates before and after it."""
    rng = np.random.default_rng(0)
    years = np.arange(1900, 1930)
    counts = np.where(years < 1912, rng.poisson(3.1, 30), rng.poisson(1.1, 30))

    def log_density(early, late, year):
        rate = np.where(years < year, early, late)
        return float(np.sum(counts * np.log(rate) - rate)) - early - late

    parameters = {"early": sk.positive(), "late": sk.positive(), "year": (1900, 1929)}
    return sk.potential(log_density=log_density, parameters=parameters)


def test_steps_are_noticed_and_differences_left_aside(monkeypatch):
    ReadClock(monkeypatch, by=0.1)
    run = sample_quietly(switch_point(), max_seconds=300.0)
    assert "constant but for steps along year" in finding(run, "noticed").message
    assert "there is no gradient" in run.choice
    assert run.draws.shape[1] > 0


@pytest.mark.long
def test_a_switch_point_takes_no_more_calls_than_another_parameter():
    run = sample_quietly(switch_point(), draws=300)
    assert run.exact
    assert run.total_calls < 20_000
    assert abs(run["year"].mean() - 1912) < 4


def test_a_flat_density_in_a_box_is_sampled():
    def log_density(q):
        return 0.0 if -1.0 < q[0] < 1.0 else -math.inf

    run = sample_quietly(sk.potential(log_density=log_density, dim=1), max_calls=1000)
    assert run.exact
    assert np.abs(run.draws).max() < 1.0
    assert abs(run.draws.mean()) < 0.3
    assert run.draws.var() == pytest.approx(1.0 / 3.0, abs=0.12)
