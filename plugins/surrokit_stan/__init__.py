"""Models written down in Stan as targets.

Modules are imported when they are first asked for, and BridgeStan only where a file is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surrokit import Component, hookimpl

if TYPE_CHECKING:
    from surrokit_stan.target import from_stan

__all__ = ["from_stan"]


def __getattr__(name: str) -> Any:
    if name == "from_stan":
        from surrokit_stan import target

        return target.from_stan
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer models in Stan as targets."""
    stan = Component(
        kind="potential",
        name="stan",
        factory="surrokit_stan.target:from_stan",
        summary="A model written down in Stan, by BridgeStan, with draws by its names",
        references=(
            "Roualdes and others (2023), doi:10.21105/joss.05236",
            "Carpenter and others (2017), doi:10.18637/jss.v076.i01",
        ),
        examples=(),  # BridgeStan may be absent
    )
    return (stan,)
