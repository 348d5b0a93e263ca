"""Nodes of a random network: additive and radial ones in one form.

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

from collections.abc import Iterator
from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_networks.activations import EXPONENTIAL, Activation

Draws: TypeAlias = Literal["gaussian", "orthogonal"]
"""How rows are drawn: independently, or in blocks at right angles (Yu, Suresh, Choromanski,
Holtmann-Rice, Kumar 2016, arXiv:1610.09072)."""

SCRATCH = 2_000_000
"""Numbers of scratch that a block of rows may take."""

CACHED = 16_384
"""Numbers of scratch that a block of elementwise work may take: 128 kB stay in the cache, and the
allocator reuses them. Measured: in larger arrays, which the system maps anew each time, the value
and gradient of a thousand nodes at 32 positions took two and a half times as long."""


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
        return self.activation.value_and_first(self.arguments(z))


def row_blocks(n_rows: int, scratch: int, most: int = SCRATCH) -> Iterator[slice]:
    """Yield slices that cover rows in order, where each takes so many numbers of scratch.

    Where a row takes none, as without nodes, there is nothing to do, and no slice.
    """
    if not scratch:
        return
    size = max(1, most // scratch)
    for start in range(0, n_rows, size):
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
    blocks = -(-n // dim)
    shapes, lengths = np.moveaxis(rng.standard_normal((blocks, 2, dim, dim)), 1, 0)
    orthogonal, triangular = np.linalg.qr(shapes)
    # LAPACK chooses signs as it likes; with a positive diagonal the directions are uniform.
    signs = np.copysign(1.0, np.einsum("bkk->bk", triangular))
    rows = (orthogonal * signs[:, None, :]).transpose(0, 2, 1)
    rows = rows * np.linalg.norm(lengths, axis=2, keepdims=True)
    return np.asarray(rows.reshape(-1, dim)[:n])


def data_rows(whitened: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw rows from training positions (N, dim), shape (n, dim), without repeating one.

    Where more are asked for than there are, all of them are followed by draws from their density
    as a kernel estimate has it: each a training position, taken in the same order, plus normal
    noise of Scott's bandwidth, N^(-1/(dim + 4)) standard deviations of each coordinate.
    """
    count, dim = whitened.shape
    order = rng.permutation(count)
    rows = whitened[np.resize(order, n)]
    if n > count:
        spread = whitened.std(axis=0)
        # a coordinate that never moved gets the scale that whitening would give it
        bandwidth = np.where(spread > 0.0, spread, 1.0) * count ** (-1.0 / (dim + 4.0))
        rows[count:] += bandwidth * rng.standard_normal((n - count, dim))
    return rows
