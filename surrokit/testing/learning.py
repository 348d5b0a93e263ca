"""Checks of explorers, driven as a run drives them, and of schedules.

Equal histories give equal decisions, and learning ends.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from surrokit.cost.recording import RecordingPotential
from surrokit.interfaces import Decision, Evaluations, Moment, Stage, Start
from surrokit.potentials import Potential
from surrokit.testing.demands import (
    Factory,
    check,
    demand,
    demand_close,
    demand_equal,
    demand_shape,
)
from surrokit.testing.targets import Banana, Target, usable

N_EXPLORATION, N_WARMUP, N_SAMPLING = 60, 60, 6000
"""Iterations in the histories shown to a schedule; the last are kept ones."""

NEAR, FAR = 10**6, 10**12
"""Kept iterations at which two stretches of a very long run begin. Even slow rates fall between
them: (1 + t)^-0.1 to a quarter."""

FALLEN = 0.8
"""Largest ratio of deployments in the far stretch to those in the near one."""

N_CHAINS = 4
"""Chains of an exploration."""

WARMUP = 80
"""Length of the warm-up of which an exploration is part."""


class Drive:
    """The exploration of a run, on a target that records every exact call.

    Parameters
    ----------
    make
        Makes the explorer.
    fits
        Whether fits of a surrogate succeed after the first.
    """

    def __init__(self, make: Factory, *, fits: bool = True) -> None:
        self.fits = fits
        explorer, self.rng = make(), np.random.default_rng(1605)
        (self.target,) = usable(explorer, Banana())
        self.recording = RecordingPotential(self.target, keep=True)
        self.start = Start(
            potential=self.recording,
            positions=self.target.sample(np.random.default_rng(1606), N_CHAINS),
            warmup=WARMUP,
            evaluated=self.recording.drain,
            fit=self.fit,
        )
        self.rows: list[Evaluations] = []
        self.steps = iter(explorer.explore(self.start, self.rng))
        self.n_steps = self.n_fits = 0
        self.last = next(self.steps)

    def fit(self, rows: Evaluations) -> Potential | None:
        """Return a perfect surrogate that costs nothing; the first fit fails."""
        self.rows.append(rows)
        self.n_fits += 1
        return self.target if self.fits and self.n_fits > 1 else None

    def finish(self) -> None:
        """Explore until the explorer says, within the warm-up, that it is done."""
        while not self.last.done:
            ended = f"done is still False after {WARMUP} steps, the whole warm-up"
            demand(self.n_steps < WARMUP, f"{ended}; an exploration must end within it")
            last = next(self.steps, None)
            demand(last is not None, "the exploration ended without an item that is marked done")
            assert last is not None
            self.last = last
            self.n_steps += 1
            if last.rows is not None:
                self.rows.append(last.rows)

    @classmethod
    def finished(cls, make: Factory, *, fits: bool = True) -> Drive:
        """Return a whole exploration."""
        found = cls(make, fits=fits)
        found.finish()
        values = found.last.findings.chains.values
        demand(np.isfinite(values).all(), "exact values of the chains found are not finite")
        return found


@check("explorer")
def check_exploration_begins(make: Factory) -> None:
    """The first item has the chains at their starts, and takes nothing from the generator."""
    drive = Drive(make)
    demand(not drive.last.done, "the exploration is done before the first step")
    at = drive.start.positions
    demand_equal(drive.last.findings.chains.positions, at, "where the chains are at first")
    before = np.random.default_rng(1605).bit_generator.state
    unused = drive.rng.bit_generator.state == before
    demand(unused, "the first item took numbers from the generator")


@check("explorer")
def check_exploration_ends(make: Factory) -> None:
    """An exploration takes at least one step and ends within the warm-up; nothing follows."""
    drive = Drive.finished(make)
    demand(next(drive.steps, None) is None, "something follows an item that is marked done")


@check("explorer")
def check_findings(make: Factory) -> None:
    """The chains found have exact values, and the other findings are finite and usable."""
    drive = Drive.finished(make)
    found = drive.last.findings
    demand_shape(found.chains.positions, (N_CHAINS, 2), "positions of the chains found")
    exact = drive.target.value(found.chains.positions)
    demand_close(found.chains.values, exact, "values of the chains found")
    if found.covariance is not None:
        demand_shape(found.covariance, (2, 2), "covariance found")
        least = np.linalg.eigvalsh(found.covariance)[0]
        demand(least > 0, f"the covariance found must be positive definite, eigenvalue {least:.3g}")
    if (step := found.step_size) is not None:
        positive = bool(np.isfinite(step)) and step > 0
        demand(positive, f"the step size found must be positive and finite, got {step}")
    if found.mode is not None:
        demand_shape(found.mode, (2,), "mode found")
        demand(np.isfinite(found.mode).all(), f"the mode found must be finite, got {found.mode}")
    if found.modes is not None:
        _check_modes(found.modes, drive.target)
    if (share := found.acceptance) is not None:
        demand(0 <= share <= 1, f"the acceptance predicted must be a probability, got {share}")


def _check_modes(modes: Any, target: Target) -> None:
    n = len(modes)
    demand_shape(modes.positions, (n, 2), "modes found")
    demand_shape(modes.covariances, (n, 2, 2), "covariances of the modes found")
    demand_close(modes.values, target.value(modes.positions), "potentials of the modes found")
    demand(bool((np.diff(modes.values) >= 0).all()), "the mode of least potential must come first")
    least = np.linalg.eigvalsh(modes.covariances).min()
    demand(least > 0, f"covariances of modes must be positive definite, eigenvalue {least:.3g}")
    searched, ended = bool((modes.ended >= 1).all()), modes.ended.tolist()
    demand(searched, f"a mode is where a search ended, got {ended} searches")


@check("explorer")
def check_training_rows(make: Factory) -> None:
    """There are rows to learn from, and each has the target's values at its position."""
    drive = Drive.finished(make)
    rows = Evaluations.join(drive.rows, 2)
    demand(len(rows) > 0, "the exploration ended without a single row to learn from")
    with np.errstate(all="ignore"):  # paths that ran away were paid for as well
        values = drive.target.value(rows.positions)
        gradients = drive.target.gradient(rows.positions)
    demand_close(rows.values, values, "values of the training rows")
    if rows.gradients is not None:
        known = np.isfinite(rows.gradients).all(axis=1)
        demand_close(rows.gradients[known], gradients[known], "gradients of the training rows")


