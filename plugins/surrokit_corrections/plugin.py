"""What surrokit_corrections offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surrokit.components import Component
from surrokit.markers import hookimpl

if TYPE_CHECKING:
    from surrokit_corrections.metropolis import Metropolis
    from surrokit_corrections.subsampled import Subsampled


def metropolis() -> Metropolis:
    """Make the Metropolis-Hastings correction."""
    from surrokit_corrections.metropolis import Metropolis

    return Metropolis()


def subsampled(*, order: int | None = None) -> Subsampled:
    """Make the correction that looks at a few rows of the data."""
    from surrokit_corrections.subsampled import Subsampled

    return Subsampled(order=order)


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
        ),
        Component(
            kind="correction",
            name="subsampled",
            factory=subsampled,
            summary="Exact, by a few rows of a sum over data (capability rows) a proposal",
            references=(
                "Cornish, Vanetti, Bouchard-Cote, Deligiannidis and Doucet (2019), "
                "arXiv:1901.09881",
            ),
        ),
    ]
