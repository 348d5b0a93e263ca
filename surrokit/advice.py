"""What is wrong with a run's draws, where figures alone would not say it, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surrokit.records import Status

if TYPE_CHECKING:
    from surrokit.history import Trace
    from surrokit.result import Run
    from surrokit.types import FloatArray

FEWEST_ITERATIONS = 20
"""Of fewer kept iterations nothing is said."""

_NOTHING = 0.02  # path acceptance, or part of moves, below which next to nothing is accepted
_LITTLE = 0.05  # the same of acceptance, where the paths work; of moves, where paths fail
_PATHS_WORK = 0.2  # path acceptance above which the step size is not to blame
_MANY_FAILURES = 0.05  # part of the paths
_LONG = 50  # iterations without a move
_BY_CHANCE = 1e-3  # chance of standing still for that long, somewhere in the run


def advice(run: Run) -> list[str]:
    """Return complaints about the kept draws, each with what to do about it."""
    if len(run.kept) < FEWEST_ITERATIONS:
        return []
    rejected = _rejected(run)
    found = [rejected or _stuck(run.kept), *_failed(run.kept)]
    return [complaint for complaint in found if complaint is not None]


def _rejected(run: Run) -> str | None:
    moves = float(run.kept.accepted.mean())
    paths, exact = _mean(run.kept.path_acceptance), _mean(run.kept.acceptance)
    if paths < _NOTHING and moves < _LITTLE:
        return (
            "next to nothing was accepted, for the paths themselves fail (path acceptance "
            f"{paths:.3f}): {_about_steps(run)}"
        )
    if run.surrogate is not None and exact < _LITTLE and paths > _PATHS_WORK:
        return (
            f"next to nothing was accepted (acceptance {exact:.3f}, of the paths alone "
            f"{paths:.3f}): the surrogate is wrong where the chains are; explore for longer, "
            "learn for longer with schedule='greville', use another surrogate, or mix in exact "
            "transitions with safety=surrokit.Safety(mix=0.1)"
        )
    if moves < _NOTHING:
        return (
            f"next to nothing was accepted: chains moved in {moves:.3f} of the kept iterations; "
            f"start elsewhere with initial=..., warm up for longer, or use {_other_parts(run)}"
        )
    return None


def _mean(acceptance: FloatArray) -> float:
    """Return the mean where there was something to decide; NaN if there never was."""
    known = acceptance[~np.isnan(acceptance)]
    return float(known.mean()) if known.size else float("nan")


def _about_steps(run: Run) -> str:
    """Return whose fault a path's failure is, and what the user can change about it."""
    step = run.kept.step_size[-1]
    if "step_size" not in run.sampler.tunes and not np.isnan(step):
        return (
            f"the step size of {step:.3g} is too large; pass a smaller step_size, or leave it out "
            "so that warm-up finds one"
        )
    if "step_size" in run.sampler.tunes and not len(run.warmup):
        return f"no warm-up tuned the step size of {step:.3g}; pass warmup=... or step_size=..."
    return (
        "warm-up found no steps that work where the chains are; look at the target there "
        "(surrokit.check_gradient compares its gradient with its value), start elsewhere with "
        f"initial=..., warm up for longer, or use {_other_parts(run)}"
    )


def _other_parts(run: Run) -> str:
    return "another sampler" if run.surrogate is None else "another surrogate or sampler"


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
