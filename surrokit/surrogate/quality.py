"""How good a fit is by held-out rows, and whether it is kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.errors import ShapeError
from surrokit.interfaces import Evaluations
from surrokit.potentials import Potential, with_gradient
from surrokit.surrogate.training import demand_numbers
from surrokit.types import FloatArray


@attrs.define(kw_only=True, eq=False)
class KeepingLearner:
    """Keeps every evaluation observed; a subclass fits to all of them when asked.

    Its seed decides all random choices, the same at every fit.
    """

    dim: int
    seed: int
    _blocks: list[Evaluations] = attrs.field(factory=list, init=False, repr=False)

    def observe(self, evaluations: Evaluations) -> None:
        """Keep exact evaluations; rows without a finite value are ignored when fitting."""
        used = self.check(evaluations)
        if len(used):
            self._blocks.append(used)

    def check(self, evaluations: Evaluations) -> Evaluations:
        """Return the evaluations worth keeping.

        Raises
        ------
        ShapeError
            If the positions have another dimension than the problem.
        ConfigurationError
            If a value is NaN, or a position with a finite value.
        """
        if evaluations.positions.shape[1] != self.dim:
            raise ShapeError(
                f"positions of evaluations must have shape (n, {self.dim}), "
                f"got {evaluations.positions.shape}; pass evaluations of the same target"
            )
        demand_numbers(evaluations)
        return self.keep_used(evaluations)

    def keep_used(self, evaluations: Evaluations) -> Evaluations:
        """Return the evaluations worth keeping: all, unless a subclass keeps fewer."""
        return evaluations

    def join_observed(self) -> Evaluations:
        """Return everything observed."""
        # Joined once, so that the next call finds one block.
        self._blocks = [Evaluations.join(self._blocks, self.dim)]
        return self._blocks[0]

    def forget(self) -> None:
        """Drop all rows."""
        self._blocks = []

    def of_rows(self, evaluations: Evaluations) -> Self:
        """Return a learner with the same seed and settings that has observed these rows alone."""
        learner = attrs.evolve(self)
        learner._blocks = [evaluations]
        return learner

    def state(self) -> dict[str, Any]:
        """Return the seed and all rows observed."""
        return {"seed": self.seed, "rows": attrs.asdict(self.join_observed())}

    def restore(self, state: Mapping[str, Any]) -> Self:
        """Return a learner with the same settings that goes on from what ``state`` returned."""
        return attrs.evolve(self, seed=int(state["seed"])).of_rows(Evaluations(**state["rows"]))


def expected_acceptance(variance: float) -> float:
    """Return the expected acceptance of independent draws from exp(-V), under exact decisions.

    With normal errors of this variance, in nats squared, the log ratio is N(-variance, 2 variance),
    and the mean of min(1, ratio) is erfc(sqrt(variance) / 2).
    """
    return math.erfc(math.sqrt(variance) / 2.0)


@attrs.frozen(kw_only=True)
class FitQuality:
    """Errors of a surrogate V at exact evaluations that it was not fitted to.

    Parameters
    ----------
    variance
        Var(V - U), in nats squared: equation (15) of Zhang, Shahbaba and Zhao (2017). A potential
        is known up to a constant, so the mean of V - U does not count.
    gradient_error
        Root of sum |L^T grad(V - U)|^2 / sum |L^T grad U|^2, where z = L^-1 (q - mu) is the
        whitened position; None where no gradient is known.
    """

    variance: float
    gradient_error: float | None
    n_points: int

    @property
    def acceptance(self) -> float:
        """Predicted acceptance of independent draws from exp(-V), under exact decisions."""
        return expected_acceptance(self.variance)

    def to_dict(self) -> dict[str, float | int | None]:
        """Return the figures and the predicted acceptance as plain data."""
        return {**attrs.asdict(self), "acceptance": self.acceptance}


def fit_quality(
    fitted: Potential, held_out: Evaluations, factor: FloatArray | None = None
) -> FitQuality | None:
    """Compare a surrogate with exact evaluations that it was not fitted to.

    Rows without a finite value are left out, and rows without a finite gradient count for the
    values only; None with fewer than two rows, which have no variance.

    Parameters
    ----------
    held_out
        Best at positions such as the sampler will visit.
    factor : ndarray of shape (dim, dim), optional
        L of the whitening; None for the identity.
    """
    finite = np.isfinite(held_out.values)
    rows = held_out.take(finite)
    if len(rows) < 2:
        return None
    exact, error = rows.gradients, None
    known = None if exact is None else np.isfinite(exact).all(axis=1)
    if GRADIENT in fitted.capabilities and exact is not None and known is not None and known.any():
        values, gradients = with_gradient(fitted).value_and_gradient(rows.positions)
        errors, exact = gradients[known] - exact[known], exact[known]
        if factor is not None:
            errors, exact = errors @ factor, exact @ factor
        scale = max(float(np.linalg.norm(exact)), np.finfo(float).tiny)
        error = float(np.linalg.norm(errors) / scale)
    else:
        values = fitted.value(rows.positions)
    variance = float(np.var(values - rows.values))
    return FitQuality(variance=variance, gradient_error=error, n_points=len(rows))


def fit_quality_of(surrogate: Potential) -> FitQuality | None:
    """Return the held-out error that a surrogate reports of itself, or None."""
    quality = getattr(surrogate, "quality", None)
    return quality if isinstance(quality, FitQuality) else None
