"""Nodes of a random network: additive and radial ones in one form, and how they are drawn.

Section 3.1 of the paper has two kinds: additive, a(w . z + d), and radial,
exp(-|z - c|^2 / (2 l^2)). Both are a function of one number that is linear in *lifted* positions Z,

    phi(h),  h = p . Z + o,

with Z = z and p = w for additive nodes. Radial ones are curved: Z = (z, |z|^2 / 2), phi = exp,
p = (c, -1) / l^2 and o = -|c|^2 / (2 l^2). A direction u at z lifts to U = (u, z . u), its
derivative, and a slope A by Z lowers to a + b z, with A = (a, b). So every derivative of a network
is that of an additive one, lifted and lowered, and one term more: of b, as d^2 Z / dz^2 is the
identity in the last coordinate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray

Elementwise: TypeAlias = Callable[[FloatArray], FloatArray]
"""A function of each element of an array; the result has the array's shape."""

Draws: TypeAlias = Literal["gaussian", "orthogonal"]
"""How rows are drawn: independently, or in blocks at right angles (Yu, Suresh, Choromanski,
Holtmann-Rice, Kumar 2016, arXiv:1610.09072)."""

SCRATCH = 2_000_000
"""Numbers of scratch that a block of rows may take."""


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


def find_activation(activation: str | Activation) -> Activation:
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
    slope = np.tanh(0.5 * x)
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
    return np.copysign(tail * (1.0 - tail) / (1.0 + tail) ** 3, -x)


def _cosine_first(x: FloatArray) -> FloatArray:
    return -np.sin(x)


def _cosine_second(x: FloatArray) -> FloatArray:
    return -np.cos(x)


def _exponential_both(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    value = np.exp(x, out=x)
    return value, value.copy()


def _half_square(x: FloatArray) -> FloatArray:
    return 0.5 * x * x


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
"""What radial nodes have; no setting names it."""

BUILT_IN = {activation.name: activation for activation in (SOFTPLUS, COSINE)}
"""Activations that settings may name."""

# Columns of a trend are nodes, too: a constant, z_k, and squares of sums.
ONE = Activation(
    name="one", value=np.ones_like, first=np.zeros_like, second=np.zeros_like, third=np.zeros_like
)
IDENTITY = attrs.evolve(ONE, name="identity", value=np.positive, first=np.ones_like)
SQUARE = attrs.evolve(
    ONE, name="square", value=_half_square, first=np.positive, second=np.ones_like
)


@attrs.frozen(kw_only=True, eq=False)
class Nodes:
    """Nodes phi(p_i . Z + o_i) of lifted whitened positions Z.

    ``vectors (s, dim)``, or ``(s, dim + 1)`` if curved, are p_i, and ``offsets (s,)`` o_i.
    """

    # Fortran order: products of few rows with it and with its transpose are then both fast, where
    # the other order takes twice as long for one of them.
    vectors: FloatArray = attrs.field(converter=np.asfortranarray)
    offsets: FloatArray
    activation: Activation
    curved: bool = False

    @classmethod
    def additive(cls, directions: FloatArray, biases: FloatArray, activation: Activation) -> Nodes:
        """Return a(w_i . z + d_i) for directions (s, dim) and biases (s,)."""
        return cls(vectors=directions, offsets=biases, activation=activation)

    @classmethod
    def radial(cls, centres: FloatArray, square_widths: FloatArray) -> Nodes:
        """Return exp(-|z - c_i|^2 / (2 l_i^2)) for centres (s, dim) and squared widths (s,)."""
        vectors = centres / square_widths[:, None]
        return cls(
            vectors=np.column_stack([vectors, -1.0 / square_widths]),
            offsets=-0.5 * np.einsum("sd,sd->s", vectors, centres),
            activation=EXPONENTIAL,
            curved=True,
        )

    @classmethod
    def none(cls, dim: int) -> Nodes:
        """Return no nodes at all: what a trend alone has."""
        return cls(vectors=np.empty((0, dim)), offsets=np.empty(0), activation=EXPONENTIAL)

    def __len__(self) -> int:
        return len(self.offsets)

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
        return self.activation.value(self.arguments(z))

    def features_and_slopes(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return phi(h) and phi'(h), each (n, s), for little more than one of them."""
        h, activation = self.arguments(z), self.activation
        if activation.both is None:
            return activation.value(h), activation.first(h)
        return activation.both(h)


def row_blocks(n_rows: int, scratch: int, most: int = SCRATCH) -> Iterator[slice]:
    """Yield slices that cover rows in order, where each row takes so many numbers of scratch.

    Where a row takes none, as without nodes, there is nothing to do, and no slice.
    """
    size = max(1, most // scratch) if scratch else n_rows
    for start in range(0, n_rows if scratch else 0, size):
        yield slice(start, start + size)


def normal_rows(kind: Draws, n: int, dim: int, rng: np.random.Generator) -> FloatArray:
    """Draw rows of which each is N(0, I), shape (n, dim).

    The first rows of a larger draw equal the smaller draw from an equal generator, so that a larger
    network has the nodes of a smaller one, and more.
    """
    if kind == "gaussian":
        return rng.standard_normal((n, dim))
    # Two Gaussian matrices a block, so that a block takes the same draws however many follow: one
    # for its directions, one for its lengths, which are distributed as those of Gaussian rows.
    shapes, lengths = np.moveaxis(rng.standard_normal((-(-n // dim), 2, dim, dim)), 1, 0)
    orthogonal, triangular = np.linalg.qr(shapes)
    # LAPACK chooses signs as it likes; with a positive diagonal the directions are uniform.
    signs = np.copysign(1.0, np.einsum("bkk->bk", triangular))
    rows = (orthogonal * signs[:, None, :]).transpose(0, 2, 1)
    rows = rows * np.linalg.norm(lengths, axis=2, keepdims=True)
    return np.asarray(rows.reshape(-1, dim)[:n])
