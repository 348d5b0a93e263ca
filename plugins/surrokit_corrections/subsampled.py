"""An exact correction that touches a few rows of the data only."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import Limits
from surrokit.errors import CapabilityError, ConfigurationError
from surrokit.interfaces import ChainState, Proposal, Status, StepInfo
from surrokit.kernel.hamiltonian import carry_out, state_at
from surrokit.mode.descent import Mode
from surrokit.mode.search import find_mode
from surrokit.potentials import Potential, with_hessian, with_rows
from surrokit.types import Cache, Capabilities, FloatArray
from surrokit_corrections.metropolis import decide_by_values
from surrokit_corrections.thinning import Thinning

_FEW_OPERATIONS, _MANY_OPERATIONS = 2e9, 2e10  # a tenth of a second, and about a second, once
_ROW_IN_OPERATIONS = 1e6
"""What some thousand moves save by expansions of third order, for each row that a move touches and
each dimension."""


def _to_array(values: object) -> FloatArray | None:
    return None if values is None else np.array(values, dtype=np.float64)


@attrs.frozen(kw_only=True, eq=False)
class Subsampled:
    """Accept with min(1, exp(V(q) - V(q') + c)) . prod_i min(1, exp(-(D_i(q') - D_i(q)))).

    The potential is a sum over rows, U = sum_i U_i + rest. V is the sum of all terms' expansions
    at the mode, to second order or third, the rest kept as it is, and D_i what the expansion of
    term i leaves out. The rule is exact for every sampler and surrogate: divided by the same for
    the way back, the first factor gives exp(V(q) - V(q') + c), each one of the product
    exp(D_i(q) - D_i(q')), and all of them together exp(U(q) - U(q') + c).

    The first factor touches no row, and is tested first. The product is decided by
    :class:`~surrokit_corrections.thinning.Thinning`, exactly, by as many rows as the posterior is
    far from normal. Since every factor is at most 1 it accepts less often than Metropolis' rule.
    Proposals made on the exact potential bring its values along: they are decided by Metropolis'
    rule, which then costs nothing.

    Exact values of accepted proposals are not known, and are NaN in the states.

    Parameters
    ----------
    order
        To which terms are expanded: 2, or 3 where the target has the capability
        ``rows-third-order``. Expansions of third order accept more and touch fewer rows, but take
        about ``n_rows dim^3 / 3`` operations once; None takes them where these are few, or where a
        move would touch many rows without.
    centre : ndarray of shape (dim,), optional
        Where terms are expanded, for whoever knows a position near the mode. None has the mode
        searched for. Draws are exact with any; the nearer to the mode, the fewer rows are touched.
    hessian : ndarray of shape (dim, dim), optional
        Second derivatives there; to be given with a centre, and only then.

    Raises
    ------
    ConfigurationError
        If the order is neither, or one of centre and hessian is given alone.

    References
    ----------
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
    thinning: Thinning | None = None  # made by :meth:`prepare`
    mode: Mode | None = None  # found by :meth:`prepare`, unless a centre was given

    def prepare(self, near: FloatArray) -> SubsampledDecider:
        """Return a copy with all terms expanded at the mode, searched for from ``near (dim,)``.

        Pays for the search of the mode, its Hessian, and two passes over the rows (for expansions
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
        return attrs.evolve(self, thinning=self._expand(centre, hessian), mode=mode)

    def _expand(self, centre: FloatArray, hessian: FloatArray) -> Thinning:
        exact, order = self.potential, self.settings.order
        third, summed = can.ROWS_THIRD_ORDER in exact.capabilities, with_rows(exact)
        if order == 3 and not third:
            raise CapabilityError(
                "subsampled with order=3 needs rows-third-order from the target, whose terms have "
                "no third derivatives, or no bound of the fourth; pass order=2"
            )
        if order is not None:
            return Thinning.at(centre, hessian, summed, order)
        operations = summed.n_rows * exact.dim**3
        if not third or operations > _MANY_OPERATIONS:
            return Thinning.at(centre, hessian, summed)
        if operations > _FEW_OPERATIONS:
            second = Thinning.at(centre, hessian, summed)
            if operations > second.expected_rows * exact.dim * _ROW_IN_OPERATIONS:
                return second
        return Thinning.at(centre, hessian, summed, 3)

    @property
    def expected_rows(self) -> float:
        """Rows that a move between independent draws of the Laplace approximation touches.

        Raises
        ------
        ConfigurationError
            Before :meth:`prepare`.
        """
        return self._prepare().expected_rows

    def predicted_acceptance(self, rng: np.random.Generator) -> float | None:
        """Return the mean acceptance of independent draws of the Laplace approximation.

        By decisions on some 200 pairs of them, fewer where many rows are touched. None where a pair
        costs more than three passes over all rows.

        Raises
        ------
        ConfigurationError
            Before :meth:`prepare`.
        """
        thinning = self._prepare()
        cost = min(thinning.expected_rows, thinning.n_rows)
        n = int(min(200, 3.0 * thinning.n_rows / max(cost, 1.0)))
        if n < 1:
            return None
        dim = len(thinning.whitening)
        normals = rng.standard_normal((2 * n, dim))
        # z = (q - centre) C, so that h = q - centre solves C^T h = z
        positions = thinning.expansion.centre + np.linalg.solve(thinning.whitening.T, normals.T).T
        excess = thinning.expansion.value(positions) - 0.5 * np.square(normals).sum(axis=1)
        first = np.exp(np.minimum(excess[:n] - excess[n:], 0.0))
        ends = positions.reshape(2, n, dim)
        survival = thinning.survival(ends, np.ones(n, dtype=bool), rng)
        return float((first * survival).mean())

    def start(self, positions: FloatArray, cache: Cache, source: Potential | None) -> ChainState:
        """Return the state at ``positions (n, dim)``; pays n values unless the cache has them."""
        return state_at(self.potential, positions, cache, source)

    def decide(
        self, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Accept or reject every chain's proposal.

        The ``acceptance`` in what is told is unbiased, and known exactly only where all rows had
        to be looked at: 0 where the first factor rejected, else the probability that the product
        accepts given the rows drawn. Its mean over iterations is that of the true probability.

        Raises
        ------
        ConfigurationError
            Before :meth:`prepare`, unless the proposal was made on the exact potential.
        TargetError
            If a row changes by more than its bound allows.
        """
        if proposal.source is self.potential:
            known = attrs.evolve(state, values=state.cache["value"])
            return decide_by_values(known, proposal, proposal.cache["value"], rng)
        thinning = self._prepare()
        ends = np.array([state.positions, proposal.positions])
        with np.errstate(all="ignore"):
            v = thinning.expansion.value(ends.reshape(-1, ends.shape[2]))
            v_before, v_after = v.reshape(2, -1)
            first = np.exp(np.minimum(v_before - v_after + proposal.log_correction, 0.0))
        uniform = rng.random(len(first))
        # NaN does not pass. One uniform number does for both factors: given that it is below the
        # first, its share of that is uniform again
        passed = (uniform < first) & (proposal.status == Status.OK)
        survival = thinning.survival(ends, passed, rng)
        accepted = passed & (uniform < first * survival)
        acceptance = np.where(passed & (survival > 0.0), survival, 0.0)
        values = np.where(proposal.moved, np.nan, state.values)
        return carry_out(state, proposal, values, accepted, acceptance)

    def _prepare(self) -> Thinning:
        if self.thinning is None:
            raise ConfigurationError(
                "subsampled has not expanded the rows yet; call prepare(near) with a position first"
            )
        return self.thinning
