"""The wrapper of every exact call, which counts calls and keeps evaluations."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.contracts.forward import Energy, with_forward, with_vjp
from surrokit.contracts.learner import Evaluations
from surrokit.contracts.methods import BY_NAME, Method
from surrokit.contracts.potential import (
    InitialPotential,
    Potential,
    with_gaussian,
    with_gradient,
)
from surrokit.coordinates.blocks import CoordinateMap
from surrokit.coordinates.parameters import Parameters
from surrokit.cost.budget import calls_paid
from surrokit.cost.lowest import Lowest
from surrokit.cost.rejections import Rejections
from surrokit.cost.rows import RecordedRows
from surrokit.errors import TargetError
from surrokit.failures.account import BrokenGradients
from surrokit.limits.penalties import PENALTY, Penalties
from surrokit.model.calls import Calls, Guard, OnError
from surrokit.model.journal import Journal
from surrokit.model.model import calls_per_gradient, change_model
from surrokit.shapes import check_positions
from surrokit.shown.target import ShownTarget
from surrokit.targets.bounds import parameters_of, transform_of
from surrokit.targets.differences import Differences
from surrokit.targets.outputs import gradient_of_energy
from surrokit.types import BoolArray, Capabilities, FloatArray


class RecordingPotential(RecordedRows, ShownTarget):
    """A target whose evaluations are counted, and kept until they are drained.

    A position where the target raises, or returns NaN or -inf, gets the value ``inf``, and so is
    rejected and counted. A position where U is finite and its gradient is not counts as a failure
    too: paths that follow the gradient end there. A warning tells of the first failure (see
    :mod:`surrokit.failures.log`).

    Calls are counted where the model is called (:mod:`surrokit.model.model`).
    A position counts as ``gradient`` if its gradient is evaluated, with the value or alone, and as
    ``value`` if the value is evaluated alone; for a forward potential as ``vjp`` (``jacobian`` if
    it has no adjoint, or a learner asks for Jacobians) and ``forward``. Products, diagonals and
    derivatives of the Hessian count as ``hessian``, those of the metric as ``metric``, second
    derivatives of outputs as ``jacobian``. For a summed potential an expansion of all rows counts
    as one ``hessian``, and single rows that are evaluated, bounded or copied count as ``rows``.

    Parameters
    ----------
    target
        The exact potential.
    keep
        Whether evaluations are kept for a learner. If so, a gradient is always evaluated with its
        value, so that the learner gets both.
    on_error
        ``"reject"``; ``"raise"`` to stop at the first exception of the target; or ``"retry"``.
    retries
        How often a position that failed is evaluated again at most, with ``"retry"``.
    """

    def __init__(
        self, target: Potential, *, keep: bool, on_error: OnError = "reject", retries: int = 0
    ) -> None:
        self.target = target
        self.calls_made = Calls(on_error, retries)
        self.rejections = Rejections(self.calls_made, target)
        self._keeps = keep
        self._with_gradients = False
        self._wants_jacobians = False
        self._bound = self._bind(target)
        self._blocks: list[Evaluations] = []
        self._penalties = Penalties()
        self._lowest = Lowest(target.dim)

    def _bind(self, target: Potential) -> Any:
        """Return the target with a model whose calls are this run's."""
        return change_model(target, lambda model: attrs.evolve(model, calls=self.calls_made))

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.target.dim

    @property
    def capabilities(self) -> Capabilities:
        """What the target offers."""
        return self.target.capabilities

    @property
    def transform(self) -> CoordinateMap:
        """The map to the user's coordinates."""
        return transform_of(self.target)

    @property
    def parameters(self) -> Parameters:
        """Names, shapes and bounds."""
        return parameters_of(self.target)

    @property
    def calls(self) -> dict[str, int]:
        """Positions evaluated so far, by kind of call."""
        return dict(self.calls_made.counts)

    @property
    def calls_per_gradient(self) -> int:
        """Exact calls that a gradient of the target pays for."""
        return calls_per_gradient(self.target)

    @property
    def paid(self) -> float:
        """Calls of all kinds so far; a data row counts as its share of all rows."""
        rows = self.n_rows if can.ROWS in self.capabilities else None
        return calls_paid(self.calls_made.counts, rows)

    @property
    def failures(self) -> int:
        """Positions at which the target raised, or returned NaN or -inf."""
        return self.rejections.account.total

    @property
    def broken_gradients(self) -> BrokenGradients:
        """Positions where U is finite and its gradient is not, in the user's coordinates."""
        return self.rejections.account.tell_broken(self.transform)

    def fork(self, *, keep: bool, jacobians: bool = False) -> RecordingPotential:
        """Return a wrapper with shared counts that keeps its own evaluations, or none.

        With ``jacobians`` gradients are made by Jacobians, if there are any, despite an adjoint.
        """
        other = copy.copy(self)
        other._wants_jacobians, other._keeps, other._blocks = jacobians, keep, []
        return other

    def one_sided(self, curvatures: FloatArray | None) -> RecordingPotential:
        """Return a wrapper of differences to one side; what it keeps is drained here."""
        other = copy.copy(self)
        if isinstance(self._bound, Differences):
            other._bound = self._bound.one_sided(curvatures)
        return other

    def go_by_values(self) -> None:
        """Leave differences of values aside from here on."""
        assert isinstance(self.target, Differences)
        self.target = self.target.inner
        self._bound = self._bind(self.target)

    @property
    def keeps(self) -> bool:
        """Whether evaluations are kept."""
        return self._keeps

    def keep_evaluations(self, wanted: bool, *, jacobians: bool = False) -> None:
        """Keep evaluations from here on, perhaps with Jacobians, or only count them."""
        self._keeps, self._wants_jacobians = wanted, jacobians

    def guard(self, guard: Guard | None, journal: Journal | None = None) -> None:
        """Ask a guard before each call from here on, None removes it; journals stay."""
        calls = self.calls_made
        calls.guard, calls.journal = guard, journal or calls.journal

    @contextmanager
    def pay_gradients(self, wanted: bool = True) -> Iterator[None]:
        """Evaluate and keep, in the block, gradients with values, if ``wanted`` and offered."""
        self._with_gradients = wanted and self._keeps and can.GRADIENT in self.capabilities
        try:
            yield
        finally:
            self._with_gradients = False

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Remember the last batch of each kind in the block; afterwards it is free, once."""
        self.calls_made.remembers = True
        try:
            yield
        finally:
            self.calls_made.remembers = False

    @property
    def energy(self) -> Energy:
        """The target's energy; cheap, and not counted."""
        return with_forward(self.target).energy

    @property
    def mean(self) -> FloatArray:
        """Mean of a normal target, shape (dim,); not counted."""
        return with_gaussian(self.target).mean

    @property
    def factor(self) -> FloatArray:
        """Factor L of a normal target's covariance, shape (dim, dim); not counted."""
        return with_gaussian(self.target).factor

    def drain(self) -> Evaluations:
        """Return the evaluations since the last drain, and forget them.

        U is infinite in them where it is a penalty, of which nothing is to be learnt.
        """
        blocks, self._blocks = self._blocks, []
        return self._without_penalties(Evaluations.join(blocks, self.dim))

    def lowest(self) -> Evaluations:
        """Return the lowest of all evaluations, those of forks included."""
        return self._without_penalties(self._lowest.evaluations())

    def _without_penalties(self, rows: Evaluations) -> Evaluations:
        if not (rows.values >= PENALTY).any():
            return rows
        found = self.find_penalties(rows.positions, rows.values)
        return attrs.evolve(rows, values=np.where(found, np.inf, rows.values))

    def find_penalties(self, positions: FloatArray, values: FloatArray) -> BoolArray:
        """Return which of U (n,) at positions (n, dim) are penalties beyond the support."""
        with np.errstate(all="ignore"):
            densities = values + self.transform.log_jacobian(positions)
        return self._penalties.find(positions, densities)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return exact U, shape (n,); ``inf`` where it could not be evaluated.

        Within :meth:`pay_gradients` its gradient (for a forward potential its Jacobian) is
        evaluated, counted and kept as well.
        """
        if self._with_gradients:
            return self.value_and_gradient(positions)[0]
        if can.FORWARD in self.capabilities:
            return self._valued_outputs(positions)[0]
        with self.rejections.evaluating("value", positions):
            values = self._bound.value(positions)
        values = self.rejections.decidable(values)
        self._store(positions=positions, values=values)
        return values

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return exact U, shape (n,), and its gradient, shape (n, dim); NaN where U failed."""
        by_vjp = can.VJP in self.capabilities
        if can.JACOBIAN in self.capabilities and (self._wants_jacobians or not by_vjp):
            return self._through_jacobian(positions)
        if by_vjp:
            return self._through_vjp(positions)[:2]
        with self.rejections.evaluating("gradient", positions):
            values, gradients = with_gradient(self._bound).value_and_gradient(positions)
        values = self.rejections.decidable(values)
        self.rejections.count_broken_gradients(positions, values, gradients)
        self._store(positions=positions, values=values, gradients=gradients)
        return values, gradients

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the exact gradient, shape (n, dim); the value is paid too where it is kept."""
        alone = can.GRADIENT_ALONE in self.capabilities
        if self._keeps or not alone or self.capabilities & {can.JACOBIAN, can.VJP}:
            return self.value_and_gradient(positions)[1]
        with self.rejections.evaluating("gradient", positions):
            gradients: FloatArray = self._bound.gradient(positions)
        self._look_at_lone(positions, gradients)
        return gradients

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the outputs of the forward map, shape (n, m); NaN where it failed."""
        return _known(self._valued_outputs(positions)[1])

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return outputs, shape (n, m), and their derivatives, shape (n, m, dim)."""
        with self.rejections.evaluating("jacobian", positions):
            outputs, jacobians = self._bound.forward_and_jacobian(positions)
        self._differentiate(positions, _known(outputs), jacobians)
        return outputs, jacobians

    def forward_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return outputs, shape (n, m), and the gradient of U, shape (n, dim), by the adjoint."""
        _, gradients, outputs = self._through_vjp(positions)
        return _known(outputs), gradients

    def __getattr__(self, name: str) -> Any:
        """Return a counted method for matrices or contractions of them.

        :mod:`surrokit.contracts.methods` lists them all.
        """
        method = BY_NAME.get(name)
        if method is None or method.kind is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return partial(self._evaluate, method)

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return the target's own starting positions, shape (n, dim)."""
        return cast(InitialPotential, self.target).initial(rng, n)

    def _evaluate(self, method: Method, positions: FloatArray, *factors: FloatArray) -> FloatArray:
        assert method.kind is not None
        q = check_positions(positions, self.dim)
        given = [method.check_factors(each, q) for each in factors]
        with self.rejections.evaluating(method.kind, q):
            found: FloatArray = getattr(self._bound, method.name)(q, *given)
        return found

    def _valued_outputs(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        with self.rejections.evaluating("forward", positions):
            outputs = with_forward(self._bound).forward(positions)
        values = self._energies(outputs, positions)
        self._store(positions=positions, values=values, outputs=_or_none(outputs))
        return values, outputs

    def _through_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        with self.rejections.evaluating("jacobian", positions):
            outputs, jacobians = with_forward(self._bound).forward_and_jacobian(positions)
        return self._differentiate(positions, outputs, jacobians)

    def _differentiate(
        self, positions: FloatArray, outputs: FloatArray, jacobians: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return U and its gradient from outputs and Jacobians, and keep all four."""
        if outputs.shape[1] == 0:
            values = self._energies(outputs, positions)
            self._store(positions=positions, values=values)
            return values, np.full(positions.shape, np.nan)
        with np.errstate(all="ignore"):
            values, gradients = gradient_of_energy(self.energy, outputs, jacobians, positions)
        values = self.rejections.decidable(values)
        self.rejections.count_broken_gradients(positions, values, gradients)
        found = {"values": values, "gradients": gradients, "outputs": outputs}
        self._store(positions=positions, jacobians=jacobians, **found)
        return values, gradients

    def _through_vjp(self, at: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U, its gradient and the outputs, by the adjoint, and keep all three."""
        with self.rejections.evaluating("vjp", at):
            outputs, gradients = with_vjp(self._bound).forward_and_gradient(at)
        values = self._energies(outputs, at)
        self.rejections.count_broken_gradients(at, values, gradients)
        found = {"values": values, "gradients": gradients, "outputs": _or_none(outputs)}
        self._store(positions=at, **found)
        return values, gradients, outputs

    def _look_at_lone(self, positions: FloatArray, gradients: FloatArray) -> None:
        """Evaluate U where a lone gradient is not finite, which is no failure off the support."""
        broken, causes = ~np.isfinite(gradients).all(axis=1), dict(self.calls_made.causes)
        if broken.any():
            where, values = positions[broken], np.full(len(positions), np.nan)
            with self.rejections.evaluating("value", where):
                found = self._bound.value(where)
            values[broken] = self.rejections.decidable(found)
            self.rejections.count_broken_gradients(positions, values, gradients, causes)

    def _energies(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        if outputs.shape[1] == 0:  # the map has failed everywhere
            return self.rejections.decidable(np.full(len(positions), np.nan))
        with np.errstate(all="ignore"):  # a failed row's outputs are NaN
            return self.rejections.decidable(self.energy.value(outputs, positions))

    def _store(self, **found: Any) -> None:
        self._lowest.add(found["positions"], found["values"], found.get("gradients"))
        if self._keeps:
            self._blocks.append(Evaluations(**found))


def _or_none(outputs: FloatArray) -> FloatArray | None:
    return outputs if outputs.shape[1] else None


def _known(outputs: FloatArray) -> FloatArray:
    """Return outputs, unless a map has failed everywhere, so that their number is not known."""
    if len(outputs) and outputs.shape[1] == 0:
        raise TargetError(
            "the forward map failed at the very first positions, so the number of its outputs is "
            "not known; start where it can be evaluated"
        )
    return outputs
