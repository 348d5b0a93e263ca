"""How much a term with a bounded derivative may change, less its expansion to the order below."""

from __future__ import annotations

import numpy as np

from surrokit.types import FloatArray


def move_bounds(before: FloatArray, after: FloatArray, order: int = 2) -> FloatArray:
    """Return B(z, z') with |D(z') - D(z)| <= psi B for every move, shape (n,).

    D is a function less its expansion at 0 to an order of k - 1, and psi bounds its k-th
    derivative: along every direction u, everywhere, that is at most k! psi |u|^k in absolute value
    (see :meth:`surrokit.summed_potential.SummedPotential.row_bounds`).

    Parameters
    ----------
    before, after : ndarray of shape (n, dim)
        z and z': the ends of the moves in whitened coordinates, L^-1 (q - centre).
    order
        k - 1, which is 2 or 3.

    Notes
    -----
    With r = |z|, r' = |z'| and a the angle between them,

        B = |r'^k exp(k i a) - r^k| for a < 180 / k degrees, and r^k + r'^k otherwise.

    Proof. The k-th derivative is a symmetric multilinear form, whose norm is that on the diagonal
    (Banach). D and its derivatives below the k-th vanish at 0; integrated from there,
    |grad D(z) . u| <= k psi |z|^(k-1) |u|. Along any path from z to z' then, |D(z') - D(z)| <= psi
    times the integral of k |z|^(k-1) |dz|. In a plane through 0 that holds both ends, written as
    complex numbers, k |z|^(k-1) |dz| = |d(z^k)|: the length of the image of the path under the k-th
    power. Sectors of less than 180 / k degrees are mapped one-to-one to sectors of less than 180,
    which hold the straight line between the images of the ends; its length is B. For wider angles
    go through 0. (Chains of inequalities that everybody knows are both looser: r^k + r'^k from
    |D(z)| <= psi r^k, and k max(r, r')^(k-1) |z' - z| from the straight path.)
    """
    r = np.sqrt(np.einsum("ij,ij->i", before, before))
    s = np.sqrt(np.einsum("ij,ij->i", after, after))
    apart = r ** (order + 1) + s ** (order + 1)
    inner = np.einsum("ij,ij->i", before, after)
    near = 2.0 * inner > r * s if order == 2 else (inner > 0.0) & (2.0 * inner**2 > (r * s) ** 2)
    if not near.any():
        return np.asarray(apart)
    # |s^k e^(kia) - r^k|^2 = (s^k - r^k)^2 + 2 r^k s^k (1 - cos ka), and 1 - cos ka is 1 - cos a
    # times (1 + 2 cos a)^2 for k = 3, and 8 (1 + cos a) cos(a)^2 for k = 4; both from the
    # difference of the ends, so that short moves keep their digits
    step = after - before
    longer = np.einsum("ij,ij->i", step, before + after)
    with np.errstate(divide="ignore", invalid="ignore"):
        longer /= r + s  # s - r
        sideways = np.maximum(np.einsum("ij,ij->i", step, step) - longer**2, 0.0)
        if order == 2:
            outward = longer * (r * r + r * s + s * s)
            turning = sideways * (r * s + 2.0 * inner) ** 2
        else:
            outward = longer * (r + s) * (r * r + s * s)
            turning = 8.0 * sideways * (r * s + inner) * inner**2
        close = np.sqrt(outward**2 + turning)
    return np.asarray(np.where(near, np.minimum(close, apart), apart))
