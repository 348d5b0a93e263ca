"""What surrokit_corrections offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surrokit.components import Component
from surrokit.markers import hookimpl

if TYPE_CHECKING:
    from surrokit_corrections.metropolis import Metropolis


def metropolis() -> Metropolis:
    """Make the Metropolis-Hastings correction."""
    from surrokit_corrections.metropolis import Metropolis

    return Metropolis()


@hookimpl
def surrokit_register_corrections() -> list[Component]:
    """Offer corrections."""
    return [
        Component(
            kind="correction",
            name="metropolis",
            factory=metropolis,
            summary="Metropolis-Hastings with the full exact potential: one value a proposal",
            references=("Zhang, Shahbaba and Zhao (2017), arXiv:1506.05555, appendix A",),
        )
    ]
