"""Starts of searches for the mode: spread on several scales, to see other modes."""

from __future__ import annotations

from itertools import chain, zip_longest

import numpy as np

from surrokit.capabilities import INITIAL
from surrokit.mode.starts import spread_positions
from surrokit.potentials import Potential
from surrokit.types import FloatArray
from surrokit_learning.region.region import cholesky_factor

FAR = 10.0
"""Standard deviations, times the root of the dimension, from a mode to where one looks about it.

Of 2 dim such starts, along orthogonal axes both ways, one lies beyond the middle between this mode
and any other of the same shape within 20 standard deviations.
"""

_MOST, _MOST_SDS = 20.0, 5.0  # by how much a coordinate may differ: e^20 is far for a logarithm


def more_starts(
    exact: Potential,
    mode: FloatArray,
    covariance: FloatArray,
    others: FloatArray,
    n: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return starts from which to look for more modes, those that may tell most first.

    Parameters
    ----------
    exact
        The target. One that draws its own starts knows where it makes sense, and they stay there.
    mode : ndarray of shape (dim,)
        The first mode that was found.
    covariance : ndarray of shape (dim, dim)
        Of the Laplace approximation there.
    others : ndarray of shape (m, dim)
        Where chains start, the one of this mode's search left out.
    n
        How many more than those.
    rng
        Generator.

    Returns
    -------
    ndarray of shape (m + n, dim)
        The chains' starts, the farthest first, in turn with starts about the mode and with such
        as are spread over everything.
    """
    farthest = np.argsort(-np.linalg.norm(others - mode, axis=1), kind="stable")
    if not n:
        return others[farthest]
    families = [others[farthest], spread_positions(exact, rng, n, others)]
    if INITIAL not in exact.capabilities:
        families.insert(1, mode + _about(covariance, n, rng))
    turns = chain.from_iterable(zip_longest(*families))
    starts = [start for start in turns if start is not None][: len(others) + n]
    return np.reshape(starts, (-1, len(mode)))


def _about(covariance: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Return moves away from a mode, along orthogonal axes and both ways, shape (n, dim)."""
    dim = len(covariance)
    frames = []
    for _ in range(-(-n // (2 * dim))):
        frame, _ = np.linalg.qr(rng.standard_normal((dim, dim)))
        frames.append(np.stack([frame, -frame], axis=1).reshape(2 * dim, dim))
    moves = FAR * np.sqrt(dim) * np.concatenate(frames)[:n] @ cholesky_factor(covariance).T
    most = np.maximum(_MOST, _MOST_SDS * np.sqrt(np.diag(covariance)))
    over = np.maximum(np.max(np.abs(moves) / most, axis=1, keepdims=True), 1.0)
    return np.asarray(moves / over)
