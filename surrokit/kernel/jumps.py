"""Jumps between modes: independent proposals from a mixture of multivariate t distributions."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from surrokit.interfaces import ChainState, Kernel, Proposal
from surrokit.limits import check_deadline
from surrokit.modes import Modes
from surrokit.potentials import Potential
from surrokit.types import FloatArray

DRAWS, ADAPTATIONS, DEGREES = 1000, 4, 10.0
"""Draws of a mode's t by which it is adapted to a surrogate, how often, and its degrees of freedom:
tails are heavier than a normal target's, so that weights are bounded."""


@attrs.frozen(kw_only=True, eq=False)
class StudentT:
    """A multivariate t distribution; ``factor`` is the lower Cholesky factor of its scale.

    SciPy's takes scales that differ by 10^5 for singular.
    """

    centre: FloatArray
    factor: FloatArray
    degrees: float

    @classmethod
    def fit(cls, positions: FloatArray) -> StudentT:
        """Return the likeliest t distribution of positions (n, dim)."""
        centre = np.median(positions, axis=0)
        factor = _factor(np.atleast_2d(np.cov(positions.T)))
        laws = []
        for degrees in (3.0, 5.0, 10.0, 30.0, 1e3):  # the last is as good as normal
            law = cls(centre=centre, factor=factor, degrees=degrees)
            for _ in range(30):  # steps of expectation and maximisation
                check_deadline()
                weights = (degrees + len(centre)) / (degrees + law.distances(positions))
                middle = weights @ positions / weights.sum()
                apart = positions - middle
                scale = (weights[:, None] * apart).T @ apart / len(positions)
                law = attrs.evolve(law, centre=middle, factor=_factor(scale))
            laws.append(law)
        return max(laws, key=lambda law: float(law.log_density(positions).sum()))

    @classmethod
    def about(cls, positions: FloatArray, part: float) -> StudentT:
        """Return a normal law with the mean of positions (n, dim) and a part of their variance."""
        scale = part * np.atleast_2d(np.cov(positions.T))
        return cls(centre=positions.mean(axis=0), factor=_factor(scale), degrees=1e6)

    def distances(self, positions: FloatArray) -> FloatArray:
        """Return squared distances from the centre, in units of the scale, shape (n,)."""
        standard = np.linalg.solve(self.factor, (positions - self.centre).T)
        return np.asarray(np.square(standard).sum(axis=0))

    def log_density(self, positions: FloatArray) -> FloatArray:
        """Return the log density at positions (n, dim), shape (n,)."""
        from scipy.special import gammaln  # late: importing the package stays fast

        dim, degrees = len(self.centre), self.degrees
        constant = gammaln(0.5 * (degrees + dim)) - gammaln(0.5 * degrees)
        constant -= 0.5 * dim * np.log(np.pi * degrees) + np.log(np.diag(self.factor)).sum()
        far = np.log1p(self.distances(positions) / degrees)
        return np.asarray(constant - 0.5 * (degrees + dim) * far)

    def adapt(self, draws: FloatArray, log_weights: FloatArray) -> tuple[StudentT, float]:
        """Return the law with the weighted moments of draws (n, dim), and log of the mean weight.

        Weights are truncated at root n means (Ionides 2008, doi:10.1198/106186008X320456), and the
        fewer effective draws there are, the more is kept of the law as it is.
        """
        n, dim = draws.shape
        largest = log_weights.max()
        if not np.isfinite(largest):
            return self, -np.inf
        weights = np.exp(log_weights - largest)
        height = float(largest + np.log(weights.mean()))
        weights = np.minimum(weights, weights.mean() * np.sqrt(n))
        weights /= weights.sum()
        kept = (dim + 1.0) / (dim + 1.0 + 1.0 / np.square(weights).sum())
        centre = weights @ draws
        away = draws - centre
        # the covariance of a t is larger than its scale
        scale = (1.0 - 2.0 / self.degrees) * (away.T * weights) @ away
        scale = (1.0 - kept) * scale + kept * self.factor @ self.factor.T
        return attrs.evolve(self, centre=centre, factor=_factor(scale)), height

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return n draws, shape (n, dim)."""
        normal = rng.standard_normal((n, len(self.centre))) @ self.factor.T
        scales = np.sqrt(self.degrees / rng.chisquare(self.degrees, n))
        return np.asarray(self.centre + scales[:, None] * normal)


def _factor(scale: FloatArray) -> FloatArray:
    ridge = 1e-12 * np.diag(np.diag(scale)) + np.finfo(float).tiny * np.eye(len(scale))
    return np.asarray(np.linalg.cholesky(scale + ridge))


@attrs.frozen(kw_only=True, eq=False)
class Jumps:
    """Proposals that are draws of a mixture q, wherever the chains are: c = log q(x) - log q(x').

    They are reversible for any target that decides on them. Between modes that are about normal
    most are accepted.

    Parameters
    ----------
    laws
        One for each mode.
    shares : ndarray of shape (k,)
        How often each is drawn from, of sum one.
    """

    laws: tuple[StudentT, ...]
    shares: FloatArray

    @classmethod
    def between(cls, modes: Modes, positions: FloatArray, values: FloatArray) -> Jumps | None:
        """Return jumps between the modes that matter, fitted to draws; None if there are none.

        Parameters
        ----------
        positions : ndarray of shape (n, dim)
            Draws of chains in any of the modes. At each a t is fitted to its own, or the Laplace
            approximation serves, whichever is closer to the target there.
        values : ndarray of shape (n,)
            U there. By it, masses are estimated.
        """
        modes = modes.take(modes.matters)
        if len(modes) < 2:
            return None
        nearest, dim = modes.nearest(positions), positions.shape[1]
        laws, heights = [], []
        for k in range(len(modes)):
            at, factor, ours = modes.positions[k], _factor(modes.covariances[k]), nearest == k
            tried = [StudentT(centre=at, factor=factor, degrees=d) for d in (10.0, 1e3)]
            there, exact = positions[ours], -values[ours]
            if len(np.unique(there, axis=0)) >= 10 * dim:  # chains may have stood
                fitted = StudentT.fit(there)
                between = _factor(0.5 * (modes.covariances[k] + fitted.factor @ fitted.factor.T))
                tried += [fitted, attrs.evolve(fitted, factor=between)]
            if len(there) < 10:
                there, exact, tried = at[None], -modes.values[k : k + 1], tried[:1]
            ratios = [(each, exact - each.log_density(there)) for each in tried]
            law, logs = min(ratios, key=lambda pair: float(np.var(pair[1])))
            laws.append(law)
            heights.append(float(np.median(logs)))
        return cls._of(laws, heights)

    @classmethod
    def to(cls, modes: Modes, terms: Callable[[FloatArray], FloatArray]) -> Jumps | None:
        """Return jumps on a surrogate of several modes, fitted to it by importance sampling.

        Its density is the sum of exp(-``terms``), shape (k, n), one for each mode. The t at each
        begins as the Laplace approximation, and gets the moments of its own draws weighted by that
        (adaptive importance sampling: Cappe, Guillin, Marin and Robert 2004,
        doi:10.1198/106186004X12803).
        """
        rng, laws, heights = np.random.default_rng(0), [], []  # as V is the same in every fit
        for k, (at, covariance) in enumerate(zip(modes.positions, modes.covariances, strict=True)):
            law = StudentT(centre=at, factor=_factor(covariance), degrees=DEGREES)
            for _ in range(ADAPTATIONS):
                check_deadline()
                draws = law.draw(DRAWS, rng)
                logs = -terms(draws)[k] - law.log_density(draws)
                law, height = law.adapt(draws, np.nan_to_num(logs, nan=-np.inf))
            laws.append(law)
            heights.append(height)
        return cls._of(laws, heights)

    @classmethod
    def _of(cls, laws: list[StudentT], heights: list[float]) -> Jumps | None:
        masses = np.exp(np.array(heights) - np.logaddexp.reduce(heights))
        if not np.isfinite(masses).all():  # draws so far out that distances overflow
            return None
        # a mode whose mass is estimated far too low must still be reached
        return cls(laws=tuple(laws), shares=0.8 * masses + 0.2 / len(masses))

    def log_density(self, positions: FloatArray) -> FloatArray:
        """Return log q at positions (n, dim), shape (n,)."""
        logs = np.array([law.log_density(positions) for law in self.laws])
        return np.asarray(np.logaddexp.reduce(logs + np.log(self.shares)[:, None], axis=0))

    def propose(self, kernel: Kernel, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Draw for every chain; what a kernel keeps for positions comes with the proposal."""
        n = len(state.positions)
        chosen = rng.choice(len(self.laws), size=n, p=self.shares)
        positions = np.empty_like(state.positions)
        for k, law in enumerate(self.laws):
            ours = chosen == k
            positions[ours] = law.draw(int(ours.sum()), rng)
        return Proposal(
            positions=positions,
            log_correction=self.log_density(state.positions) - self.log_density(positions),
            cache=kernel.cache(positions),
            source=kernel.potential,
        )


def jumps_of(potential: Potential | None) -> Jumps | None:
    """Return the jumps that a surrogate of several modes comes with; None for any other."""
    found = getattr(potential, "jumps", None)
    return found if isinstance(found, Jumps) else None
