"""Paths of many steps from a rule for one step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from surrokit.contracts.dynamics import Phase, Status
from surrokit.limits.deadline import check_deadline
from surrokit.types import FloatArray, IntArray
from surrokit_riemannian.integrators.rows import phase_placed, phase_taken

Step: TypeAlias = Callable[[Phase, FloatArray], tuple[Phase, IntArray]]
"""From the phase of some chains, and their steps (n, 1), to the status (n,) of each after one step,
and to the phase of those whose status is ``OK``."""


def follow(
    step: Step, phase: Phase, step_size: FloatArray, n_steps: IntArray
) -> tuple[Phase, IntArray]:
    """Follow each chain's path for its number of steps; chains that fail or arrive drop out.

    Parameters
    ----------
    step
        One step.
    phase
        The start; left as it is.
    step_size, n_steps : ndarray of shape (n,)
        Of each chain.
    """
    n = len(step_size)
    status = np.full(n, int(Status.OK))
    for done in range(int(n_steps.max())):
        check_deadline()
        rows = np.flatnonzero((n_steps > done) & (status == Status.OK))
        if not rows.size:
            break
        start = phase if rows.size == n else phase_taken(phase, rows)
        after, status[rows] = step(start, step_size[rows, None])
        good = rows[status[rows] == Status.OK]
        if good.size:
            phase = phase_placed(phase, good, after)
    return phase, status
