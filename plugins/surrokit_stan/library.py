"""BridgeStan, and what to do where it is not."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from surrokit.errors import MissingDependencyError


def load_bridgestan() -> Any:
    """Return BridgeStan.

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    """
    try:
        return import_module("bridgestan")
    except ImportError as error:
        raise MissingDependencyError(
            f"bridgestan is needed to load a model in Stan and cannot be imported ({error}); run "
            "python -m pip install 'surrokit[stan]'"
        ) from error
