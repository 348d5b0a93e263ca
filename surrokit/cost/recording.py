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
from surrokit.contracts.counting import calls_per_gradient, with_count
from surrokit.contracts.forward import Energy, with_forward, with_vjp
from surrokit.contracts.learner import Evaluations
from surrokit.contracts.methods import BY_NAME, Method
from surrokit.contracts.potential import (
    GradientAlonePotential,
    InitialPotential,
    Potential,
    with_gaussian,
    with_gradient,
)
from surrokit.coordinates.blocks import CoordinateMap
from surrokit.coordinates.parameters import Parameters
from surrokit.cost.budget import calls_paid
from surrokit.cost.calls import ExactCalls, Guard, OnError
from surrokit.cost.journal import Journal
from surrokit.cost.lowest import Lowest
from surrokit.cost.retried import with_retries
from surrokit.cost.rows import RecordedRows
from surrokit.errors import TargetError
from surrokit.failures.account import BrokenGradients
from surrokit.limits.penalties import PENALTY, Penalties
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

    Calls are counted at the innermost potential (:func:`surrokit.contracts.counting.with_count`).
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
        self._keeps = keep
        self._with_gradients = False
        self._wants_jacobians = False
        self._exact = ExactCalls(on_error, retries, target.dim)
        self._paid = with_retries(with_count(target, self._exact.count), self._exact)
        self._blocks: list[Evaluations] = []
        self._n_outputs: int | None = None
        self._penalties = Penalties()
        self._lowest = Lowest(target.dim)

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
        return dict(self._exact.counts)

    @property
    def calls_per_gradient(self) -> int:
        """Exact calls that a gradient of the target pays for."""
        return calls_per_gradient(self.target)

    @property
    def paid(self) -> float:
        """Calls of all kinds so far; a data row counts as its share of all rows."""
        rows = self.n_rows if can.ROWS in self.capabilities else None
        return calls_paid(self._exact.counts, rows)

    @property
    def failures(self) -> int:
        """Positions at which the target raised, or returned NaN or -inf."""
        return self._exact.account.total

    @property
    def broken_gradients(self) -> BrokenGradients:
        """Positions where U is finite and its gradient is not, in the user's coordinates."""
        return self._exact.account.tell_broken(self.transform)

    @property
    def exact(self) -> ExactCalls:
        """What makes the calls, with the account and the log of failures."""
        return self._exact

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
        if hasattr(self._paid, "one_sided"):  # an own potential may have dear gradients and no such
            other._paid = cast(Any, self._paid).one_sided(curvatures)
        return other

    def go_by_values(self) -> None:
        """Leave differences of values aside from here on."""
        assert isinstance(self.target, Differences)
        self.target = self.target.inner
        self._paid = with_retries(with_count(self.target, self._exact.count), self._exact)

    @property
    def keeps(self) -> bool:
        """Whether evaluations are kept."""
        return self._keeps

    def keep_evaluations(self, wanted: bool, *, jacobians: bool = False) -> None:
        """Keep evaluations from here on, perhaps with Jacobians, or only count them."""
        self._keeps, self._wants_jacobians = wanted, jacobians

    def guard(self, guard: Guard | None, journal: Journal | None = None) -> None:
        """Ask a guard before each call from here on, None removes it; journals stay."""
        self._exact.guard, self._exact.journal = guard, journal or self._exact.journal

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
        self._exact.remembers = True
        try:
            yield
        finally:
            self._exact.remembers = False

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
        results = self._exact.evaluate("value", lambda q: (self._paid.value(q),), positions)
        values = self._values(results, len(positions))
        self._store(positions=positions, values=values)
        return values

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return exact U, shape (n,), and its gradient, shape (n, dim); NaN where U failed."""
        by_vjp = can.VJP in self.capabilities
        if can.JACOBIAN in self.capabilities and (self._wants_jacobians or not by_vjp):
            return self._through_jacobian(positions)
        if by_vjp:
            return self._through_vjp(positions)[:2]
        target = with_gradient(self._paid)
        results = self._exact.evaluate("gradient", target.value_and_gradient, positions)
        values = self._values(results, len(positions))
        gradients = np.full(positions.shape, np.nan) if results is None else results[1]
        self._exact.count_broken_gradients(positions, values, gradients)
        self._store(positions=positions, values=values, gradients=gradients)
        return values, gradients

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the exact gradient, shape (n, dim); the value is paid too where it is kept."""
        if self._keeps or self.capabilities & {can.JACOBIAN, can.VJP}:
            return self.value_and_gradient(positions)[1]
        target = cast(GradientAlonePotential, self._paid)
        results = self._exact.evaluate("gradient", lambda q: (target.gradient(q),), positions)
        # remembered results hold the value too
        gradients = np.full(positions.shape, np.nan) if results is None else results[-1]
        self._look_at_lone(positions, gradients)
        return gradients

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the outputs of the forward map, shape (n, m); NaN where it failed."""
        return self._outputs_paid_for(self._valued_outputs(positions)[1], len(positions))

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return outputs, shape (n, m), and their derivatives, shape (n, m, dim)."""
        target = with_forward(self._paid)
        results = self._exact.evaluate("jacobian", target.forward_and_jacobian, positions)
        if results is None:
            outputs = self._outputs_paid_for(None, len(positions))
            self._exact.count_nan(outputs)
            return outputs, np.full((*outputs.shape, self.dim), np.nan)
        self._differentiate(positions, *results)
        return results[0], results[1]

    def forward_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return outputs, shape (n, m), and the gradient of U, shape (n, dim), by the adjoint."""
        _, gradients, outputs = self._through_vjp(positions)
        return self._outputs_paid_for(outputs, len(positions)), gradients

    def __getattr__(self, name: str) -> Any:
        """Return a counted method for matrices or contractions of them.

        :mod:`surrokit.contracts.methods` lists them all.
        """
        method = BY_NAME.get(name)
        if method is None or method.kind is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return partial(self._with_factors if method.factor else self._plain, method)

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return the target's own starting positions, shape (n, dim)."""
        return cast(InitialPotential, self._paid).initial(rng, n)

    def _plain(self, method: Method, positions: FloatArray) -> FloatArray:
        assert method.kind is not None
        function = getattr(self._paid, method.name)
        results = self._exact.evaluate(method.kind, lambda q: (function(q),), positions)
        if results is not None:
            return results[0]
        return np.full((*positions.shape, *[self.dim] * method.gives_matrices), np.nan)

    def _with_factors(
        self, method: Method, positions: FloatArray, factors: FloatArray
    ) -> FloatArray:
        assert method.kind is not None
        q = check_positions(positions, self.dim)
        given = method.check_factors(factors, q)
        function, shape = getattr(self._paid, method.name), given.shape[1:]

        def evaluate(rows: FloatArray) -> tuple[FloatArray]:
            return (function(rows[:, : self.dim], rows[:, self.dim :].reshape(-1, *shape)),)

        # side by side, so that a row that is evaluated alone keeps its own factor
        rows = np.hstack([q, given.reshape(len(given), -1)])
        results = self._exact.evaluate(method.kind, evaluate, rows, wide=True)
        return np.full(q.shape, np.nan) if results is None else results[0]

    def _valued_outputs(self, positions: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        target = with_forward(self._paid)
        results = self._exact.evaluate("forward", lambda q: (target.forward(q),), positions)
        outputs = None if results is None else results[0]
        if outputs is None:
            values = self._values(None, len(positions))
        else:
            self._n_outputs = outputs.shape[1]
            values = self._energies(outputs, positions)
        self._store(positions=positions, values=values, outputs=outputs)
        return values, outputs

    def _through_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        target = with_forward(self._paid)
        results = self._exact.evaluate("jacobian", target.forward_and_jacobian, positions)
        if results is None:
            return self._note_failed(positions)
        return self._differentiate(positions, *results)

    def _note_failed(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Keep, and return, that U and its gradient are not to be had at any of these."""
        values = self._values(None, len(positions))
        self._store(positions=positions, values=values)
        return values, np.full(positions.shape, np.nan)

    def _differentiate(
        self, positions: FloatArray, outputs: FloatArray, jacobians: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return U and its gradient from outputs and Jacobians, and keep all four."""
        self._n_outputs = outputs.shape[1]
        with np.errstate(all="ignore"):
            values, gradients = gradient_of_energy(self.energy, outputs, jacobians, positions)
        values = self._exact.decidable(values)
        self._exact.count_broken_gradients(positions, values, gradients)
        found = {"values": values, "gradients": gradients, "outputs": outputs}
        self._store(positions=positions, jacobians=jacobians, **found)
        return values, gradients

    def _through_vjp(self, at: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Return U, its gradient and the outputs, by the adjoint, and keep all three."""
        results = self._exact.evaluate("vjp", with_vjp(self._paid).forward_and_gradient, at)
        if results is None:
            return *self._note_failed(at), None
        outputs, gradients = results
        self._n_outputs, values = outputs.shape[1], self._energies(outputs, at)
        self._exact.count_broken_gradients(at, values, gradients)
        self._store(positions=at, values=values, gradients=gradients, outputs=outputs)
        return values, gradients, outputs

    def _look_at_lone(self, positions: FloatArray, gradients: FloatArray) -> None:
        """Evaluate U where a lone gradient is not finite, which is no failure off the support."""
        broken, causes = ~np.isfinite(gradients).all(axis=1), self._exact.causes
        if broken.any():
            where, values = positions[broken], np.full(len(positions), np.nan)
            results = self._exact.evaluate("value", lambda q: (self._paid.value(q),), where)
            values[broken] = self._values(results, len(where))
            self._exact.count_broken_gradients(positions, values, gradients, causes)

    def _values(self, results: tuple[FloatArray, ...] | None, n: int) -> FloatArray:
        return self._exact.decidable(np.full(n, np.nan) if results is None else results[0])

    def _energies(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):  # a failed row's outputs are NaN
            return self._exact.decidable(self.energy.value(outputs, positions))

    def _outputs_paid_for(self, outputs: FloatArray | None, n: int) -> FloatArray:
        if outputs is not None:
            return outputs
        if self._n_outputs is None:
            raise TargetError(
                "the forward map failed at the very first positions, so the number of its "
                "outputs is not known; start where it can be evaluated"
            )
        return np.full((n, self._n_outputs), np.nan)

    def _store(self, **found: Any) -> None:
        self._lowest.add(found["positions"], found["values"], found.get("gradients"))
        if self._keeps:
            self._blocks.append(Evaluations(**found))
