"""The potential that a process about a quadratic is."""

from __future__ import annotations

from typing import Self

import attrs
import numpy as np

from surrokit.arguments import check_positions
from surrokit.capabilities import GRADIENT, GRADIENT_ALONE, VARIANCE
from surrokit.surrogate.quality import FitQuality
from surrokit.surrogate.shown import ShownFit
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, Capabilities, FloatArray
from surrokit_gp.posterior.blocks import by_blocks
from surrokit_gp.quadratic.heights import flat_from
from surrokit_gp.quadratic.model import Model
from surrokit_gp.quadratic.process import QuadraticProcess
from surrokit_gp.quadratic.walled import Walled

CAPABILITIES: Capabilities = frozenset({GRADIENT, GRADIENT_ALONE, VARIANCE})
"""What a fitted process can do."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class FittedQuadraticProcess(ShownFit):
    """V(q), the mean of a process about a quadratic given exact values, in nats.

    It has a wall beyond what it is believed of. Frozen and safe to share between threads. Every
    array it returns is new. Methods raise :class:`~surrokit.errors.ShapeError` unless positions are
    rows of ``dim`` numbers.

    Parameters
    ----------
    n_points
        Distinct points that it was fitted to.
    quality : FitQuality or None
        Errors at each point of the process given all others; None for fewer than two points where
        the density is more than next to nothing.
    whitening
        The coordinates in which the target is nearly standard normal.
    process
        The process in them.
    walled
        Its mean in them.
    """

    n_points: int
    quality: FitQuality | None
    whitening: Whitening
    process: QuadraticProcess
    walled: Walled

    @classmethod
    def of(cls, model: Model) -> Self:
        """Return a process with its coordinates as a potential."""
        return cls(
            n_points=len(model.process.z),
            quality=_quality(model),
            whitening=model.whitening,
            process=model.process,
            walled=Walled.of(model.process, wide=True),
        )

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.process.dim

    @property
    def capabilities(self) -> Capabilities:
        """Gradient, gradient alone, variance."""
        return CAPABILITIES

    @property
    def n_gradients(self) -> int:
        """0: it learns from values alone."""
        return 0

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return self.walled.value(self._whiten(positions))

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of V, shape (n, dim), at positions of shape (n, dim)."""
        return self.value_and_gradient(positions)[1]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient, shape (n, dim)."""
        values, gradients = self.walled.value_and_gradient(self._whiten(positions))
        return values, gradients @ self.whitening.inverse

    def variance(self, positions: FloatArray) -> FloatArray:
        """Return the variance of the process, shape (n,), in nats squared.

        That of U itself, without the noise of an evaluation; never negative.
        """
        return by_blocks(self.process.variance, self._whiten(positions))

    def is_beyond(self, positions: FloatArray) -> BoolArray:
        """Return which of ``positions (n, dim)`` lie where V is not believed, shape (n,)."""
        return self.walled.is_beyond(self._whiten(positions))

    def _whiten(self, positions: FloatArray) -> FloatArray:
        return self.whitening.apply(check_positions(positions, self.dim))

    def __repr__(self) -> str:
        prior = self.process.prior
        quality = "None" if self.quality is None else f"{self.quality.variance:.3g} nats^2"
        return (
            f"FittedQuadraticProcess(dim={self.dim}, n_points={self.n_points}, "
            f"quadratic_sd={prior.quadratic_sd:.3g}, signal_sd={prior.signal_sd:.3g}, "
            f"quality={quality})"
        )


def _quality(model: Model) -> FitQuality | None:
    heights = model.process.mean.value(model.process.z)
    errors = model.process.left_out()[heights - heights.min() <= flat_from(model.process.dim)]
    if len(errors) < 2:
        return None
    return FitQuality(variance=float(np.var(errors)), gradient_error=None, n_points=len(errors))
