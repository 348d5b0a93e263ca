"""Costs of a target's calls, measured at the starts of the chains."""

from __future__ import annotations

import time
from collections.abc import Callable

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT, JACOBIAN, VJP
from surrokit.contracts.potential import with_gradient
from surrokit.contracts.sampler import ChainState
from surrokit.cost.recording import RecordingPotential
from surrokit.mode.starts import start
from surrokit.targets.differences import Differences
from surrokit.types import FloatArray

_TIMED = 2  # calls, since the first one at one position may include compilation


@attrs.frozen(kw_only=True, eq=False)
class Costs:
    """Seconds that exact calls take.

    Parameters
    ----------
    value, gradient
        Seconds of a call at one position. ``gradient`` includes the value, and is None for a
        target without gradient.
    values, gradients
        Seconds of a call at one position of each chain.
    jacobian
        Seconds of a Jacobian at one position, the outputs included, where gradients are made by an
        adjoint; None where they are not, or where there is no Jacobian.
    by_differences
        Whether a gradient is made of many values.
    """

    value: float
    gradient: float | None
    values: float
    gradients: float | None
    jacobian: float | None = None
    by_differences: bool = False


def measure_starts(
    target: RecordingPotential,
    initial: FloatArray | None,
    chains: int,
    rng: np.random.Generator,
    now: Callable[[], float] = time.perf_counter,
) -> tuple[FloatArray, Costs]:
    """Find starts at which the target is finite, and time a few calls there.

    Parameters
    ----------
    target
        Counts and remembers the calls: the next evaluation of the starts is free.
    initial : ndarray of shape (chains, dim), optional
        The user's starts.
    chains
        Number of chains.
    rng
        Generator for random starts.
    now
        A clock, in seconds.

    Returns
    -------
    starts : ndarray of shape (chains, dim)
        Positions where the target is finite, and its gradient too if it has one.
    costs
        Seconds of its calls.

    Raises
    ------
    TargetError
        If no such starts are found.
    """
    has_gradient = GRADIENT in target.capabilities
    took = 0.0

    def begin(positions: FloatArray) -> tuple[FloatArray, ChainState]:
        nonlocal took
        before, cache = now(), {}
        if has_gradient:
            values, cache["gradient"] = with_gradient(target).value_and_gradient(positions)
        else:
            values = target.value(positions)
        took = now() - before
        return positions, ChainState(positions=positions, values=values, cache=cache)

    with target.remembering():
        starts = start(begin, target.target, initial, chains, rng, target.exact.account)
        target.drain()
    one, seen = starts[:1], list[float]()
    gradient = None
    if has_gradient:
        gradient = _least(lambda: seen.extend(target.value_and_gradient(one)[0]), now)
    value = _least(lambda: seen.extend(target.value(one)), now)
    _compare(seen, target)
    target.drain()  # the batch holds the same position
    jacobian = None
    if target.capabilities >= {JACOBIAN, VJP}:
        jacobian = _least(lambda: target.forward_and_jacobian(one), now)
    whole = chains * (value if gradient is None else gradient)
    batch = min(took, whole)
    costs = Costs(
        value=value,
        gradient=gradient,
        values=batch if gradient is None else batch * min(value / gradient, 1.0),
        gradients=None if gradient is None else batch,
        jacobian=jacobian,
        by_differences=isinstance(target.target, Differences),
    )
    return starts, costs


def _compare(values: list[float], target: RecordingPotential) -> None:
    """Note the least and the largest of finite values at one position."""
    finite = [float(value) for value in values if np.isfinite(value)]
    if finite:
        target.exact.account.note_values(min(finite), max(finite))


def _least(call: Callable[[], object], now: Callable[[], float]) -> float:
    """Return the seconds of the fastest of a few calls.

    Their number does not go by the clock: calls count, and what a run draws depends on them.
    """
    seconds: list[float] = []
    for _ in range(_TIMED):
        before = now()
        call()
        seconds.append(now() - before)
    return max(min(seconds), 1e-9)  # so that costs can be divided by one another
