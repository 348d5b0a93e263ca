"""Surrogates that learn what a cheap model lacks (delayed acceptance: Christen and Fox 2005).

With C a cheap model of U, values are learnt as U = a C + b + r, where a and b are least squares and
a surrogate learns r (Kennedy and O'Hagan 2000, doi:10.1093/biomet/87.1.1). Of forward maps the
difference of outputs is learnt. The cheap model is evaluated wherever the surrogate is. Where it
fails, a normal density about the rows stands for it: chains must be able to get there and away.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

import attrs
import numpy as np

from surrokit.capabilities import FORWARD, GRADIENT, JACOBIAN, ROWS, VJP, require
from surrokit.errors import ShapeError, SurrogateFitError
from surrokit.interfaces import Evaluations, Learner, LearningProblem, Surrogate
from surrokit.model.calls import Calls
from surrokit.model.model import change_model
from surrokit.potentials import Energy, Potential, with_forward, with_gradient
from surrokit.surrogate.quality import FitQuality, fit_quality_of
from surrokit.surrogate.training import are_beyond, near_least
from surrokit.surrogate.whitening import Whitening
from surrokit.targets.functions import PotentialOfOutputs, gradient_of_energy
from surrokit.types import BoolArray, Capabilities, FloatArray, Pair

FAILED = 10
"""Rows at which a cheap model must have failed, and at all, to be given up."""

SCALED_FROM = 5
"""Rows for each parameter from which on a cheap model's values are scaled."""


class CheapModel:
    """A cheap model whose calls are counted, and whose failures are NaN.

    Parameters
    ----------
    cheap
        The model, in the sampling coordinates.
    counts
        Whether calls count.
    """

    def __init__(self, cheap: Potential, *, counts: bool = True) -> None:
        self.calls, self.failures, self.counts = Calls("reject", 0), 0, counts
        self.n_outputs = 0  # as long as it has failed everywhere
        self._bound: Any = change_model(cheap, lambda model: attrs.evolve(model, calls=self.calls))

    @property
    def count(self) -> int:
        """Positions at which it was evaluated."""
        return sum(self.calls.counts.values()) if self.counts else 0

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return C, shape (n,), and its gradient, shape (n, dim); NaN where it fails."""
        self.calls.begin(len(positions))
        with np.errstate(all="ignore"):
            values, slopes = self._bound.value_and_gradient(positions)
        values, slopes = self._checked(np.array(values), np.array(slopes))
        return values, slopes

    def value(self, positions: FloatArray) -> FloatArray:
        """Return C, shape (n,); NaN where it fails."""
        self.calls.begin(len(positions))
        with np.errstate(all="ignore"):
            values = np.array(self._bound.value(positions))
        return self._checked(values)[0]

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return outputs, shape (n, m); NaN where it fails."""
        self.calls.begin(len(positions))
        with np.errstate(all="ignore"):
            outputs = np.array(with_forward(self._bound).forward(positions))
        return self._checked(self._of_map(outputs))[0]

    def forward_and_jacobian(self, positions: FloatArray) -> Pair:
        """Return outputs, shape (n, m), and Jacobians, (n, m, dim); NaN where it fails."""
        self.calls.begin(len(positions))
        with np.errstate(all="ignore"):
            outputs, slopes = map(np.array, self._bound.forward_and_jacobian(positions))
        if not outputs.shape[1]:
            slopes = np.full((len(slopes), self.n_outputs, positions.shape[1]), np.nan)
        outputs, slopes = self._checked(self._of_map(outputs), slopes)
        return outputs, slopes

    def _of_map(self, outputs: FloatArray) -> FloatArray:
        """Return outputs (n, m), as many as the target's where the model has failed everywhere."""
        if outputs.shape[1]:
            return outputs
        return np.full((len(outputs), self.n_outputs), np.nan)

    def _checked(self, *results: FloatArray) -> tuple[FloatArray, ...]:
        """Return results with NaN in all rows where a number is not finite, and count these."""
        bad = np.zeros(len(results[0]), dtype=bool)
        for array in results:
            bad |= ~np.isfinite(array).reshape(len(array), -1).all(axis=1)
        self.failures += int(bad.sum())
        for array in results:
            array[bad] = np.nan
        return results


