"""The run's own kernel: tuned by what an exploration found, and prepared before it decides."""

from __future__ import annotations

import types

import attrs
import numpy as np
import pytest

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Start, Tuning
from surrokit.kernel.kernel import Moves
from surrokit.kernel.tuning import LAST, agree, windows
from surrokit.plan.plan import SETTLING
from surrokit.testing.targets import Gaussian

SMALL = {"chains": 3, "warmup": 40, "draws": 30, "seed": 4, "progress": False}


# --- the correction is prepared ---


@attrs.frozen(eq=False)
class Preparing:
    """Decides as another correction does, once it has been prepared."""

    inner: object
    log: list
    ready: bool = False

    @property
    def needs(self):
        return self.inner.needs

    def bind(self, potential):
        return attrs.evolve(self, inner=self.inner.bind(potential))

    def prepare(self, near):
        self.log.append(near)
        return attrs.evolve(self, ready=True)

    def start(self, positions, cache, source):
        return self.inner.start(positions, cache, source)

    def decide(self, state, proposal, rng):
        assert self.ready
        return self.inner.decide(state, proposal, rng)


@attrs.frozen(eq=False)
class Finding:
    """Explores as another explorer does, and finds what it is told."""

    inner: object
    found: dict
    fits: list = attrs.field(factory=list)
    wanted: int = 0

    needs = frozenset({"gradient"})

    def explore(self, start, rng):
        steps = iter(self.inner.explore(start, rng))
        yield next(steps)
        for each in steps:
            rows = each.rows
            if len(self.fits) < self.wanted:
                self.fits.append(start.fit(rows))
                rows = None
            found = attrs.evolve(each.findings, **self.found)
            yield attrs.evolve(each, findings=found, rows=rows)


def finding(wanted=0, iterations=10, **found):
    sampler = sk.make(
        "explorer", "sampler", sampler="hmc", correction="metropolis", iterations=iterations
    )
    return Finding(sampler, found, wanted=wanted)


def right():
    return sk.batch_surrogate(lambda evaluations, rng: Gaussian())


@pytest.mark.parametrize("safety", [None, sk.Safety(mix=0.5)], ids=["plain", "mixed"])
def test_a_correction_is_prepared_once_near_the_mode_before_it_decides(safety):
    log, mode = [], np.array([1.0, 2.0])
    run = sk.sample(
        Gaussian(),
        surrogate=right(),
        explorer=finding(mode=mode),
        correction=Preparing(sk.make("correction", "metropolis"), log),
        schedule=safety,
        **SMALL,
    )
    assert run.draws.shape == (3, 30, 2)
    (near,) = log
    np.testing.assert_array_equal(near, mode)


def test_without_a_mode_it_is_prepared_near_the_chains():
    log = []
    correction = Preparing(sk.make("correction", "metropolis"), log)
    run = sk.sample(
        Gaussian(), surrogate=right(), explorer=finding(), correction=correction, **SMALL
    )
    (near,) = log
    np.testing.assert_allclose(near, run.warmup.positions[:, 9].mean(axis=0))


def test_without_an_exploration_it_is_prepared_at_the_starts():
    log = []
    correction = Preparing(sk.make("correction", "metropolis"), log)
    initial = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 3.0]])
    sk.sample(Gaussian(), sampler="random-walk", correction=correction, initial=initial, **SMALL)
    (near,) = log
    np.testing.assert_allclose(near, [1.0, 1.0])


# --- fits for the explorer ---


def test_an_explorer_is_shown_the_fits_it_wants():
    explorer = finding(wanted=3)
    run = sk.sample(Gaussian(), surrogate=right(), explorer=explorer, **SMALL)
    assert len(explorer.fits) == 3
    assert all(isinstance(fit, Gaussian) for fit in explorer.fits)
    assert run.adaptation.deployments == (10,)


def test_rows_that_a_fit_was_made_of_are_observed_once():
    seen = []

    def fit(evaluations, rng):
        seen.append(len(evaluations))
        return Gaussian()

    explorer = finding(wanted=10)
    run = sk.sample(Gaussian(), surrogate=sk.batch_surrogate(fit), explorer=explorer, **SMALL)
    assert seen == sorted(set(seen))
    assert seen[-1] == run.adaptation.training_rows
    assert len(seen) == 10  # the last one is deployed as it is


def test_an_explorer_is_told_of_a_fit_that_failed():
    def fit(evaluations, rng):
        if len(evaluations) < 30:
            raise SurrogateFitError("too few")
        return Gaussian()

    explorer = finding(wanted=10)
    sk.sample(Gaussian(), surrogate=sk.batch_surrogate(fit), explorer=explorer, **SMALL)
    assert explorer.fits[0] is None
    assert isinstance(explorer.fits[-1], Gaussian)


# --- what was found ---


