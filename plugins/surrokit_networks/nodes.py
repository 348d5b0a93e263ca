"""Nodes of a random network: additive and radial ones in one form, and how they are drawn.

Section 3.1 of the paper has two kinds: additive, a(w . z + d), and radial,
exp(-|z - c|^2 / (2 l^2)). Both are a function of one number that is linear in *lifted* positions Z,

    phi(h),  h = p . Z + o,

with Z = z and p = w for additive nodes. Radial ones are curved: Z = (z, |z|^2 / 2), phi = exp,
p = (c, -1) / l^2 and o = -|c|^2 / (2 l^2). A direction u at z lifts to U = (u, z . u), its
derivative, and a slope A by Z lowers to a + b z, with A = (a, b). So gradients of a network are
those of an additive one, lifted and lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import attrs
import numpy as np

from surrokit.types import FloatArray

Elementwise: TypeAlias = Callable[[FloatArray], FloatArray]
"""A function of each element of an array; the result has the array's shape."""

SCRATCH = 2_000_000
"""Numbers of scratch that a block of rows may take."""


@attrs.frozen(kw_only=True)
class Activation:
    """A function of one number with its first three derivatives, elementwise on arrays.

    ``both`` returns value and first derivative as new arrays, and may overwrite its argument.
    """

    both: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    second: Elementwise
    third: Elementwise


def _softplus(x: FloatArray) -> tuple[FloatArray, FloatArray]:
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
    return np.copysign(tail * (1.0 - tail) / (1.0 + tail) ** 3, -x)


def _exponential(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    value = np.exp(x, out=x)
    return value, value.copy()


_NONE: Elementwise = np.zeros_like

ACTIVATIONS = {
    "softplus": Activation(both=_softplus, second=_softplus_second, third=_softplus_third),
    "exponential": Activation(both=_exponential, second=np.exp, third=np.exp),
    "one": Activation(
        both=lambda x: (np.ones_like(x), np.zeros_like(x)), second=_NONE, third=_NONE
    ),
    "identity": Activation(both=lambda x: (x, np.ones_like(x)), second=_NONE, third=_NONE),
    "square": Activation(both=lambda x: (0.5 * x * x, x), second=np.ones_like, third=_NONE),
}
"""That of the paper's experiments, that of radial nodes, and those of the columns of a trend."""


@attrs.frozen(kw_only=True, eq=False)
class Nodes:
    """Nodes phi(p_i . Z + o_i) of lifted whitened positions Z.

    ``vectors (s, dim)``, or ``(s, dim + 1)`` if curved, are p_i, and ``offsets (s,)`` o_i. The
    ``activation`` is a name in :data:`ACTIVATIONS`.
    """

    # Fortran order: products of few rows with it and with its transpose are then both fast, where
    # the other order takes twice as long for one of them.
    vectors: FloatArray = attrs.field(converter=np.asfortranarray)
    offsets: FloatArray
    activation: str
    curved: bool = False

    @classmethod
    def additive(cls, directions: FloatArray, biases: FloatArray, activation: str) -> Nodes:
        """Return a(w_i . z + d_i) for directions (s, dim) and biases (s,)."""
        return cls(vectors=directions, offsets=biases, activation=activation)

    @classmethod
    def radial(cls, centres: FloatArray, square_widths: FloatArray) -> Nodes:
        """Return exp(-|z - c_i|^2 / (2 l_i^2)) for centres (s, dim) and squared widths (s,)."""
        vectors = centres / square_widths[:, None]
        return cls(
            vectors=np.column_stack([vectors, -1.0 / square_widths]),
            offsets=-0.5 * np.einsum("sd,sd->s", vectors, centres),
            activation="exponential",
            curved=True,
        )

    @classmethod
    def none(cls, dim: int) -> Nodes:
        """Return no nodes at all: what a trend alone has."""
        return cls(vectors=np.empty((0, dim)), offsets=np.empty(0), activation="exponential")

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def phi(self) -> Activation:
        """The activation."""
        return ACTIVATIONS[self.activation]

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return int(self.vectors.shape[1]) - self.curved

    def lift(self, z: FloatArray) -> FloatArray:
        """Return Z at whitened positions (n, dim)."""
        return np.column_stack([z, 0.5 * np.einsum("nd,nd->n", z, z)]) if self.curved else z

    def lift_vectors(self, z: FloatArray, u: FloatArray) -> FloatArray:
        """Return directions (n, ..., dim) as those of Z, in the last axis."""
        if not self.curved:
            return u
        return np.concatenate([u, np.einsum("n...d,nd->n...", u, z)[..., None]], axis=-1)

    def lower(self, z: FloatArray, slopes: FloatArray) -> FloatArray:
        """Return slopes by z from slopes by Z, in axis 1 of an array (n, ...)."""
        if not self.curved:
            return slopes
        dim = z.shape[1]
        z = z.reshape(z.shape + (1,) * (slopes.ndim - 2))
        return np.asarray(slopes[:, :dim] + slopes[:, dim:] * z)

    def arguments(self, z: FloatArray) -> FloatArray:
        """Return h, shape (n, s), at whitened positions (n, dim)."""
        arguments: FloatArray = self.lift(z) @ self.vectors.T
        arguments += self.offsets
        return arguments

    def features(self, z: FloatArray) -> FloatArray:
        """Return phi(h), shape (n, s), at whitened positions (n, dim)."""
        return self.features_and_slopes(z)[0]

    def features_and_slopes(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return phi(h) and phi'(h), each (n, s)."""
        return self.phi.both(self.arguments(z))


def row_blocks(n_rows: int, scratch: int, most: int = SCRATCH) -> Iterator[slice]:
    """Yield slices that cover rows in order, where each row takes so many numbers of scratch.

    Where a row takes none, as without nodes, there is nothing to do, and no slice.
    """
    size = max(1, most // scratch) if scratch else n_rows
    for start in range(0, n_rows if scratch else 0, size):
        yield slice(start, start + size)
