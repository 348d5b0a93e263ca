"""The bottom of a potential, which every distribution has."""

from __future__ import annotations

import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.errors import TargetError
from surrokit.mode.mode import Mode
from surrokit.targets.bounds import describe_position

BOTTOM, AWAY = -1e8, 1e4
"""Potential, in nats, and distance from 0 beyond which a search that goes on has no end."""


def demand_bottom(potential: Potential, found: Mode) -> None:
    """Raise if a search fell and fell, as on a potential whose sign is turned.

    Parameters
    ----------
    potential
        What was searched; its parameters are named in the message.
    found
        Where the search came to.

    Raises
    ------
    TargetError
        If that is very far down and very far away, and the search has not converged there.
    """
    far = float(np.abs(found.position).max())
    if found.converged or not (found.value < BOTTOM and far > AWAY):
        return
    raise TargetError(
        f"the target has no least potential: it falls to {found.value:.3g} at "
        f"{describe_position(potential, found.position)}, and on; check its sign "
        "(surrokit.potential takes U = -log density, or log_density=...), and if that is right "
        "declare bounds or priors, as no distribution has such a density"
    )