def test_a_sampler_that_is_tuned_already_keeps_its_covariance_and_only_settles():
    tuning = Tuning(step_size=0.3, covariance=np.diag([4.0, 9.0]))
    options = {**SMALL, "warmup": None}
    run = sk.sample(Gaussian(), surrogate=right(), explorer=finding(tuning=tuning), **options)
    assert len(run.warmup) == 10 + SETTLING
    np.testing.assert_allclose(run.sampler.tuning.covariance, np.diag([4.0, 9.0]))
    # all that there was to learn of the step size is in the warm-up after the exploration
    assert run.warmup.step_size[10] == pytest.approx(0.3)


def test_without_a_tuning_a_warm_up_of_open_length_is_a_thousand():
    options = {**SMALL, "warmup": None, "draws": 2}
    run = sk.sample(Gaussian(), surrogate=right(), explorer=finding(), **options)
    assert len(run.warmup) == 1000


@pytest.mark.parametrize("iterations", [39, 40])
def test_an_exploration_may_take_the_whole_of_a_given_warm_up(iterations):
    tuning = Tuning(step_size=0.3, covariance=np.eye(2))
    explorer = finding(iterations=iterations, tuning=tuning)
    run = sk.sample(Gaussian(), surrogate=right(), explorer=explorer, **SMALL)
    assert len(run.warmup) == 40
    assert run.kept.step_size[0] > 0


# --- caches after retuning ---


class Looking:
    """HMC that counts how often its caches are made."""

    def __init__(self, caches_metric):
        self.inner = sk.make("sampler", "hmc")
        self.caches_metric, self.looked = caches_metric, 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def bind(self, potential, tuning):
        kernel = self.inner.bind(potential, tuning)

        def cache(positions):
            self.looked += 1
            return kernel.cache(positions)

        known = {name: getattr(kernel, name) for name in ("potential", "step", "is_independent")}
        return types.SimpleNamespace(**known, propose=kernel.propose, cache=cache)


def run_of(sampler):
    sk.sample(Gaussian(), sampler=sampler, warmup=200, draws=5, seed=1, progress=False)


def exploration_of(sampler):
    settings = {"correction": "metropolis", "iterations": 200}
    rng, target = np.random.default_rng(1), RecordingPotential(Gaussian(), keep=True)
    start = Start(
        potential=target,
        positions=rng.standard_normal((4, 2)),
        warmup=200,
        evaluated=target.drain,
        fit=lambda rows: None,
    )
    *_, last = sk.make("explorer", "sampler", sampler=sampler, **settings).explore(start, rng)
    assert last.done


@pytest.mark.parametrize("moving", [run_of, exploration_of])
@pytest.mark.parametrize("caches_metric", [False, True])
def test_caches_of_a_metric_are_remade_whenever_the_covariance_changes(moving, caches_metric):
    sampler = Looking(caches_metric)
    moving(sampler)
    _, ends = windows(200, arrived=True)
    assert len(ends) > 1
    assert sampler.looked == 1 + caches_metric * len(ends)


# --- what an iteration forgets ---


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_what_is_forgotten_is_one_less_the_correlation(correlation):
    rng = np.random.default_rng(1)
    scale = np.array([[2.0, 0.0], [3.0, 0.5]])
    z = rng.standard_normal((4, 4000, 2))
    for i in range(1, z.shape[1]):
        z[:, i] = correlation * z[:, i - 1] + np.sqrt(1 - correlation**2) * z[:, i]
    moves = Moves(sk.make("sampler", "hmc"), sk.make("correction", "metropolis"), Gaussian(), 4)
    assert moves.forgotten(z) == 1.0  # nothing is known of the scales
    moves.covariance = scale @ scale.T
    # the standard error is 0.01; at five of them a false alarm has a chance of 10^-6
    assert moves.forgotten(z @ scale.T) == pytest.approx(1.0 - correlation, abs=0.05)
    moves.covariance = np.zeros((2, 2))
    assert moves.forgotten(z) == 1.0


# --- warm-ups that end once windows agree ---


@pytest.mark.parametrize("factor", [1.9, 1 / 1.9])
def test_covariances_agree_within_a_factor_in_every_direction(factor):
    one = np.array([[4.0, 1.9], [1.9, 1.0]])
    along = np.linalg.cholesky(one)
    assert agree(one, along @ np.diag([1.0, factor]) @ along.T)
    assert not agree(one, along @ np.diag([1.0, factor**2]) @ along.T)
    assert not agree(np.zeros((2, 2)), one)


@pytest.mark.parametrize("sampler", ["hmc", "nuts"])
def test_a_warm_up_of_open_length_ends_once_windows_agree(sampler):
    run = sk.sample(Gaussian(), sampler=sampler, draws=20, seed=1, progress=False)
    assert 75 + LAST <= run.warmup.draws.shape[1] < 150


def test_a_warm_up_goes_on_while_windows_do_not_agree(monkeypatch):
    monkeypatch.setattr("surrokit.kernel.tuning.agree", lambda *_: False)
    run = sk.sample(Gaussian(), sampler="hmc", draws=20, seed=1, progress=False)
    assert run.warmup.draws.shape[1] >= 400
