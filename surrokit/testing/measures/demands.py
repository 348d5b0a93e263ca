"""Assertions with messages, for modules that pytest does not rewrite."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from surrokit.types import FloatArray


def demand(condition: object, message: str) -> None:
    """Raise AssertionError unless a condition holds."""
    if not condition:
        raise AssertionError(message)


def demand_shape(array: Any, shape: tuple[int, ...], what: str) -> None:
    """Demand a double-precision array of a shape."""
    demand(isinstance(array, np.ndarray), f"{what} must be an ndarray, got {type(array).__name__}")
    demand(array.shape == shape, f"{what} must have shape {shape}, got {array.shape}")
    demand(
        array.dtype == np.float64,
        f"{what} must be of double precision (float64), got {array.dtype}",
    )


def demand_equal(first: npt.ArrayLike, second: npt.ArrayLike, what: str) -> None:
    """Demand that two arrays are equal bit for bit, NaN included."""
    a, b = np.asarray(first), np.asarray(second)
    equal_nan = a.dtype.kind == "f" and b.dtype.kind == "f"
    if a.shape == b.shape and np.array_equal(a, b, equal_nan=equal_nan):
        return
    difference = f"shapes {a.shape} and {b.shape}" if a.shape != b.shape else _largest(a, b)
    raise AssertionError(f"{what} must be equal bit for bit, but differ: {difference}")


def demand_close(
    actual: FloatArray,
    expected: FloatArray,
    what: str,
    *,
    rtol: float = 1e-8,
    atol: npt.ArrayLike = 1e-10,
) -> None:
    """Demand that two arrays agree within ``atol`` + ``rtol`` times the larger entry."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    demand(
        actual.shape == expected.shape,
        f"{what}: got shape {actual.shape} where shape {expected.shape} is expected",
    )
    room = np.asarray(atol) + rtol * np.maximum(np.abs(actual), np.abs(expected))
    with np.errstate(invalid="ignore"):
        far = ~(np.abs(actual - expected) <= room) & ~(actual == expected)
    far &= ~(np.isnan(actual) & np.isnan(expected))
    if far.any():
        where = tuple(int(i) for i in np.argwhere(far)[0])
        raise AssertionError(
            f"{what}: at index {where} got {actual[where]:.10g}, expected {expected[where]:.10g} "
            f"within {np.broadcast_to(room, far.shape)[where]:.2g}; "
            f"{int(far.sum())} of {far.size} entries are off"
        )


def _largest(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> str:
    if a.dtype.kind not in "fiu":
        return f"{int((a != b).sum())} of {a.size} entries"
    with np.errstate(invalid="ignore"):
        gap = np.nan_to_num(np.abs(a.astype(float) - b.astype(float)), nan=np.inf)
    return f"by up to {gap.max():.3g}, in {int((gap > 0).sum())} of {a.size} entries"