@check("explorer")
def check_all_is_taken(make: Factory) -> None:
    """After each step the explorer has asked for all evaluations that it has made."""
    drive = Drive(make)
    while not drive.last.done:
        drive.last = next(drive.steps)
        left = len(drive.recording.drain())
        demand(left == 0, f"{left} evaluations of a step were not asked for by evaluated()")


@check("explorer")
def check_fits_are_optional(make: Factory) -> None:
    """An exploration ends within the warm-up, with findings, even if no fit ever succeeds."""
    Drive.finished(make, fits=False)


@check("explorer")
def check_exploration_reproducible(make: Factory) -> None:
    """The same start and generator give the same exploration."""
    first, second = Drive.finished(make), Drive.finished(make)
    demand(first.n_steps == second.n_steps, "two equal explorations took unequal numbers of steps")
    end, again = (drive.last.findings.chains.positions for drive in (first, second))
    demand_equal(again, end, "where two equal runs ended")
    rows, others = (Evaluations.join(drive.rows, 2) for drive in (first, second))
    demand_equal(others.positions, rows.positions, "training rows of two equal explorations")


of_schedules = partial(check, "schedule")


def _moment(stage: Stage, iteration: int) -> Moment:
    return Moment(
        stage=stage,
        iteration=iteration,
        explored=iteration == N_EXPLORATION,
        since_explored=max(iteration - N_EXPLORATION, -1),
        draws_follow=stage == "warmup" and iteration == N_EXPLORATION + N_WARMUP,
    )


def _history(n_sampling: int = N_SAMPLING) -> list[Moment]:
    """Return the moments of a run, in order; ``explored`` is true at the end of exploration."""
    stages: list[Stage] = ["exploration"] * N_EXPLORATION
    stages += ["warmup"] * N_WARMUP
    stages += ["sampling"] * n_sampling
    return [_moment(stage, i) for i, stage in enumerate(stages, 1)]


def _stretch(begin: int) -> list[Moment]:
    """Return the moments of kept iterations, after ``begin`` others."""
    first = N_EXPLORATION + N_WARMUP + begin
    return [_moment("sampling", first + i) for i in range(N_SAMPLING)]


def _round_moments() -> list[Moment]:
    """Return moments next to round numbers of iterations, of the run and since its phases."""
    rounded = [digit * 10**power for power in range(3, 13) for digit in (1, 2, 5)]
    begins = (0, N_EXPLORATION, N_EXPLORATION + N_WARMUP)
    iterations = {begin + n + i for begin in begins for n in rounded for i in (-1, 0, 1)}
    return [_moment("sampling", iteration) for iteration in sorted(iterations)]


