"""How far an active exploration has come."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.interfaces import ChainState, StepInfo, Tuning
from surrokit.surrogate.quality import expected_acceptance
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, FloatArray
from surrokit_gp.quadratic.heights import flat_from
from surrokit_gp.quadratic.prior import QuadraticPrior

JUDGED = 8
"""Latest draws of the process by which it is judged."""


@attrs.frozen(kw_only=True, eq=False)
class ActiveState:
    """All points so far, and where the next ones may lie: plain data.

    Parameters
    ----------
    chains
        The chains.
    positions, values : ndarrays of shape (n, dim) and (n,)
        Where the target was evaluated, and U there; infinite where that failed.
    most_paid, most_steps
        Evaluations and steps at most.
    spread
        Root mean square of V - U at draws of late, in nats.
    centre, factor : ndarrays of shape (dim,) and (dim, dim)
        Of the coordinates of the next process; None before the first.
    prior
        What the last process has found; None before the first.
    reach
        How many times as far as draws of a normal target its wall lies.
    unsure
        Part of the latest draws at which the process was not to be believed.
    errors, judges : ndarrays of shape (k,) and (k, dim)
        V - U at the latest draws of V itself, and these draws; -inf where U is infinite.
    info
        What the last step did to the chains.
    steps
        So far.
    finished
        Whether nothing more is to be paid.
    seed
        From the run's generator, for chains on the last surrogate.
    tuning
        What the run's own sampler needs on it.
    """

    chains: ChainState
    positions: FloatArray
    values: FloatArray
    most_paid: int
    most_steps: int
    spread: float
    centre: FloatArray | None = None
    factor: FloatArray | None = None
    prior: QuadraticPrior | None = None
    reach: float = 1.0
    unsure: float = 1.0
    errors: FloatArray = attrs.field()
    judges: FloatArray = attrs.field()
    info: StepInfo | None = None
    steps: int = 0
    finished: bool = False
    seed: int = 0
    tuning: Tuning | None = None

    @errors.default
    def _no_errors(self) -> FloatArray:
        return np.empty(0)

    @judges.default
    def _no_judges(self) -> FloatArray:
        return np.empty((0, self.positions.shape[1]))

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return int(self.positions.shape[1])

    @property
    def whitening(self) -> Whitening | None:
        """The coordinates of the next process."""
        if self.centre is None or self.factor is None:
            return None
        return Whitening(mean=self.centre, factor=self.factor)

    def look(self, whitening: Whitening, prior: QuadraticPrior) -> ActiveState:
        """Return the state with coordinates and a prior for the next process."""
        return attrs.evolve(self, centre=whitening.mean, factor=whitening.factor, prior=prior)

    @property
    def paid(self) -> int:
        """Evaluations so far."""
        return len(self.values)

    @property
    def finite(self) -> BoolArray:
        """Which evaluations did not fail, shape (n,)."""
        return np.asarray(np.isfinite(self.values))

    @property
    def best(self) -> FloatArray:
        """Where U is least, shape (dim,)."""
        return np.asarray(self.positions[int(np.argmin(self.values))])

    @property
    def shown(self) -> FloatArray:
        """Values that a process is conditioned on, shape (n,): failed ones are high, not infinite.

        So high that they count among the flattened ones, and that points are not sought there.
        """
        high = float(self.values.min()) + math.e * flat_from(self.dim)
        return np.where(self.finite, self.values, high)

    @property
    def acceptance(self) -> float | None:
        """Predicted acceptance of independent draws by the latest judges; None for too few."""
        if len(self.errors) < JUDGED:
            return None
        fine = np.isfinite(self.errors)
        if np.count_nonzero(fine) < 2:
            return 0.0
        part = float(fine.mean())
        return part * expected_acceptance(float(np.var(self.errors[fine])))

    def pay(self, positions: FloatArray, values: FloatArray) -> ActiveState:
        """Return the state with more evaluations."""
        return attrs.evolve(
            self,
            positions=np.concatenate([self.positions, positions]),
            values=np.concatenate([self.values, values]),
        )

    def judge(self, judges: FloatArray, errors: FloatArray, *, by_draws: bool) -> ActiveState:
        """Return the state with more draws of a process; such of a flattened one do not count."""
        if not by_draws:
            return attrs.evolve(self, errors=np.empty(0), judges=self.judges[:0])
        return attrs.evolve(
            self,
            errors=np.concatenate([self.errors, errors])[-JUDGED:],
            judges=np.concatenate([self.judges, judges])[-max(JUDGED, len(self.chains.values)) :],
        )
