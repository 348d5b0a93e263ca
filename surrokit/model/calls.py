"""The calls of a run: budget, count, retries and failures, in the order in which they apply."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.contracts.methods import CALL_KINDS, CallKind
from surrokit.errors import BudgetSpent, ResultTypeError, ShapeError, TargetError
from surrokit.limits.meter import current_meter
from surrokit.limits.threads import users_threads
from surrokit.model.cause import RETURNED_NAN, Cause, Cure, report_of
from surrokit.model.journal import Call, Journal, NoJournal
from surrokit.model.memo import WITHIN, Memo
from surrokit.model.outcome import Answer, Outcome, Results
from surrokit.model.source import as_failure
from surrokit.types import FloatArray

OnError: TypeAlias = Literal["reject", "raise", "retry"]
"""What happens when a target fails at a position: ``raise`` is for exceptions alone."""

Attempt: TypeAlias = Callable[[FloatArray], Outcome]
"""Evaluates rows (n, width), once."""

Guard: TypeAlias = Callable[[CallKind, int], None]
"""Asked before a call, with its kind and number of positions; raises if it must not be made."""


class Calls:
    """Calls of the models within a target, of one run.

    A call is looked up in the memory of the last batches and in the journal, then checked against
    the budget, counted, made, and made again where it failed and that is wanted. Failed rows are
    NaN, with a cause where the function raised. A batch that raises as a whole is evaluated again
    row by row. Every attempt counts.

    Results of a wrong shape or type are the target's mistake until a call of their kind has given
    a right one, and raise. After that they are failures like others.

    Parameters
    ----------
    on_error
        ``"reject"``; ``"raise"`` to stop at the first exception of the target; or ``"retry"`` to
        evaluate a position that failed once more.
    retries
        How often it is evaluated again at most, with ``"retry"``.

    Attributes
    ----------
    counts
        Kind to calls.
    guard
        Asked before each call; None allows every call.
    journal
        Keeps what comes back, or gives what came back before.
    remembers
        Whether the last batch of each kind is kept, to be given once more.
    meter
        Counts the calls that have come back, and those that go on.
    causes, cures, as_a_whole
        Of calls since :meth:`begin`: row number to why it failed, failures that a retry cured, and
        why a batch failed whose rows can be evaluated one by one; None where none did.
    """

    def __init__(self, on_error: OnError, retries: int) -> None:
        self.on_error, self.retries = on_error, retries
        self.counts: dict[str, int] = dict.fromkeys(CALL_KINDS, 0)
        self.guard: Guard | None = None
        self.journal: Journal = NoJournal()
        self.remembers = False
        self.meter = current_meter()
        self.causes: dict[int, Cause] = {}
        self.cures: list[Cure] = []
        self.as_a_whole: Cause | None = None
        self._n = 0
        self._known: dict[str, tuple[FloatArray, Answer]] = {}
        self._worked: set[CallKind] = set()
        self._is_aside = self._is_spare = self._is_afresh = False

    def begin(self, n: int) -> None:
        """Note failures afresh, by the numbers of n rows of which those of calls are parts."""
        self.causes, self.cures, self.as_a_whole, self._n = {}, [], None, n

    def evaluate(
        self,
        what: str,
        kind: CallKind,
        attempt: Attempt,
        rows: FloatArray,
        *,
        each: int = 1,
        memo: Memo | None = None,
        keys: FloatArray | None = None,
    ) -> Results | None:
        """Return the results of a batch, NaN in rows that fail; None if all fail.

        Results are kept while ``remembers`` is set; afterwards they are given once more for the
        same batch, without a call.

        Parameters
        ----------
        what
            Which results.
        kind
            What a row counts as.
        attempt
            Evaluates rows.
        rows : ndarray of shape (n, width)
            The batch.
        each
            How many calls each row counts as.
        memo
            What is known, and what new results are added to; None where nothing is kept.
        keys : ndarray of shape (n, k), optional
            What the model takes of each row, where that is not all.

        Raises
        ------
        TargetError
            If the function raises and ``on_error`` is ``"raise"``.
        ShapeError, ResultTypeError
            If the function has returned nothing right before: it is then wrong everywhere.
        """
        if self._known and not self.remembers:
            for name, i in ((what, None), *WITHIN.get(what, ())):
                known = self._known.get(name)
                if known is not None and np.array_equal(known[0], rows):
                    answer = self._known.pop(name)[1]
                    self._note(attrs.evolve(answer, cures=()), len(rows))  # these count once
                    found = answer.results
                    return found if found is None or i is None else (found[i],)
        make = partial(self._make, kind, attempt, each)
        if memo is not None and not self._is_afresh:
            make = partial(memo.complete, what, rows if keys is None else keys, evaluate=make)
        answer = self.journal.answer(
            Call(what, rows, make, self.counts, self._is_aside, self._is_spare)
        )
        self._note(answer, len(rows))
        if answer.results is not None:
            self._worked.add(kind)
            if self.remembers and kind != "rows":
                self._known[what] = rows.copy(), answer
        return answer.results

    def count(self, kind: CallKind, n: int) -> None:
        """Count n positions (or data rows), unless the guard refuses them."""
        if self.guard is not None:
            self.guard(kind, n)
        self.counts[kind] += n
        if kind != "rows":
            self.meter.begin(n)

    @contextmanager
    def aside(self, *, afresh: bool = False) -> Iterator[None]:
        """Make calls in the block on which nothing depends that follows, without retries.

        Parameters
        ----------
        afresh
            Whether what is known is evaluated once more.
        """
        kept, self.on_error = self.on_error, "reject"
        self._is_aside, self._is_afresh = True, afresh
        try:
            yield
        finally:
            self.on_error, self._is_aside, self._is_afresh = kept, False, False

    @contextmanager
    def unused(self) -> Iterator[None]:
        """Keep what comes back in the block, of which the run makes no use, and count nothing."""
        kept = self.counts, self.guard
        self.counts, self.guard = dict.fromkeys(CALL_KINDS, 0), None
        self._is_spare = True
        try:
            with self.aside():
                yield
        finally:
            self.counts, self.guard = kept
            self._is_spare = False

    def _note(self, answer: Answer, n: int) -> None:
        """Note failures of n rows, whether they were evaluated now or are known from before."""
        self.cures += answer.cures
        for row, cause in answer.causes.items():
            self.causes.setdefault(row * self._n // n, cause)

    # --- attempts ---

    def _make(self, kind: CallKind, attempt: Attempt, each: int, rows: FloatArray) -> Answer:
        cures: list[Cure] = []
        try:
            outcome = self._attempt(kind, attempt, each, rows)
            if self.on_error == "retry":
                outcome, cures = self._retry(kind, attempt, each, rows, outcome)
        finally:
            self.meter.left(0)
        return outcome.to_answer(cures)

    def _retry(
        self, kind: CallKind, attempt: Attempt, each: int, rows: FloatArray, first: Outcome
    ) -> tuple[Outcome, list[Cure]]:
        """Return the outcome after failed rows were evaluated again, and which that cured.

        Failed are rows that raise, and rows with NaN unless U is infinite there.
        """
        outcome, failed, left = first, first.failed, first.failed
        for _ in range(self.retries):
            if not left.size:
                break
            again = self._attempt(kind, attempt, each, rows[left])
            outcome = outcome.mend(left, again)
            left = left[again.failed]
        cures = []
        for row in np.setdiff1d(failed, left):
            error = first.causes.get(int(row))
            cause = RETURNED_NAN if error is None else Cause.of(error)
            cures.append(Cure(cause, rows[row].copy()))
        return outcome, cures

    def _attempt(self, kind: CallKind, attempt: Attempt, each: int, rows: FloatArray) -> Outcome:
        self.count(kind, each * len(rows))
        try:
            with np.errstate(all="ignore"), users_threads():  # overflow far out is rejected
                outcome = attempt(rows)
        except (TargetError, BudgetSpent, KeyboardInterrupt):
            raise
        except (ShapeError, ResultTypeError) as error:
            if kind not in self._worked:
                raise
            return self._row_by_row(error, kind, attempt, each, rows)
        except BaseException as error:
            return self._row_by_row(as_failure(error), kind, attempt, each, rows)
        if outcome.results is None and kind not in self._worked:
            outcome.raise_if_wrong()
        if outcome.causes and self.on_error == "raise":
            _stop_at(next(iter(outcome.causes.values())))
        return outcome

    def _row_by_row(
        self, error: Exception, kind: CallKind, attempt: Attempt, each: int, rows: FloatArray
    ) -> Outcome:
        """Return the outcome of a batch that raised as a whole."""
        if self.on_error == "raise":
            _stop_at(error)
        n = len(rows)
        if n == 1:
            return Outcome(n=1, results=None, causes={0: error})
        alone = [self._attempt(kind, attempt, each, rows[i : i + 1]) for i in range(n)]
        known = {
            i: tuple(array[0] for array in row.results)
            for i, row in enumerate(alone)
            if row.results is not None
        }
        causes = {i: cause for i, row in enumerate(alone) for cause in row.causes.values()}
        if not causes:  # what cannot take batches is evaluated twice
            self.as_a_whole = Cause.of(error)
        return Outcome.of_rows(known, causes, n)


def _stop_at(error: Exception) -> None:
    raise TargetError(
        f'the target {report_of(error)}; make it return inf there, or pass on_error="reject"'
    ) from error
