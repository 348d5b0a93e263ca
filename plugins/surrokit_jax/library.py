"""JAX itself, in double precision, and what to do where it is not."""

from __future__ import annotations

import sys
from typing import Any

from surrokit.errors import ConfigurationError, ResultTypeError
from surrokit.registry.components import load_library

_TURN_ON = (
    'jax.config.update("jax_enable_x64", True)  # before any array is made, or JAX_ENABLE_X64=1 '
    "in the environment"
)


def load_jax() -> Any:
    """Return JAX, in double precision.

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    ConfigurationError
        If it computes in single precision.
    """
    jax: Any = load_library("jax", "jax")
    if not jax.config.jax_enable_x64:
        raise ConfigurationError(
            "JAX computes in single precision, which is too coarse for acceptance probabilities; "
            f"run {_TURN_ON}"
        )
    return jax


def load_jax_elsewhere() -> None:
    """Have JAX compute in double precision in a process that a target was sent to.

    Raises
    ------
    ConfigurationError
        If somebody has imported it there already, and left it in single precision.
    """
    is_new = "jax" not in sys.modules
    jax: Any = load_library("jax", "jax")
    if is_new:
        jax.config.update("jax_enable_x64", True)
    load_jax()


def single_precision(what: str, came: object) -> ResultTypeError:
    """Return the error for numbers that are not in double precision."""
    return ResultTypeError(
        f"{what} must return numbers in double precision (float64), got {came}: either it casts to "
        f"that type inside, or its data were made before double precision was on; run {_TURN_ON}"
    )
