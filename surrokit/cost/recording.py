"""The exact potential of a run: evaluations recorded, failures rejected and counted."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import all_finite, check_positions
from surrokit.capabilities import BY_NAME, CallKind, Method
from surrokit.cheap import CheapModel
from surrokit.coordinates.constraints import CoordinateMap
from surrokit.coordinates.parameters import Parameters
from surrokit.cost.budget import count_calls
from surrokit.errors import TargetError
from surrokit.failures import REMEMBERED, BrokenGradients, FailureAccount, Recheck
from surrokit.interfaces import Evaluations
from surrokit.limits import EDGE, PENALTY, are_penalties, users_threads, without_penalties
from surrokit.model.calls import Calls, Guard, Journal, NoJournal, OnError
from surrokit.model.model import calls_per_gradient, change_model, from_model, model_of
from surrokit.model.outcome import MINUS_INFINITY, RETURNED_NAN, Cause, Cure, Outcome
from surrokit.model.quantities import NAMED
from surrokit.potentials import (
    Energy,
    FullPotential,
    Potential,
    RowDraws,
    RowExpansion,
    WrappedExpansion,
    of_order,
    with_forward,
    with_gaussian,
    with_rows,
    with_vjp,
)
from surrokit.targets.bounds import parameters_of, transform_of
from surrokit.targets.differences import Differences
from surrokit.targets.estimates import NOISE_SD, RETURNED, Noise, noise_of
from surrokit.targets.functions import gradient_of_energy
from surrokit.types import BoolArray, Capabilities, FloatArray, IntArray

MOST = 200
"""Evaluations that are kept at least, where there are as many."""


class Lowest:
    """Keeps the evaluations of least potential, in bounded memory."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._blocks: list[tuple[FloatArray, FloatArray, FloatArray | None]] = []
        self._n = 0
        self._highest = np.inf  # of those that are kept

    def add(
        self, positions: FloatArray, values: FloatArray, gradients: FloatArray | None = None
    ) -> None:
        """Take in a batch: positions (n, dim), U (n,), and perhaps its gradients (n, dim)."""
        if self._highest < np.inf and not (values < self._highest).any():
            return
        kept = None if gradients is None else np.array(gradients)
        self._blocks.append((np.array(positions), np.array(values), kept))
        self._n += len(values)
        if self._n >= 2 * MOST:
            rows = self.evaluations()
            self._blocks = [(rows.positions, rows.values, rows.gradients)]
            self._n = len(rows)
            if len(rows) == MOST:
                self._highest = float(rows.values[-1])

    def evaluations(self) -> Evaluations:
        """Return those where U is finite, in order of U."""
        blocks = [
            Evaluations(positions=positions, values=values, gradients=gradients)
            for positions, values, gradients in self._blocks
        ]
        rows = Evaluations.join(blocks, self._dim)
        finite = np.flatnonzero(np.isfinite(rows.values))
        return rows.take(finite[np.argsort(rows.values[finite], kind="stable")][:MOST])


