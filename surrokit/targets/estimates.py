"""Targets whose values are estimates: their noise, as a user declares it or a run recognises it."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import attrs

from surrokit.arguments import is_number
from surrokit.errors import ConfigurationError
from surrokit.model.model import PassingWrapper
from surrokit.potentials import Potential, find_within

NoiseSd: TypeAlias = float | Literal["estimate", "returned"]
"""A number of nats; ``"estimate"`` where it is not known; or ``"returned"`` as the quantity
``noise_sd`` beside each value."""

NOISE_SD, RETURNED = "noise_sd", "returned"
"""Name of the quantity by which values come with their noise, and the word for that."""

LARGEST = 1.5
"""Standard deviation of a log likelihood above which chains on estimates of it get stuck (Doucet,
Pitt, Deligiannidis and Kohn 2015, doi:10.1093/biomet/asu075)."""


@attrs.frozen(kw_only=True)
class Noise:
    """The noise of values of U.

    Parameters
    ----------
    sd
        Its standard deviation.
    is_unbiased
        Whether estimates of the density, exp(-U), have the right mean; else those of U have.
    """

    sd: NoiseSd = "estimate"
    is_unbiased: bool = False


@attrs.frozen(eq=False)
class NoisyPotential(PassingWrapper):
    """A potential whose values are estimates."""

    inner: Potential
    noise: Noise


def declare_noise(target: Potential, noise_sd: object, estimate: object) -> Potential:
    """Return a target whose values are what a user says; itself where nothing is said.

    Raises
    ------
    ConfigurationError
        If ``noise_sd`` is no positive number and none of the words, or ``estimate`` is another one.
    """
    if noise_sd is None and estimate is None:
        return target
    sd = "estimate" if noise_sd is None else noise_sd
    is_known = is_number(sd) and 0.0 < float(sd) < float("inf")  # type: ignore[arg-type]
    words = get_args(get_args(NoiseSd)[1])
    if not is_known and not (isinstance(sd, str) and sd in words):
        raise ConfigurationError(
            f"noise_sd must be a positive number, or one of {', '.join(words)}, got {noise_sd!r}. "
            "Leave it out where values are exact"
        )
    if estimate not in (None, "unbiased"):
        raise ConfigurationError(
            f"estimate must be 'unbiased', got {estimate!r}. Leave it out where log densities are "
            "estimated without bias, and not densities"
        )
    sd = sd if isinstance(sd, str) else float(sd)  # type: ignore[arg-type]
    noise = Noise(sd=sd, is_unbiased=estimate is not None)  # type: ignore[arg-type]
    return NoisyPotential(target, noise)


def noise_of(potential: Potential) -> Noise | None:
    """Return the noise that a target declares; None where its values are exact."""
    found: Noise | None = find_within(potential, "noise", Noise)
    return found
