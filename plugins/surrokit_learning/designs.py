"""The first points that a surrogate learns from, and the covariances that they are spread by."""

from __future__ import annotations

import math
from typing import TypeAlias, cast

import attrs
import numpy as np

from surrokit.capabilities import INITIAL
from surrokit.errors import ConfigurationError
from surrokit.potentials import InitialPotential, Potential
from surrokit.surrogate.whitening import Whitening, cholesky_factor
from surrokit.targets.differences import RISE
from surrokit.types import FloatArray

Box: TypeAlias = tuple[FloatArray, FloatArray]
"""Lower and upper corner, each of shape (dim,), or (): one number for every coordinate."""


@attrs.frozen(kw_only=True, eq=False)
class Design:
    """Points (n, dim), and the potential (n,) of the density that they are draws of, in nats."""

    positions: FloatArray
    potentials: FloatArray


def normal_design(
    centre: FloatArray, covariance: FloatArray, n: int, rng: np.random.Generator
) -> Design:
    """Return n evenly spread draws from a normal of mean (dim,) and covariance (dim, dim).

    They are a shuffled Latin hypercube: each coordinate has one draw in each n-th part of its
    probability. (A Sobol sequence would do as well, but SciPy's takes longer to import than many an
    exploration lasts.)
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
    """Return n draws from normals of means (k, dim), as many of each but for rounding, shuffled."""
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


def box_design(box: Box, n: int, rng: np.random.Generator) -> Design:
    """Return n evenly spread draws from a box with corners of shape (dim,)."""
    from scipy.stats import qmc

    lower, upper = box
    sobol = qmc.Sobol(len(lower), scramble=True, seed=rng)
    tiny = np.finfo(np.float64).eps
    unit = sobol.random_base2(max(math.ceil(math.log2(n)), 0))[:n]
    unit = np.clip(unit, tiny, 1.0 - tiny)
    return Design(positions=lower + (upper - lower) * unit, potentials=np.zeros(n))


def optional_box(value: tuple[FloatArray | float, FloatArray | float] | None) -> Box | None:
    """Return the box that a setting describes, a pair of corners; None for none.

    Raises
    ------
    ConfigurationError
        If it is not a pair, a number is not finite, or a lower one is not below its upper one.
    """
    if value is None:
        return None
    try:
        lower, upper = (np.asarray(corner, dtype=np.float64) for corner in value)
        right = bool((np.isfinite(lower) & np.isfinite(upper) & (lower < upper)).all())
    except (TypeError, ValueError):
        right = False
    if not right:
        raise ConfigurationError(
            f"box must be a pair of corners with every lower number below its upper one, got "
            f"{value!r}; pass (lower, upper) in the sampling coordinates"
        )
    return lower, upper


def find_box(
    box: Box | None, exact: Potential, best: FloatArray, scale: float, rng: np.random.Generator
) -> Box:
    """Return a box with corners of shape (dim,): the one given, or where a target expects to be.

    That is as wide as the target's own starting positions spread, else of half a width ``scale``
    about the best position (dim,).

    Raises
    ------
    ConfigurationError
        If the box given is of another dimension.
    """
    dim = len(best)
    if box is not None:
        for corner in box:
            if corner.shape not in ((), (dim,)):
                raise ConfigurationError(
                    f"box must have corners of {dim} numbers, got shape {corner.shape}; pass "
                    "(lower, upper), each a number or an array of one number for each coordinate"
                )
        return np.broadcast_to(box[0], dim).copy(), np.broadcast_to(box[1], dim).copy()
    if INITIAL in exact.capabilities:
        draws = cast(InitialPotential, exact).initial(rng, 500)
        # uniform points then have the standard deviations of the draws
        centre, half = draws.mean(axis=0), np.sqrt(3.0) * draws.std(axis=0)
        if (half > 0).all():
            return centre - half, centre + half
    return best - scale, best + scale


def inverse_curvature(hessian: FloatArray) -> FloatArray:
    """Return |H|^-1, the covariance of a Laplace approximation with any Hessian (dim, dim).

    Directions of negative curvature count by its size, flat ones by the faintest curvature; where
    all is flat it is the identity.
    """
    sizes, faint = np.abs(np.diag(hessian)), 1e-12
    if not sizes.any():
        return np.eye(len(hessian))
    scales = np.sqrt(np.maximum(sizes, faint * sizes.max()))
    eigenvalues, vectors = np.linalg.eigh(hessian / scales / scales[:, None])
    sizes = np.maximum(np.abs(eigenvalues), faint * np.abs(eigenvalues).max())
    covariance = (vectors / sizes) @ vectors.T / scales / scales[:, None]
    return np.asarray(0.5 * (covariance + covariance.T))


def covariance_of_gradients(
    positions: FloatArray, values: FloatArray, gradients: FloatArray
) -> FloatArray:
    """Return the covariance (dim, dim) by gradients at positions (n, dim); far rows count little.

    Raises
    ------
    SurrogateFitError
        If the numbers overflow.
    """
    typical = positions.shape[1] + 20.0
    excess = np.maximum(values - values.min(), typical)
    whitening = Whitening.of_gradients(positions, gradients, (typical / excess) ** 4)
    return np.asarray(whitening.factor @ whitening.factor.T)


def suits_one_side(hessian: FloatArray) -> bool:
    """Return whether differences to one side will do, by a matrix (dim, dim) at the mode.

    Curvatures in the bulk are taken to differ by 30 % from those at the mode. Then a gradient may
    be off by 0.02 where a standard deviation is one unit: errors of correlated parameters add up.
    """
    diagonal = np.diag(hessian)
    if not (diagonal > 0.0).all():
        return False
    bent = 0.5 * 0.3 * np.sqrt(2.0 * RISE * diagonal)
    return bool(np.sqrt(bent @ np.abs(inverse_curvature(hessian)) @ bent) <= 0.02)
