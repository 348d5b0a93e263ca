"""Cholesky factors of kernel matrices, with as little jitter as they can do with."""

from __future__ import annotations

import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray

JITTERS = (0.0, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)
"""Additions to the diagonal that are tried in turn, relative to the kernel's variance."""

ROUNDING = 10.0 * float(np.finfo(np.float64).eps)
"""Least square of a pivot, in units of the kernel's variance, that is not rounding."""


def factorise(
    matrix: FloatArray,
    scale: float,
    jitters: tuple[float, ...] = JITTERS,
    what: str = "kernel matrix",
    room: float = ROUNDING,
) -> tuple[FloatArray, float]:
    """Return the lower Cholesky factor of a matrix, and the jitter that it needed.

    A factor with too small a pivot is not taken: what is solved with it has no correct digit.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric; left as it is.
    scale
        Its diagonal without noise, to which the jitter is relative.
    jitters
        What is tried, in turn.
    what
        How messages call the matrix.
    room
        Least square of a pivot, in units of ``scale``.

    Returns
    -------
    factor : ndarray of shape (n, n)
        Lower triangular, zeros above.
    jitter : float
        What was added to the diagonal, in units of ``scale``.

    Raises
    ------
    SurrogateFitError
        If the largest jitter does not suffice.
    """
    from scipy.linalg import lapack

    if not len(matrix):
        return np.empty((0, 0)), 0.0
    diagonal = np.diag(matrix).copy()
    for jitter in jitters:
        shifted = matrix.T.copy(order="F")
        np.fill_diagonal(shifted, diagonal + jitter * scale)
        factor, failed = lapack.dpotrf(shifted, lower=1, clean=1, overwrite_a=1)
        pivots = np.diag(factor)
        if not failed and np.isfinite(pivots).all() and pivots.min() ** 2 > room * scale:
            return np.asarray(factor), jitter
    raise SurrogateFitError(
        f"the {len(matrix)} x {len(matrix)} {what} has no Cholesky factor even with "
        f"{jitters[-1]:g} of its scale added to its diagonal; use more noise, shorter length "
        "scales or whiten=True"
    )


def solve(factor: FloatArray, right: FloatArray, *, transposed: bool = False) -> FloatArray:
    """Return L^-1 b, or L^-T b, for a lower triangular L.

    Parameters
    ----------
    factor : ndarray of shape (n, n)
        L.
    right : ndarray of shape (n,) or (n, m)
        b; left as it is.
    transposed
        Whether to solve with the transpose of L.
    """
    from scipy.linalg import solve_triangular

    if right.size == 0:
        return np.array(right, dtype=np.float64)
    found: FloatArray = solve_triangular(
        factor, right, lower=True, trans=int(transposed), check_finite=False
    )
    return found


def inverse_of(factor: FloatArray) -> FloatArray:
    """Return (L L^T)^-1, shape (n, n), for a lower triangular L; the whole of it.

    For derivatives of log determinants only, which need every entry; nothing is solved with it.
    """
    from scipy.linalg import lapack

    lower, failed = lapack.dpotri(factor, lower=1)
    if failed:
        raise np.linalg.LinAlgError("a Cholesky factor with a zero pivot has no inverse")
    inverse = lower + lower.T  # the factor has zeros above its diagonal, and so has this
    np.fill_diagonal(inverse, np.diag(lower))
    return np.asarray(inverse)
