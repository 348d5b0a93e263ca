"""Jumps between modes: independent proposals from a mixture of multivariate t distributions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import attrs
import numpy as np

from surrokit.interfaces import ChainState, Kernel, Proposal
from surrokit.limits import check_deadline
from surrokit.modes import Modes
from surrokit.potentials import Potential
from surrokit.types import FloatArray, IntArray

DRAWS, ADAPTATIONS, DEGREES = 1000, 4, 10.0
"""Draws of a mode's t by which it is adapted to a surrogate, how often, and its degrees of freedom:
tails are heavier than a normal target's, so that weights are bounded."""

GOOD, PIECES, REFINEMENTS = 0.5, 8, 6
"""Part of the draws of a mode's t that have to be effective ones; else so many t are added for its
curved shape, and adapted so often."""

CARRIED = 0.5
"""Probability that a proposal carries a position over."""


@attrs.frozen(kw_only=True, eq=False, slots=False)
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
        standard = (positions - self.centre) @ self._whitener
        return np.asarray(np.vecdot(standard, standard))

    @cached_property
    def _log_constant(self) -> float:
        from scipy.special import gammaln  # late: importing the package stays fast

        dim, degrees = len(self.centre), self.degrees
        constant = gammaln(0.5 * (degrees + dim)) - gammaln(0.5 * degrees)
        scale = np.log(np.diag(self.factor)).sum()
        return float(constant - 0.5 * dim * np.log(np.pi * degrees) - scale)

    @cached_property
    def _whitener(self) -> FloatArray:
        return np.ascontiguousarray(np.linalg.inv(self.factor).T)

    def log_density(self, positions: FloatArray) -> FloatArray:
        """Return the log density at positions (n, dim), shape (n,)."""
        dim, degrees = len(self.centre), self.degrees
        far = np.log1p(self.distances(positions) / degrees)
        return np.asarray(self._log_constant - 0.5 * (degrees + dim) * far)

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
    """Proposals of two kinds that lead to other modes, by a coin for each chain.

    One is a draw of a mixture q, wherever a chain is: c = log q(x) - log q(x'). Between modes that
    are about normal most are accepted in few dimensions. The other carries a position over to
    another mode, where it lies as it did at its own, in units of the shapes of both, with means m
    and factors L (Tjelmeland and Hegstad 2001, doi:10.1111/1467-9469.00232):
    x' = m' + L' L^-1 (x - m), and c = log (det L' / det L) + log (p(m | m') / p(m' | m)). Between
    modes of like shape these are accepted in any number of dimensions. A position is at the mode
    whose normal density is the largest there; a proposal from which the way back would begin at
    another mode is rejected. Either kind is reversible for any target that decides on it.

    Parameters
    ----------
    laws
        One for each mode, or several.
    shares : ndarray of shape (k,)
        How often each is drawn from, of sum one.
    shapes
        Ways to carry over, each by the mean and the factor of each mode; one of them is taken at
        random. None are carried over without.
    masses : ndarray of shape (k,)
        Part of the probability at each mode.
    """

    laws: tuple[StudentT, ...]
    shares: FloatArray
    shapes: tuple[tuple[StudentT, ...], ...] = ()
    masses: FloatArray = attrs.field(factory=lambda: np.empty(0))

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
        return cls._of(modes, laws, heights, laws, heights)

    @classmethod
    def to(cls, modes: Modes, terms: Callable[[FloatArray], FloatArray]) -> Jumps | None:
        """Return jumps on a surrogate of several modes, fitted to it by importance sampling.

        Its density is the sum of exp(-``terms``), shape (k, n), one for each mode. The t at each
        begins as the Laplace approximation, and gets the moments of its own draws weighted by that
        (adaptive importance sampling: Cappe, Guillin, Marin and Robert 2004,
        doi:10.1198/106186004X12803). A mode that is curved gets a mixture, adapted in the same way
        (Cappe, Douc, Guillin, Marin and Robert 2008, doi:10.1007/s11222-008-9059-x).
        """
        laws: list[StudentT] = []
        logs: list[float] = []
        fitted: list[StudentT] = []
        heights: list[float] = []

        def density_of(k: int) -> Callable[[FloatArray], FloatArray]:
            return lambda positions: -terms(positions)[k]

        for k, (at, covariance) in enumerate(zip(modes.positions, modes.covariances, strict=True)):
            law = StudentT(centre=at, factor=_factor(covariance), degrees=DEGREES)
            rng = np.random.default_rng(0)  # so that modes of like shape get like laws
            shape, found = _Fitted.to(law, density_of(k), rng)
            laws.extend(found.jumps.laws)
            logs.extend(np.log(found.jumps.shares) + found.height)
            fitted.append(shape)
            heights.append(found.height)
        return cls._of(modes, laws, logs, fitted, heights)

    @classmethod
    def _of(
        cls,
        modes: Modes,
        laws: list[StudentT],
        logs: list[float],
        fitted: list[StudentT],
        heights: list[float],
    ) -> Jumps | None:
        # a mode whose mass is estimated far too low must still be reached
        shares, masses = (
            0.8 * np.exp(np.array(each) - np.logaddexp.reduce(each)) + 0.2 / len(each)
            for each in (logs, heights)
        )
        if not np.isfinite(shares).all():  # draws so far out that distances overflow
            return None
        # modes may be alike but for their places, and estimates of their widths are not
        scales = [law.factor @ law.factor.T for law in fitted]
        factor = _factor(np.tensordot(masses, scales, axes=1))
        moved = [attrs.evolve(fitted[0], centre=at, factor=factor) for at in modes.positions]
        shapes = (tuple(fitted), tuple(moved))
        return cls(laws=tuple(laws), shares=shares, shapes=shapes, masses=masses)

    def log_density(self, positions: FloatArray) -> FloatArray:
        """Return log q at positions (n, dim), shape (n,)."""
        return np.asarray(np.logaddexp.reduce(self._terms(positions), axis=0))

    def _terms(self, positions: FloatArray) -> FloatArray:
        logs = np.array([law.log_density(positions) for law in self.laws])
        return np.asarray(logs + np.log(self.shares)[:, None])

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return n draws, shape (n, dim)."""
        chosen = rng.choice(len(self.laws), size=n, p=self.shares)
        positions = np.empty((n, len(self.laws[0].centre)))
        for k, law in enumerate(self.laws):
            ours = chosen == k
            positions[ours] = law.draw(int(ours.sum()), rng)
        return positions

    @cached_property
    def _maps(self) -> tuple[_Map, ...]:
        return tuple(_Map.of(shapes, self.masses) for shapes in self.shapes)

    def propose(self, kernel: Kernel, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Propose for every chain; what a kernel keeps for positions comes with the proposal."""
        here = state.positions
        positions = self.draw(len(here), rng)
        corrections = self.log_density(here) - self.log_density(positions)
        if self._maps:
            coins = rng.random(len(here)) < CARRIED
            carried, of_carried = self._maps[rng.integers(len(self._maps))].carry(here, rng)
            positions = np.where(coins[:, None], carried, positions)
            corrections = np.where(coins, of_carried, corrections)
        return Proposal(
            positions=positions,
            log_correction=corrections,
            cache=kernel.cache(positions),
            source=kernel.potential,
        )


