"""The frame of posteriors of processes, full or sparse."""

from __future__ import annotations

from abc import ABC, abstractmethod

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_gp.kernel.cholesky import solve
from surrokit_gp.kernel.kernel import SquaredExponential
from surrokit_gp.posterior.likelihood import Profile


@attrs.frozen(kw_only=True, eq=False)
class Posterior(ABC):
    """A process given its observations, in the coordinates z of its kernel.

    Parameters
    ----------
    kernel
        The kernel.
    design : ndarray of shape (m, p)
        Basis functions and derivatives, rotated as what is known at a position is.
    profile
        The mean function.
    jitter
        What was added to the kernel matrix's diagonal, in units of the signal's variance.
    log_likelihood
        Log marginal likelihood.
    """

    kernel: SquaredExponential
    design: FloatArray
    profile: Profile
    jitter: float
    log_likelihood: float

    @property
    def coefficients(self) -> FloatArray:
        """Coefficients beta of the mean function, shape (p,)."""
        return self.profile.coefficients

    @property
    @abstractmethod
    def centres(self) -> FloatArray:
        """Centres of the mean in the coordinates z, shape (M, dim)."""

    @property
    @abstractmethod
    def weights(self) -> FloatArray:
        """Weights of the kernel at the centres, shape (M,)."""

    @property
    @abstractmethod
    def slope_weights(self) -> FloatArray | None:
        """Weights of derivatives of the kernel in x', shape (M, dim); None where none is known."""

    @abstractmethod
    def variance(self, positions: FloatArray, features: FloatArray) -> FloatArray:
        """Return the variance of the process and its mean function, shape (n,).

        Parameters
        ----------
        positions : ndarray of shape (n, dim)
            z.
        features : ndarray of shape (n, p)
            Basis functions there.
        """

    def with_mean(
        self, variance: FloatArray, known: FloatArray, features: FloatArray
    ) -> FloatArray:
        """Return a variance (n,) with that of the mean function, from what is known (m, n)."""
        unknown = solve(self.profile.factor, features.T - self.design.T @ known)
        variance += np.einsum("pn,pn->n", unknown, unknown)
        return np.asarray(np.maximum(variance, 0.0))
