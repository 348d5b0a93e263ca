"""The potential that a sampler moves on."""

from __future__ import annotations

from surrokit.errors import ConfigurationError
from surrokit.protocols import Potential


def potential_in_use(sampler: str, potential: Potential | None) -> Potential:
    """Return the potential that a sampler was given.

    Parameters
    ----------
    sampler
        Its name, for the message.
    potential
        What it moves on; None before ``with_potential``.

    Raises
    ------
    ConfigurationError
        If it was given none.
    """
    if potential is None:
        raise ConfigurationError(
            f"{sampler} has no potential to move on; call with_potential(potential) first"
        )
    return potential