@attrs.frozen(kw_only=True, eq=False)
class _Map:
    """Leads from mode to mode: means (k, dim), factors with their inverses, and log |det L|."""

    means: FloatArray
    factors: FloatArray
    inverses: FloatArray
    determinants: FloatArray
    masses: FloatArray

    @classmethod
    def of(cls, shapes: Sequence[StudentT], masses: FloatArray) -> _Map:
        """Return what carries positions over between shapes."""
        factors = np.stack([shape.factor for shape in shapes])
        return cls(
            means=np.stack([shape.centre for shape in shapes]),
            factors=factors,
            inverses=np.stack([shape._whitener.T for shape in shapes]),
            determinants=np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1),
            masses=masses,
        )

    def look(self, positions: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the mode (n,) that positions (n, dim) are at, and in its units where there."""
        units = np.einsum("kij,knj->kni", self.inverses, positions - self.means[:, None])
        squares = np.vecdot(units, units).T
        at = np.argmax(np.log(self.masses) - self.determinants - 0.5 * squares, axis=1)
        return at, units[at, np.arange(len(at))]

    def carry(
        self, positions: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return positions (n, dim) carried over to other modes, and log corrections (n,)."""
        here, units = self.look(positions)
        chances = np.where(np.eye(len(self.masses), dtype=bool), 0.0, self.masses)
        chances /= chances.sum(axis=1, keepdims=True)
        ends = np.cumsum(chances, axis=1)[here]
        there = np.argmax(rng.random(len(here))[:, None] < ends / ends[:, -1:], axis=1)
        carried = self.means[there] + np.einsum("nij,nj->ni", self.factors[there], units)
        corrections = self.determinants[there] - self.determinants[here]
        corrections += np.log(chances[there, here]) - np.log(chances[here, there])
        return carried, np.where(self.look(carried)[0] == there, corrections, -np.inf)


@attrs.frozen(kw_only=True, eq=False)
class _Fitted:
    """A mixture that importance sampling has fitted to a density."""

    jumps: Jumps
    height: float = -np.inf  # log of the density's mass
    good: float = 0.0  # part of the draws that are effective ones
    draws: FloatArray  # of the mixture before the last adaptation
    log_weights: FloatArray  # theirs

    @classmethod
    def to(
        cls,
        law: StudentT,
        log_density: Callable[[FloatArray], FloatArray],
        rng: np.random.Generator,
    ) -> tuple[StudentT, _Fitted]:
        """Return a t that begins as a law, and a mixture where draws of it are hardly effective."""
        none = np.empty((0, len(law.centre)))
        alone = Jumps(laws=(law,), shares=np.ones(1))
        found = cls(jumps=alone, draws=none, log_weights=none[:, 0])
        for _ in range(ADAPTATIONS):
            found = found.adapt(log_density, rng)
        (shape,) = found.jumps.laws
        if found.good >= GOOD or not np.isfinite(found.height):
            return shape, found
        tried = [found.split(rng)]
        for _ in range(REFINEMENTS):
            tried.append(tried[-1].adapt(log_density, rng))
        return shape, max(tried[1:], key=lambda each: each.good)

    def adapt(
        self, log_density: Callable[[FloatArray], FloatArray], rng: np.random.Generator
    ) -> _Fitted:
        """Return the mixture with the moments of its own draws, each law's in its part of them."""
        check_deadline()
        draws, laws = self.jumps.draw(DRAWS, rng), self.jumps.laws
        terms = self.jumps._terms(draws)
        total = np.logaddexp.reduce(terms, axis=0)
        logs = np.nan_to_num(log_density(draws) - total, nan=-np.inf, posinf=np.inf)
        adapted = [
            law.adapt(draws, logs + own - total) for law, own in zip(laws, terms, strict=True)
        ]
        heights = np.array([height for _, height in adapted])
        height = float(np.logaddexp.reduce(heights))
        if not np.isfinite(height):
            return attrs.evolve(self, height=height)
        effective = np.exp(2.0 * np.logaddexp.reduce(logs) - np.logaddexp.reduce(2.0 * logs))
        shares = 0.75 * np.exp(heights - height) + 0.05 / len(laws)
        shares[0] += 0.2
        first = laws[0] if len(laws) > 1 else adapted[0][0]  # a wide one stays, to see tails
        jumps = Jumps(laws=(first, *(law for law, _ in adapted[1:])), shares=shares / shares.sum())
        good = float(effective) / len(draws)
        return _Fitted(jumps=jumps, height=height, good=good, draws=draws, log_weights=logs)

    def split(self, rng: np.random.Generator) -> _Fitted:
        """Return a mixture of a wide law, and narrow ones about draws far from one another."""
        (law,), weights = self.jumps.laws, np.exp(self.log_weights - self.log_weights.max())
        few = rng.choice(len(weights), size=len(weights) // 4, p=weights / weights.sum())
        rows = np.unique(self.draws[few], axis=0)
        standard = np.linalg.solve(law.factor, (rows - law.centre).T).T
        chosen, apart = [], np.square(standard).sum(axis=1)
        for _ in range(min(PIECES, len(rows))):
            chosen.append(int(np.argmax(apart)))
            apart = np.minimum(apart, np.square(standard - standard[chosen[-1]]).sum(axis=1))
        pieces = [attrs.evolve(law, centre=row, factor=0.5 * law.factor) for row in rows[chosen]]
        laws = (attrs.evolve(law, factor=2.0 * law.factor), *pieces)
        jumps = Jumps(laws=laws, shares=np.full(len(laws), 1.0 / len(laws)))
        return attrs.evolve(self, jumps=jumps)


def jumps_of(potential: Potential | None) -> Jumps | None:
    """Return the jumps that a surrogate of several modes comes with; None for any other."""
    found = getattr(potential, "jumps", None)
    return found if isinstance(found, Jumps) else None


def modes_of(potential: Potential | None) -> Modes | None:
    """Return the modes that a surrogate of several modes is about; None for any other."""
    found = getattr(potential, "modes", None)
    return found if isinstance(found, Modes) else None
