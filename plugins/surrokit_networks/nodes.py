"""Nodes of a random network: additive and radial ones in one form.

Section 3.1 of the paper has two kinds: additive, a(w . z + d), and radial,
exp(-|z - c|^2 / (2 l^2)). Both are a function of one number that is at most quadratic in z,

    phi(h),  h = p . z - kappa |z|^2 / 2 + o,

with p = w, kappa = 0 and o = d, or with phi = exp, p = c / l^2, kappa = 1 / l^2 and
o = -|c|^2 / (2 l^2). With g = dh/dz = p - kappa z and d^2h/dz^2 = -kappa I, every derivative here
and in the modules that use these nodes holds for both.
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

_SCRATCH = 2_000_000
"""Numbers of scratch that a block of rows may take."""

_CACHED = 16_384
"""Numbers of scratch that a block of elementwise work may take: 128 kB stay in the cache, and the
allocator reuses them. Measured: in larger arrays, which the system maps anew each time, the value
and gradient of a thousand nodes at 32 positions took two and a half times as long."""


@attrs.frozen(kw_only=True, eq=False)
class Nodes:
    """Nodes phi(p_i . z - kappa_i |z|^2 / 2 + o_i) of whitened positions z.

    Parameters
    ----------
    vectors : ndarray of shape (s, dim)
        p_i. Fortran order: products of few rows with it and with its transpose are then both
        fast, where the other order takes twice as long for one of them.
    offsets : ndarray of shape (s,)
        o_i.
    curvatures : ndarray of shape (s,) or None
        kappa_i; None for additive nodes, where it is zero.
    """

    vectors: FloatArray = attrs.field(converter=np.asfortranarray)
    offsets: FloatArray
    activation: Activation
    curvatures: FloatArray | None = None

    @classmethod
    def additive(cls, directions: FloatArray, biases: FloatArray, activation: Activation) -> Nodes:
        """Return a(w_i . z + d_i) for directions (s, dim) and biases (s,)."""
        return cls(vectors=directions, offsets=biases, activation=activation)

    @classmethod
    def radial(cls, centres: FloatArray, square_widths: FloatArray) -> Nodes:
        """Return exp(-|z - c_i|^2 / (2 l_i^2)) for centres (s, dim) and squared widths (s,)."""
        vectors = centres / square_widths[:, None]
        return cls(
            vectors=vectors,
            offsets=-0.5 * np.einsum("sd,sd->s", vectors, centres),
            activation=EXPONENTIAL,
            curvatures=1.0 / square_widths,
        )

    @classmethod
    def none(cls, dim: int) -> Nodes:
        """Return no nodes at all: what a trend alone has."""
        return cls(vectors=np.empty((0, dim)), offsets=np.empty(0), activation=EXPONENTIAL)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.offsets)

    def arguments(self, z: FloatArray) -> FloatArray:
        """Return h, shape (n, s), at whitened positions (n, dim)."""
        arguments: FloatArray = z @ self.vectors.T
        if self.curvatures is not None:
            halves = -0.5 * np.einsum("nd,nd->n", z, z)
            arguments += halves[:, None] * self.curvatures
        arguments += self.offsets
        return arguments

    def features(self, z: FloatArray) -> FloatArray:
        """Return phi(h), shape (n, s), at whitened positions (n, dim)."""
        return self.activation.value(self.arguments(z))

    def features_and_slopes(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return phi(h) and phi'(h), each (n, s), for little more than one of them."""
        return self.activation.both(self.arguments(z))

    def cached_blocks(self, z: FloatArray) -> Iterator[slice]:
        """Yield slices of rows so few that arrays with a number for each node stay in the cache."""
        return row_blocks(len(z), len(self), _CACHED)

    def gradients(self, z: FloatArray) -> FloatArray:
        """Return the gradient of every node, shape (n, dim, s): few rows at a time."""
        slopes = self.activation.first(self.arguments(z))
        gradients = slopes[:, None, :] * self.vectors.T
        if self.curvatures is not None:
            gradients -= z[:, :, None] * (slopes * self.curvatures)[:, None, :]
        return gradients

    def along(self, z: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return g_i . u, shape (n, s), for u in ``vectors (n, dim)``."""
        along: FloatArray = vectors @ self.vectors.T
        if self.curvatures is not None:
            along -= np.einsum("nd,nd->n", vectors, z)[:, None] * self.curvatures
        return along

    def combine(self, z: FloatArray, factors: FloatArray) -> FloatArray:
        """Return sum_i f_i g_i, shape (n, dim), for f in ``factors (n, s)``."""
        combined: FloatArray = factors @ self.vectors
        if self.curvatures is not None:
            combined -= (factors @ self.curvatures)[:, None] * z
        return combined


def row_blocks(n_rows: int, scratch: int, most: int = _SCRATCH) -> Iterator[slice]:
    """Yield slices that cover rows in order, where each takes so many numbers of scratch.

    Where a row takes none, as without nodes, there is nothing to do, and no slice.
    """
    if not scratch:
        return
    size = max(1, most // scratch)
    for start in range(0, n_rows, size):
        yield slice(start, start + size)


def weighted_outer(factors: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return sum_i f_ni p_i p_i^T, shape (n, dim, dim), for f (n, s) and p as columns (dim, s)."""
    dim = len(vectors)
    total = np.zeros((len(factors), dim, dim))
    for rows in row_blocks(len(factors), vectors.size):
        np.matmul(factors[rows, None, :] * vectors, vectors.T, out=total[rows])
    return total


def quadratic_forms(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return p_i^T A_n p_i, shape (n, s), for A (n, dim, dim) and p as columns (dim, s)."""
    dim, n_vectors = vectors.shape
    forms = np.empty((len(matrices), n_vectors))
    for rows in row_blocks(len(matrices), vectors.size):
        products = matrices[rows].reshape(-1, dim) @ vectors
        np.einsum("nks,ks->ns", products.reshape(-1, dim, n_vectors), vectors, out=forms[rows])
    return forms


def bilinear_forms(
    weights: FloatArray, coefficients: FloatArray, vectors: FloatArray
) -> FloatArray:
    """Return sum_m V_im W_nm . p_i, shape (n, s), for W (n, m, dim), V (s, m), p (dim, s)."""
    n, m, dim = weights.shape
    forms = np.empty((n, len(coefficients)))
    # The shorter of both sums comes last, over the scratch array.
    if dim <= m:
        for rows in row_blocks(n, dim * len(coefficients)):
            columns = weights[rows].transpose(0, 2, 1).reshape(-1, m)
            sums = (columns @ coefficients.T).reshape(-1, dim, len(coefficients))
            np.einsum("nds,ds->ns", sums, vectors, out=forms[rows])
    else:
        for rows in row_blocks(n, m * len(coefficients)):
            along = (weights[rows].reshape(-1, dim) @ vectors).reshape(-1, m, len(coefficients))
            np.einsum("nms,sm->ns", along, coefficients, out=forms[rows])
    return forms


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
