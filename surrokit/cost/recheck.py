"""Positions that are evaluated once more, to tell a model that is not a function of position."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.counting import calls_per_gradient
from surrokit.contracts.methods import CallKind
from surrokit.cost.budget import BudgetSpent
from surrokit.cost.recording import RecordingPotential
from surrokit.failures.log import Box
from surrokit.types import FloatArray

MOST = 50
"""Failed positions that a run evaluates once more at most: where nine of ten calls fail by chance,
all of them fail again in one of 200 runs."""

ENOUGH = 5
"""Positions that work when evaluated once more, after which no others are tried."""

FEW, PART = 5, 0.25
"""Positions that are tried in any case, and the part of a run's calls that others may cost."""

PART_OF_INFINITE = 0.01
"""Like :data:`PART`, of positions where U was infinite, as long as it is so at all of them once
more: nearly always that is the support's end."""

TIMES = 3
"""Gradients made of differences at such a position, at most."""


def evaluate_again(target: RecordingPotential, places: FloatArray) -> None:
    """Evaluate some positions once more at which the target failed, and note what came of it.

    If there are such positions, the latest one that did not fail is evaluated once more, too.
    Calls are counted, failures are not. With ``on_error="retry"`` these are positions at which all
    retries failed. Some positions of infinite U are evaluated once more as well: a model may
    return it by chance. No more is done than the budget allows.

    Parameters
    ----------
    target
        The exact potential.
    places : ndarray of shape (n, dim)
        Where chains have been. Failures far from there may be mere overflow, and do not count.
    """
    account, before = target.exact.account, target.paid
    is_first = not account.recheck.tried
    try:
        for call, position in _choose(target, places):
            seen = account.recheck
            costs = seen.tried >= FEW and target.paid - before > PART * before
            if seen.tried == MOST or seen.worked == ENOUGH or costs:
                break
            worked = _works(target, call, position)
            account.recheck = attrs.evolve(seen, tried=seen.tried + 1, worked=seen.worked + worked)
        if is_first and account.recheck.tried:
            _compare(target)
        _look_at_infinite(target, places)
    except BudgetSpent:
        return
    finally:
        account.lately.clear()
        account.infinite.clear()


def _choose(target: RecordingPotential, places: FloatArray) -> list[tuple[CallKind, FloatArray]]:
    """Return kinds of calls and positions of different failures near some places, latest first."""
    return _different_near(list(target.exact.account.lately), places, target.dim)


def _different_near(
    found: list[tuple[CallKind, FloatArray]], places: FloatArray, dim: int
) -> list[tuple[CallKind, FloatArray]]:
    around = Box.around(places)
    different = {
        row[:dim].tobytes(): (call, row[:dim])
        for call, row in found
        if around is None or around.holds(row[None])[0]
    }
    return list(different.values())[::-1]


def _look_at_infinite(target: RecordingPotential, places: FloatArray) -> None:
    """Evaluate U once more at some positions where it was infinite, and note where it is not."""
    account, before = target.exact.account, target.paid
    found: list[tuple[CallKind, FloatArray]] = [("value", row) for row in account.infinite]
    for _, position in _different_near(found, places, target.dim):
        seen = account.recheck
        part = PART if seen.finite else PART_OF_INFINITE
        if seen.infinite >= min(max(FEW, part * before), MOST) or seen.finite == ENOUGH:
            return
        with target.exact.off_the_record() as aside:
            value = target.fork(keep=False).value(position[None])[0]
        if not aside.total:  # a failure is another matter
            account.recheck = attrs.evolve(
                seen, infinite=seen.infinite + 1, finite=seen.finite + bool(np.isfinite(value))
            )


def _works(target: RecordingPotential, call: CallKind, position: FloatArray) -> bool:
    """Return whether a call works that has failed, though nothing has changed.

    A gradient that is made of differences may have failed by its neighbours, and now has others. So
    it is made up to :data:`TIMES` times, and one of them must differ from the first.
    """

    def fails() -> bool:
        return _fails(target.fork(keep=False, jacobians=call == "jacobian"), call, position)

    if call == "gradient" and calls_per_gradient(target) > 1:
        first = fails()
        return any(fails() != first for _ in range(TIMES - 1))
    return not fails()


def _fails(target: RecordingPotential, call: CallKind, position: FloatArray) -> bool:
    with target.exact.off_the_record() as aside:
        if call in ("value", "forward"):
            target.value(position[None])
        else:
            target.value_and_gradient(position[None])
    return aside.total > 0


def _compare(target: RecordingPotential) -> None:
    """Evaluate the latest position with a finite U once more, and note what comes of it."""
    if target.exact.last is None:
        return
    position, value = target.exact.last
    with target.exact.off_the_record():
        again = target.fork(keep=False).value(position[None])
    if np.isfinite(again[0]):
        target.exact.account.note_values(value, float(again[0]))
