"""Checks of explorers, driven step by step as a run drives them."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit.contracts.explorer import Modes
from surrokit.cost.recording import RecordingPotential
from surrokit.interfaces import Evaluations
from surrokit.testing.measures.demands import demand, demand_close, demand_equal, demand_shape
from surrokit.testing.measures.plain import write_and_read
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
        self.target = _target(make())
        self.recording = RecordingPotential(self.target, keep=True)
        self.explorer = make().bind(self.recording)
        self.rng = np.random.default_rng(1605)
        positions = self.target.sample(np.random.default_rng(1606), N_CHAINS)
        self.state = self.explorer.start(positions, WARMUP)
        self.rows: list[Evaluations] = []
        self.n_steps = self.n_fits = 0
        self.recording.drain()

    def step(self) -> None:
        """Take one step, and learn from it."""
        self.state = self.explorer.step(self.state, self.rng)
        self.state, rows = self.explorer.learn(self.state, self.recording.drain())
        self.rows.append(rows)
        self.n_steps += 1
        if self.explorer.wants_fit(self.state):
            # the first fit fails; later ones are perfect, and free
            surrogate = self.target if self.fits and self.n_fits else None
            self.n_fits += 1
            self.state = self.explorer.inform(self.state, surrogate)

    def finish(self) -> None:
        """Step until the explorer says that it is done.

        Raises
        ------
        AssertionError
            If it does not say so within the warm-up.
        """
        while not self.explorer.done(self.state):
            demand(
                self.n_steps < WARMUP,
                f"done is still False after {WARMUP} steps, the whole warm-up; an exploration "
                "must end within it",
            )
            self.step()


def check_exploration_ends(make: Factory) -> None:
    """An exploration takes at least one step and ends within the warm-up; ``done`` stays true."""
    drive = Drive(make)
    demand(not drive.explorer.done(drive.state), "done is True before the first step")
    drive.finish()
    demand(drive.explorer.done(drive.state), "done does not give the same answer twice")


def check_findings(make: Factory) -> None:
    """The chains found have exact values, and the other findings are finite and usable."""
    drive = Drive(make)
    drive.finish()
    found = drive.explorer.findings(drive.state)
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


def check_nothing_unpaid(make: Factory) -> None:
    """Only ``start`` and ``step`` call the exact potential; learning, fits and findings do not."""
    drive = Drive(make)
    drive.finish()
    before = drive.recording.calls
    drive.explorer.done(drive.state)
    drive.explorer.findings(drive.state)
    state, _ = drive.explorer.learn(drive.state, Evaluations.empty(2))
    drive.explorer.wants_fit(state)
    drive.explorer.inform(state, None)
    drive.explorer.inform(state, drive.target)
    demand(
        drive.recording.calls == before,
        f"done, findings, learn, wants_fit and inform called the exact potential: {before} calls "
        f"became {drive.recording.calls}",
    )


def check_fits_are_optional(make: Factory) -> None:
    """An exploration ends within the warm-up, with findings, even if no fit ever succeeds."""
    drive = Drive(make, fits=False)
    drive.finish()
    found = drive.explorer.findings(drive.state)
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
    demand_equal(
        second.state.chains.positions, first.state.chains.positions, "where two equal runs ended"
    )
    rows, again = (Evaluations.join(drive.rows, 2) for drive in (first, second))
    demand_equal(again.positions, rows.positions, "training rows of two equal explorations")


def check_exploration_survives(make: Factory) -> None:
    """An exploration goes on unchanged when its state is written and read at every step."""
    whole, cut = Drive(make), Drive(make)
    whole.finish()
    while not cut.explorer.done(cut.state):
        demand(cut.n_steps < WARMUP, "an exploration taken up again does not end")
        cut.step()
        cut.state = write_and_read(cut.state)
        cut.explorer = make().bind(cut.recording)
    demand_equal(
        cut.state.chains.positions,
        whole.state.chains.positions,
        "where an exploration ended that was written down at every step, and one that was not",
    )
    demand(whole.n_steps == cut.n_steps, "an exploration taken up again has another length")


CHECKS: tuple[Check, ...] = (
    Check(check_exploration_ends),
    Check(check_findings),
    Check(check_training_rows),
    Check(check_nothing_unpaid),
    Check(check_fits_are_optional),
    Check(check_exploration_reproducible),
    Check(check_exploration_survives),
)
"""For every explorer."""
