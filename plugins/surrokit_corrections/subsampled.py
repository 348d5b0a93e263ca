"""An exact correction that touches a few rows of the data only."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import Limits
from surrokit.errors import CapabilityError, ConfigurationError
from surrokit.interfaces import OK, ChainState, Proposal, StepInfo
from surrokit.kernel.hamiltonian import state_at
from surrokit.mode.descent import Mode
from surrokit.mode.search import find_mode
from surrokit.potentials import Potential, with_hessian, with_rows
from surrokit.types import BoolArray, Cache, Capabilities, FloatArray
from surrokit_corrections.metropolis import decide_by_values
from surrokit_corrections.poisson import PoissonEstimator

_FEW_OPERATIONS, _MANY_OPERATIONS = 2e9, 2e10  # a tenth of a second, and about a second, once
_ROW_IN_OPERATIONS = 1e6
"""What some thousand moves save by expansions of third order, for each row that a move touches and
each dimension."""


def _to_array(values: object) -> FloatArray | None:
    return None if values is None else np.array(values, dtype=np.float64)


@attrs.frozen(kw_only=True, eq=False)
class Subsampled:
    """Accept where log u < W - W' + c, with W and W' estimates of U whose exp(-W) is unbiased.

    The potential is a sum over rows, U = sum_i U_i + rest. V is the sum of all terms' expansions
    at the mode, to second order or third, the rest kept as it is, and
    :class:`~surrokit_corrections.poisson.PoissonEstimator` estimates what is left of U by a few
    rows. A chain keeps the estimate with which its position was accepted. Position and drawn rows
    together have the density exp(-W) times that of the rows, on which the rule is Metropolis' own;
    its mean over rows is exp(-U). So it is exact for every sampler and surrogate (Beaumont 2003;
    Andrieu and Roberts 2009), and accepts less often than Metropolis' rule only by as much as
    estimates vary. A chain without an estimate, at its start or moved by another rule, draws one
    from the law that it has given the position, so that exact draws stay exact at once.

    Proposals made on the exact potential bring its values along: they are decided by Metropolis'
    rule, which then costs nothing.

    Exact values of accepted proposals are not known, and are NaN in the states.

    Parameters
    ----------
    order
        To which terms are expanded: 2, or 3 where the target has the capability
        ``rows-third-order``. Expansions of third order touch fewer rows, but take about
        ``n_rows dim^3 / 3`` operations once; None takes them where these are few, or where a move
        would touch many rows without.
    centre : ndarray of shape (dim,), optional
        Where terms are expanded, where a position near the mode is known. None has the mode
        searched for. Draws are exact with any; the nearer to the mode, the fewer rows are touched.
    hessian : ndarray of shape (dim, dim), optional
        Second derivatives there; to be given with a centre, and only then.

    Raises
    ------
    ConfigurationError
        If the order is neither, or one of centre and hessian is given alone.

    References
    ----------
    Beaumont (2003), Estimation of population growth or decline in genetically monitored
    populations, Genetics 164, 1139-1160. Andrieu and Roberts (2009), The pseudo-marginal approach
    for efficient Monte Carlo computations, Annals of Statistics 37, 697-725. Bounds of expansions:
    Cornish, Vanetti, Bouchard-Cote, Deligiannidis and Doucet (2019), Scalable Metropolis-Hastings
    for exact Bayesian inference with large datasets, ICML.
    """

    order: int | None = attrs.field(
        default=None, validator=Limits("2, 3 or None", lambda value: value in (None, 2, 3))
    )
    centre: FloatArray | None = attrs.field(default=None, converter=_to_array, repr=False)
    hessian: FloatArray | None = attrs.field(default=None, converter=_to_array, repr=False)

    def __attrs_post_init__(self) -> None:
        if (self.centre is None) != (self.hessian is None):
            both = ("centre", "hessian")
            given, missing = both if self.hessian is None else both[::-1]
            raise ConfigurationError(
                f"subsampled needs centre and hessian together, got {given} alone; give {missing} "
                "too, or neither"
            )

    @property
    def needs(self) -> Capabilities:
        """A sum over rows, with gradient and Hessian to find the mode and its scales."""
        return frozenset({can.ROWS, can.GRADIENT, can.HESSIAN})

    def bind(self, potential: Potential) -> SubsampledDecider:
        """Return what decides by an exact potential, with capability ``rows``."""
        return SubsampledDecider(settings=self, potential=potential)


@attrs.frozen(kw_only=True, eq=False)
class SubsampledDecider:
    """Decides by one exact potential with capability ``rows``."""

    settings: Subsampled
    potential: Potential
    estimator: PoissonEstimator | None = None  # made by :meth:`prepare`
    mode: Mode | None = None  # found by :meth:`prepare`, unless a centre was given

    def prepare(self, near: FloatArray) -> SubsampledDecider:
        """Return a copy with all terms expanded at the mode, searched for from ``near (dim,)``.

        Evaluates the search of the mode, its Hessian, and two passes over the rows (for expansions
        of third order, as much as ``dim / 2`` Hessians more). Exact from any start.

        Raises
        ------
        CapabilityError
            If ``order=3`` was asked for and the target has no ``rows-third-order``.
        """
        mode, centre, hessian = None, self.settings.centre, self.settings.hessian
        if centre is None or hessian is None:
            # what is missing of the mode costs acceptance, a little
            mode = find_mode(self.potential, near, tolerance=1e-5)
            centre, hessian = mode.position, mode.hessian
            if hessian is None:
                hessian = with_hessian(self.potential).hessian(centre[None])[0]
                mode = attrs.evolve(mode, hessian=hessian)
        return attrs.evolve(self, estimator=self._expand(centre, hessian), mode=mode)

    def _expand(self, centre: FloatArray, hessian: FloatArray) -> PoissonEstimator:
        exact, order = self.potential, self.settings.order
        third, summed = can.ROWS_THIRD_ORDER in exact.capabilities, with_rows(exact)
        if order == 3 and not third:
            raise CapabilityError(
                "subsampled with order=3 needs rows-third-order from the target, whose terms have "
                "no third derivatives, or no bound of the fourth; pass order=2"
            )
        if order is not None:
            return PoissonEstimator.at(centre, hessian, summed, order)
        operations = summed.n_rows * exact.dim**3
        if not third or operations > _MANY_OPERATIONS:
            return PoissonEstimator.at(centre, hessian, summed)
        if operations > _FEW_OPERATIONS:
            second = PoissonEstimator.at(centre, hessian, summed)
            if operations > second.expected_rows * exact.dim * _ROW_IN_OPERATIONS:
                return second
        return PoissonEstimator.at(centre, hessian, summed, 3)

    @property
    def expected_rows(self) -> float:
        """Rows that a decision on a draw of the Laplace approximation touches.

        Raises
        ------
        ConfigurationError
            Before :meth:`prepare`.
        """
        return self._prepare().expected_rows

    def predicted_acceptance(self, rng: np.random.Generator) -> float:
        """Return the mean acceptance of independent draws of the Laplace approximation.

        By decisions on some 200 pairs of them, fewer where many rows are touched: three passes over
        all rows are the most.

        Raises
        ------
        ConfigurationError
            Before :meth:`prepare`.
        """
        estimator = self._prepare()
        n = max(1, int(min(200, estimator.potential.n_rows / max(self.expected_rows, 1.0))))
        normals = rng.standard_normal((2 * n, len(estimator.whitening)))
        # z = (q - centre) C, so that h = q - centre solves C^T h = z
        steps = np.linalg.solve(estimator.whitening.T, normals.T).T
        excess = -0.5 * np.square(normals).sum(axis=1)
        ends = estimator.expansion.centre + steps
        here = excess[:n] + estimator.values(ends[:n], rng, given=True)
        there = excess[n:] + estimator.values(ends[n:], rng)
        return float(np.exp(np.minimum(here - there, 0.0)).mean())

    def start(self, positions: FloatArray, cache: Cache, source: Potential | None) -> ChainState:
        """Return the state at ``positions (n, dim)``; n values unless the cache has them."""
        return state_at(self.potential, positions, cache, source)

    def estimate(self, proposal: Proposal, rng: np.random.Generator) -> Proposal:
        """Return a proposal with estimates of U at its ends, from a few rows each.

        Raises
        ------
        ConfigurationError
            Before :meth:`prepare`.
        TargetError
            If a row is farther from its expansion than its bound allows.
        """
        wanted = proposal.moved & (proposal.status == OK)
        found = self._estimates(proposal.positions, wanted, rng)
        return attrs.evolve(proposal, estimates=found)

    def decide(
        self, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Accept or reject every chain's proposal, by its estimates if it has them.

        Raises
        ------
        ConfigurationError, TargetError
            As :meth:`estimate`, unless the proposal was made on the exact potential.
        """
        if proposal.source is self.potential:
            known = attrs.evolve(state, values=state.cache["value"])
            return decide_by_values(known, proposal, proposal.cache["value"], rng)
        there = proposal.estimates
        if there is None:
            there = self.estimate(proposal, rng).estimates
            assert there is not None
        here = state.estimates
        here = np.full(len(there), np.nan) if here is None else here
        # of chains that were not moved by estimates: with the law that such chains have theirs
        unknown = np.isnan(here) & ~np.isnan(there)
        if unknown.any():
            drawn = self._estimates(state.positions, unknown, rng, given=True)
            here = np.where(unknown, drawn, here)
        known = attrs.evolve(state, values=here)
        after, info = decide_by_values(known, proposal, there, rng)
        values = np.where(info.accepted, np.nan, state.values)
        return attrs.evolve(after, values=values, estimates=after.values), info

    def _estimates(
        self, positions: FloatArray, wanted: BoolArray, rng: np.random.Generator, **law: bool
    ) -> FloatArray:
        found = np.full(len(positions), np.nan)
        found[wanted] = self._prepare().values(positions[wanted], rng, **law)
        return found

    def _prepare(self) -> PoissonEstimator:
        if self.estimator is None:
            raise ConfigurationError(
                "subsampled has not expanded the rows yet; call prepare(near) with a position first"
            )
        return self.estimator
