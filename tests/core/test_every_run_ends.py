"""Runs end within their limits, with whatever they have, and say what they found."""

from __future__ import annotations

import math
import re
import types
import warnings

import attrs
import numpy as np
import pytest
from scipy.optimize import minimize

import surrokit as sk
from surrokit.errors import SamplingWarning, TargetError
from surrokit.run.approximate import of_evaluations
from surrokit.targets.bounds import transform_of

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


def dear(clock, dim):
    """Return a normal density of values alone, each of which takes a second."""

    def log_density(q):
        clock.now += 1.0
        return -0.5 * np.sum((q - 1.0) ** 2)

    return sk.potential(log_density=log_density, dim=dim)


@pytest.mark.long
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


def decay(with_jacobian):
    times = np.linspace(0.0, 2.0, 6)

    def jacobian(q):
        return np.stack([np.exp(-q[1] * times), -q[0] * times * np.exp(-q[1] * times)], axis=1)

    return sk.forward_potential(
        lambda q: q[0] * np.exp(-q[1] * times),
        jacobian if with_jacobian else None,
        data=[2.13, 1.49, 1.24, 0.95, 0.74, 0.55],
        noise_sd=0.1,
        prior=sk.gaussian_prior(0.0, 2.0),
        dim=2,
    )


def values(q):
    return 0.5 * float(q @ q)


@pytest.mark.parametrize("calls", [4, 10])
@pytest.mark.parametrize(
    ("target", "options", "what"),
    [
        (sk.potential(values, lambda q: q, dim=3), {}, "normal approximation|surrogate"),
        (sk.potential(values, dim=3), {}, "best positions|surrogate"),
        (sk.potential(values, lambda q: q, dim=3), {"sampler": "hmc"}, "normal approximation"),
        (sk.potential(values, dim=3), {"sampler": "random-walk"}, "best positions"),
        (decay(True), {}, "normal approximation|surrogate"),
        (decay(False), {}, "best positions|surrogate"),
    ],
)
def test_fewer_calls_than_a_search_takes_still_give_what_is_known(target, options, what, calls):
    run = sample_quietly(target, max_calls=calls, **options)
    assert run.total_calls <= calls
    assert run.draws.shape[1] > 0
    assert np.isfinite(run.draws).all()
    assert run.verdict.findings[0].name == "unchecked"
    assert re.search(what, run.unchecked)
    assert "Raise max_calls" in run.verdict.findings[0].message


def test_a_normal_approximation_learns_scales_from_the_gradients_so_far(rng):
    """Those of a search by L-BFGS, of a normal whose scales differ by a hundred."""
    scales, places = np.geomspace(0.1, 10.0, 20), []

    def both(q):
        places.append(q.copy())
        return 0.5 * np.sum(((q - 1.0) / scales) ** 2), (q - 1.0) / scales**2

    minimize(both, rng.standard_normal(20), jac=True, method="L-BFGS-B")
    results = [both(q) for q in places[:]]
    rows = sk.Evaluations(
        positions=np.array(places[: len(results)]),
        values=np.array([value for value, _ in results]),
        gradients=np.array([gradient for _, gradient in results]),
    )
    found = of_evaluations(rows, 4, transform_of(sk.potential(values, dim=20)), rng)
    draws = found.kept.positions().reshape(-1, 20)
    assert "normal approximation" in found.what
    widths = draws.std(axis=0) / scales  # the narrowest are known best
    np.testing.assert_allclose(widths[:3], 1.0, atol=0.1)
    np.testing.assert_allclose(widths[:8], 1.0, atol=0.5)
    np.testing.assert_allclose((draws.mean(axis=0) - 1.0)[:8] / scales[:8], 0.0, atol=0.2)


def test_a_run_that_has_evaluated_little_goes_on_when_resumed(tmp_path):
    evaluated = []

    def gradient(q):
        evaluated.append(q)
        return q

    target, path = sk.potential(values, gradient, dim=2), tmp_path / "run.surrokit"
    run = sample_quietly(target, sampler="hmc", warmup=30, draws=20, path=path, max_calls=6)
    assert run.unchecked is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        resumed = sk.resume(path, target, max_calls=math.inf, progress=False)
    assert resumed.exact
    assert resumed.draws.shape == (4, 20, 2)
    assert len(evaluated) == resumed.calls["gradient"]  # none again


def test_a_limit_before_any_finite_value_is_an_error():
    def fail(q):
        raise OSError("no mesh")

    target = sk.potential(fail, dim=2)
    message = (
        r"max_calls ended the run after 4 exact calls.*finite at none.*no mesh.*\. Start inside"
    )
    with pytest.raises(TargetError, match=message) as caught:
        sk.sample(target, max_calls=5, **QUIET)
    assert caught.value.partial.draws.shape == (4, 0, 2)
    run = sample_quietly(sk.potential(values, dim=2), max_calls=3)
    assert "not even the starts of the chains" in run.verdict.findings[0].message


# --- a limit of its own ---


def cliffs(q):
    """Return the log density of 1 / s on the real line, which no limit at 0 makes proper."""
    return -math.log(q[0]) if q[0] > 0 else -math.inf


@pytest.mark.long
def test_paths_that_are_far_too_long_end_at_a_default_limit():
    target = sk.potential(log_density=lambda q: -0.5 * q[0] ** 2, gradient="differences", dim=1)
    policy = sk.make("policy", "automatic")

    def choose(*told):
        long = ("hmc", {"step_size": 0.01, "n_steps": 400})
        return attrs.evolve(policy.choose(*told), sampler=long)

    chosen = types.SimpleNamespace(choose=choose, plain=policy.plain)
    run = sample_quietly(target, sampler=chosen, chains=1, warmup=0)
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


