"""UM-Bridge on both sides: models behind a server as targets, and targets served to others.

The protocol is JSON over HTTP: https://um-bridge-benchmarks.readthedocs.io. Its own package is not
needed. Modules are imported when they are first asked for, so that listing plugins stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surrokit_umbridge.client import Model, connect, potential
    from surrokit_umbridge.server import Server, serve

__all__ = ["potential", "connect", "Model", "serve", "Server"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        module = "server" if name in ("serve", "Server") else "client"
        return getattr(import_module(f"surrokit_umbridge.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
