"""Activations of additive nodes, with their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray

Elementwise: TypeAlias = Callable[[FloatArray], FloatArray]
"""A function of each element of an array; the result has the array's shape."""

_LOG_2 = float(np.log(2.0))


@attrs.frozen(kw_only=True)
class Core:
    """What is left to compute of an activation once all that is linear is folded away.

    ``a(x) = tilt * x + value(rate * x)``. A fitted network folds ``tilt`` and ``rate`` into its
    weights, so that each node costs one call of ``slope`` for a gradient. Every function here
    owns its argument and may overwrite it.

    Parameters
    ----------
    value, slope
        The function and its first derivative.
    both
        Value and slope at once.
    tilt, rate
        See above.
    """

    value: Elementwise
    slope: Elementwise
    both: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    tilt: float = 0.0
    rate: float = 1.0


@attrs.frozen(kw_only=True)
class Activation:
    """A function of one number with its first three derivatives, elementwise on arrays.

    Parameters
    ----------
    name
        How messages call it.
    value, first, second, third
        The function and its derivatives; they leave their argument as it is.
    core : Core, optional
        The same function in the form that costs least; made from ``value`` and ``first`` if not
        given.

    Examples
    --------
    >>> sine = Activation(
    ...     name="sine",
    ...     value=np.sin,
    ...     first=np.cos,
    ...     second=lambda x: -np.sin(x),
    ...     third=lambda x: -np.cos(x),
    ... )
    """

    name: str
    value: Elementwise
    first: Elementwise
    second: Elementwise
    third: Elementwise
    core: Core = attrs.field(repr=False)

    @core.default
    def _plain_core(self) -> Core:
        both = partial(_value_and_first, self.value, self.first)
        return Core(value=self.value, slope=self.first, both=both)

    def __str__(self) -> str:
        return self.name


BuiltIn: TypeAlias = Literal["softplus", "tanh", "cosine"]
"""Names of activations that settings may give."""


def find_activation(activation: BuiltIn | Activation) -> Activation:
    """Return the built-in activation of that name, or the activation itself.

    Raises
    ------
    ConfigurationError
        If there is none of that name.
    """
    if isinstance(activation, Activation):
        return activation
    if activation not in BUILT_IN:
        raise ConfigurationError(
            f"activation must be one of {', '.join(BUILT_IN)}, or an Activation, "
            f"got {activation!r}; make an Activation of a function and its three derivatives"
        )
    return BUILT_IN[activation]


def _value_and_first(
    value: Elementwise, first: Elementwise, x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    return value(x), first(x)


# Functions of the built-in activations have names, not lambda, so that networks can be pickled.


def _softplus(x: FloatArray) -> FloatArray:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def _softplus_first(x: FloatArray) -> FloatArray:
    return 0.5 + 0.5 * np.tanh(0.5 * x)


def _softplus_second(x: FloatArray) -> FloatArray:
    # From exp(-|x|), so that it stays accurate where it is tiny.
    tail = np.exp(-np.abs(x))
    return tail / (1.0 + tail) ** 2


def _softplus_third(x: FloatArray) -> FloatArray:
    tail = np.exp(-np.abs(x))
    share = 1.0 / (1.0 + tail)
    return np.copysign(tail * (1.0 - tail) * share * share * share, -x)


def _log_two_cosh(half: FloatArray) -> FloatArray:
    return _log_two_cosh_and_tanh(half)[0]


def _log_two_cosh_and_tanh(half: FloatArray) -> tuple[FloatArray, FloatArray]:
    # log(2 cosh h) = |h| + log 2 - log(1 + |tanh h|): one tanh serves value and slope, and nothing
    # can overflow. Timed against forms with exp and expit: none is faster.
    slope = np.tanh(half)
    value = np.abs(slope)
    np.log1p(value, out=value)
    np.subtract(_LOG_2, value, out=value)
    np.abs(half, out=half)
    value += half
    return value, slope


def _tanh_in_place(x: FloatArray) -> FloatArray:
    return np.tanh(x, out=x)


def _tanh_slope(x: FloatArray) -> FloatArray:
    np.tanh(x, out=x)
    np.multiply(x, x, out=x)
    return np.subtract(1.0, x, out=x)


def _tanh_both(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    value = np.tanh(x)
    np.multiply(value, value, out=x)
    return value, np.subtract(1.0, x, out=x)


def _tanh_first(x: FloatArray) -> FloatArray:
    return 1.0 - np.tanh(x) ** 2


def _tanh_second(x: FloatArray) -> FloatArray:
    value = np.tanh(x)
    return -2.0 * value * (1.0 - value * value)


def _tanh_third(x: FloatArray) -> FloatArray:
    square = np.tanh(x) ** 2
    return (1.0 - square) * (6.0 * square - 2.0)


def _cosine_first(x: FloatArray) -> FloatArray:
    return -np.sin(x)


def _cosine_second(x: FloatArray) -> FloatArray:
    return -np.cos(x)


def _identity(x: FloatArray) -> FloatArray:
    return x.copy()


def _one(x: FloatArray) -> FloatArray:
    return np.ones_like(x)


def _zero(x: FloatArray) -> FloatArray:
    return np.zeros_like(x)


def _half_square(x: FloatArray) -> FloatArray:
    return 0.5 * x * x


SOFTPLUS = Activation(
    name="softplus",
    value=_softplus,
    first=_softplus_first,
    second=_softplus_second,
    third=_softplus_third,
    core=Core(
        value=_log_two_cosh, slope=_tanh_in_place, both=_log_two_cosh_and_tanh, tilt=0.5, rate=0.5
    ),
)
"""log(1 + exp(x)), the activation of the paper's experiments: x/2 + log(2 cosh(x/2))."""

TANH = Activation(
    name="tanh",
    value=np.tanh,
    first=_tanh_first,
    second=_tanh_second,
    third=_tanh_third,
    core=Core(value=_tanh_in_place, slope=_tanh_slope, both=_tanh_both),
)
"""Hyperbolic tangent; bounded, so the network goes flat far away."""

COSINE = Activation(
    name="cosine", value=np.cos, first=_cosine_first, second=_cosine_second, third=np.sin
)
"""Cosine: random Fourier features."""

LINEAR = Activation(name="linear", value=_identity, first=_one, second=_zero, third=_zero)
"""x itself: a node of a linear trend."""

HALF_SQUARE = Activation(
    name="half-square", value=_half_square, first=_identity, second=_one, third=_zero
)
"""x^2 / 2: a node of a quadratic trend."""

BUILT_IN = {activation.name: activation for activation in (SOFTPLUS, TANH, COSINE)}
"""Activations that settings may name; those of trends are none for a network."""
