"""The covariance that gradients on the way to a mode foretell, few as they are."""

from __future__ import annotations

import numpy as np

from surrokit.interfaces import Evaluations
from surrokit.limits import check_deadline
from surrokit.types import BoolArray, FloatArray

_USUAL = 1e-3  # what the usual curvature counts for in a direction, beside a row of data as 1
_LEAST = 1e-4  # of the usual curvature, the least
_MANY, _SPARSE = 200, 4  # dimensions from which on few rows matter, and how many there are to a row
_APART = 1e-4  # usual standard deviations between rows below which they tell nothing but rounding


def foretold_covariance(mode: FloatArray, slope: FloatArray, rows: Evaluations) -> FloatArray:
    """Return the inverse of the symmetric matrix H that fits best to slope + H (q - mode).

    Where rows say nothing of a direction, it has the usual curvature of the others. Searches go
    along few directions, and in these again and again, where a covariance of positions or
    gradients degenerates.

    Parameters
    ----------
    mode, slope : ndarray of shape (dim,)
        A mode, and the gradient there, which need not vanish altogether.
    rows
        With gradients, all finite. Those far above the least count little.
    """
    assert rows.gradients is not None
    typical = float(len(mode))
    excess = rows.values - np.min(rows.values, initial=np.inf)
    counts = (typical / np.maximum(excess, typical)) ** 2
    away, change = rows.positions - mode, rows.gradients - slope
    near = _is_square_finite(away) & _is_square_finite(change)
    away, change, counts = away[near], change[near], counts[near]
    scales = _scales(away, change, counts)
    away, change = away / scales, change * scales
    lengths = np.linalg.norm(away, axis=1)
    told = lengths > _APART
    if not told.any():
        return np.asarray(np.diag(np.square(scales)))
    unit, turned = away[told] / lengths[told, None], change[told] / lengths[told, None]
    check_deadline()
    inverse = _inverse_fit(unit, turned, counts[told])
    return np.asarray(inverse * np.outer(scales, scales))


def _is_square_finite(rows: FloatArray) -> BoolArray:
    """Return which rows (n, dim) are so small that their squares do not overflow, shape (n,)."""
    with np.errstate(over="ignore"):
        return np.asarray(np.isfinite(np.square(rows).sum(axis=1)))


def _scales(away: FloatArray, change: FloatArray, counts: FloatArray) -> FloatArray:
    """Return about a standard deviation of each coordinate; of one that never moved, a usual."""
    moved, turned = counts @ np.square(away), counts @ np.square(change)
    with np.errstate(all="ignore"):
        ratios = moved / turned
    known = (ratios > 0.0) & np.isfinite(ratios)  # rounding may leave neither
    if not known.any():
        return np.ones(away.shape[1])
    scales = np.ones(away.shape[1])
    scales[known] = ratios[known] ** 0.25
    scales[~known] = np.exp(np.log(scales[known]).mean())
    return scales


def _inverse_fit(unit: FloatArray, turned: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the inverse of the H that fits, about the usual curvature, shape (dim, dim).

    Few rows in many dimensions tell of their own span alone. H is found there, as matrices of all
    dimensions take longer than the calls that they save.
    """
    along = np.einsum("nd,nd->n", unit, turned)
    usual = float(np.median(np.abs(along))) or 1.0
    rows, dim = unit.shape
    if dim < _MANY or _SPARSE * rows > dim:
        return _inverse(_fit(unit, turned, counts, usual))
    span = np.linalg.qr(np.concatenate([unit, turned]).T)[0]
    inside = _fit(unit @ span, turned @ span, counts, usual)
    inverse = _inverse(inside, usual, dim - len(inside)) - np.eye(len(inside)) / usual
    found = span @ inverse @ span.T
    found[np.diag_indices(dim)] += 1.0 / usual
    return np.asarray(found)


def _fit(unit: FloatArray, turned: FloatArray, counts: FloatArray, usual: float) -> FloatArray:
    """Return the symmetric H with the least sum of counts |H u - g|^2, drawn to a usual one."""
    dim = unit.shape[1]
    weighed = unit.T * counts
    moments = weighed @ unit + _USUAL * np.eye(dim)
    crossed = weighed @ turned + _USUAL * usual * np.eye(dim)
    eigenvalues, vectors = np.linalg.eigh(moments)
    # the normal equations are moments H + H moments = crossed + crossed^T
    inside = vectors.T @ (crossed + crossed.T) @ vectors
    hessian = vectors @ (inside / np.add.outer(eigenvalues, eigenvalues)) @ vectors.T
    return np.asarray(0.5 * (hessian + hessian.T))


def _inverse(hessian: FloatArray, usual: float = 1.0, more: int = 0) -> FloatArray:
    """Return the inverse of |H|, bounded; so many more of its eigenvalues are the usual one."""
    eigenvalues, vectors = np.linalg.eigh(hessian)
    sizes = np.abs(eigenvalues)
    median = float(np.median(np.concatenate([sizes, np.full(more, usual)])))
    sizes = np.maximum(sizes, _LEAST * max(median, np.finfo(float).tiny))
    return np.asarray((vectors / sizes) @ vectors.T)
