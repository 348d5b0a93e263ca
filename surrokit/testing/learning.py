"""Checks of explorers, driven as a run drives them, and of schedules.

Equal histories give equal decisions, and learning ends.
"""

from __future__ import annotations

from collections.abc import Iterable
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
from surrokit.testing.targets import Banana, usable

N_CHAINS, WARMUP = 4, 80
"""Chains of an exploration, and the length of the warm-up of which it is part."""


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
        explorer, self.rng, self.fits = make(), np.random.default_rng(1605), fits
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

    @classmethod
    def finished(cls, make: Factory, *, fits: bool = True) -> Drive:
        """Return a whole exploration, which ends within the warm-up."""
        drive = cls(make, fits=fits)
        while not drive.last.done:
            what = f"done is still False after {WARMUP} steps, the whole warm-up"
            demand(drive.n_steps < WARMUP, what)
            last = next(drive.steps, None)
            demand(last is not None, "the exploration ended without an item that is marked done")
            assert last is not None
            drive.last = last
            drive.n_steps += 1
            if last.rows is not None:
                drive.rows.append(last.rows)
        values = drive.last.findings.chains.values
        demand(np.isfinite(values).all(), "exact values of the chains found are not finite")
        return drive


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
    found, target = drive.last.findings, drive.target
    demand_shape(found.chains.positions, (N_CHAINS, 2), "positions of the chains found")
    exact = target.value(found.chains.positions)
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
    if (share := found.acceptance) is not None:
        demand(0 <= share <= 1, f"the acceptance predicted must be a probability, got {share}")
    if (modes := found.modes) is None:
        return
    demand_shape(modes.positions, (len(modes), 2), "modes found")
    demand_shape(modes.covariances, (len(modes), 2, 2), "covariances of the modes found")
    demand_close(modes.values, target.value(modes.positions), "potentials of the modes found")
    demand(bool((np.diff(modes.values) >= 0).all()), "the mode of least potential must come first")
    least = np.linalg.eigvalsh(modes.covariances).min()
    demand(least > 0, f"covariances of modes must be positive definite, eigenvalue {least:.3g}")
    searched = bool((modes.ended >= 1).all())
    demand(searched, f"a mode is where a search ended, got {modes.ended.tolist()} searches")


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


EXPLORED, BEFORE, KEPT = 60, 120, 6000
"""Iterations in the histories shown to a schedule: of exploration, before kept ones, and kept."""


def _moments(iterations: Iterable[int]) -> list[Moment]:
    """Return the moments of a run after some iterations; ``explored`` ends the exploration."""

    def moment(i: int) -> Moment:
        stage: Stage = "exploration" if i <= EXPLORED else "warmup" if i <= BEFORE else "sampling"
        return Moment(
            stage=stage,
            iteration=i,
            explored=i == EXPLORED,
            since_explored=max(i - EXPLORED, -1),
            draws_follow=i == BEFORE,
        )

    return [moment(i) for i in iterations]


def _history(kept: int = KEPT) -> list[Moment]:
    return _moments(range(1, BEFORE + kept + 1))


def _decisions(schedule: Any, moments: list[Moment], seed: int) -> list[Decision]:
    rng = np.random.default_rng([1603, seed])
    return [schedule.decide(moment, rng) for moment in moments]


def _deployed(made: list[Decision]) -> int:
    return sum(decision.deploy for decision in made)


def _demand_frozen(decision: Decision, at: int, iteration: int) -> None:
    demand(
        decision.frozen and not decision.deploy,
        f"frozen at iteration {at}, and at iteration {iteration} frozen={decision.frozen}, "
        f"deploy={decision.deploy}; freeze for good, or say frozen=False",
    )


@check("schedule")
def check_decisions(make: Factory) -> None:
    """Decisions are records of truth values, the same for the same history and generator.

    A schedule keeps no memory.
    """
    moments, schedule = _history(), make()
    first = _decisions(make(), moments, 0)
    for i, decision in enumerate(first, 1):
        for name in ("observe", "deploy", "frozen", "derivatives"):
            value = getattr(decision, name)
            what = f"{name} must be True or False, got {value!r} at iteration {i}"
            demand(isinstance(value, bool | np.bool_), what)
    for one, which in ((make(), "another schedule"), (schedule, "it"), (schedule, "it again")):
        what = f"a schedule decided, and {which} decided differently on the same history"
        demand(_decisions(one, moments, 0) == first, f"{what}; it may have no memory")


@check("schedule")
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


@check("schedule")
def check_frozen_stays(make: Factory) -> None:
    """Once frozen, a schedule stays frozen and deploys nothing."""
    for seed in range(3):
        frozen_at = None
        for i, decision in enumerate(_decisions(make(), _history(), seed), 1):
            if frozen_at is not None:
                _demand_frozen(decision, frozen_at, i)
            frozen_at = i if decision.frozen and frozen_at is None else frozen_at


@check("schedule")
def check_frozen_far_on(make: Factory) -> None:
    """A schedule that is frozen when draws are kept deploys nothing at round numbers of them."""
    if not _decisions(make(), _history(1), 4)[-1].frozen:
        return
    rounded = [digit * 10**power for power in range(3, 13) for digit in (1, 2, 5)]
    begins = (0, EXPLORED, BEFORE)  # of the run, and of its phases
    far = _moments(sorted({at + n + i for at in begins for n in rounded for i in (-1, 0, 1)}))
    for moment, decision in zip(far, _decisions(make(), far, 4), strict=True):
        _demand_frozen(decision, BEFORE + 1, moment.iteration)


@check("schedule")
def check_learning_ends(make: Factory) -> None:
    """Deployments among the kept draws stop, or become rarer and rarer."""
    kept = 0
    for seed in range(3):
        made = _decisions(make(), _history(), seed)
        deployed = _deployed(made[BEFORE:])
        kept += deployed
        sound = deployed == 0 or not made[BEFORE - 1].frozen
        demand(sound, "kept iterations deploy surrogates although the schedule was frozen before")
        # even slow rates fall between these: (1 + t)^-0.1 to a quarter
        begins = (10**6, 10**12)
        stretches = [_moments(BEFORE + begin + i for i in range(KEPT)) for begin in begins]
        near, far = (_deployed(_decisions(make(), each, seed)) for each in stretches)
        what = f"{near} and {far} surrogates are deployed in {KEPT} iterations from 1e6 and 1e12 on"
        demand(far <= 0.8 * near, f"{what}; adaptation must stop, or its rate fall to zero")
    what = "nothing is deployed among the kept draws, but the schedule never says that it is frozen"
    demand(made[-1].frozen or kept > 0, what)
