"""The calls of a run: memo, journal, budget, count, retries and failures, in this order."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import partial
from typing import Literal, Protocol, TypeAlias

import attrs
import numpy as np

from surrokit.capabilities import ALL_BY_NAME, CALL_KINDS, CallKind
from surrokit.errors import ResultTypeError, ShapeError, TargetError
from surrokit.limits import current_meter, has_users_threads, users_threads
from surrokit.model.outcome import (
    RETURNED_NAN,
    Answer,
    Cause,
    Cure,
    Outcome,
    Quantities,
    Results,
    report_of,
    stack,
)
from surrokit.model.quantities import NAMED, Layout, Recent
from surrokit.model.source import as_failure
from surrokit.types import FloatArray

BEYOND = sys.maxsize
"""Position of a journal that holds no more than was asked for."""


@attrs.frozen(eq=False)
class Call:
    """A batch of calls that a run asks for.

    Parameters
    ----------
    what
        Which results; a name of :mod:`surrokit.capabilities`, or ``rows``.
    positions : ndarray of shape (n, width)
        The batch, in the coordinates of the model.
    evaluate
        Evaluates a batch of such positions.
    counts
        Calls so far, which known ones are added to.
    excluded
        Whether nothing that follows depends on the call, so that a longer run need not make it.
    layout
        Of quantities behind the results.
    """

    what: str
    positions: FloatArray
    evaluate: Callable[[FloatArray], Answer]
    counts: MutableMapping[str, int]
    excluded: bool = False
    layout: Layout = attrs.field(factory=Layout)


class Journal(Protocol):
    """Keeps what happens, or gives what happened before.

    :data:`BEYOND` is the position of a journal that holds no more than was asked for.
    """

    @property
    def replays(self) -> bool:
        """Whether it still gives what happened before."""
        ...

    @property
    def position(self) -> int:
        """Number of the event that comes next."""
        ...

    def answer(self, call: Call) -> Answer:
        """Return the answer to a call, or raise ``BudgetSpent`` where a limit forbids it."""
        ...

    def reading(self, now: float) -> float:
        """Return the time that the run goes by."""
        ...


class NoJournal:
    """Keeps nothing."""

    replays = False
    position = BEYOND

    def answer(self, call: Call) -> Answer:
        """Return the answer to a call that is made now."""
        return call.evaluate(call.positions)

    def reading(self, now: float) -> float:
        """Return the time as it is."""
        return now


DRAWN = "drawn"
"""Stands for the log densities by which positions were drawn, where there are names of results."""

WITHIN: Mapping[str, tuple[tuple[str, int], ...]] = {
    "value": (("value_and_gradient", 0),),
    "gradient": (("value_and_gradient", 1),),
    "forward": (("forward_and_jacobian", 0), ("forward_to_second_order", 0)),
}
"""What else holds a result, and as which of its arrays."""


class Memo:
    """Results of a model by what was evaluated and where, to the bit.

    Rows that failed are not among them. Several posteriors of one model share one.

    Parameters
    ----------
    grows
        Whether what is evaluated is added: a run by itself hardly ever comes to a position twice.

    Attributes
    ----------
    seconds
        What the calls took whose results were given again.
    write
        Takes each batch of new results, with what was evaluated and its seconds; None for nothing.
    layout
        Of quantities behind the results.
    """

    def __init__(self, *, grows: bool) -> None:
        self.grows, self.seconds = grows, 0.0
        self.write: Callable[[str, FloatArray, Results, float], None] | None = None
        self.layout = Layout()
        self._drawn: dict[bytes, float] = {}
        self._rows: dict[tuple[str, bytes], tuple[Results, float]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, what: str, rows: FloatArray, results: Results, seconds: float) -> None:
        """Keep results of rows (n, width) that were evaluated in so many seconds.

        Rows with NaN are left out.
        """
        share = seconds / max(len(rows), 1)
        for i, row in enumerate(rows):
            found = tuple(np.array(array[i]) for array in results)
            if not any(np.isnan(part).any() for part in found):
                self._rows[what, row.tobytes()] = found, share

    def update(self, other: Memo) -> None:
        """Add what another one holds."""
        if other.layout.shapes:
            self.layout.fix(other.layout.shapes)
        self._rows.update(other._rows)
        self._drawn.update(other._drawn)

    def add_drawn(self, rows: FloatArray, logs: FloatArray) -> None:
        """Keep the log densities (n,) by which rows (n, width) were drawn."""
        self._drawn |= {row.tobytes(): float(log) for row, log in zip(rows, logs, strict=True)}
        if self.write is not None:
            self.write(DRAWN, rows, (logs,), 0.0)

    @property
    def has_drawn(self) -> bool:
        """Whether any positions are known that were drawn at random."""
        return bool(self._drawn)

    def log_densities(self, rows: FloatArray) -> FloatArray:
        """Return the log densities by which rows (n, width) were drawn, (n,); NaN where unknown."""
        return np.array([self._drawn.get(row.tobytes(), np.nan) for row in rows], dtype=np.float64)

    def seconds_of(self, what: str) -> float | None:
        """Return what a result takes on average; None where there is none by this name."""
        seconds = [share for (name, _), (_, share) in self._rows.items() if name == what]
        return sum(seconds) / len(seconds) if seconds else None

    def batches(self) -> Iterator[tuple[str, FloatArray, Results]]:
        """Yield what is known: a name, rows (n, k), and results in the order in which it came."""
        names = dict.fromkeys(what for what, _ in self._rows)
        for name in names:
            held = [(key, row) for (what, key), (row, _) in self._rows.items() if what == name]
            rows = np.stack([np.frombuffer(key) for key, _ in held])
            yield name, rows, stack(dict(enumerate(row for _, row in held)), len(held))

    def complete(
        self,
        what: str,
        keys: FloatArray,
        rows: FloatArray,
        evaluate: Callable[[FloatArray], Answer],
    ) -> Answer:
        """Return the answer for rows; only unknown ones are evaluated.

        Parameters
        ----------
        keys : ndarray of shape (n, k)
            What the model takes of each row.
        rows : ndarray of shape (n, width)
            The rows.
        """
        found = {i: held for i, key in enumerate(keys) if (held := self._find(what, key))}
        self.seconds += sum(seconds for _, seconds in found.values())
        known = {i: row for i, (row, _) in found.items()}
        unknown = [i for i in range(len(rows)) if i not in found]
        if not unknown:
            return Answer(results=stack(known, len(rows)))
        began = time.perf_counter()
        fresh = evaluate(rows[unknown])
        if self.grows and fresh.results is not None:
            new = what, keys[unknown], fresh.results, time.perf_counter() - began
            self.add(*new)
            if self.write is not None:
                self.write(*new)
        if not known:
            return fresh
        if fresh.results is not None:
            known |= {i: tuple(a[k] for a in fresh.results) for k, i in enumerate(unknown)}
        causes = {unknown[k]: cause for k, cause in fresh.causes.items()}
        return attrs.evolve(fresh, results=stack(known, len(rows)), causes=causes)

    def _find(self, what: str, key: FloatArray) -> tuple[Results, float] | None:
        at = key.tobytes()
        for other, i in ((what, None), *WITHIN.get(what, ())):
            held = self._rows.get((other, at))
            # what was evaluated before there were quantities is evaluated once more
            if held is None:
                continue
            if not self.layout.shapes or other == "gradient" or self.layout.names(other, held[0]):
                return _within(other, i, held[0]), held[1]
        return None


def _within(what: str, i: int | None, results: Results) -> Results:
    """Return one of the arrays of results, or all for None, with the quantities behind them."""
    return results if i is None else (results[i], *results[len(ALL_BY_NAME[what].gives) :])


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
        Keeps what comes back, or gives what came back before; None keeps nothing.
    remembers
        Whether the last batch of each kind is kept, to be given once more.
    meter
        Counts the calls that have come back, and those that go on.
    causes, cures, as_a_whole
        Of calls since :meth:`begin`: row number to why it failed, and failures that a retry cured.
        Of all: why the first batch raised whose rows could be evaluated one by one; None without.
    beside, recent
        Quantities beside the results of the first batch since :meth:`begin`; and outputs and
        quantities at the latest positions.
    """

    def __init__(self, on_error: OnError, retries: int) -> None:
        self.on_error, self.retries = on_error, retries
        self.counts: dict[str, int] = dict.fromkeys(CALL_KINDS, 0)
        self.guard: Guard | None = None
        self.journal: Journal | None = None
        self.remembers = False
        self.meter = current_meter()
        self.causes: dict[int, Cause] = {}
        self.cures: list[Cure] = []
        self.as_a_whole: Cause | None = None
        self.beside: Quantities = {}
        self.recent = Recent()
        self._n = 0
        self._known: dict[str, tuple[FloatArray, Answer]] = {}
        self._worked: set[CallKind] = set()
        self._is_excluded = self._is_afresh = False

    def begin(self, n: int) -> None:
        """Note failures afresh, by the numbers of n rows, to which those of calls belong."""
        self.causes, self.cures, self.beside, self._n = {}, [], {}, n

    def keep(self, positions: FloatArray, outputs: FloatArray | None) -> None:
        """Keep outputs and quantities of the block by its positions (n, dim), if there are any.

        Of a position with neighbours, which follow it in the batch, quantities are its own.
        """
        found = {} if outputs is None else {"outputs": outputs}
        rows = len(next(iter(self.beside.values()), ()))
        if rows and not rows % len(positions):
            each = rows // len(positions)
            found |= {NAMED + name: array[::each] for name, array in self.beside.items()}
        if found:
            self.recent.add(positions, found)

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
        layout: Layout | None = None,
    ) -> Results | None:
        """Return the results of a batch, NaN in rows that fail; None if all fail.

        Results are kept while ``remembers`` is set; afterwards they are given once more for the
        same batch, without a call.

        Parameters
        ----------
        rows : ndarray of shape (n, width)
            The batch.
        each
            How many calls each row counts as.
        memo
            What is known, and what new results are added to; None where nothing is kept.
        keys : ndarray of shape (n, k), optional
            What the model takes of each row, where that is not all.
        layout
            Of quantities behind the results; None where there can be none.

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
                    return found if found is None else _within(name, i, found)
        if self._is_afresh:
            memo = None
        if self.journal is None and memo is None and self.on_error != "retry":
            try:
                outcome = self._attempt(kind, attempt, each, rows)
            finally:
                self.meter.left(0)
            if not (outcome.causes or self.remembers):
                self._worked.add(kind)
                return outcome.results
            answer = outcome.to_answer()
        else:
            make = partial(self._make, kind, attempt, each)
            if memo is not None:
                make = partial(memo.complete, what, rows if keys is None else keys, evaluate=make)
            call = Call(what, rows, make, self.counts, self._is_excluded, layout or Layout())
            answer = make(rows) if self.journal is None else self.journal.answer(call)
        self._note(answer, len(rows))
        if answer.results is not None:
            self._worked.add(kind)
            if self.remembers and kind != "rows":
                self._known[what] = rows.copy(), answer
        return answer.results

    def count(self, kind: CallKind, n: int) -> None:
        """Count n positions (or data rows), unless the guard rejects them."""
        if self.guard is not None:
            self.guard(kind, n)
        self.counts[kind] += n
        if kind != "rows":
            self.meter.begin(n)

    @contextmanager
    def excluded(self, *, afresh: bool = False) -> Iterator[None]:
        """Make calls in the block on which nothing depends that follows, without retries.

        Parameters
        ----------
        afresh
            Whether what is known is evaluated once more.
        """
        kept, self.on_error = self.on_error, "reject"
        self._is_excluded, self._is_afresh = True, afresh
        try:
            yield
        finally:
            self.on_error, self._is_excluded, self._is_afresh = kept, False, False

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
            if has_users_threads():
                outcome = attempt(rows)
            else:
                with users_threads():
                    outcome = attempt(rows)
        except BaseException as error:
            return self._row_by_row(error, kind, attempt, each, rows)
        if outcome.results is None and kind not in self._worked:
            outcome.raise_if_wrong()
        if outcome.causes and self.on_error == "raise":
            _stop_at(next(iter(outcome.causes.values())))
        return outcome

    def _row_by_row(
        self, raised: BaseException, kind: CallKind, attempt: Attempt, each: int, rows: FloatArray
    ) -> Outcome:
        """Return the outcome of a batch that raised as a whole."""
        is_wrong = isinstance(raised, ShapeError | ResultTypeError) and kind not in self._worked
        if is_wrong or isinstance(raised, TargetError):
            raise raised
        error = as_failure(raised)
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
        if not causes and self.as_a_whole is None:  # what cannot take batches is evaluated twice
            self.as_a_whole = Cause.of(error)
        return Outcome.of_rows(known, causes, n)


def _stop_at(error: Exception) -> None:
    raise TargetError(
        f"the target {report_of(error)}; make it return inf there, or pass "
        'compute=sk.Compute(on_error="reject")'
    ) from error
