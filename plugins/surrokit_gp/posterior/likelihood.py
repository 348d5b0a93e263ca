"""Log marginal likelihoods, and what their mean functions add to them."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_gp.kernel.cholesky import factorise, solve

_JITTERS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6)
"""Relative jitters for normal matrices of basis functions, some of which may be the same."""


@attrs.frozen(kw_only=True, eq=False)
class Likelihood:
    """A log marginal likelihood and its derivatives.

    Parameters
    ----------
    value
        The log marginal likelihood, constants included.
    length_scales : ndarray of shape (dim,)
        Derivative in each log l_k.
    signal
        Derivative in log s.
    noise
        Derivative in log sigma.
    inducing : ndarray of shape (M, dim) or None
        Derivative in the inducing positions z; None for a process without any.
    """

    value: float
    length_scales: FloatArray
    signal: float
    noise: float
    inducing: FloatArray | None = None


@attrs.frozen(kw_only=True, eq=False)
class Profile:
    """Coefficients of basis functions under a flat prior, and what is left of the targets.

    Everything is in rotated coordinates in which the noise is white: features F and targets y with
    F^T F = H^T K^-1 H. The coefficients are integrated out (Rasmussen and Williams 2006, section
    2.7), which for their mean is generalised least squares, and for the hyperparameters restricted
    maximum likelihood.

    Parameters
    ----------
    coefficients : ndarray of shape (p,)
        Mean of beta.
    factor : ndarray of shape (p, p)
        Lower triangular L_A with L_A L_A^T = H^T K^-1 H.
    residual : ndarray
        y - F beta.
    log_determinant
        log |H^T K^-1 H|.
    """

    coefficients: FloatArray
    factor: FloatArray
    residual: FloatArray
    log_determinant: float

    @classmethod
    def of(cls, features: FloatArray, targets: FloatArray) -> Profile:
        """Return the profile of F, shape (q, p), and y, shape (q,).

        Raises
        ------
        SurrogateFitError
            If the numbers are not finite.
        """
        normal = features.T @ features
        scales = np.sqrt(np.diag(normal))
        # A feature that is zero everywhere, as in a coordinate that never moved, gets no weight.
        scales = np.where(scales > 0.0, scales, 1.0)
        correlation, _ = factorise(
            normal / scales / scales[:, None], 1.0, _JITTERS, "matrix of basis functions"
        )
        factor = correlation * scales[:, None]
        half = solve(factor, features.T @ targets)
        coefficients = solve(factor, half, transposed=True)
        return cls(
            coefficients=coefficients,
            factor=factor,
            residual=targets - features @ coefficients,
            log_determinant=2.0 * float(np.log(np.diag(factor)).sum()),
        )

    def log_likelihood(
        self, n_equations: int, log_determinant: float, log_jacobian: float
    ) -> float:
        """Return the log marginal likelihood of the targets, shape (q,).

        Rasmussen and Williams 2006, equation (2.45).

        Parameters
        ----------
        n_equations
            How many equations there are.
        log_determinant
            log |K|, the covariance of targets without their mean function.
        log_jacobian
            Sum of the logarithms of what equations were multiplied by.
        """
        free = n_equations - len(self.coefficients)
        return (
            -0.5
            * (
                float(self.residual @ self.residual)
                + log_determinant
                + self.log_determinant
                + free * math.log(2.0 * math.pi)
            )
            + log_jacobian
        )
