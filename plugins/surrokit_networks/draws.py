"""Draws of the hidden parameters of random nodes.

Whatever the kind, the first rows of a larger draw equal the smaller draw from an equal generator,
so that a larger network has the nodes of a smaller one, and more.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray

Draws: TypeAlias = Literal["gaussian", "orthogonal", "quasi-random"]
"""``gaussian``: independent; ``orthogonal``: in blocks at right angles (Yu, Suresh, Choromanski,
Holtmann-Rice, Kumar 2016, arXiv:1610.09072); ``quasi-random``: a scrambled Sobol sequence (Yang,
Sindhwani, Avron, Mahoney 2014, arXiv:1412.8293)."""

_SOBOL_BITS = 30
"""Bits of a coordinate of a Sobol point."""


def normal_rows(kind: Draws, n: int, dim: int, rng: np.random.Generator) -> FloatArray:
    """Draw rows of which each entry is N(0, 1), shape (n, dim).

    Each row alone is N(0, I), whatever the kind; rows of ``orthogonal`` and ``quasi-random`` depend
    on one another, to cover the space better than independent ones.

    Parameters
    ----------
    kind
        See :data:`Draws`.
    n
        Rows.
    dim
        Numbers in a row.
    rng
        Where randomness comes from.

    Raises
    ------
    ConfigurationError
        If there is no such kind, or a quasi-random sequence has fewer dimensions.
    """
    if kind == "gaussian":
        return rng.standard_normal((n, dim))
    if kind == "orthogonal":
        return _orthogonal(n, dim, rng)
    if kind == "quasi-random":
        return _quasi_random(n, dim, rng)
    raise ConfigurationError(
        f"draws must be 'gaussian', 'orthogonal' or 'quasi-random', got {kind!r}"
    )


def data_rows(whitened: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw rows from training positions, shape (n, dim), without repeating one.

    Where more are asked for than there are, all of them are followed by draws from their density
    as a kernel estimate has it: each a training position, taken in the same order, plus normal
    noise of Scott's bandwidth, N^(-1/(dim + 4)) standard deviations of each coordinate.

    Parameters
    ----------
    whitened : ndarray of shape (N, dim)
        Training positions, at least one.
    n
        Rows.
    rng
        Where randomness comes from. The first rows of a larger draw equal the smaller draw only
        for the same training positions.
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


def _orthogonal(n: int, dim: int, rng: np.random.Generator) -> FloatArray:
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


def _quasi_random(n: int, dim: int, rng: np.random.Generator) -> FloatArray:
    from scipy.special import ndtri
    from scipy.stats.qmc import Sobol

    if dim > Sobol.MAXDIM:
        raise ConfigurationError(
            f"a Sobol sequence has at most {Sobol.MAXDIM} dimensions, got {dim}; draw 'gaussian' "
            "or 'orthogonal' nodes instead"
        )
    seed = np.random.default_rng(int(rng.integers(2**63)))
    sequence = Sobol(dim, scramble=True, bits=_SOBOL_BITS, seed=seed)
    points = sequence.random_base2(int(max(n, 1) - 1).bit_length())[:n]
    # The middle of each cell: a corner may be 0, of which the quantile is infinite.
    return np.asarray(ndtri(points + 0.5 ** (_SOBOL_BITS + 1)))