def _decisions(schedule: Any, moments: list[Moment], seed: int) -> list[Decision]:
    """Return the decisions of a schedule along a history."""
    rng = np.random.default_rng([1603, seed])
    return [schedule.decide(moment, rng) for moment in moments]


def _demand_frozen(decision: Decision, at: int, iteration: int) -> None:
    demand(
        decision.frozen and not decision.deploy,
        f"frozen at iteration {at}, and at iteration {iteration} frozen={decision.frozen}, "
        f"deploy={decision.deploy}: kept draws would depend on their past; freeze for good, or "
        "say frozen=False",
    )


@of_schedules()
def check_decisions(make: Factory) -> None:
    """Decisions are records of truth values."""
    for i, decision in enumerate(_decisions(make(), _history(), 0), 1):
        for name in ("observe", "deploy", "frozen", "derivatives"):
            value = getattr(decision, name)
            what = f"{name} must be True or False, got {value!r} at iteration {i}"
            demand(isinstance(value, bool | np.bool_), what)


@of_schedules()
def check_same_history(make: Factory) -> None:
    """The same history and generator give the same decisions; a schedule keeps no memory."""
    moments, schedule = _history(n_sampling=200), make()
    first = _decisions(make(), moments, 1)
    for one, which in ((make(), "another schedule"), (schedule, "it"), (schedule, "it again")):
        demand(
            _decisions(one, moments, 1) == first,
            f"a schedule decided, and {which} decided differently on the same history; it may "
            "have no memory",
        )


@of_schedules()
def check_learns(make: Factory) -> None:
    """``learns`` and ``deployment_rate`` agree with what is deployed, after it was observed.

    ``exploration`` is a positive number of rows, or None.
    """
    schedule, made = make(), _decisions(make(), _history(), 2)
    learns, rate = schedule.learns, schedule.deployment_rate
    deploys = [i for i, decision in enumerate(made) if decision.deploy]
    n = len(deploys)
    demand(bool(n) == bool(learns), f"learns is {learns}, but {n} of {len(made)} iterations deploy")
    observed = not deploys or any(decision.observe for decision in made[: deploys[0] + 1])
    demand(observed, "a surrogate is deployed, though nothing was observed")
    demand(0 <= rate <= 1, f"deployment_rate must be from 0 to 1, got {rate!r}")
    demand(rate > 0 or n <= 1, f"deployment_rate is 0, but {n} surrogates are deployed")
    for gradients in (False, True):
        rows = schedule.exploration(gradients)
        right = rows is None or (isinstance(rows, int) and rows >= 1)
        what = f"exploration({gradients}) must be None or a whole number of at least 1"
        demand(right, f"{what}, got {rows!r}")


@of_schedules()
def check_frozen_stays(make: Factory) -> None:
    """Once frozen, a schedule stays frozen and deploys nothing."""
    for seed in range(3):
        frozen_at = None
        for i, decision in enumerate(_decisions(make(), _history(), seed), 1):
            if frozen_at is not None:
                _demand_frozen(decision, frozen_at, i)
            frozen_at = i if decision.frozen and frozen_at is None else frozen_at


@of_schedules()
def check_frozen_far_on(make: Factory) -> None:
    """A schedule that is frozen when draws are kept deploys nothing at round numbers of them."""
    moments = _history(n_sampling=1)
    if not _decisions(make(), moments, 4)[-1].frozen:
        return
    far = _round_moments()
    for moment, decision in zip(far, _decisions(make(), far, 4), strict=True):
        _demand_frozen(decision, moments[-1].iteration, moment.iteration)


@of_schedules()
def check_learning_ends(make: Factory) -> None:
    """Deployments among the kept draws stop, or become rarer and rarer."""
    first = N_EXPLORATION + N_WARMUP
    kept = 0
    for seed in range(3):
        made = _decisions(make(), _history(), seed)
        deployed = _deployed(made[first:])
        kept += deployed
        sound = deployed == 0 or not made[first - 1].frozen
        demand(sound, "kept iterations deploy surrogates although the schedule was frozen before")
        near, far = (_deployed(_decisions(make(), _stretch(begin), seed)) for begin in (NEAR, FAR))
        demand(
            far <= FALLEN * near,
            f"{near} surrogates are deployed in {N_SAMPLING} iterations from kept iteration "
            f"{NEAR:.0e} on and {far} in as many from {FAR:.0e} on; adaptation must stop, or its "
            "rate fall to zero",
        )
    demand(
        made[-1].frozen or kept > 0,
        "nothing is deployed among the kept draws, but the schedule never says that it is frozen",
    )


def _deployed(made: list[Decision]) -> int:
    return sum(decision.deploy for decision in made)
