"""JAX in double precision: functions of one position, traced, compiled for rows, and sent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import load_library
from surrokit.errors import ConfigurationError, ResultTypeError
from surrokit.types import FloatArray

MOST_AT_ONCE = 1024
"""Rows of one call; more are taken in parts, for the sake of memory."""

_TINY = np.finfo(np.float64).tiny
_TURN_ON = (
    'jax.config.update("jax_enable_x64", True)  # before any array is made, or JAX_ENABLE_X64=1 '
    "in the environment"
)


def load_jax() -> Any:
    """Return JAX.

    Raises
    ------
    MissingDependencyError, ConfigurationError
        If it is not installed, or computes in single precision.
    """
    jax: Any = load_library("jax", "jax")
    if not jax.config.jax_enable_x64:
        raise ConfigurationError(
            "JAX computes in single precision, which is too coarse for acceptance probabilities; "
            f"run {_TURN_ON}"
        )
    return jax


def padded(n: int) -> int:
    """Return the number of rows for which a call of n rows is compiled.

    It is the next of 1, 2, 4, 6, 8, 12, 16, 24, ...: a new number of rows is seldom compiled anew,
    and results do not depend on what was called before.
    """
    size = 1 << max(n - 1, 0).bit_length()
    smaller = 3 * size // 4
    return smaller if size >= 8 and n <= smaller else size


@attrs.define(eq=False)
class Functions:
    """What ``derived`` makes of a function: functions of a position (dim,) by name, in JAX.

    They may take further arrays. Each is compiled for rows at its first call, also that of a copy,
    to which the function goes by its code. ``what`` it is, is for messages.
    """

    what: str
    derived: Callable[[Any], Mapping[str, Callable[..., Any]]]
    function: Callable[..., Any]
    _programs: dict[str, Any] = attrs.field(init=False, factory=dict, repr=False)

    def __call__(self, name: str, *rows: FloatArray) -> FloatArray:
        """Return the results of one at n rows, shape (n, ...).

        ResultTypeError is raised if they are in single precision.
        """
        if name not in self._programs:
            jax = load_jax()
            self._programs[name] = jax.jit(jax.vmap(self.derived(self.function)[name]))
        starts = range(0, max(len(rows[0]), 1), MOST_AT_ONCE)
        parts = [
            self._at_once(name, [array[at : at + MOST_AT_ONCE] for array in rows]) for at in starts
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def __reduce__(self) -> tuple[Any, tuple[Any, bytes]]:
        return travel(Functions, self.what, self.derived, self.function)

    def _at_once(self, name: str, rows: list[FloatArray]) -> FloatArray:
        n = len(rows[0])
        rows = [_kept_from_zero(array) for array in rows]
        if more := padded(max(n, 1)) - n:
            first = [array[:1] if n else np.zeros((1, *array.shape[1:])) for array in rows]
            pairs = zip(rows, first, strict=True)
            rows = [np.concatenate([array, np.repeat(one, more, 0)]) for array, one in pairs]
        array = np.asarray(self._programs[name](*rows))
        _check_precision(self.what, array.dtype)
        return array[:n].copy()


def _kept_from_zero(array: FloatArray) -> FloatArray:
    """Return an array with no number but 0 that the compiler takes for 0."""
    lost = (np.abs(array) < _TINY) & (array != 0.0)
    return np.where(lost, np.copysign(_TINY, array), array) if lost.any() else array


def travel(kind: Callable[..., Any], *given: Any) -> tuple[Any, tuple[Any, bytes]]:
    """Return what pickles something that is made anew, of what cloudpickle can send."""
    import cloudpickle  # late: importing stays fast

    return _arrive, (kind, cloudpickle.dumps(given))


def _arrive(kind: Callable[..., Any], packed: bytes) -> Any:
    import cloudpickle  # late: importing stays fast

    is_new = "jax" not in sys.modules
    jax: Any = load_library("jax", "jax")
    if is_new:  # before anything is unpacked: arrays would be in single precision
        jax.config.update("jax_enable_x64", True)
    load_jax()
    return kind(*cloudpickle.loads(packed))


def trace(what: str, function: Callable[[Any], Any], dim: int) -> tuple[int, ...]:
    """Return the shape of what a function of a position (dim,) returns.

    ConfigurationError is raised if it cannot be traced, ResultTypeError if it is not in double
    precision.
    """
    jax = load_jax()
    try:
        found = jax.eval_shape(function, jax.ShapeDtypeStruct((dim,), np.float64))
    except Exception as error:
        raise ConfigurationError(
            f"{what} cannot be traced by JAX: {_brief(error)}; write it with jax.numpy alone, or "
            "give it to surrokit.potential as a plain function"
        ) from error
    if not isinstance(found, jax.ShapeDtypeStruct):
        raise ConfigurationError(f"{what} must return one array of numbers, got {found!r}")
    _check_precision(what, found.dtype)
    return tuple(found.shape)


def _check_precision(what: str, came: Any) -> None:
    if came != np.float64:
        raise ResultTypeError(
            f"{what} must return numbers in double precision (float64), got {came}: either it "
            "casts to that type inside, or its data were made before double precision was on; run "
            f"{_TURN_ON}"
        )


def why_not(function: Callable[..., Any], *sizes: int) -> Exception | None:
    """Return why JAX cannot compile a function of vectors of these sizes; None if it can.

    It is lowered, since a trace alone lets a derivative pass whose rule is missing deep inside.
    """
    jax = load_jax()
    try:
        jax.jit(function).lower(*(jax.ShapeDtypeStruct((size,), np.float64) for size in sizes))
    except Exception as error:
        return error
    return None


def orders(what: str, functions: Sequence[tuple[Callable[..., Any], int]], dim: int) -> int:
    """Return how many of the derivatives of growing order JAX can make, at least 1.

    Each takes so many vectors (dim,).
    """
    for order, (function, n) in enumerate(functions):
        if (error := why_not(function, *(dim,) * n)) is not None:
            if order == 0:
                raise no_gradient(what, error) from error
            return order
    return len(functions)


def no_gradient(what: str, error: Exception) -> ConfigurationError:
    """Return the error for a function that JAX cannot differentiate."""
    return ConfigurationError(
        f"JAX cannot differentiate {what}: {_brief(error)}. Give it to surrokit.potential or "
        "surrokit.forward_potential as a plain function, for its values alone"
    )


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
