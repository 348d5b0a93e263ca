"""Checks of explorers, driven as a run drives them."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit.cost.recording import RecordingPotential
from surrokit.interfaces import Evaluations, Start
from surrokit.modes import Modes
from surrokit.potentials import Potential
from surrokit.testing.measures.demands import demand, demand_close, demand_equal, demand_shape
from surrokit.testing.results import Check, Factory
from surrokit.testing.targets.densities import Banana
from surrokit.testing.targets.target import Target

N_CHAINS = 4
"""Chains of an exploration."""

WARMUP = 80
"""Length of the warm-up of which an exploration is part."""


def _target(explorer: Any) -> Target:
    target = Banana()
    demand(
        explorer.needs <= target.capabilities,
        f"the explorer needs {sorted(explorer.needs)}, which no target of the suite offers",
    )
    return target


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
        explorer = make()
        self.target = _target(explorer)
        self.recording = RecordingPotential(self.target, keep=True)
        start = Start(
            potential=self.recording,
            positions=self.target.sample(np.random.default_rng(1606), N_CHAINS),
            warmup=WARMUP,
            evaluated=self.recording.drain,
            fit=self.fit,
        )
        self.rows: list[Evaluations] = []
        self.steps = iter(explorer.explore(start, np.random.default_rng(1605)))
        self.n_steps = self.n_fits = 0
        self.begun = self.last = next(self.steps)

    def fit(self, rows: Evaluations) -> Potential | None:
        """Return a perfect surrogate that costs nothing; the first fit fails."""
        self.rows.append(rows)
        self.n_fits += 1
        return self.target if self.fits and self.n_fits > 1 else None

    def finish(self) -> None:
        """Explore until the explorer says that it is done.

        Raises
        ------
        AssertionError
            If it does not say so within the warm-up.
        """
        while not self.last.done:
            demand(
                self.n_steps < WARMUP,
                f"done is still False after {WARMUP} steps, the whole warm-up; an exploration "
                "must end within it",
            )
            last = next(self.steps, None)
            demand(last is not None, "the exploration ended without an item that is marked done")
            assert last is not None
            self.last = last
            self.n_steps += 1
            if last.rows is not None:
                self.rows.append(last.rows)


def check_exploration_begins(make: Factory) -> None:
    """The first item has the chains at their starts, and takes nothing from the generator."""
    explorer, rng = make(), np.random.default_rng(1)
    target = _target(explorer)
    recording = RecordingPotential(target, keep=True)
    at = target.sample(np.random.default_rng(2), N_CHAINS)
    start = Start(
        potential=recording,
        positions=at,
        warmup=WARMUP,
        evaluated=recording.drain,
        fit=lambda rows: None,  # noqa: ARG005
    )
    first = next(iter(explorer.explore(start, rng)))
    demand(not first.done, "the exploration is done before the first step")
    demand_equal(first.findings.chains.positions, at, "where the chains are at first")
    before = np.random.default_rng(1).bit_generator.state
    demand(rng.bit_generator.state == before, "the first item took numbers from the generator")


def check_exploration_ends(make: Factory) -> None:
    """An exploration takes at least one step and ends within the warm-up; nothing follows."""
    drive = Drive(make)
    drive.finish()
    demand(next(drive.steps, None) is None, "something follows an item that is marked done")


def check_findings(make: Factory) -> None:
    """The chains found have exact values, and the other findings are finite and usable."""
    drive = Drive(make)
    drive.finish()
    found = drive.last.findings
    demand_shape(found.chains.positions, (N_CHAINS, 2), "positions of the chains found")
    demand(
        np.isfinite(found.chains.values).all(), "exact values of the chains found are not finite"
    )
    demand_close(
        found.chains.values,
        drive.target.value(found.chains.positions),
        "values of the chains found",
    )
    if found.covariance is not None:
        demand_shape(found.covariance, (2, 2), "covariance found")
        least = np.linalg.eigvalsh(found.covariance)[0]
        demand(least > 0, f"the covariance found must be positive definite, eigenvalue {least:.3g}")
    if found.step_size is not None:
        demand(
            bool(np.isfinite(found.step_size)) and found.step_size > 0,
            f"the step size found must be positive and finite, got {found.step_size}",
        )
    if found.mode is not None:
        demand_shape(found.mode, (2,), "mode found")
        demand(np.isfinite(found.mode).all(), f"the mode found must be finite, got {found.mode}")
    if found.modes is not None:
        _check_modes(found.modes, drive.target)
    if found.acceptance is not None:
        demand(
            0.0 <= found.acceptance <= 1.0,
            f"the acceptance predicted must be a probability, got {found.acceptance}",
        )


def _check_modes(modes: Modes, target: Target) -> None:
    n = len(modes)
    demand_shape(modes.positions, (n, 2), "modes found")
    demand_shape(modes.covariances, (n, 2, 2), "covariances of the modes found")
    demand_close(modes.values, target.value(modes.positions), "potentials of the modes found")
    demand(bool((np.diff(modes.values) >= 0).all()), "the mode of least potential must come first")
    least = np.linalg.eigvalsh(modes.covariances).min()
    demand(least > 0, f"covariances of modes must be positive definite, eigenvalue {least:.3g}")
    demand(
        bool((modes.ended >= 1).all()),
        f"a mode is where a search ended, got {modes.ended.tolist()} searches",
    )


def check_training_rows(make: Factory) -> None:
    """There are rows to learn from, and each has the target's values at its position."""
    drive = Drive(make)
    drive.finish()
    rows = Evaluations.join(drive.rows, 2)
    demand(len(rows) > 0, "the exploration ended without a single row to learn from")
    with np.errstate(all="ignore"):  # paths that ran away were paid for as well
        values = drive.target.value(rows.positions)
        gradients = drive.target.gradient(rows.positions)
    demand_close(rows.values, values, "values of the training rows")
    if rows.gradients is not None:
        known = np.isfinite(rows.gradients).all(axis=1)
        demand_close(rows.gradients[known], gradients[known], "gradients of the training rows")


def check_all_is_taken(make: Factory) -> None:
    """After each step the explorer has asked for all evaluations that it has made."""
    drive = Drive(make)
    while not drive.last.done:
        drive.last = next(drive.steps)
        left = len(drive.recording.drain())
        demand(left == 0, f"{left} evaluations of a step were not asked for by evaluated()")


def check_fits_are_optional(make: Factory) -> None:
    """An exploration ends within the warm-up, with findings, even if no fit ever succeeds."""
    drive = Drive(make, fits=False)
    drive.finish()
    found = drive.last.findings
    demand(
        np.isfinite(found.chains.values).all(),
        "exact values of the chains found are not finite after fits that failed",
    )


def check_exploration_reproducible(make: Factory) -> None:
    """The same start and generator give the same exploration."""
    first, second = Drive(make), Drive(make)
    for drive in (first, second):
        drive.finish()
    demand(first.n_steps == second.n_steps, "two equal explorations took unequal numbers of steps")
    end, again = (drive.last.findings.chains.positions for drive in (first, second))
    demand_equal(again, end, "where two equal runs ended")
    rows, others = (Evaluations.join(drive.rows, 2) for drive in (first, second))
    demand_equal(others.positions, rows.positions, "training rows of two equal explorations")


CHECKS: tuple[Check, ...] = (
    Check(check_exploration_begins),
    Check(check_exploration_ends),
    Check(check_findings),
    Check(check_training_rows),
    Check(check_all_is_taken),
    Check(check_fits_are_optional),
    Check(check_exploration_reproducible),
)
"""For every explorer."""
