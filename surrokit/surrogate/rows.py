"""Training rows: the paid evaluations that a surrogate learns from."""

from __future__ import annotations

import numpy as np

from surrokit.contracts.learner import Evaluations
from surrokit.contracts.sampler import ChainState, StepInfo
from surrokit.contracts.schedule import LearnFrom
from surrokit.types import BoolArray, FloatArray, IntArray


def training_rows(
    learn_from: LearnFrom, paid: Evaluations, state: ChainState, info: StepInfo
) -> Evaluations:
    """Choose the rows to learn from after one iteration.

    Parameters
    ----------
    learn_from
        Which rows to choose.
    paid
        What the iteration evaluated.
    state, info
        The chains after the iteration, and what it did to them.

    Returns
    -------
    Evaluations
        Positions with an exact value; gradients are known where this iteration paid for them.
    """
    if learn_from == "all":
        return paid
    chosen: BoolArray = ~np.isnan(state.values)  # a correction may not have evaluated them
    if learn_from == "accepted":
        chosen &= info.accepted
    positions = state.positions[chosen]
    found = paid.find(positions)
    return Evaluations(
        positions=positions,
        values=state.values[chosen],
        gradients=_look_up(paid.gradients, found),
        outputs=_look_up(paid.outputs, found),
        jacobians=_look_up(paid.jacobians, found),
    )


def _look_up(array: FloatArray | None, found: IntArray) -> FloatArray | None:
    if array is None:
        return None
    rows: FloatArray = array[found]
    rows[found < 0] = np.nan
    return rows
