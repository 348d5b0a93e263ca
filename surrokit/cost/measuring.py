"""What calls cost, measured before parts are chosen."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT, JACOBIAN, VJP
from surrokit.cost.recording import RecordingPotential
from surrokit.interfaces import ChainState
from surrokit.mode.starts import start
from surrokit.model.model import calls_per_gradient
from surrokit.potentials import with_gradient
from surrokit.targets.bounds import labels_on_line, transform_of
from surrokit.targets.differences import LEAST_GRADIENTS, Differences
from surrokit.types import FloatArray

_LEVEL = 1e-7
"""Slope of the density, in nats to the unit of the line, that is none but for rounding."""

_SHORT = (1e-6, 1e-5, 1e-4)
_LONG = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Moves along a number on which a staircase is constant, and by which it is not."""


def stairs_along(
    target: RecordingPotential, positions: FloatArray, values: FloatArray, gradients: FloatArray
) -> list[str]:
    """Return the numbers along which a density is constant but for steps.

    Only where all differences vanish is anything evaluated: sixteen values for such a number.

    Parameters
    ----------
    target
        The target, whose gradients are differences of values.
    positions : ndarray of shape (n, dim)
        Where these were taken, on the line.
    values : ndarray of shape (n,)
        U there.
    gradients : ndarray of shape (n, dim)
        The differences.
    """
    transform = transform_of(target.target)
    if len(positions) < 2 or GRADIENT not in target.capabilities:
        return []
    own = gradients + transform.volume(positions)[1]
    level = _LEVEL * np.maximum(np.abs(values), 1.0)[:, None]
    suspects = np.flatnonzero((np.abs(own) <= level).all(axis=0))
    at, labels = positions[int(np.argmin(values))], labels_on_line(target.target)
    return [labels[i] for i in suspects if _is_staircase(target, at, int(i))]


def _is_staircase(target: RecordingPotential, at: FloatArray, i: int) -> bool:
    moves = np.outer([*_SHORT, *_LONG], [1.0, -1.0]).ravel()
    there = np.vstack([at, at + np.outer(moves, np.eye(len(at))[i])])
    with np.errstate(all="ignore"):
        density = target.value(there) + transform_of(target.target).log_jacobian(there)
        rises = np.abs(density[1:] - density[0])
    level = _LEVEL * max(abs(float(density[0])), 1.0)
    n = 2 * len(_SHORT)
    return bool((rises[:n] <= level).all() and not (rises[n:] <= level).all())


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
    stairs
        Numbers along which the density is constant but for steps, so that differences tell nothing.
    """

    value: float
    gradient: float | None
    values: float
    gradients: float | None
    jacobian: float | None = None
    by_differences: bool = False
    stairs: tuple[str, ...] = ()

    @classmethod
    def of_calls(cls, value: float, gradient: float | None, chains: int) -> Costs:
        """Return the costs of calls that take so long at one position."""
        gradients = None if gradient is None else chains * gradient
        return cls(value=value, gradient=gradient, values=chains * value, gradients=gradients)

    def a_position(self, chains: int, workers: int) -> tuple[float, float | None]:
        """Return the seconds of a value and of a gradient at one of several positions.

        Without workers these are those of a batch, which a vectorised target evaluates for less.
        """
        if workers > 1:
            return self.value, self.gradient
        value = min(self.value, self.values / chains)
        if self.gradient is None or self.gradients is None:
            return value, self.gradient
        return value, min(self.gradient, self.gradients / chains)


def measure_starts(
    target: RecordingPotential,
    initial: FloatArray | None,
    chains: int,
    rng: np.random.Generator,
    now: Callable[[], float] = time.perf_counter,
    left: float | None = None,
) -> tuple[FloatArray, Costs]:
    """Find starts at which the target is finite, and time a few calls there.

    Parameters
    ----------
    target
        Counts and remembers the calls: the next evaluation of the starts is free.
    initial : ndarray of shape (chains, dim), optional
        The user's starts.
    now
        A clock, in seconds.
    left
        Seconds that are left to the run; where these suffice for few differences of values, or such
        differences tell nothing, the target goes by values from here on. None without a limit.

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
    took = 0.0
    state = ChainState(positions=np.empty((0, target.dim)), values=np.empty(0), cache={})

    def begin(positions: FloatArray) -> tuple[FloatArray, ChainState]:
        nonlocal took, state
        if left is not None and isinstance(target.target, Differences):
            _go_by_values_if_expensive(target, positions, now, left)
        before, cache = now(), {}
        if GRADIENT in target.capabilities:
            values, cache["gradient"] = with_gradient(target).value_and_gradient(positions)
        else:
            values = target.value(positions)
        took = now() - before
        state = ChainState(positions=positions, values=values, cache=cache)
        return positions, state

    with target.remembering():
        given = (target.target, initial, chains, rng)
        starts = start(begin, *given, target.rejections.account, target.value)
        target.drain()
    return starts, _time_calls(target, starts, took, _find_stairs(target, state), now)


def _time_calls(
    target: RecordingPotential,
    starts: FloatArray,
    took: float,
    stairs: Sequence[str],
    now: Callable[[], float],
) -> Costs:
    """Return the costs of calls at one position, and of the batch of all chains that ``took``."""
    chains, one, seen = len(starts), starts[:1], list[float]()
    value = _least(lambda: seen.extend(target.value(one)), now)
    if _differ(seen, target) and isinstance(target.target, Differences):
        target.go_by_values()
    gradient = None
    if GRADIENT in target.capabilities:
        gradient = _least(lambda: seen.extend(target.value_and_gradient(one)[0]), now)
        _differ(seen, target)
    target.drain()  # the batch holds the same position
    jacobian = None
    if target.capabilities >= {JACOBIAN, VJP}:
        jacobian = _least(lambda: target.forward_and_jacobian(one), now)
    whole = chains * (value if gradient is None else gradient)
    batch = min(took, whole)
    return Costs(
        value=value,
        gradient=gradient,
        values=batch if gradient is None else batch * min(value / gradient, 1.0),
        gradients=None if gradient is None else batch,
        jacobian=jacobian,
        by_differences=isinstance(target.target, Differences),
        stairs=tuple(stairs),
    )


def _go_by_values_if_expensive(
    target: RecordingPotential, positions: FloatArray, now: Callable[[], float], left: float
) -> None:
    """Do without differences where the time left suffices for fewer than a search takes."""
    before = now()
    target.value(positions)
    value = (now() - before) / len(positions)
    if left < LEAST_GRADIENTS * calls_per_gradient(target) * value:
        target.go_by_values()


def _find_stairs(target: RecordingPotential, state: ChainState) -> list[str]:
    """Return the numbers along which differences show nothing; do without differences then."""
    gradients = state.cache.get("gradient")
    if gradients is None or not isinstance(target.target, Differences):
        return []
    stairs = stairs_along(target, state.positions, state.values, gradients)
    if stairs:
        target.go_by_values()
        target.drain()
    return stairs


def _differ(values: list[float], target: RecordingPotential) -> bool:
    """Note the least and the largest of finite values at one position if they differ."""
    finite = [float(value) for value in values if np.isfinite(value)]
    account = target.rejections.account
    if finite:
        account.note_values(min(finite), max(finite))
    return account.recheck.apart is not None


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
