"""Hyperparameters of a squared-exponential process."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import Limits, is_number, not_negative, positive
from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray

LengthScales: TypeAlias = float | tuple[float, ...]
"""One length scale for all coordinates, or one for each."""


def _scales(value: Any) -> Any:
    if is_number(value):
        return float(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return float(value)
    if isinstance(value, Iterable) and not isinstance(value, str):
        return tuple(value.tolist() if isinstance(value, np.ndarray) else value)
    return value


def _positive_scales(_: object, __: object, value: Any) -> None:
    scales = value if isinstance(value, tuple) else (value,)
    if not scales or not all(is_number(x) and 0.0 < x < math.inf for x in scales):
        raise ConfigurationError(
            "length_scales must be a positive finite number, or one for each coordinate, "
            f"got {value!r}"
        )


@attrs.frozen(kw_only=True)
class Hyperparameters:
    """Length scales, signal and noise of a squared-exponential process.

    Parameters
    ----------
    length_scales : float or sequence of float
        l, one for all coordinates or one for each, in the coordinates that the kernel sees:
        whitened ones unless ``whiten=False``.
    signal_sd
        s, standard deviation of the process about its mean function, in nats.
    noise_sd
        sigma, standard deviation of the noise of a value, in nats; that of a derivative along one
        length scale is the same.

    Raises
    ------
    ConfigurationError
        If a number makes no sense.
    """

    length_scales: LengthScales = attrs.field(converter=_scales, validator=_positive_scales)
    signal_sd: float = attrs.field(validator=positive)
    noise_sd: float = attrs.field(validator=not_negative)

    def scales(self, dim: int) -> FloatArray:
        """Return the length scale of each coordinate, shape (dim,).

        Raises
        ------
        ConfigurationError
            If there is neither one length scale nor one for each of ``dim`` coordinates.
        """
        if isinstance(self.length_scales, tuple) and len(self.length_scales) != dim:
            raise ConfigurationError(
                f"hyperparameters have {len(self.length_scales)} length scales, but positions have "
                f"{dim} coordinates; give one length scale, or one for each"
            )
        return np.full(dim, self.length_scales, dtype=np.float64)


check_noise = attrs.validators.optional(not_negative)
"""Takes None or a finite standard deviation that is not negative."""


def check_one_noise(noise: float | None, hyperparameters: Hyperparameters | None) -> None:
    """Refuse two answers to one question.

    Raises
    ------
    ConfigurationError
        If both are given.
    """
    if noise is not None and hyperparameters is not None:
        raise ConfigurationError(
            f"noise={noise} is given beside hyperparameters, which hold noise_sd="
            f"{hyperparameters.noise_sd}; give one of the two"
        )


def given_hyperparameters(
    value: Hyperparameters | Mapping[str, float | Sequence[float]] | None,
) -> Any:
    """Return hyperparameters from a mapping of their names to numbers; others as they are."""
    numbers: Any = value
    return Hyperparameters(**numbers) if isinstance(value, Mapping) else value


check_hyperparameters = Limits(
    "None, Hyperparameters, or a mapping with length_scales, signal_sd and noise_sd",
    lambda value: isinstance(value, Hyperparameters | None),
)
"""Takes hyperparameters or None."""