class Rejections:
    """Turns what cannot be decided into rejections, with their causes.

    Parameters
    ----------
    target
        The target, in the sampling coordinates.

    Attributes
    ----------
    account
        Failures by kind: positions at which the target raised, returned NaN, or claimed an
        infinite density.
    """

    def __init__(self, calls: Calls, target: Potential) -> None:
        self.account = FailureAccount(calls.retries if calls.on_error == "retry" else 0)
        self._latest: tuple[FloatArray, FloatArray] | None = None
        self._calls, self._target = calls, target
        self._kind: CallKind = "value"
        self._at: FloatArray = np.empty((0, 0))

    def evaluating(self, kind: CallKind, positions: FloatArray) -> Rejections:
        """Return a block that takes note of failures of its calls, which evaluate positions.

        Overflow is not warned of in it: far out it is rejected.

        Parameters
        ----------
        positions : ndarray of shape (n, dim) or (n,)
            In the sampling coordinates; numbers (n,) of data rows are no positions.
        """
        self._kind, self._at = kind, positions
        self._calls.begin(len(positions))
        return self

    def __enter__(self) -> None:
        self._quiet = np.errstate(all="ignore")
        self._quiet.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self._quiet.__exit__(*raised)
        del self._quiet  # its token cannot be pickled
        if raised[0] is None:
            for cure in self._calls.cures:
                self.account.cure(self._outside(cure))

    @contextmanager
    def excluded(self, *, afresh: bool = False) -> Iterator[FailureAccount]:
        """Count failures in the block in an account of its own, without retries.

        Parameters
        ----------
        afresh
            Whether what is known is evaluated once more.
        """
        kept, self.account = self.account, FailureAccount()
        try:
            with self._calls.excluded(afresh=afresh):
                yield self.account
        finally:
            self.account = kept

    def decidable(self, values: FloatArray, *, usual: bool = False) -> FloatArray:
        """Return U, shape (n,), with ``inf`` in place of NaN and -inf, which count as failures.

        From :data:`surrokit.limits.EDGE` on U is infinite, too. U = -inf is no valid
        density: a chain there would never leave. Nothing is looked at where all is known to be
        ``usual``, finite and far from that edge.
        """
        if usual or (values.min(initial=0.0) > -EDGE and values.max(initial=0.0) < EDGE):
            if len(values):
                self._latest = self._at.copy(), values
            return values
        values = without_penalties(values)
        if np.isfinite(values).any():
            self._latest = self._at.copy(), values
        if np.isfinite(values).all():
            return values
        self.account.infinite.extend(self._at[values == np.inf][-REMEMBERED:].copy())
        failed = ~(values > -np.inf)
        if not failed.any():
            return values
        self.count_nan(values[:, None])
        endless = values == -np.inf
        if endless.any():
            what = "returned U = -inf, an infinite density, which no chain could leave again"
            self.account.reject(MINUS_INFINITY, what, self._kind, self._at[endless])
        return np.where(failed, np.inf, values)

    def count_broken_gradients(
        self,
        positions: FloatArray,
        values: FloatArray,
        gradients: FloatArray,
        causes: Mapping[int, Cause] | None = None,
    ) -> None:
        """Count positions where U is finite and its gradient is not, as failures too.

        Parameters
        ----------
        positions, gradients : ndarrays of shape (n, dim)
            Where, and the gradients there.
        values : ndarray of shape (n,)
            U there.
        causes
            Row number to what the gradient raised; None for what the latest batch did.
        """
        if np.isfinite(gradients).all():
            return
        causes = self._calls.causes if causes is None else causes
        broken = np.isfinite(values) & ~np.isfinite(gradients).all(axis=1)
        for i in np.flatnonzero(broken):
            at, value = positions[i : i + 1], float(values[i])
            self.account.reject_gradient(causes.get(int(i)), at, value)

    def count_nan(self, rows: FloatArray) -> None:
        """Count rows with NaN, shape (n, ...), as failures, by what the target raised there."""
        nan: BoolArray = np.asarray(np.isnan(rows).reshape(len(rows), -1).any(axis=1))
        if not nan.any():
            return
        for row, cause in self._calls.causes.items():
            if nan[row]:
                at = self._at[row : row + 1]
                self.account.reject(cause.kind, cause.report, self._kind, at)
                nan[row] = False
        if nan.any():
            self.account.reject(RETURNED_NAN.kind, RETURNED_NAN.report, self._kind, self._at[nan])

    def _outside(self, cure: Cure) -> Cure:
        """Return a cure with its position in the sampling coordinates; data rows have none."""
        if not cure.position.ndim:
            return cure
        width = model_of(self._target).dim
        place = from_model(self._target, cure.position[None, :width])[0]
        return attrs.evolve(cure, position=place)

    @property
    def last(self) -> tuple[FloatArray, float] | None:
        """The lowest position (dim,) of the latest batch with finite U, and U there."""
        if self._latest is None:
            return None
        positions, values = self._latest
        i = int(np.where(np.isfinite(values), values, np.inf).argmin())
        return positions[i], float(values[i])


