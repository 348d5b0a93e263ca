"""Counted calls of a target, in which positions that fail are rejected and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from surrokit.contracts.methods import CALL_KINDS, CallKind
from surrokit.coordinates.isolated import isolate
from surrokit.coordinates.rowwise import as_failure, stack
from surrokit.cost.budget import BudgetSpent
from surrokit.cost.journal import Call, Journal, NoJournal
from surrokit.errors import EvaluationError, ResultTypeError, ShapeError, TargetError
from surrokit.failures.account import REMEMBERED, FailureAccount
from surrokit.failures.cause import MINUS_INFINITY, RETURNED_NAN, Cause, Cure, report_of
from surrokit.failures.log import FailureLog
from surrokit.failures.outcome import Answer, Outcome, Results
from surrokit.limits.meter import current_meter
from surrokit.limits.penalties import without_penalties
from surrokit.shapes import check_positions
from surrokit.surrogate.threads import users_threads
from surrokit.types import BoolArray, FloatArray

OnError: TypeAlias = Literal["reject", "raise", "retry"]
"""What happens when a target fails at a position: ``raise`` is for exceptions alone."""

Function: TypeAlias = Callable[[FloatArray], tuple[FloatArray, ...]]

Guard: TypeAlias = Callable[[CallKind, int], None]
"""Asked before a call, with its kind and number of positions; raises if it must not be made."""

_REMEMBERED = ("value", "gradient", "forward", "jacobian", "vjp")
_WITH_OUTPUTS = {("forward", 1), ("jacobian", 2), ("vjp", 2)}


class ExactCalls:
    """Evaluates batches, counts calls, and turns failures into NaN.

    A batch that raises as a whole is evaluated again row by row. Every attempt is counted, since
    the potential that pays counts (:func:`surrokit.contracts.counting.with_count`).

    Results of a wrong shape or type are the target's mistake until a call of their kind has given
    a right one, and raise. After that they are failures like others.

    Parameters
    ----------
    on_error
        ``"reject"``; ``"raise"`` to stop at the first exception of the target; or ``"retry"`` to
        evaluate a position that failed once more.
    retries
        How often it is evaluated again at most, with ``"retry"``.
    dim
        Numbers in a position.

    Attributes
    ----------
    guard
        Asked before each call; None allows every call.
    journal
        Keeps what comes back, or says what came back before.
    remembers
        Whether the last batch of each kind is kept, to be given once more.
    account
        Failures by kind: positions at which the target raised, returned NaN, or claimed an
        infinite density.
    retries_here
        Whether :meth:`evaluate` retries; else what it calls does by :meth:`retry`.
    log
        Warns of failures.
    meter
        Counts the calls that have come back, and those that go on.
    last : tuple of ndarray of shape (dim,) and float, or None
        The latest position at which U is finite, and U there.
    """

    def __init__(self, on_error: OnError, retries: int, dim: int) -> None:
        self.on_error, self.dim = on_error, dim
        self.retries, self.retries_here = retries, True
        self.counts: dict[str, int] = dict.fromkeys(CALL_KINDS, 0)
        self.account = FailureAccount(retries if on_error == "retry" else 0)
        self.guard: Guard | None = None
        self.journal: Journal = NoJournal()
        self.remembers = False
        self.log = FailureLog()
        self.last: tuple[FloatArray, float] | None = None
        self.meter = current_meter()
        self._known: dict[CallKind, tuple[FloatArray, Answer]] = {}
        self._worked: set[CallKind] = set()
        self._n_outputs: tuple[int, ...] | None = None
        self._kind: CallKind = "value"
        self._at: FloatArray = np.empty((0, 0))
        self._answer = Answer(results=None)
        self._cures: list[Cure] = []
        self._is_aside = self._is_spare = False

    @property
    def causes(self) -> Mapping[int, Cause]:
        """Row number of the latest batch to what the target raised there."""
        return self._answer.causes

    def evaluate(
        self, kind: CallKind, function: Function, positions: FloatArray, *, wide: bool = False
    ) -> tuple[FloatArray, ...] | None:
        """Return a function's results for a batch, NaN in rows that fail; None if all fail.

        Results are kept while ``remembers`` is set; afterwards they are given once more for the
        same batch, without a call. Rows are positions, or whatever else if ``wide``.

        Raises
        ------
        TargetError
            If the function raises and ``on_error`` is ``"raise"``.
        ShapeError, ResultTypeError
            If the function has returned nothing right before: it is then wrong everywhere. Also
            if positions have not as many numbers as the target.
        """
        if not wide:
            positions = check_positions(positions, self.dim)
        self._kind, self._at = kind, positions
        if self._known and not self.remembers:
            known = self._known.get(kind)
            if known is not None and np.array_equal(known[0], positions):
                self._answer = self._known.pop(kind)[1]
                return self._answer.results
        pay = partial(self._pay, kind, function)
        call = Call(kind, positions, pay, self.counts, self._is_aside, self._is_spare)
        answer = self._answer = self.journal.answer(call)
        self._take_in(kind, answer, positions)
        if self.remembers and kind in _REMEMBERED and answer.results is not None:
            self._known[kind] = positions.copy(), answer
        return answer.results

    def count(self, kind: CallKind, n: int) -> None:
        """Count n positions (or data rows), unless the guard refuses them."""
        if self.guard is not None:
            self.guard(kind, n)
        self.counts[kind] += n
        if kind != "rows":
            self.meter.begin(n)

    @contextmanager
    def off_the_record(self) -> Iterator[FailureAccount]:
        """Count failures in the block in an account of its own, untold and without retries."""
        kept = self.account, self.log, self.on_error
        self.account, self.log, self.on_error = FailureAccount(), FailureLog(told=True), "reject"
        self._is_aside = True
        try:
            yield self.account
        finally:
            self.account, self.log, self.on_error = kept
            self._is_aside = False

    @contextmanager
    def in_vain(self) -> Iterator[None]:
        """Keep what comes back in the block, of which the run makes no use, and count nothing."""
        kept, self.counts, self.guard = (
            (self.counts, self.guard),
            dict.fromkeys(CALL_KINDS, 0),
            None,
        )
        self._is_spare = True
        try:
            with self.off_the_record():
                yield
        finally:
            self.counts, self.guard = kept
            self._is_spare = False

    def decidable(self, values: FloatArray) -> FloatArray:
        """Return U, shape (n,), with ``inf`` in place of NaN and -inf, which count as failures.

        From :data:`surrokit.limits.penalties.EDGE` on U is infinite, too. U = -inf is no valid
        density: a chain there would never leave.
        """
        values = without_penalties(values)
        self._note_last(values)
        self.account.infinite.extend(self._at[values == np.inf][-REMEMBERED:].copy())
        failed = ~(values > -np.inf)
        if not failed.any():
            return values
        self.count_nan(values[:, None])
        endless = values == -np.inf
        if endless.any():
            what = "returned U = -inf, an infinite density, which no chain could leave again"
            self.log.failed(what, self._at[endless], overflow=False)
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
        causes = self.causes if causes is None else causes
        broken = np.isfinite(values) & ~np.isfinite(gradients).all(axis=1)
        for i in np.flatnonzero(broken):
            at, value = positions[i : i + 1], float(values[i])
            self.account.reject_gradient(causes.get(int(i)), at, value)

    def count_nan(self, rows: FloatArray) -> None:
        """Count rows with NaN, shape (n, ...), as failures, by what the target raised there."""
        nan: BoolArray = np.asarray(np.isnan(rows).reshape(len(rows), -1).any(axis=1))
        if not nan.any():
            return
        for row, cause in self.causes.items():
            if nan[row]:
                at = self._at[row : row + 1]
                self.account.reject(cause.kind, cause.report, self._kind, at)
                nan[row] = False
        if nan.any():
            self.log.failed(RETURNED_NAN.report, self._at[nan], overflow=True)
            self.account.reject(RETURNED_NAN.kind, RETURNED_NAN.report, self._kind, self._at[nan])

    # --- attempts ---

    def _pay(self, kind: CallKind, function: Function, positions: FloatArray) -> Answer:
        self._cures = []
        attempt = self.retry if self.retries_here else self._attempt
        try:
            return attempt(kind, function, positions).tell(self._cures)
        finally:
            self.meter.left(0)

    def retry(self, kind: CallKind, function: Function, positions: FloatArray) -> Outcome:
        """Return the outcome of a batch, failed rows of which are evaluated again if asked.

        Failed are rows that raise, and rows with NaN unless U is infinite there.
        """
        first = outcome = self._attempt(kind, function, positions)
        if self.on_error != "retry" or not (failed := first.failed).size:
            return outcome
        left = failed
        for _ in range(self.retries):
            again = self._attempt(kind, function, positions[left])
            outcome = outcome.mend(left, again)
            if not (left := left[again.failed]).size:
                break
        for row in np.setdiff1d(failed, left):
            error = first.causes.get(int(row))
            cause = RETURNED_NAN if error is None else Cause.of(error)
            self._cures.append(Cure(cause, positions[row].copy()))
        return outcome

    def _attempt(self, kind: CallKind, function: Function, positions: FloatArray) -> Outcome:
        try:
            with np.errstate(all="ignore"):  # overflow far out is rejected and counted
                outcome = self._call(function, positions)
            self._check_outputs(kind, outcome.results)
        except (ShapeError, ResultTypeError) as error:
            if kind not in self._worked:
                raise
            return self._after_exception(error, kind, function, positions)
        except (TargetError, BudgetSpent, KeyboardInterrupt):
            raise
        except BaseException as error:
            return self._after_exception(as_failure(error), kind, function, positions)
        if outcome.results is not None:
            self._worked.add(kind)
        return outcome

    def _call(self, function: Function, positions: FloatArray) -> Outcome:
        n = len(positions)
        try:
            with users_threads():
                return Outcome(n=n, results=isolate(function(positions.copy())))
        except EvaluationError as error:
            if self.on_error == "raise":
                _stop_at(next(iter(error.causes.values())))
            return Outcome(n=n, results=error.results or None, causes=error.causes)

    def _after_exception(
        self, error: Exception, kind: CallKind, function: Function, positions: FloatArray
    ) -> Outcome:
        """Return the outcome of a batch that raised as a whole, row by row if there are several."""
        if self.on_error == "raise":
            _stop_at(error)
        n, each = len(positions), error.__cause__
        if isinstance(each, EvaluationError) and len(each.causes) == n:  # of single rows already
            return Outcome(n=n, results=None, causes=each.causes)
        if n == 1:
            return Outcome(n=1, results=None, causes={0: error})
        rows = [self._attempt(kind, function, positions[i : i + 1]) for i in range(n)]
        known = {
            i: tuple(array[0] for array in row.results)
            for i, row in enumerate(rows)
            if row.results is not None
        }
        causes = {i: cause for i, row in enumerate(rows) for cause in row.causes.values()}
        if not causes:  # what cannot take batches is paid for twice
            cause = Cause.of(error)
            self.log.failed(cause.report, positions, overflow=cause.overflow)
        return Outcome(n=n, results=stack(known, n) or None, causes=causes)

    def _check_outputs(self, kind: CallKind, results: Results | None) -> None:
        """Raise unless a forward map returns as many outputs as before.

        Raises
        ------
        ShapeError
            If it does not.
        """
        if results is None or (kind, len(results)) not in _WITH_OUTPUTS:
            return
        shape = results[0].shape[1:]
        if self._n_outputs is None:
            self._n_outputs = shape
        if shape != self._n_outputs:
            raise ShapeError(
                f"a forward map returned outputs of shape {shape}, and of {self._n_outputs} before "
                "that; it must always return the same"
            )

    # --- what is told ---

    def _note_last(self, values: FloatArray) -> None:
        least = np.where(np.isfinite(values), values, np.inf)
        i = int(least.argmin()) if len(values) else 0
        if len(values) and least[i] < np.inf:
            self.last = self._at[i].copy(), float(values[i])

    def _take_in(self, kind: CallKind, answer: Answer, positions: FloatArray) -> None:
        """Take in an answer, whether it was paid for now or is known from before."""
        for cure in answer.cures:
            self.account.cure(cure)
        if answer.results is not None:
            self._check_outputs(kind, answer.results)
            self._worked |= {kind} if self.retries_here else {kind, "value"}
        if answer.causes:
            cause = next(iter(answer.causes.values()))
            at = positions[list(answer.causes)]
            self.log.failed(cause.report, at, overflow=cause.overflow)


def _stop_at(error: Exception) -> None:
    raise TargetError(
        f'the target {report_of(error)}; make it return inf there, or pass on_error="reject"'
    ) from error
