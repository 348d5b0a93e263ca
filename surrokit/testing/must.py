"""What a part must do: demands that raise AssertionError with a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surrokit.types import FloatArray

Function: TypeAlias = Callable[[FloatArray], FloatArray]
"""A function of rows (n, dim) that returns an array whose first axis runs over the rows."""


def hold(condition: object, message: str) -> None:
    """Raise AssertionError unless a condition holds."""
    if not condition:
        raise AssertionError(message)


def shape(array: Any, expected: tuple[int, ...], what: str, kind: str = "f") -> None:
    """Demand an array of a shape, of double precision or of another kind: ``i``, ``b``."""
    hold(isinstance(array, np.ndarray), f"{what} must be an ndarray, got {type(array).__name__}")
    hold(array.shape == expected, f"{what} must have shape {expected}, got {array.shape}")
    held = {"f": "double precision (float64)", "i": "whole numbers", "b": "truth values"}[kind]
    right = array.dtype == np.float64 if kind == "f" else array.dtype.kind == kind
    hold(right, f"{what} must be of {held}, got {array.dtype}")


def equal(first: npt.ArrayLike, second: npt.ArrayLike, what: str) -> None:
    """Demand that two arrays are equal bit for bit, NaN included."""
    close(first, second, what, rtol=0.0, atol=0.0)


def close(
    actual: npt.ArrayLike,
    expected: npt.ArrayLike,
    what: str,
    *,
    rtol: float = 1e-8,
    atol: npt.ArrayLike = 1e-10,
) -> None:
    """Demand that two arrays agree within ``atol`` + ``rtol`` times the larger entry."""
    found, wanted = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    hold(found.shape == wanted.shape, f"{what} must have shape {wanted.shape}, got {found.shape}")
    with np.errstate(invalid="ignore"):
        room = np.asarray(atol) + rtol * np.maximum(np.abs(found), np.abs(wanted))
        far = ~(np.abs(found - wanted) <= room) & ~(found == wanted)
    far &= ~(np.isnan(found) & np.isnan(wanted))
    if far.any():
        where = tuple(int(i) for i in np.argwhere(far)[0])
        raise AssertionError(
            f"{what}: at index {where} got {found[where]:.10g}, expected {wanted[where]:.10g} "
            f"within {np.broadcast_to(room, far.shape)[where]:.2g}; "
            f"{int(far.sum())} of {far.size} entries are off"
        )


def between(values: Any, low: float, high: float, what: str) -> None:
    """Demand finite numbers in an interval, its ends included."""
    inside = np.isfinite(values).all() and np.all(values >= low) and np.all(values <= high)
    hold(inside, f"{what} must be finite and from {low:g} to {high:g}, got {values}")


def matrices(found: FloatArray, what: str, least: float = -np.inf) -> None:
    """Demand symmetric matrices (n, k, k) without eigenvalues below some number, but for rounding.

    Above a ``least`` of zero there is no room for rounding.
    """
    atol = 1e-9 * np.abs(found).max(axis=(1, 2), keepdims=True)
    close(found, found.transpose(0, 2, 1), f"{what} against its transpose", atol=atol)
    lowest = (np.linalg.eigvalsh(found)[:, 0] + (least <= 0.0) * atol[:, 0, 0]).min()
    hold(lowest >= least, f"{what} must have no eigenvalue below {least:g}, got {lowest:.3g}")


def freeze(*arrays: Any) -> None:
    """Make arrays read-only, so that writing to them fails."""
    for array in arrays:
        if isinstance(array, np.ndarray):
            array.setflags(write=False)


def difference(
    function: Function, positions: FloatArray, step: float = 1e-4
) -> tuple[FloatArray, FloatArray]:
    """Return the derivative of a function of rows, shape (n, ..., dim), and its error.

    The derivative is Richardson's combination of differences at ``step``, relative to 1 + abs(q),
    and twice that. The error is how far these two are apart, plus how far the combination is from
    that at twice the steps, which shows the noise of adaptive solvers, plus that of rounding.
    """
    columns, errors = [], []
    for k in range(positions.shape[1]):
        slopes, size = [], np.zeros(())
        for times in (4.0, 2.0, 1.0):
            h = times * step * (1.0 + np.abs(positions[:, k]))
            upper, lower = positions.copy(), positions.copy()
            upper[:, k] += h
            lower[:, k] -= h
            above, below = function(upper), function(lower)
            width = (upper[:, k] - lower[:, k]).reshape((-1,) + (1,) * (above.ndim - 1))
            slopes.append((above - below) / width)
            size = np.maximum(np.abs(above), np.abs(below))
        wider, wide, narrow = slopes
        fine, coarse = (4.0 * narrow - wide) / 3.0, (4.0 * wide - wider) / 3.0
        columns.append(fine)
        rounding = 8.0 * np.finfo(float).eps * size / step
        errors.append(np.abs(narrow - wide) + np.abs(fine - coarse) + rounding)
    return np.stack(columns, axis=-1), np.stack(errors, axis=-1)


def derivative(found: FloatArray, function: Function, positions: FloatArray, what: str) -> None:
    """Demand that an array is the derivative of a function of rows, as far as differences agree."""
    near(found, *difference(function, positions), f"{what} against differences")


def near(found: FloatArray, expected: FloatArray, error: FloatArray, what: str) -> None:
    """Demand that an array is what differences give, up to a few times their error."""
    room = 3.0 * error + 1e-8 * (1.0 + np.abs(expected).max())
    close(found, expected, what, rtol=1e-6, atol=room)
