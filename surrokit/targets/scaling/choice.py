"""Coordinates in which the parameters of a target are of like scale.

Columns of a table come in their own units: an income of 60,000, a year, a share of 0.0002. In the
coefficients of such columns a posterior is thousands of times as wide along one direction as along
another, and starts within 2 of zero are far outside. So is one whose parameters are declared to be
of very different size. Such a target is sampled in coordinates z with q = shift + A z, which are
whitened by what is known before any evaluation. Draws, and all that a user sees, are in q.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.coordinates.blocks import Scaling, from_line_of
from surrokit.targets.bounds import parameters_of, transform_of
from surrokit.targets.differences import Differences
from surrokit.targets.modelled import ModelledPotential
from surrokit.targets.scaling.expected import expected
from surrokit.targets.scaling.scaled import ScaledPotential
from surrokit.types import FloatArray, IntArray

_ROWS = 4096
"""Rows of a table by which it is first judged, which costs nothing beside one evaluation."""

_FOR_EACH = 10  # and as many for each column
_LARGE, _SMALL = 1e2, 3e-4
"""Root mean squares of columns beyond which they are rescaled."""
_NEAR = 1e-3  # least eigenvalue of the columns' products of cosines: a mean of about 20 sds
_NOTHING = 1e-12  # of the largest, an eigenvalue that is zero but for rounding

Moments = Callable[..., FloatArray | None]


def scaled(target: Potential, scaling: Scaling | None = None) -> Potential:
    """Return a target in coordinates of like scale; the target itself where they are so already.

    Parameters
    ----------
    target
        In the coordinates of the line.
    scaling
        The coordinates to take; None for those that suit it.
    """
    if isinstance(target, ScaledPotential):
        return target
    if isinstance(target, Differences):
        return attrs.evolve(target, inner=scaled(target.inner, scaling))
    scaling = scaling or scaling_of(target)
    if scaling is None:
        return target
    if isinstance(target, ModelledPotential):
        target = attrs.evolve(target, starts=None)  # in the units of the columns, far from the mass
    return ScaledPotential(
        target,
        parameters_of(target),
        from_line=from_line_of(transform_of(target)),
        scaling=scaling,
    )


def scaling_of(target: Potential) -> Scaling | None:
    """Return the coordinates of like scale; None where those of the line are so already.

    A sum over rows may have a method ``column_moments(rows)``: the mean of x_i x_i^T over some of
    its rows, or all for None, shape (dim, dim), with x_i the slope of row i's predictor, and with
    the curvature of its prior in the same unit. Other targets are judged by where
    plausible ranges and priors expect their mass.
    """
    moments: Moments | None = getattr(target, "column_moments", None)
    if moments is not None:
        return _by_columns(moments, target)
    return _by_declarations(target)


def _by_columns(moments: Moments, target: Any) -> Scaling | None:
    found = moments(_some_rows(target.n_rows, target.dim))
    if found is None or not _unlike(found):
        return None
    found = moments(None)
    if found is None or not _unlike(found):
        return None
    return Scaling(np.zeros(target.dim), _whitening(found))


def _some_rows(n_rows: int, dim: int) -> IntArray | None:
    wanted = max(_ROWS, _FOR_EACH * dim)
    if wanted >= n_rows:
        return None
    return np.sort(np.random.default_rng(20190601).choice(n_rows, wanted, replace=False))


def _sizes(moments: FloatArray) -> FloatArray:
    """Return the root mean square of each column, 1 where a column is zero."""
    squares = np.diag(moments)
    return np.sqrt(np.where(squares > 0.0, squares, 1.0))


def _unlike(moments: FloatArray) -> bool:
    if not np.isfinite(moments).all():
        return False
    sizes = _sizes(moments)
    if sizes.max() > _LARGE or sizes.min() < _SMALL:
        return True
    return bool((_spectrum(moments)[0] < _NEAR).any())


def _spectrum(moments: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues and vectors of the columns' products of cosines; 1 in place of zeros."""
    sizes = _sizes(moments)
    values, vectors = np.linalg.eigh(moments / np.outer(sizes, sizes))
    return np.where(values > _NOTHING * values.max(), values, 1.0), vectors


def _whitening(moments: FloatArray) -> FloatArray:
    """Return A with A^T M A the identity, and z_k as near as can be to coefficient k by itself."""
    values, vectors = _spectrum(moments)
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T / _sizes(moments)[:, None])


def _by_declarations(target: Potential) -> Scaling | None:
    """Return a shift and a factor for each number on the line, by what is declared of it."""
    centre, spread = expected(target)
    if not centre.any() and (spread == 1.0).all():
        return None
    return Scaling(centre, np.diag(spread))
