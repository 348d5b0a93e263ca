"""UM-Bridge on both sides: models behind a server as targets, and targets served to others.

The protocol is JSON over HTTP: https://um-bridge-benchmarks.readthedocs.io. Its own package is not
needed. Modules are imported when they are first asked for, so that listing plugins stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surrokit_umbridge.model import Model, connect
    from surrokit_umbridge.server import Server, serve
    from surrokit_umbridge.target import potential

__all__ = ["potential", "connect", "Model", "serve", "Server"]

_MODULES = {
    "potential": "surrokit_umbridge.target",
    "connect": "surrokit_umbridge.model",
    "Model": "surrokit_umbridge.model",
    "serve": "surrokit_umbridge.server",
    "Server": "surrokit_umbridge.server",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
