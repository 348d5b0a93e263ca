"""Models written down with PyMC or Bambi as targets.

Modules are imported when they are first asked for, and PyMC when the first target is made.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surrokit_pymc.bambi_model import from_bambi
    from surrokit_pymc.target import from_pymc

__all__ = ["from_pymc", "from_bambi"]

_MODULES = {
    "from_pymc": "surrokit_pymc.target",
    "from_bambi": "surrokit_pymc.bambi_model",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
