"""PyMC itself, in double precision, and what to do where it is not."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from surrokit.errors import ConfigurationError, MissingDependencyError

_TURN_ON = (
    'set pytensor.config.floatX = "float64", or leave floatX out of PYTENSOR_FLAGS, before the '
    "model is written down"
)


def load(name: str, extra: str) -> Any:
    """Return an optional library.

    Parameters
    ----------
    name
        How it is imported.
    extra
        The extra of surrokit that brings it.

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"{name} is needed for this target and cannot be imported ({error}); run "
            f"python -m pip install 'surrokit[{extra}]'"
        ) from error


def load_pymc() -> Any:
    """Return PyMC, in double precision.

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    ConfigurationError
        If it computes in single precision.
    """
    pymc = load("pymc", "pymc")
    floats = load("pytensor", "pymc").config.floatX
    if floats != "float64":
        raise single_precision(f"PyTensor's floatX is {floats}")
    return pymc


def single_precision(what: str) -> ConfigurationError:
    """Return the error for a model that computes in single precision."""
    return ConfigurationError(
        f"{what}, which is too coarse for acceptance probabilities; {_TURN_ON}"
    )
