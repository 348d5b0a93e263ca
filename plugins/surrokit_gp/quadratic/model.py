"""A process of few points together with the coordinates in which it is nearly normal."""

from __future__ import annotations

from typing import Self

import attrs
import numpy as np

from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray
from surrokit_gp.quadratic.heights import Heights
from surrokit_gp.quadratic.prior import QuadraticPrior
from surrokit_gp.quadratic.process import QuadraticProcess
from surrokit_gp.quadratic.search import find_prior
from surrokit_gp.quadratic.walk import CHAINS, walk
from surrokit_gp.quadratic.walled import Walled

_SEARCHED = 300
"""Points that the search for scales looks at, the lowest: the price of each step is their cube."""

_NEAR = 200.0  # whitened units; what lies beyond says nothing
_CHANGE = (0.3, 2.0)
"""By how much coordinates may shrink and grow from one process to the next."""

_JIGGLE = 0.1


@attrs.frozen(kw_only=True, eq=False)
class Model:
    """A process, its mean, and its coordinates.

    Parameters
    ----------
    whitening
        The coordinates.
    process
        The process in them.
    """

    whitening: Whitening
    process: QuadraticProcess

    @classmethod
    def of(
        cls, positions: FloatArray, values: FloatArray, whitening: Whitening, prior: QuadraticPrior
    ) -> Self:
        """Return the process given ``values (n,)`` at ``positions (n, dim)``.

        The scales of the prior are searched for from those given.

        Raises
        ------
        SurrogateFitError
            If the values cannot be fitted.
        """
        z = whitening.apply(positions)
        near = np.abs(z).max(axis=1) < _NEAR
        if near.sum() <= z.shape[1]:
            near[:] = True
        z, heights = z[near], Heights.of(values[near], z.shape[1])
        lowest = np.argsort(heights.values, kind="stable")[:_SEARCHED]
        few = attrs.evolve(
            heights, values=heights.values[lowest], variance=heights.variance[lowest]
        )
        prior = find_prior(z[lowest], few, prior)
        process = QuadraticProcess.of(prior, z, heights)
        return cls(whitening=whitening, process=process)

    @property
    def prior(self) -> QuadraticPrior:
        """The prior, with the scales found."""
        return self.process.prior

    def draw(self, walled: Walled, temperature: float, rng: np.random.Generator) -> FloatArray:
        """Return whitened draws (n, dim) of exp(-V / T) by chains of its own, V the walled mean."""
        z = self.process.z
        order = np.argsort(walled.value(z), kind="stable")
        inside = order[: max(4, min(16, len(order) // 4))]
        starts = z[rng.choice(inside, CHAINS)]
        starts = starts + _JIGGLE * rng.standard_normal(starts.shape)
        return walk(walled, temperature, starts, rng)

    def refocus(
        self,
        draws: FloatArray,
        temperature: float = 1.0,
        centre: FloatArray | None = None,
        shrink: float = 1.0,
    ) -> Whitening:
        """Return coordinates in which draws of exp(-V) are nearly standard normal.

        Parameters
        ----------
        draws : ndarray of shape (n, dim)
            Whitened draws of exp(-V / T).
        temperature
            T.
        centre : ndarray of shape (dim,), optional
            Another middle than that of the draws, in the coordinates q.
        shrink
            By what to make them smaller.
        """
        dim = self.process.dim
        covariance = np.cov(draws, rowvar=False).reshape(dim, dim) / temperature
        covariance += 1e-6 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
        variances, vectors = np.linalg.eigh(covariance)
        sds = np.clip(np.sqrt(variances), *_CHANGE) * shrink
        spread = self.whitening.factor @ (vectors * sds)
        middle = self.whitening.undo(draws.mean(axis=0)[None])[0] if centre is None else centre
        # the triangular factor of spread spread^T, without squaring it
        upper = np.asarray(np.linalg.qr(spread.T, mode="r"))
        factor = (upper * np.where(np.diag(upper) < 0.0, -1.0, 1.0)[:, None]).T
        return Whitening(mean=middle, factor=np.ascontiguousarray(factor))
