"""Models written down in Stan as targets.

Modules are imported when they are first asked for, and BridgeStan only where a file is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surrokit_stan.target import from_stan

__all__ = ["from_stan"]


def __getattr__(name: str) -> Any:
    if name == "from_stan":
        from surrokit_stan import target

        return target.from_stan
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
