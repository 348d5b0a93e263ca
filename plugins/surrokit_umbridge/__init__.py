"""UM-Bridge on both sides: models behind a server as targets, and targets served to others.

The protocol is JSON over HTTP: https://um-bridge-benchmarks.readthedocs.io. Its own package is not
needed. Modules are imported when they are first asked for, so that listing plugins stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from surrokit import Component, hookimpl

if TYPE_CHECKING:
    from surrokit_umbridge.client import Model, connect, potential
    from surrokit_umbridge.server import Server, serve

__all__ = ["potential", "connect", "Model", "serve", "Server"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        module = "server" if name in ("serve", "Server") else "client"
        return getattr(import_module(f"surrokit_umbridge.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_COMPONENTS = (
    Component(
        kind="potential",
        name="umbridge",
        factory="surrokit_umbridge.client:potential",
        summary="A model behind a server that speaks UM-Bridge, as log density or forward map",
        references=(
            "Seelinger and others (2023), doi:10.21105/joss.04748",
            "https://um-bridge-benchmarks.readthedocs.io",
        ),
        examples=(),  # there is no server to ask
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer models behind servers as targets."""
    return _COMPONENTS
