"""Models written down with PyMC or Bambi as targets.

Modules are imported when they are first asked for, and PyMC when the first target is made.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from surrokit import Component, hookimpl

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


_COMPONENTS = (
    Component(
        kind="potential",
        name="pymc",
        factory="surrokit_pymc.target:from_pymc",
        summary="A model written down with PyMC, with draws by its names",
        references=("Abril-Pla and others (2023), doi:10.7717/peerj-cs.1516",),
        examples=(),  # PyMC may be absent
    ),
    Component(
        kind="potential",
        name="bambi",
        factory="surrokit_pymc.bambi_model:from_bambi",
        summary="A regression written down as a formula with Bambi, with draws by its names",
        references=("Capretto and others (2022), doi:10.18637/jss.v103.i15",),
        examples=(),
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer models of PyMC and Bambi as targets."""
    return _COMPONENTS
