"""The contract of potentials that are known to be those of a normal distribution."""

from __future__ import annotations

from typing import Protocol

from surrokit.protocols import Potential
from surrokit.types import FloatArray


class GaussianPotential(Potential, Protocol):
    """A potential with capability ``gaussian``: a normal distribution, exactly.

    U(q) = |L^-1 (q - mean)|^2 / 2 + constant at every q, so that whoever knows mean and L can draw
    from exp(-U).
    """

    @property
    def mean(self) -> FloatArray:
        """Its mean, shape (dim,)."""
        ...

    @property
    def factor(self) -> FloatArray:
        """L, lower triangular of shape (dim, dim); L L^T is the covariance."""
        ...
