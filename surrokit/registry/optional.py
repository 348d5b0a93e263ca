"""Libraries that extras bring, imported where a part first needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from surrokit.errors import MissingDependencyError


def load_library(name: str, extra: str, purpose: str = "for this target") -> Any:
    """Return an optional library.

    Parameters
    ----------
    name
        How it is imported.
    extra
        The extra of surrokit that brings it.
    purpose
        What it is needed for, in words that follow "is needed".

    Raises
    ------
    MissingDependencyError
        If it cannot be imported.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"{name} is needed {purpose} and cannot be imported ({error}); run "
            f"python -m pip install 'surrokit[{extra}]'"
        ) from error
