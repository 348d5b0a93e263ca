"""Sees where a search for a mode goes, and when it is clear where it leads."""

from __future__ import annotations

import numpy as np

from surrokit.contracts.explorer import Modes
from surrokit.interfaces import Evaluations
from surrokit.mode.descent import Mode
from surrokit.model.model import calls_per_gradient
from surrokit.potentials import Potential, with_gradient
from surrokit.types import FloatArray

SAME_VALUE = 0.5
"""Nats by which two searches for one mode may end apart."""

SAME_PLACE = 1.0
"""Standard deviations by which they may."""

_ON_THE_WAY = (0.5, 0.25, 0.75, 0.9, 0.1)  # parts of it that are looked at
_RISE = 0.05  # nats that a way in a valley may rise


def same_mode(modes: Modes | None, position: FloatArray, value: float) -> int | None:
    """Return the mode that a ``position (dim,)`` of potential ``value`` is; None for another."""
    for k in range(0 if modes is None else len(modes)):
        assert modes is not None
        near = modes.squares(k, position[None])[0] < SAME_PLACE**2
        if near and abs(value - modes.values[k]) < SAME_VALUE:
            return k
    return None


def valley_of(
    exact: Potential, ends: tuple[Mode, ...], found: Mode, most: int
) -> tuple[int | None, int]:
    """Return the known end that a search has stopped short of, in a flat valley; and the calls.

    No potential on the straight way between the two is above both. Between modes there is one, and
    as a rule the first that is paid for.

    Parameters
    ----------
    exact
        The target.
    ends
        Where searches ended.
    found
        Where another one did.
    most
        Calls at most; where they do not do, none is known.
    """
    calls = 0
    for k, end in enumerate(ends):
        highest = max(end.value, found.value) + _RISE
        for part in _ON_THE_WAY:
            if calls >= most:
                return None, calls
            calls += 1
            if not _value(exact, end.position + part * (found.position - end.position)) <= highest:
                break
        else:
            return k, calls
    return None, calls


def _value(exact: Potential, position: FloatArray) -> float:
    with np.errstate(all="ignore"):
        if calls_per_gradient(exact) > 1:
            return float(exact.value(position[None])[0])
        return float(with_gradient(exact).value_and_gradient(position[None])[0][0])


class ModeWatch:
    """Shown what a search pays for, ends it where it leads to a known mode.

    Potential and gradient at a position tell where a Newton step would lead, and how low, if all
    were as quadratic as at the mode. If that is the mode itself, the rest of the way need not be
    paid for.

    Parameters
    ----------
    modes
        Known ones.
    dim
        Numbers in a position.

    Attributes
    ----------
    mode
        The known mode that the search leads to.
    """

    def __init__(self, modes: Modes | None, dim: int) -> None:
        self.mode: int | None = None
        self._modes = modes
        self._dim = dim
        self._seen: list[tuple[FloatArray, float, FloatArray]] = []

    def __call__(self, position: FloatArray, value: float, gradient: FloatArray) -> bool:
        """Take note of a position (dim,); return whether it leads to a known mode."""
        self._seen.append((position, value, gradient))
        for k in range(0 if self._modes is None else len(self._modes)):
            with np.errstate(over="ignore"):  # far from a mode
                if self._leads_to(k, position, value, gradient):
                    self.mode = k
        return self.mode is not None

    def _leads_to(self, k: int, position: FloatArray, value: float, gradient: FloatArray) -> bool:
        assert self._modes is not None
        step = self._modes.covariances[k] @ gradient
        lowest = value - 0.5 * float(gradient @ step)
        return same_mode(self._modes, position - step, lowest) == k

    def seen(self) -> Evaluations:
        """Return what was evaluated, with gradients."""
        rows = len(self._seen), self._dim
        return Evaluations(
            positions=np.reshape([position for position, _, _ in self._seen], rows),
            values=np.array([value for _, value, _ in self._seen]),
            gradients=np.reshape([gradient for _, _, gradient in self._seen], rows),
        )
