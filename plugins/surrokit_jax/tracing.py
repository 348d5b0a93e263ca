"""What JAX tells of a function without a call: its result, and its derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from surrokit.arguments import is_whole
from surrokit.errors import ConfigurationError, ShapeError
from surrokit_jax.derivatives import BY_ORDER, DERIVATIVES
from surrokit_jax.library import load_jax, single_precision

_BRIEF = 300  # characters of JAX's own message


def trace(what: str, function: Callable[[Any], Any], dim: int) -> tuple[int, ...]:
    """Return the shape of what a function of a position (dim,) returns.

    Raises
    ------
    ConfigurationError
        If it cannot be traced.
    ResultTypeError
        If that is not in double precision.
    """
    jax = load_jax()
    try:
        found = jax.eval_shape(function, jax.ShapeDtypeStruct((dim,), np.float64))
    except Exception as error:
        raise ConfigurationError(
            f"{what} cannot be traced by JAX: {_tell(error)}; write it with jax.numpy alone, or "
            "give it to surrokit.potential as a plain function"
        ) from error
    if not hasattr(found, "dtype"):
        raise ConfigurationError(f"{what} must return one array of numbers, got {found!r}")
    if found.dtype != np.float64:
        raise single_precision(what, found.dtype)
    return tuple(found.shape)


def check_number(what: str, function: Callable[[Any], Any], dim: int) -> None:
    """Refuse a function that does not return one number; raises as :func:`trace` does.

    Raises
    ------
    ShapeError
        If it returns an array.
    """
    shape = trace(what, function, dim)
    if shape != ():
        raise ShapeError(
            f"{what} must return one number for one position, got an array of shape {shape}; add "
            "its terms up"
        )


def highest_order(what: str, function: Callable[[Any], Any], dim: int, wanted: int | None) -> int:
    """Return the highest order of derivatives that a potential offers, 0 to 3.

    Parameters
    ----------
    what
        What the function is, for messages.
    function
        U of a position (dim,).
    dim
        Numbers in a position.
    wanted
        The order to offer; None for the highest, and at least 1.

    Raises
    ------
    ConfigurationError
        If JAX cannot differentiate it so often.
    """
    check_order(wanted, most=3)
    jax = load_jax()
    for order, name in enumerate(BY_ORDER[:wanted], start=1):
        error = why_not(DERIVATIVES[name](jax, function), *(dim,) * (1 if order == 1 else 2))
        if error is not None:
            if wanted is None and order > 1:
                return order - 1
            raise cannot_differentiate(what, order, error) from error
    return len(BY_ORDER[:wanted])


def check_order(wanted: int | None, most: int) -> None:
    """Refuse an order of derivatives that is none.

    Raises
    ------
    ConfigurationError
        If it is none.
    """
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
        f"JAX cannot differentiate {what} {times}: {_tell(error)}; pass derivatives={order - 1}"
    )


def _tell(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:_BRIEF]}{' ...' if len(text) > _BRIEF else ''}"
