"""What is wrong with a run's draws, where figures alone would not say it, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surrokit.budget import calls_paid
from surrokit.pace import length_bias
from surrokit.records import Status
from surrokit.types import FloatArray

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
_BIASED = 0.1  # part of the Monte Carlo error of a mean
_BY_CHANCE = 1e-3  # chance of standing still for that long, somewhere in the run


def advice(run: Run) -> list[str]:
    """Return complaints about the kept draws, each with what to do about it."""
    found = [_cut(run)]
    if len(run.kept) >= FEWEST_ITERATIONS:
        found += [_rejected(run) or _stuck(run.kept), *_failed(run.kept)]
    return [complaint for complaint in found if complaint is not None]


def _cut(run: Run) -> str | None:
    if run.length != "cut" or run.stopped not in ("max_calls", "max_seconds"):
        return None
    few = run.stopped == "max_seconds" and 0 < len(run.kept) < FEWEST_ITERATIONS
    bias = length_bias(_costs(run))  # NaN where no mean can be judged by anything
    if not (few or bias > _BIASED):
        return None
    part = "a part" if few else f"up to about {bias:.2f}"
    return (
        f"{run.stopped} cut the draws off after {len(run.kept)} of each chain; where the cost of "
        f"an iteration depends on position, so does their number, and means are off by {part} of "
        f"their Monte Carlo error{' that so few cannot tell' if few else ''}; ask for a number of "
        "draws, or allow for more of them"
    )


def _costs(run: Run) -> FloatArray:
    """Return what iterations cost of the limit that ended them, from the second one on."""
    if run.stopped == "max_seconds":
        return np.diff(run.kept.seconds)
    used = [
        calls_paid(dict(zip(run.kept.calls, row, strict=True)), run.n_rows)
        for row in zip(*run.kept.calls.values(), strict=True)
    ]
    return np.diff(np.array(used, dtype=np.float64))


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
