"""Activations of nodes, with their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray

Elementwise: TypeAlias = Callable[[FloatArray], FloatArray]
"""A function of each element of an array; the result has the array's shape."""


@attrs.frozen(kw_only=True)
class Activation:
    """A function of one number with its first three derivatives, elementwise on arrays.

    Parameters
    ----------
    value, first, second, third
        The function and its derivatives; they leave their argument as it is.
    both : callable, optional
        Value and first derivative at once, as new arrays; may overwrite its argument.

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
    both: Callable[[FloatArray], tuple[FloatArray, FloatArray]] | None = None

    def __str__(self) -> str:
        return self.name

    def value_and_first(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the function and its derivative as new arrays; may overwrite ``x``."""
        return (self.value(x), self.first(x)) if self.both is None else self.both(x)


BuiltIn: TypeAlias = Literal["softplus", "cosine"]
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


# Named functions, not lambdas, so that networks can be pickled.


def _softplus(x: FloatArray) -> FloatArray:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def _softplus_first(x: FloatArray) -> FloatArray:
    slope = 0.5 * x
    np.tanh(slope, out=slope)
    slope *= 0.5
    slope += 0.5
    return slope


def _softplus_both(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    # With h = x/2: h + |h| + log 2 - log(1 + |tanh h|). One tanh serves value and slope, and
    # nothing can overflow.
    x *= 0.5
    slope = np.tanh(x)
    value = np.abs(slope)
    np.log1p(value, out=value)
    np.subtract(np.log(2.0), value, out=value)
    value += x
    value += np.abs(x, out=x)
    slope *= 0.5
    slope += 0.5
    return value, slope


def _softplus_second(x: FloatArray) -> FloatArray:
    # From exp(-|x|), so that it stays accurate where it is tiny.
    tail = np.exp(-np.abs(x))
    return tail / (1.0 + tail) ** 2


def _softplus_third(x: FloatArray) -> FloatArray:
    tail = np.exp(-np.abs(x))
    share = 1.0 / (1.0 + tail)
    return np.copysign(tail * (1.0 - tail) * share * share * share, -x)


def _cosine_first(x: FloatArray) -> FloatArray:
    return -np.sin(x)


def _cosine_second(x: FloatArray) -> FloatArray:
    return -np.cos(x)


def _exponential_both(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    value = np.exp(x, out=x)
    return value, value.copy()


SOFTPLUS = Activation(
    name="softplus",
    value=_softplus,
    first=_softplus_first,
    second=_softplus_second,
    third=_softplus_third,
    both=_softplus_both,
)
"""log(1 + exp(x)), the activation of the paper's experiments."""

COSINE = Activation(
    name="cosine", value=np.cos, first=_cosine_first, second=_cosine_second, third=np.sin
)
"""Cosine: random Fourier features."""

EXPONENTIAL = Activation(
    name="exponential",
    value=np.exp,
    first=np.exp,
    second=np.exp,
    third=np.exp,
    both=_exponential_both,
)
"""What radial nodes have (:meth:`surrokit_networks.nodes.Nodes.radial`); no setting names it."""

BUILT_IN = {activation.name: activation for activation in (SOFTPLUS, COSINE)}
"""Activations that settings may name."""
