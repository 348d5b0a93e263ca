"""The potential and the step size that a sampler uses."""

from __future__ import annotations

from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import Tuning
from surrokit.errors import ConfigurationError


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


def step_in_use(sampler: str, given: float | None, tuning: Tuning | None) -> float:
    """Return the step size that was given, or else the tuned one.

    Parameters
    ----------
    sampler
        Its name, for the message.
    given
        What the user asked for.
    tuning
        What tuning found.

    Raises
    ------
    ConfigurationError
        If there is neither.
    """
    if given is not None:
        return given
    if tuning is None:
        raise ConfigurationError(
            f"{sampler} has no step size yet; give step_size, or let a warm-up tune it"
        )
    return tuning.step_size