@attrs.frozen(kw_only=True, eq=False)
class Normal:
    """A normal density about rows, which stands for a surrogate where the cheap model fails."""

    whitening: Whitening
    level: float

    @classmethod
    def about(cls, rows: Evaluations) -> Normal | None:
        """Return that of rows by their density, wider than they are; None of too few."""
        near = near_least(rows.take(np.isfinite(rows.values)))
        if len(near) < 2:
            return None
        excess = near.values - near.values.min()
        weights = np.exp(-excess / max(float(np.median(excess)), 1.0))
        found = Whitening.of(near.positions, weights, drops_noise=True)
        wide = Whitening(mean=found.mean, factor=1.5 * found.factor)
        return cls(whitening=wide, level=float(near.values.min()))

    def value(self, positions: FloatArray) -> FloatArray:
        """Return -log density but for a constant, shape (n,)."""
        return self.value_and_gradient(positions)[0]

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return -log density but for a constant, shape (n,), and its gradient, shape (n, dim)."""
        z = self.whitening.apply(positions)
        return self.level + 0.5 * np.square(z).sum(axis=1), self.whitening.pull(z)


@attrs.frozen(eq=False)
class CheapEnergy:
    """The energy of a difference of outputs, to which those of a cheap model are added."""

    inner: Energy
    cheap: CheapModel

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,)."""
        return self.inner.value(outputs + self.cheap.forward(positions), positions)

    def value_and_gradients(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U (n,), its gradient in the outputs (n, m), and in the positions (n, dim)."""
        base, slopes = self.cheap.forward_and_jacobian(positions)
        value, by_outputs, own = self.inner.value_and_gradients(outputs + base, positions)
        return value, by_outputs, own + np.einsum("nm,nmd->nd", by_outputs, slopes)


@attrs.frozen(kw_only=True, eq=False)
class Corrected:
    """V = a C + b + r: a cheap model C, and a surrogate r of what it lacks; None for nothing.

    Beyond the rows that it has learnt from, r is what it is at their border.
    """

    cheap: CheapModel | Normal
    dim: int
    scale: float = 1.0
    level: float = 0.0
    rest: Potential | None = None
    border: Whitening | None = None
    stands_in: Normal | None = None
    quality: FitQuality | None = None
    capabilities: Capabilities = frozenset({GRADIENT})

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        if self.rest is not None or self.stands_in is not None:
            return self.value_and_gradient(positions)[0]
        values = self.scale * self.cheap.value(positions) + self.level
        return np.where(np.isnan(values), np.inf, values)

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return V, shape (n,), and its gradient, shape (n, dim)."""
        values, slopes = self.cheap.value_and_gradient(positions)
        values, slopes = self.scale * values + self.level, self.scale * slopes
        if self.rest is not None:
            assert self.border is not None
            inside, turn = _pulled_in(self.border, positions)
            more, by_rest = with_gradient(self.rest).value_and_gradient(inside)
            values, slopes = values + more, slopes + turn(by_rest)
        return _stand_in(self.stands_in, positions, values, slopes)

    def is_beyond(self, positions: FloatArray) -> BoolArray:
        """Return which positions (n, dim) lie beyond what the difference has learnt from."""
        if self.border is None:
            return np.zeros(len(positions), dtype=bool)
        return np.asarray(np.linalg.norm(self.border.apply(positions), axis=1) > 1.3)


def _pulled_in(border: Whitening, positions: FloatArray) -> tuple[FloatArray, Any]:
    """Return positions within an ellipsoid |z| <= 1, and what turns gradients there into own ones.

    Beyond it z becomes z / |z| times 1 + 0.3 tanh((|z| - 1) / 0.3).
    """
    z = border.apply(positions)
    lengths = np.maximum(np.linalg.norm(z, axis=1), 1e-300)
    bent = np.tanh(np.maximum(lengths - 1.0, 0.0) / 0.3)
    reached = np.where(lengths > 1.0, 1.0 + 0.3 * bent, lengths)
    units = z / lengths[:, None]
    beyond = lengths > 1.0
    inside = np.where(beyond[:, None], border.undo(reached[:, None] * units), positions)

    def turn(gradients: FloatArray) -> FloatArray:
        own = gradients @ border.factor
        along = np.einsum("nd,nd->n", own, units)[:, None] * units
        flatter, narrower = (1.0 - np.square(bent))[:, None], (reached / lengths)[:, None]
        turned = border.pull(flatter * along + narrower * (own - along))
        return np.where(beyond[:, None], turned, gradients)

    return inside, turn


def _stand_in(
    normal: Normal | None, positions: FloatArray, values: FloatArray, slopes: FloatArray
) -> Pair:
    """Return values (n,) and gradients with a normal density's where they are NaN."""
    failed = ~(np.isfinite(values) & np.isfinite(slopes).all(axis=1))
    if not failed.any():
        return values, slopes
    values, slopes = values.copy(), slopes.copy()
    if normal is None:
        values[failed] = np.inf
    else:
        values[failed], slopes[failed] = normal.value_and_gradient(positions[failed])
    return values, slopes


@attrs.frozen(kw_only=True, eq=False)
class CorrectedMap(PotentialOfOutputs):
    """V = energy(F + r): outputs F of a cheap map, and a surrogate r of what they lack."""

    cheap: CheapModel
    energy: Energy
    dim: int
    rest: Any = None
    stands_in: Normal | None = None
    capabilities: Capabilities = frozenset({GRADIENT, FORWARD, JACOBIAN})

    @property
    def quality(self) -> FitQuality | None:
        """Errors at rows that the surrogate of the difference was not fitted to."""
        return fit_quality_of(self.rest)

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return outputs, shape (n, m)."""
        outputs = self.cheap.forward(positions)
        return outputs if self.rest is None else outputs + self.rest.forward(positions)

    def forward_and_jacobian(self, positions: FloatArray) -> Pair:
        """Return outputs, shape (n, m), and their derivatives, shape (n, m, dim)."""
        outputs, slopes = self.cheap.forward_and_jacobian(positions)
        if self.rest is None:
            return outputs, slopes
        more, by_rest = self.rest.forward_and_jacobian(positions)
        return outputs + more, slopes + by_rest

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        outputs = self.forward(positions)
        if not outputs.shape[1]:
            return np.full(len(positions), np.inf)
        with np.errstate(all="ignore"):
            values = self.energy.value(outputs, positions)
        return _stand_in(self.stands_in, positions, values, np.zeros_like(positions))[0]

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return V, shape (n,), and its gradient, shape (n, dim)."""
        outputs, slopes = self.forward_and_jacobian(positions)
        if not outputs.shape[1]:
            return np.full(len(positions), np.inf), np.full_like(positions, np.nan)
        with np.errstate(all="ignore"):
            found = gradient_of_energy(self.energy, outputs, slopes, positions)
        return _stand_in(self.stands_in, positions, *found)

    def is_beyond(self, positions: FloatArray) -> BoolArray:
        """Return which positions (n, dim) lie beyond what the difference has learnt from."""
        return are_beyond(self.rest, positions)


@attrs.define(kw_only=True, eq=False)
class CheapLearner:
    """Lets a learner learn what a cheap model lacks; without a row it gives the cheap model.

    Parameters
    ----------
    fresh
        The learner, before it has observed anything.
    energy
        Of the forward map whose outputs are corrected; None to correct values.
    """

    fresh: Learner
    cheap: CheapModel
    dim: int
    energy: Energy | None
    rows: list[tuple[Evaluations, Evaluations]] = attrs.field(factory=list)  # and cheap ones there

    @property
    def needs(self) -> frozenset[str]:
        """What the learner needs."""
        return self.fresh.needs

    @property
    def uses(self) -> frozenset[str]:
        """What the learner uses."""
        return self.fresh.uses

    @property
    def provides(self) -> Capabilities:
        """A gradient; of a map outputs and their Jacobian, too."""
        return frozenset({GRADIENT} if self.energy is None else {GRADIENT, FORWARD, JACOBIAN})

    def observe(self, evaluations: Evaluations) -> None:
        """Take in exact evaluations, and evaluate the cheap model there."""
        rows = evaluations.take(np.isfinite(evaluations.values))
        if not len(rows):
            return
        at = rows.positions
        if self.energy is None:
            values, gradients = self.cheap.value_and_gradient(at)
            there = Evaluations(positions=at, values=values, gradients=gradients)
        else:
            if rows.outputs is not None:
                self.cheap.n_outputs = rows.outputs.shape[1]
            outputs, jacobians = self.cheap.forward_and_jacobian(at)
            if rows.outputs is not None and rows.outputs.shape[1] != outputs.shape[1]:
                raise ShapeError(
                    f"the cheap map returned {outputs.shape[1]} outputs, and the target's returns "
                    f"{rows.outputs.shape[1]}. Let both return the same ones"
                )
            there = Evaluations(
                positions=at, values=outputs[:, 0], outputs=outputs, jacobians=jacobians
            )
        self.rows.append((rows, there))

    def fit(self) -> Corrected | CorrectedMap:
        """Return the cheap model with what was learnt of the difference.

        It is the cheap model alone as long as that cannot be fitted.
        """
        exact, there = (Evaluations.join([each[i] for each in self.rows], self.dim) for i in (0, 1))
        normal = Normal.about(exact)
        near = near_least(exact).values.max(initial=-np.inf)
        used = np.isfinite(there.values) & (exact.values <= near)
        if len(exact) >= FAILED and not used.any() and normal is not None:
            return self._without_cheap(exact, normal)
        exact, there = exact.take(used), there.take(used)
        if self.energy is None:
            return self._correct_values(exact, there, normal)
        rest = None
        if len(exact) and exact.outputs is not None and there.outputs is not None:
            slopes = exact.jacobians
            assert there.jacobians is not None
            left = attrs.evolve(
                exact,
                gradients=None if slopes is not None else exact.gradients,
                outputs=exact.outputs - there.outputs,
                jacobians=None if slopes is None else slopes - there.jacobians,
            )
            with np.errstate(all="ignore"):
                errors = self.energy.value(there.outputs, exact.positions) - exact.values
            rest = self._fit_rest(left, errors)
        return CorrectedMap(
            cheap=self.cheap, energy=self.energy, dim=self.dim, rest=rest, stands_in=normal
        )

    def _without_cheap(self, exact: Evaluations, normal: Normal) -> Corrected:
        """Return a surrogate in which a normal density is in the place of the cheap model."""
        if self.energy is not None:  # whose outputs there are none of
            return Corrected(cheap=normal, dim=self.dim)
        near = near_least(exact)
        values, gradients = normal.value_and_gradient(near.positions)
        there = Evaluations(positions=near.positions, values=values, gradients=gradients)
        return attrs.evolve(self._correct_values(near, there, normal), cheap=normal)

    def _correct_values(
        self, exact: Evaluations, there: Evaluations, normal: Normal | None
    ) -> Corrected:
        base = Corrected(cheap=self.cheap, dim=self.dim, stands_in=normal)
        if not len(exact):
            return base
        scale, level = _line(there.values, exact.values, SCALED_FROM * self.dim)
        base = attrs.evolve(base, scale=scale, level=level)
        gradients = exact.gradients
        assert there.gradients is not None
        left = attrs.evolve(
            exact,
            values=exact.values - scale * there.values - level,
            gradients=None if gradients is None else gradients - scale * there.gradients,
        )
        rest = self._fit_rest(left, left.values)
        if rest is None or GRADIENT not in rest.capabilities:
            return base
        whitening = Whitening.of(exact.positions, np.ones(len(exact)), drops_noise=True)
        farthest = np.linalg.norm(whitening.apply(exact.positions), axis=1).max()
        radius = max(float(np.sqrt(self.dim)) + 2.0, float(farthest))
        border = Whitening(mean=whitening.mean, factor=radius * whitening.factor)
        return attrs.evolve(base, rest=rest, border=border, quality=fit_quality_of(rest))

    def _fit_rest(self, left: Evaluations, errors: FloatArray) -> Potential | None:
        """Return a surrogate of the difference; None where the cheap model's errors (n,) are less.

        That is judged by a fifth of the rows, two at least. A solver with a loose tolerance differs
        by noise, which nothing learns.
        """
        last = np.arange(len(left)) % 5 == 4
        judged = self._fit_fresh(left.take(~last)) if last.sum() >= 2 else None
        if judged is None:
            return None
        new = judged.value(left.positions[last]) - left.values[last]
        if not np.var(new) <= np.var(errors[last]):
            return None
        return self._fit_fresh(left)

    def _fit_fresh(self, rows: Evaluations) -> Potential | None:
        learner = self.fresh.restore(copy.deepcopy(self.fresh.state()))
        learner.observe(rows)
        try:
            return learner.fit()
        except SurrogateFitError:
            return None

    def state(self) -> dict[str, Any]:
        """Return all rows, with what the cheap model gives there."""
        return {"rows": [*self.rows]}

    def restore(self, state: Mapping[str, Any]) -> Self:
        """Return a learner that goes on from what ``state`` returned."""
        return attrs.evolve(self, rows=[*state["rows"]])


def _line(x: FloatArray, y: FloatArray, enough: int) -> tuple[float, float]:
    """Return a and b of y = a x + b by least squares; a = 1 where it is not well known."""
    apart, scale = x - x.mean(), 1.0
    squares = float(apart @ apart)
    if len(x) >= enough and squares > 0.0:
        found = float(apart @ y / squares)
        left = y - y.mean() - found * apart
        error = float(np.sqrt(left @ left / max(len(x) - 2, 1) / squares))
        scale = found if 0.2 < found < 5.0 and abs(found - 1.0) > 3.0 * error else 1.0
    return scale, float(np.mean(y - scale * x))


def cheap_learner(
    surrogate: Surrogate,
    problem: LearningProblem,
    cheap: Potential,
    rng: np.random.Generator,
    *,
    counts: bool = True,
) -> CheapLearner:
    """Return a learner of what a cheap model lacks, whose calls may count, by a surrogate's own.

    Raises
    ------
    CapabilityError
        If the cheap model has neither a gradient nor a Jacobian.
    """
    of_outputs = problem.energy is not None and JACOBIAN in cheap.capabilities
    require(
        "a cheap model",
        frozenset({JACOBIAN if of_outputs else GRADIENT}),
        cheap.capabilities,
        "itself",
        "pass a run of it, whose surrogate has one: sk.with_cheap(target, sk.sample(cheap, ...))",
    )
    model = CheapModel(cheap, counts=counts)
    energy = problem.energy if of_outputs else None
    if energy is not None:
        own = attrs.evolve(problem, energy=CheapEnergy(energy, model))
    else:
        offered = problem.capabilities - {FORWARD, JACOBIAN, VJP, ROWS}
        own = attrs.evolve(problem, energy=None, capabilities=offered, terms=None, is_density=False)
    learner = surrogate.learner(own, rng)
    if energy is not None and "outputs" not in learner.uses:  # it learns values, whatever there is
        plain = attrs.evolve(problem, energy=None)
        return cheap_learner(surrogate, plain, cheap, rng, counts=counts)
    return CheapLearner(fresh=learner, cheap=model, dim=problem.dim, energy=energy)
