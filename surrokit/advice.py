"""What is wrong with a run's draws, where figures alone would not say it, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surrokit.mode_visits import ModeVisits
from surrokit.records import Status

if TYPE_CHECKING:
    from surrokit.history import Trace
    from surrokit.result import Run

FEWEST_ITERATIONS = 20
"""Of fewer kept iterations nothing is said."""

_NOTHING = 0.02  # path acceptance below which next to nothing is accepted
_LITTLE = 0.05  # the same of acceptance, where the paths work
_PATHS_WORK = 0.2  # path acceptance above which the step size is not to blame
_MANY_FAILURES = 0.05  # part of the paths
_LONG = 50  # iterations without a move
_BY_CHANCE = 1e-3  # chance of standing still for that long, somewhere in the run


def advice(run: Run) -> list[str]:
    """Return complaints about the kept draws, each with what to do about it."""
    found = [_broke_its_word(run), _separate_modes(run)]
    if len(run.kept) >= FEWEST_ITERATIONS:
        found += [_rejected(run) or _stuck(run.kept), *_failed(run.kept)]
    return [complaint for complaint in found if complaint is not None]


def _broke_its_word(run: Run) -> str | None:
    late = run.adaptation.deployed_though_frozen
    if not late:
        return None
    harm = "kept draws are not touched by that"
    if not run.adaptation.frozen_before_draws:
        harm = "draws were kept under adaptation"
    return (
        f"schedule {run.parts['schedule']!r} had said that it was frozen, and yet deployed "
        f"{len(late)} more surrogates, the first after iteration {late[0]}: {harm}; mend the "
        "schedule, whose decision says frozen only where nothing will be deployed from then on"
    )


def _separate_modes(run: Run) -> str | None:
    if run.modes is None or not len(run.kept) or run.modes.matters.sum() < 2:
        return None
    visits = ModeVisits.of(run.modes, run.kept.positions)
    if visits.joined:
        return None
    missed = "; draws miss modes altogether" if (visits.shares == 0.0).any() else ""
    return (
        f"the target has {len(visits.modes)} modes, and chains went from one to another "
        f"{visits.moves} times{missed}: {visits.told(run.labels)}. How many draws lie at each says "
        "where chains began, and nothing of the target; begin chains at all of them with "
        "initial=..., and weigh each by itself, or find coordinates in which they are one"
    )


def _rejected(run: Run) -> str | None:
    paths, exact = float(run.kept.path_acceptance.mean()), float(run.kept.acceptance.mean())
    if paths < _NOTHING:
        step = run.kept.step_size[-1]
        size = "" if np.isnan(step) else f" of {step:.3g}"
        return (
            f"next to nothing was accepted, for the paths themselves fail (path acceptance "
            f"{paths:.3f}): the step size{size} is too large; pass a smaller step_size, or leave "
            "it out so that warm-up finds one"
        )
    if run.surrogate is not None and exact < _LITTLE and paths > _PATHS_WORK:
        return (
            f"next to nothing was accepted (acceptance {exact:.3f}, of the paths alone "
            f"{paths:.3f}): the surrogate is wrong where the chains are; explore for longer, "
            "learn for longer with schedule='greville', use another surrogate, or mix in exact "
            "transitions with safety=surrokit.Safety(mix=0.1)"
        )
    return None


def _stuck(kept: Trace) -> str | None:
    longest = np.array([_longest_stand(moves) for moves in kept.accepted])
    chain = int(longest.argmax())
    usual = float(kept.accepted.mean(axis=1).max())  # of the best chain: the others may stand, too
    chance = kept.accepted.size * (1.0 - usual) ** int(longest[chain])
    if longest[chain] < _LONG or chance > _BY_CHANCE:
        return None
    return (
        f"chain {chain} did not move for {longest[chain]} kept iterations, though up to "
        f"{usual:.2f} of a chain's proposals were accepted: it sits where they hardly ever are, "
        "and draws miss part of the target; warm up for longer, start elsewhere, or with a "
        "surrogate mix in exact transitions with safety=surrokit.Safety(mix=0.1)"
    )


def _longest_stand(moved: np.ndarray) -> int:
    ends = np.flatnonzero(np.concatenate([[True], moved, [True]]))
    return int(np.diff(ends).max()) - 1


def _failed(kept: Trace) -> list[str | None]:
    n_paths = kept.status.size
    unsolved = int((kept.status == Status.NOT_CONVERGED).sum())
    no_return = int((kept.status == Status.NOT_REVERSIBLE).sum())
    return [
        f"the implicit equations of {unsolved} of {n_paths} kept paths were not solved, and these "
        "were rejected; lower step_size, or let the integrator make more iterations"
        if unsolved > _MANY_FAILURES * n_paths
        else None,
        f"{no_return} of {n_paths} kept paths did not lead back to where they began, and were "
        "rejected; lower step_size"
        if no_return > _MANY_FAILURES * n_paths
        else None,
    ]