@attrs.frozen(eq=False)
class RecordedExpansion(WrappedExpansion):
    """An expansion that counts ``rows``: one for each pair of a row and a position.

    Where the target raises or returns NaN, the result is NaN, which is rejected and counted.
    """

    calls: Calls
    rejections: Rejections

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return D_i(q), shape (m,), and count m rows."""

        def attempt(chosen: FloatArray) -> Outcome:
            pairs = chosen.astype(np.int64)
            found = self.inner.remainders(positions, rows[pairs], owners[pairs])
            return Outcome(n=len(chosen), results=(found,))

        # a batch of numbers of pairs, so that each can be evaluated alone
        numbers = np.arange(len(rows), dtype=np.float64)
        with self.rejections.evaluating("rows", numbers):
            results = self.calls.evaluate("rows", "rows", attempt, numbers)
        if results is None:
            results = (np.full(len(rows), np.nan),)
        self.rejections.count_nan(results[0])
        return results[0]


class RecordingPotential:
    """A target whose evaluations are counted by its model, and kept until they are drained.

    A position where the target raises, or returns NaN or -inf, gets the value ``inf``, and so is
    rejected and counted. A position where U is finite and its gradient is not counts as a failure
    too: paths that follow the gradient end there.

    A position counts as ``gradient`` if its gradient is evaluated, with the value or alone, and as
    ``value`` if the value is evaluated alone; for a forward potential as ``vjp`` (``jacobian`` if
    it has no adjoint, or a learner asks for Jacobians) and ``forward``. What is made of the Hessian
    counts as ``hessian``, of the metric as ``metric``, of second derivatives of outputs as
    ``jacobian``. For a summed potential an expansion of all rows counts as one ``hessian``, and
    single rows that are evaluated, bounded or copied count as ``rows``.

    Parameters
    ----------
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
        self._go_by(target)
        self._blocks: list[Evaluations] = []
        self._lowest = Lowest(target.dim)
        self.cheap: list[CheapModel] = []  # of this run's learners

    def _go_by(self, target: Potential) -> None:
        """Bind a target, whose model's calls are from here on this run's."""
        self.target, self._offers = target, target.capabilities
        self._bound: Any = change_model(
            target, lambda model: attrs.evolve(model, calls=self.calls_made)
        )
        self._by_vjp, self._by_jacobian = can.VJP in self._offers, can.JACOBIAN in self._offers
        by_outputs = self._by_vjp or self._by_jacobian
        self._n_rows = with_rows(target).n_rows if can.ROWS in self._offers else None
        self._has_lone = can.GRADIENT_ALONE in self._offers and not by_outputs

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.target.dim

    @property
    def capabilities(self) -> Capabilities:
        """What the target offers."""
        return self._offers

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
        cheap = sum(each.count for each in self.cheap)
        return {**self.calls_made.counts, "cheap": cheap}

    @property
    def noise(self) -> Noise | None:
        """Noise of the values, declared, or recognised as values at one position differ."""
        seen = self.rejections.account.recheck.apart is not None
        return noise_of(self.target) or (Noise() if seen else None)

    def noise_sd(self, positions: FloatArray) -> FloatArray | None:
        """Return that of the latest values at positions (n, dim), (n,); NaN where it is not known.

        None where values are exact.
        """
        if (noise := self.noise) is None:
            return None
        if noise.sd == RETURNED:
            found = self.calls_made.recent.at(positions).get(NAMED + NOISE_SD)
            return np.full(len(positions), np.nan) if found is None else found.ravel()
        return np.full(len(positions), noise.sd if isinstance(noise.sd, float) else np.nan)

    @property
    def calls_per_gradient(self) -> int:
        """Exact calls that a gradient of the target takes."""
        return calls_per_gradient(self.target)

    @property
    def n_calls(self) -> float:
        """Calls of all kinds so far; a data row counts as its share of all rows."""
        return count_calls(self.calls_made.counts, self._n_rows)

    @property
    def failures(self) -> int:
        """Positions at which the target raised, or returned NaN or -inf."""
        return self.rejections.account.total

    @property
    def recheck(self) -> Recheck:
        """What is known of chance, of noise, and of failures of a cheap model."""
        failed = sum(each.failures for each in self.cheap)
        return attrs.evolve(self.rejections.account.recheck, cheap_failed=failed)

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
        """Do without differences of values from here on."""
        assert isinstance(self.target, Differences)
        self._go_by(self.target.inner)

    @property
    def keeps(self) -> bool:
        """Whether evaluations are kept."""
        return self._keeps

    def keep_evaluations(self, wanted: bool, *, jacobians: bool = False) -> None:
        """Keep evaluations from here on, perhaps with Jacobians, or only count them."""
        self._keeps, self._wants_jacobians = wanted, jacobians

    def guard(self, guard: Guard | None, journal: Journal | None = None) -> None:
        """Ask a guard, or none, before each call from here on; None leaves the journal as it is."""
        calls = self.calls_made
        calls.guard = guard
        if journal is not None:
            calls.journal = None if type(journal) is NoJournal else journal

    @contextmanager
    def evaluating_gradients(self, wanted: bool = True) -> Iterator[None]:
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

        U is infinite in them where it is a penalty, which no surrogate learns.
        """
        blocks, self._blocks = self._blocks, []
        return self._without_penalties(Evaluations.join(blocks, self.dim))

    def lowest(self) -> Evaluations:
        """Return the lowest of all evaluations, those of forks included."""
        return self._without_penalties(self._lowest.evaluations())

    def _without_penalties(self, rows: Evaluations) -> Evaluations:
        if not (rows.values >= PENALTY).any():
            return rows
        with np.errstate(all="ignore"):
            densities = rows.values + self.transform.log_jacobian(rows.positions)
        found = are_penalties(rows.positions, densities)
        return attrs.evolve(rows, values=np.where(found, np.inf, rows.values))

    def value(self, positions: FloatArray) -> FloatArray:
        """Return exact U, shape (n,); ``inf`` where it could not be evaluated.

        Within :meth:`evaluating_gradients` its gradient (for a forward potential its Jacobian) is
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
        if self._by_jacobian and (self._wants_jacobians or not self._by_vjp):
            return self._through_jacobian(positions)
        if self._by_vjp:
            return self._through_vjp(positions)[:2]
        with self.rejections.evaluating("gradient", positions):
            values, gradients = self._bound.value_and_gradient(positions)
            fine, usual = all_finite(gradients), bool(values.dot(values) < EDGE**2)
        values = self.rejections.decidable(values, usual=usual)
        if not fine:
            self.rejections.count_broken_gradients(positions, values, gradients)
        self._store(positions=positions, values=values, gradients=gradients)
        return values, gradients

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the exact gradient, shape (n, dim); and the value where it is kept."""
        if self._keeps or not self._has_lone:
            return self.value_and_gradient(positions)[1]
        with self.rejections.evaluating("gradient", positions):
            gradients: FloatArray = self._bound.gradient(positions)
            fine = all_finite(gradients)
        if not fine:
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

    @property
    def n_rows(self) -> int:
        """Terms of a summed target."""
        return with_rows(self.target).n_rows if self._n_rows is None else self._n_rows

    def expand(self, centre: FloatArray, order: int = 2) -> RowExpansion:
        """Return the exact expansions of all terms at ``centre (dim,)``, which count rows in turn.

        Third-order terms cost about as much as ``dim / 2`` Hessians, and count as that many.
        """
        self.calls_made.count("hessian", 1 if order == 2 else 1 + self.target.dim // 2)
        with users_threads():
            inner = with_rows(self.target).expand(centre, **of_order(order))
        return RecordedExpansion(inner, self.calls_made, self.rejections)

    def row_bounds(self, factor: FloatArray, **asked: Any) -> FloatArray:
        """Return the bounds psi of the terms, shape (n_rows,); an order or a ball may be asked."""
        self.calls_made.count("rows", self.n_rows)
        with users_threads():
            return with_rows(self.target).row_bounds(factor, **asked)

    def row_draws(self, factor: FloatArray, **asked: Any) -> RowDraws:
        """Return draws of rows by their bounds."""
        self.calls_made.count("rows", self.n_rows)
        with users_threads():
            return with_rows(self.target).row_draws(factor, **asked)

    def select(self, rows: IntArray) -> Potential:
        """Return the sum of some terms alone, which counts no further calls."""
        self.calls_made.count("rows", len(rows))
        with users_threads():
            return with_rows(self.target).select(rows)

    def __getattr__(self, name: str) -> Any:
        """Return a counted method for matrices or contractions of them.

        :mod:`surrokit.capabilities` lists them all.
        """
        method = BY_NAME.get(name)
        if method is None or method.kind is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return partial(self._evaluate, method)

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return the target's own starting positions, shape (n, dim)."""
        return cast(FullPotential, self.target).initial(rng, n)

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
        known = outputs if outputs.shape[1] else None  # a map may have failed everywhere
        self._store(positions=positions, values=values, outputs=known)
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
        known = outputs if outputs.shape[1] else None
        self._store(positions=at, values=values, gradients=gradients, outputs=known)
        return values, gradients, outputs

    def _look_at_lone(self, positions: FloatArray, gradients: FloatArray) -> None:
        """Evaluate U where a lone gradient is not finite, which is no failure off the support."""
        broken, causes = ~np.isfinite(gradients).all(axis=1), dict(self.calls_made.causes)
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
        self.calls_made.keep(found["positions"], found.get("outputs"))
        if self._keeps:
            self._blocks.append(Evaluations(**found, noise_sd=self.noise_sd(found["positions"])))


def _known(outputs: FloatArray) -> FloatArray:
    """Return outputs, unless a map has failed everywhere, so that their number is not known."""
    if len(outputs) and outputs.shape[1] == 0:
        raise TargetError(
            "the forward map failed at the very first positions, so the number of its outputs is "
            "not known; start where it can be evaluated"
        )
    return outputs
