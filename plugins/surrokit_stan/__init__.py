"""Models written down in Stan as targets.

Modules are imported when they are first asked for, and BridgeStan only where a file is given.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surrokit_stan.target import from_stan

__all__ = ["from_stan"]

_MODULES = {"from_stan": "surrokit_stan.target"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
