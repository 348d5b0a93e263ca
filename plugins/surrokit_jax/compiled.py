"""JAX in double precision: functions of one position, traced, compiled for rows, and sent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import is_whole, load_library
from surrokit.errors import ConfigurationError, ResultTypeError
from surrokit.types import FloatArray

MOST_AT_ONCE = 1024
"""Rows of one call; more are taken in parts, for the sake of memory."""

_BRIEF = 300  # characters of JAX's own message
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
    and the most that is added is half as many rows again. It depends on n alone, so that
    results do not depend on what was called before.
    """
    size = 1 << max(n - 1, 0).bit_length()
    smaller = 3 * size // 4
    return smaller if size >= 8 and n <= smaller else size


@attrs.define(eq=False)
class Compiled:
    """A function of one position, compiled for rows at its first call, also that of a copy.

    It takes a position (dim,), perhaps with further arrays, and returns an array; ``what`` it is,
    is for messages.
    """

    what: str
    function: Callable[..., Any]
    _program: Any = attrs.field(init=False, default=None)

    def __call__(self, *rows: FloatArray) -> FloatArray:
        """Return the results at n rows, shape (n, ...); ResultTypeError if in single precision."""
        n = len(rows[0])
        if 0 < n <= MOST_AT_ONCE:
            return self._at_once(rows, n)
        if n == 0:
            return self._at_once(tuple(np.zeros((1, *array.shape[1:])) for array in rows), 1)[:0]
        starts = range(0, n, MOST_AT_ONCE)
        parts = [tuple(array[at : at + MOST_AT_ONCE] for array in rows) for at in starts]
        return np.concatenate([self._at_once(part, len(part[0])) for part in parts])

    def __reduce__(self) -> tuple[Any, tuple[str, Callable[..., Any]]]:
        return Compiled, (self.what, self.function)

    def _at_once(self, rows: tuple[FloatArray, ...], n: int) -> FloatArray:
        if self._program is None:
            jax = load_jax()
            self._program = jax.jit(jax.vmap(self.function))
        more = padded(n) - n
        if more:
            rows = tuple(np.concatenate([array, np.repeat(array[:1], more, 0)]) for array in rows)
        array = np.asarray(self._program(*rows))
        _check_precision(self.what, array.dtype)
        return array[:n].copy()


class Travelling:
    """Base of an attrs class whose functions of JAX go along by their code when it is pickled."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        import cloudpickle  # late: importing stays fast

        fields: Any = attrs.fields(type(self))  # type: ignore[arg-type]
        settings = {field.name: getattr(self, field.name) for field in fields if field.init}
        return _rebuild, (cloudpickle.dumps((type(self), settings)),)


def _rebuild(packed: bytes) -> Any:
    import cloudpickle  # late: importing stays fast

    is_new = "jax" not in sys.modules
    jax: Any = load_library("jax", "jax")
    if is_new:  # before anything is unpacked: arrays would be in single precision
        jax.config.update("jax_enable_x64", True)
    load_jax()
    kind, settings = cloudpickle.loads(packed)
    return kind(**settings)


def trace(what: str, function: Callable[[Any], Any], dim: int) -> tuple[int, ...]:
    """Return the shape of what a function of a position (dim,) returns.

    Raises
    ------
    ConfigurationError, ResultTypeError
        If it cannot be traced, or is not in double precision.
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


def check_order(wanted: int | None, most: int) -> None:
    """Raise ConfigurationError if an order of derivatives is none."""
    if wanted is not None and not (is_whole(wanted, 0) and wanted <= most):
        raise ConfigurationError(
            f"derivatives must be a whole number between 0 and {most}, or None, got {wanted!r}"
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


def cannot_differentiate(what: str, order: int, error: Exception) -> ConfigurationError:
    """Return the error for a derivative of some order that JAX cannot make."""
    times = ("once", "twice", "three times")[order - 1]
    return ConfigurationError(
        f"JAX cannot differentiate {what} {times}: {_brief(error)}; pass derivatives={order - 1}"
    )


def _brief(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:_BRIEF]}{' ...' if len(text) > _BRIEF else ''}"
