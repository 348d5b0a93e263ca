"""A mode of a target, as a search has found it."""

from __future__ import annotations

import attrs

from surrokit.types import FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Mode:
    """The position of least potential that a search found.

    Parameters
    ----------
    position : ndarray of shape (dim,)
        The position.
    value : float
        The potential there, in nats.
    gradient : ndarray of shape (dim,)
        Its gradient there.
    decrement : float or None
        g^T H^-1 g / 2, the nats that one more Newton step would gain; None where no positive
        definite matrix is known.
    hessian : ndarray of shape (dim, dim) or None
        Second derivatives there, or the Gauss-Newton or Fisher matrix in place of them.
    converged : bool
        Whether the search ended because there was nothing left to gain.
    calls : int
        Evaluations paid for, each of value and gradient or of second derivatives.
    """

    position: FloatArray
    value: float
    gradient: FloatArray
    decrement: float | None
    hessian: FloatArray | None
    converged: bool
    calls: int
