"""The first points that a surrogate learns from."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray
from surrokit_learning.region.region import cholesky_factor

FAINT = 1e-12
"""Of the largest curvature, the least that a direction is taken to have."""

_TRUSTED = 20.0  # nats above the least, beside one for each dimension, where rows count in full


@attrs.frozen(kw_only=True, eq=False)
class Design:
    """Points, and the potential of the density that they are draws of.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        The points.
    potentials : ndarray of shape (n,)
        -log density + constant at them, in nats.
    """

    positions: FloatArray
    potentials: FloatArray


def normal_design(
    centre: FloatArray, covariance: FloatArray, n: int, rng: np.random.Generator
) -> Design:
    """Return evenly spread draws from a normal distribution.

    Parameters
    ----------
    centre : ndarray of shape (dim,)
        Its mean.
    covariance : ndarray of shape (dim, dim)
        Its covariance.
    n
        How many.
    rng
        Generator; shuffles a Latin hypercube: each coordinate has one draw in each n-th part of
        its probability. (A Sobol sequence would do as well, but SciPy's takes longer to import
        than many an exploration lasts.)
    """
    from scipy.special import ndtri

    dim = len(centre)
    strata = rng.permuted(np.tile(np.arange(n)[:, None], dim), axis=0)
    normals = ndtri((strata + rng.uniform(1e-9, 1.0 - 1e-9, (n, dim))) / n)
    return Design(
        positions=centre + normals @ cholesky_factor(covariance).T,
        potentials=0.5 * np.square(normals).sum(axis=1),
    )


def mixed_design(
    centres: FloatArray, covariances: FloatArray, n: int, rng: np.random.Generator
) -> Design:
    """Return evenly spread draws from a mixture of normals with equal shares, in random order.

    Parameters
    ----------
    centres : ndarray of shape (k, dim)
        Their means.
    covariances : ndarray of shape (k, dim, dim)
        Their covariances.
    n
        How many; each normal has n / k of them, but for rounding.
    rng
        Generator.
    """
    k = len(centres)
    counts = [len(range(i, n, k)) for i in range(k)]
    parts = [
        normal_design(centre, covariance, count, rng)
        for centre, covariance, count in zip(centres, covariances, counts, strict=True)
    ]
    # where two of them overlap this is too large, by log 2 at most
    widths = 0.5 * np.linalg.slogdet(covariances)[1] - np.log(counts)
    potentials = [part.potentials + width for part, width in zip(parts, widths, strict=True)]
    order = rng.permutation(n)
    return Design(
        positions=np.concatenate([part.positions for part in parts])[order],
        potentials=np.concatenate(potentials)[order],
    )


def box_design(lower: FloatArray, upper: FloatArray, n: int, rng: np.random.Generator) -> Design:
    """Return n evenly spread draws from a box between corners of shape (dim,)."""
    unit = _sobol(len(lower), n, rng)
    return Design(positions=lower + (upper - lower) * unit, potentials=np.zeros(n))


def _sobol(dim: int, n: int, rng: np.random.Generator) -> FloatArray:
    from scipy.stats import qmc

    rows = qmc.Sobol(dim, scramble=True, seed=rng).random_base2(max(math.ceil(math.log2(n)), 0))
    tiny = np.finfo(np.float64).eps
    return np.asarray(np.clip(rows[:n], tiny, 1.0 - tiny), dtype=np.float64)


def inverse_curvature(hessian: FloatArray) -> FloatArray:
    """Return |H|^-1, the covariance of a Laplace approximation with any Hessian (dim, dim).

    Directions of negative curvature count by its size, flat ones by the faintest curvature; where
    all is flat it is the identity.
    """
    sizes = np.abs(np.diag(hessian))
    if not sizes.any():
        return np.eye(len(hessian))
    scales = np.sqrt(np.maximum(sizes, FAINT * sizes.max()))
    eigenvalues, vectors = np.linalg.eigh(hessian / scales / scales[:, None])
    sizes = np.maximum(np.abs(eigenvalues), FAINT * np.abs(eigenvalues).max())
    covariance = (vectors / sizes) @ vectors.T / scales / scales[:, None]
    return np.asarray(0.5 * (covariance + covariance.T))


def covariance_of_gradients(
    positions: FloatArray, values: FloatArray, gradients: FloatArray
) -> FloatArray:
    """Return what gradients tell of the covariance, shape (dim, dim); far rows count little.

    Parameters
    ----------
    positions, gradients : ndarray of shape (n, dim)
        Where U was evaluated, and its gradients there; all finite.
    values : ndarray of shape (n,)
        U there.

    Raises
    ------
    SurrogateFitError
        If the numbers overflow.
    """
    typical = positions.shape[1] + _TRUSTED
    excess = np.maximum(values - values.min(), typical)
    whitening = Whitening.of_gradients(positions, gradients, (typical / excess) ** 4)
    return np.asarray(whitening.factor @ whitening.factor.T)
