"""The potential that a fitted process is."""

from __future__ import annotations

import attrs

from surrokit.arguments import check_matrices, check_positions, check_vectors
from surrokit.capabilities import GRADIENT, GRADIENT_ALONE, HESSIAN, HESSIAN_DERIVATIVE, VARIANCE
from surrokit.surrogate.quality import FitQuality
from surrokit.surrogate.shown import ShownFit
from surrokit.types import Capabilities, FloatArray
from surrokit_gp.data.mean_functions import MeanKind, Polynomial, features
from surrokit_gp.data.observations import Frame
from surrokit_gp.kernel.hyperparameters import Hyperparameters
from surrokit_gp.posterior.blocks import by_blocks
from surrokit_gp.posterior.expansion import Expansion
from surrokit_gp.posterior.posterior import Posterior

CAPABILITIES: Capabilities = frozenset(
    {GRADIENT, GRADIENT_ALONE, HESSIAN, HESSIAN_DERIVATIVE, VARIANCE}
)
"""What every fitted process can do."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class FittedProcess(ShownFit):
    """V(q), the mean of a Gaussian process given exact evaluations, in nats.

    Frozen and safe to share between threads. Every array it returns is new. Methods raise
    :class:`~surrokit.errors.ShapeError` unless positions are rows of ``dim`` numbers and factors
    go with them.

    Parameters
    ----------
    hyperparameters
        Length scales in the kernel's coordinates, signal and noise in nats.
    mean
        The mean function; a quadratic one whose curvature was raised to be positive is the sum of
        that quadratic, then fixed, and a linear one.
    n_points
        Distinct points that it was fitted to.
    n_gradients
        At how many of them the gradient was used.
    quality : FitQuality or None
        Errors at points held out from another fit with the same hyperparameters; None where
        there were too few points to hold any out.
    frame
        The coordinates.
    kind
        The mean function whose coefficients are uncertain.
    posterior
        The process.
    expansion
        Its mean, as a function of q.
    """

    hyperparameters: Hyperparameters
    mean: MeanKind
    n_points: int
    n_gradients: int
    quality: FitQuality | None
    frame: Frame
    kind: MeanKind
    posterior: Posterior
    expansion: Expansion

    @classmethod
    def of(
        cls,
        posterior: Posterior,
        frame: Frame,
        trend: Polynomial,
        hyperparameters: Hyperparameters,
        mean: MeanKind,
        kind: MeanKind,
        n_points: int,
        n_gradients: int,
    ) -> FittedProcess:
        """Return a process as a potential, without its quality.

        Parameters
        ----------
        posterior
            The process.
        frame
            The coordinates.
        trend
            Everything in the mean that is no kernel, as a function of whitened positions.
        hyperparameters, mean, kind, n_points, n_gradients
            See the class.
        """
        kernel = posterior.kernel
        scaling = frame.kernel.inverse.T / kernel.length_scales
        slopes = posterior.slope_weights
        expansion = Expansion(
            origin=frame.whitening.mean,
            scaling=scaling,
            centres=posterior.centres / kernel.length_scales,
            weights=kernel.variance * posterior.weights,
            slope_weights=None if slopes is None else kernel.variance * slopes,
            polynomial=trend.in_coordinates(frame.whitening.inverse),
        )
        return cls(
            hyperparameters=hyperparameters,
            mean=mean,
            n_points=n_points,
            n_gradients=n_gradients,
            quality=None,
            frame=frame,
            kind=kind,
            posterior=posterior,
            expansion=expansion,
        )

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.expansion.dim

    @property
    def capabilities(self) -> Capabilities:
        """Gradient, gradient alone, Hessian and its derivative, variance."""
        return CAPABILITIES

    @property
    def centres(self) -> FloatArray:
        """Positions q of the kernel's centres: training points, or inducing points: (M, dim)."""
        return self.frame.kernel.undo(self.posterior.centres)

    @property
    def weights(self) -> FloatArray:
        """Weights of the kernel at the centres, shape (M,)."""
        return self.posterior.weights

    @property
    def jitter(self) -> float:
        """What was added to the kernel matrix's diagonal, in units of the signal's variance."""
        return self.posterior.jitter

    @property
    def log_likelihood(self) -> float:
        """Log marginal likelihood of all that was fitted."""
        return self.posterior.log_likelihood

    def __repr__(self) -> str:
        scales = self.hyperparameters.scales(self.dim)
        lengths = f"{scales.min():.3g}"
        if scales.max() > scales.min():
            lengths += f" to {scales.max():.3g}"
        quality = "None" if self.quality is None else f"{self.quality.variance:.3g} nats^2"
        return (
            f"FittedProcess(dim={self.dim}, n_points={self.n_points}, "
            f"n_gradients={self.n_gradients}, n_centres={len(self.weights)}, mean={self.mean!r}, "
            f"length_scales={lengths}, signal_sd={self.hyperparameters.signal_sd:.3g}, "
            f"noise_sd={self.hyperparameters.noise_sd:.3g}, jitter={self.jitter:.3g}, "
            f"quality={quality})"
        )

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return self.expansion.value(check_positions(positions, self.dim))

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of V, shape (n, dim), at positions of shape (n, dim)."""
        return self.expansion.gradient(check_positions(positions, self.dim))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient, shape (n, dim)."""
        return self.expansion.value_and_gradient(check_positions(positions, self.dim))

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives of V, shape (n, dim, dim)."""
        return self.expansion.hessian(check_positions(positions, self.dim))

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k H), shape (n, dim), H the Hessian and A symmetric (n, dim, dim)."""
        where = check_positions(positions, self.dim)
        return self.expansion.hessian_trace_gradient(where, check_matrices(matrices, where))

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k H u, shape (n, dim), with H the Hessian and u of shape (n, dim)."""
        where = check_positions(positions, self.dim)
        return self.expansion.hessian_form_gradient(where, check_vectors(vectors, where))

    def variance(self, positions: FloatArray) -> FloatArray:
        """Return the variance of the process, shape (n,), in nats squared.

        That of U itself, without the noise of an evaluation; never negative.
        """
        return by_blocks(self._variance_of, check_positions(positions, self.dim))

    def _variance_of(self, rows: FloatArray) -> FloatArray:
        basis = features(self.kind, self.frame.whitening.apply(rows))
        return self.posterior.variance(self.frame.kernel.apply(rows), basis)