@pytest.mark.parametrize("outside", [pytest.param(-math.inf, marks=pytest.mark.long), -1e30])
def test_six_hundred_calls_give_exact_draws_where_mass_ends_at_an_edge(outside):
    """As for emcee: a density that is normal inside bounds that only its function knows."""

    def log_density(q):
        inside = 0.0 < q[0] < 3.0 and -1.0 < q[1] < 1.0
        return -0.5 * q[0] ** 2 - 0.5 * ((q[1] - 0.5) / 0.5) ** 2 if inside else outside

    run = sample_quietly(sk.potential(log_density=log_density, dim=2), max_calls=600)
    assert run.exact
    assert run.draws.shape[1] >= 50
    np.testing.assert_allclose(run.draws.mean(axis=(0, 1)), [0.791, 0.359], atol=0.4)


# --- what a run found ---


def test_a_logarithm_without_a_prior_is_named_as_improper():
    for bounds in (sk.positive(), (0.0, math.inf)):
        target = sk.potential(log_density=lambda s: -math.log(s), parameters={"s": bounds})
        with pytest.raises(
            TargetError, match="the same at any distance along s, and no distribution"
        ):
            sk.sample(target, **QUIET)


@pytest.mark.parametrize("half", [True, False])
def test_a_density_that_does_not_fall_is_named(half):
    def gradient(q):
        return np.where(q < 0, 1.0, 0.0) if half else np.zeros_like(q)

    def log_density(q):
        return float(np.minimum(q, 0.0).sum()) if half else 0.0

    target = sk.potential(log_density=log_density, gradient=gradient, dim=1)
    # a search would see at once that it is flat both ways
    sampler = "hmc" if half else "random-walk"
    run = sample_quietly(target, sampler=sampler, warmup=100, draws=200)
    assert run.endless == ("q[0]",)
    assert "it has no finite integral" in finding(run, "improper").message


RIDGES = [
    ({"a": sk.real(), "b": sk.real()}, lambda a, b: -0.5 * (a - b) ** 2, "a \\+ b"),
    (
        {"a": sk.real(), "b": sk.real(), "c": sk.real()},
        lambda a, b, c: -0.5 * (a + b - 3.0) ** 2 - 0.5 * (b - 2.0 * c) ** 2,
        "a - b - 0.5 c",
    ),
    (
        {"x": sk.positive(), "a": sk.real(), "b": sk.real()},
        lambda x, a, b: -x - 0.5 * (2.0 * a + b - x) ** 2,
        "a - 2 b|0.5 a - b",
    ),
]


@pytest.mark.parametrize(("parameters", "log_density", "direction"), RIDGES)
def test_a_ridge_off_the_axes_is_named_by_its_direction(parameters, log_density, direction):
    target = sk.potential(log_density=log_density, parameters=parameters)
    with pytest.raises(TargetError, match=f"same at any distance along ({direction}), and no"):
        sk.sample(target, **QUIET)


COLLINEAR = np.vander(np.linspace(-1.0, 2.0, 9), 2)


@pytest.mark.parametrize(
    ("design", "direction"),
    [
        (np.array([[0.0]]), "q[0]"),
        (np.array([[1.0, -1.0]]), "q[0] + q[1]"),
        (np.array([[1.0, 1.0, 0.0], [0.0, 1.0, -2.0]]), "q[0] - q[1] - 0.5 q[2]"),
        (np.c_[COLLINEAR, COLLINEAR @ [2.37, 0.4]], "q[0] + 0.169 q[1] - 0.422 q[2]"),
    ],
)
@pytest.mark.parametrize("surrogate", [None, "additive"])
def test_a_ridge_is_named_by_the_gradients_of_a_search(design, direction, surrogate):
    calls, dim = [], design.shape[1]

    def target(prior):
        def value(q):
            calls.append(q)
            return 0.5 * np.sum((design @ q - 1.0) ** 2) + 0.5 * prior * q @ q

        return sk.potential(value, lambda q: design.T @ (design @ q - 1.0) + prior * q, dim=dim)

    with pytest.raises(TargetError, match=re.escape(f"any distance along {direction}, and no")):
        sk.sample(target(0.0), surrogate=surrogate, **QUIET)
    assert len(calls) < 50
    # a wide prior closes it
    run = sample_quietly(target(1e-8), sampler="hmc", warmup=20, draws=2)
    assert run.endless == ()


def test_chains_on_a_ridge_name_its_direction():
    target = sk.potential(lambda q: 0.5 * (q[0] - q[1]) ** 2, dim=2)
    run = sample_quietly(target, sampler="random-walk", warmup=200, draws=300)
    assert run.endless == ("q[0] + q[1]",)
    assert "does not decay along q[0] + q[1]" in finding(run, "improper").message


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


@pytest.mark.long
def test_steps_are_noticed_and_differences_left_aside(monkeypatch):
    ReadClock(monkeypatch, by=0.1)
    run = sample_quietly(switch_point(), max_seconds=300.0)
    assert "constant but for steps along year" in finding(run, "noticed").message
    assert "there is no gradient" in run.choice
    assert run.draws.shape[1] > 0


@pytest.mark.long
def test_a_flat_density_in_a_box_is_sampled():
    def log_density(q):
        return 0.0 if -1.0 < q[0] < 1.0 else -math.inf

    run = sample_quietly(sk.potential(log_density=log_density, dim=1), max_calls=1000)
    assert run.exact
    assert np.abs(run.draws).max() < 1.0
    assert abs(run.draws.mean()) < 0.3
    assert run.draws.var() == pytest.approx(1.0 / 3.0, abs=0.12)
