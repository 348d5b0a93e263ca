"""The search for the mode, by what a gradient of the potential costs."""

from __future__ import annotations

from surrokit.contracts.potential import Potential
from surrokit.limits.meter import SEARCHING, stage
from surrokit.mode.by_values import descend_by_values
from surrokit.mode.descent import TOLERANCE, descend
from surrokit.mode.mode import Mode
from surrokit.mode.scales import Scales
from surrokit.mode.way import Until
from surrokit.model.model import calls_per_gradient
from surrokit.types import FloatArray

MOST_DIM = 60
"""Numbers in a position up to which there is a matrix of second differences, of dim^2 / 2 values
and a few."""


def goes_by_values(potential: Potential) -> bool:
    """Return whether a search goes by values, as gradients are made of them.

    Parameters
    ----------
    potential
        One with capability ``gradient``.
    """
    return calls_per_gradient(potential) > 1 and potential.dim <= MOST_DIM


@stage(SEARCHING)
def find_mode(
    potential: Potential,
    start: FloatArray,
    *,
    max_calls: int = 200,
    tolerance: float = TOLERANCE,
    until: Until | None = None,
    scales: Scales | None = None,
) -> Mode:
    """Find the position of least potential near a start, by values if gradients are made of them.

    The search steps back from a position that cannot be evaluated or whose potential is not
    finite. One search sees one mode.

    Parameters
    ----------
    potential
        One with capability ``gradient``.
    start : ndarray of shape (dim,)
        A position where potential and gradient are finite.
    max_calls
        Evaluations, or as many values as these cost, after which the best position so far is
        returned.
    tolerance
        Nats; the search ends where a Newton step would gain less, or iterations of L-BFGS do. By
        values it ends by :data:`~surrokit.mode.descent.TOLERANCE`.
    until
        Called with finite positions (dim,) that the search comes to, the potential and its gradient
        there; the search ends where it returns True.
    scales
        What is known of the covariance of the mass; a search by gradients alone goes in coordinates
        in which that is the identity. Where there are matrices, or the search goes by values, it is
        not needed.

    Returns
    -------
    Mode
        The best position seen, converged or not.

    Raises
    ------
    CapabilityError
        If the potential has no gradient.
    NumericalError
        If the potential or its gradient is not finite at the start.
    ShapeError
        If ``start`` is not one position.
    """
    if goes_by_values(potential):
        return descend_by_values(potential, start, max_calls=max_calls, until=until)
    return descend(
        potential, start, max_calls=max_calls, tolerance=tolerance, until=until, scales=scales
    )
