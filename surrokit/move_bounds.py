"""How much a term with a bounded third derivative may change, less its second-order expansion."""

from __future__ import annotations

import numpy as np

from surrokit.types import FloatArray


def move_bounds(before: FloatArray, after: FloatArray) -> FloatArray:
    """Return B(z, z') with |D(z') - D(z)| <= psi B for every move, shape (n,).

    D is a function less its second-order expansion at 0, and psi bounds its third derivative: along
    every direction u, everywhere, that is at most 6 psi |u|^3 in absolute value (see
    :meth:`surrokit.summed_potential.SummedPotential.row_bounds`).

    Parameters
    ----------
    before, after : ndarray of shape (n, dim)
        z and z': the ends of the moves in whitened coordinates, L^-1 (q - centre).

    Notes
    -----
    With r = |z|, r' = |z'| and a the angle between them,

        B = |r'^3 exp(3 i a) - r^3| for a < 60 degrees, and r^3 + r'^3 otherwise.

    Proof. The third derivative is a symmetric trilinear form, whose norm is that on the diagonal
    (Banach), so |D'''[u, v, w]| <= 6 psi |u| |v| |w|. D, its gradient and its Hessian vanish at 0;
    integrated twice from there, |grad D(z) . u| <= 3 psi |z|^2 |u|. Along any path from z to z'
    then, |D(z') - D(z)| <= psi times the integral of 3 |z|^2 |dz|. In a plane through 0 that
    holds both ends, written as complex numbers, 3 |z|^2 |dz| = |d(z^3)|: the length of the image
    of the path under the cube. Sectors of less than 60 degrees are mapped one-to-one to sectors of
    less than 180, which hold the straight line between the cubes of the ends; its length is B. For
    wider angles go through 0. (Chains of inequalities that everybody knows are both looser: r^3 +
    r'^3 from |D(z)| <= psi r^3, and 3 max(r, r')^2 |z' - z| from the straight path.)
    """
    r = np.sqrt(np.einsum("ij,ij->i", before, before))
    s = np.sqrt(np.einsum("ij,ij->i", after, after))
    apart = r**3 + s**3
    inner = np.einsum("ij,ij->i", before, after)
    near = 2.0 * inner > r * s
    if not near.any():
        return np.asarray(apart)
    # |s^3 e^(3ia) - r^3|^2 = (s^3 - r^3)^2 + 2 r^3 s^3 (1 - cos 3a), and 1 - cos 3a is
    # (1 - cos a) (1 + 2 cos a)^2; both from the difference of the ends, so that short moves keep
    # their digits
    step = after - before
    longer = np.einsum("ij,ij->i", step, before + after)
    with np.errstate(divide="ignore", invalid="ignore"):
        longer /= r + s  # s - r
        sideways = np.maximum(np.einsum("ij,ij->i", step, step) - longer**2, 0.0)
        widening = r * s + 2.0 * inner
        close = np.sqrt((longer * (r * r + r * s + s * s)) ** 2 + sideways * widening**2)
    return np.asarray(np.where(near, np.minimum(close, apart), apart))
