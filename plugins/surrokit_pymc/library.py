"""PyMC itself, in double precision, and what to do where it is not."""

from __future__ import annotations

from typing import Any

from surrokit.errors import ConfigurationError
from surrokit.registry.components import load_library

_TURN_ON = (
    'set pytensor.config.floatX = "float64", or leave floatX out of PYTENSOR_FLAGS, before the '
    "model is written down"
)


def load_pymc() -> Any:
    """Return PyMC, in double precision.

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    ConfigurationError
        If it computes in single precision.
    """
    pymc = load_library("pymc", "pymc")
    floats = load_library("pytensor", "pymc").config.floatX
    if floats != "float64":
        raise single_precision(f"PyTensor's floatX is {floats}")
    return pymc


def single_precision(what: str) -> ConfigurationError:
    """Return the error for a model that computes in single precision."""
    return ConfigurationError(
        f"{what}, which is too coarse for acceptance probabilities; {_TURN_ON}"
    )
