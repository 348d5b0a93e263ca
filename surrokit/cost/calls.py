"""Counted calls of a target, in which positions that fail are rejected and counted."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from surrokit.contracts.methods import CALL_KINDS, CallKind
from surrokit.cost.failures import FailureLog
from surrokit.cost.journal import Journal, NoJournal
from surrokit.errors import EvaluationError, ShapeError, TargetError
from surrokit.rowwise import stack
from surrokit.types import FloatArray

OnError: TypeAlias = Literal["reject", "raise"]
"""What happens when a target raises at a position."""

Function: TypeAlias = Callable[[FloatArray], tuple[FloatArray, ...]]

Guard: TypeAlias = Callable[[CallKind, int], None]
"""Asked before a call, with its kind and number of positions; raises if it must not be made."""

_REMEMBERED = ("value", "gradient", "forward", "jacobian", "vjp")


class ExactCalls:
    """Evaluates batches, counts calls, and turns failures into NaN.

    A batch that raises as a whole is evaluated again row by row. Every attempt is counted, since
    the potential that pays counts (:func:`surrokit.contracts.counting.with_count`).

    Parameters
    ----------
    on_error
        ``"reject"``, or ``"raise"`` to stop at the first exception of the target.

    Attributes
    ----------
    guard
        Asked before each call; None allows every call.
    journal
        Keeps what comes back, or says what came back before.
    remembers
        Whether the last batch of each kind is kept, to be given once more.
    failures
        Positions at which the target raised, returned NaN, or claimed an infinite density.
    broken_gradients
        Positions at which U is finite and its gradient is not.
    likeliest_broken : tuple of float and ndarray of shape (dim,), or None
        U and position of the broken gradient of least U.
    log
        Warns of failures.
    """

    def __init__(self, on_error: OnError) -> None:
        self.on_error = on_error
        self.counts: dict[str, int] = dict.fromkeys(CALL_KINDS, 0)
        self.failures = 0
        self.broken_gradients = 0
        self.likeliest_broken: tuple[float, FloatArray] | None = None
        self.guard: Guard | None = None
        self.journal: Journal = NoJournal()
        self.remembers = False
        self._known: dict[CallKind, tuple[FloatArray, tuple[FloatArray, ...]]] = {}
        self.log = FailureLog()
        self._at: FloatArray = np.empty((0, 0))

    def evaluate(
        self, kind: CallKind, function: Function, positions: FloatArray
    ) -> tuple[FloatArray, ...] | None:
        """Return a function's results for a batch, NaN in rows that fail; None if all fail.

        Results are kept while ``remembers`` is set; afterwards they are given once more for the
        same batch, without a call.

        Raises
        ------
        TargetError
            If the function raises and ``on_error`` is ``"raise"``.
        ShapeError
            If the function raises one: it is then wrong everywhere.
        """
        self._at = positions
        if self._known and not self.remembers:
            known = self._known.get(kind)
            if known is not None and np.array_equal(known[0], positions):
                return self._known.pop(kind)[1]
        results = self.journal.call(
            kind,
            positions,
            lambda rows: self._evaluate(kind, function, rows),
            self.counts,
            lambda what, rows, overflow: self.log.failed(what, rows, overflow=overflow),
        )
        if self.remembers and kind in _REMEMBERED and results is not None:
            self._known[kind] = positions.copy(), results
        return results

    def count(self, kind: CallKind, n: int) -> None:
        """Count n positions (or data rows), unless the guard refuses them."""
        if self.guard is not None:
            self.guard(kind, n)
        self.counts[kind] += n

    def _evaluate(
        self, kind: CallKind, function: Function, positions: FloatArray
    ) -> tuple[FloatArray, ...] | None:
        try:
            with np.errstate(all="ignore"):  # overflow far out is rejected and counted
                return function(positions)
        except ShapeError:
            raise
        except EvaluationError as error:
            self._note_error(next(iter(error.causes.values())), positions[list(error.causes)])
            return error.results or None
        except Exception as error:
            self._note_error(error, positions)
            if len(positions) == 1:
                return None
            results = self._row_by_row(kind, function, positions)
            self._at = positions
            return results

    def decidable(self, values: FloatArray) -> FloatArray:
        """Return U, shape (n,), with ``inf`` in place of NaN and -inf, which count as failures.

        U = -inf is no valid density: a chain there would never leave.
        """
        failed = ~(values > -np.inf)
        if not failed.any():
            return values
        self.count_nan(values[:, None])
        endless = values == -np.inf
        if endless.any():
            what = "returned U = -inf, an infinite density, which no chain could leave again"
            self.log.failed(what, self._at[endless], overflow=False)
            self.failures += int(endless.sum())
        return np.where(failed, np.inf, values)

    def count_broken_gradients(
        self, positions: FloatArray, values: FloatArray, gradients: FloatArray
    ) -> None:
        """Count positions (n, dim) where U is finite and its gradient is not, as failures too."""
        broken = np.isfinite(values) & ~np.isfinite(gradients).all(axis=1)
        if not broken.any():
            return
        self.broken_gradients += int(broken.sum())
        self.failures += int(broken.sum())
        i = int(np.where(broken, values, np.inf).argmin())
        if self.likeliest_broken is None or values[i] < self.likeliest_broken[0]:
            self.likeliest_broken = float(values[i]), positions[i].copy()

    def count_nan(self, rows: FloatArray) -> None:
        """Count rows with NaN, shape (n, ...), as failures."""
        nan = np.isnan(rows).reshape(len(rows), -1).any(axis=1)
        if nan.any():
            self.log.failed("returned NaN", self._at[nan], overflow=True)
            self.failures += int(nan.sum())

    def _row_by_row(
        self, kind: CallKind, function: Function, positions: FloatArray
    ) -> tuple[FloatArray, ...] | None:
        rows: dict[int, tuple[FloatArray, ...]] = {}
        for i in range(len(positions)):
            one = self.evaluate(kind, function, positions[i : i + 1])
            if one is not None:
                rows[i] = tuple(array[0] for array in one)
        return stack(rows, len(positions)) or None

    def _note_error(self, error: Exception, positions: FloatArray) -> None:
        place = traceback.extract_tb(error.__traceback__)
        where = f" ({place[-1].filename}, line {place[-1].lineno})" if place else ""
        report = f"raised {type(error).__name__}: {error}{where}"
        if self.on_error == "raise":
            raise TargetError(
                f'the target {report}; make it return inf there, or pass on_error="reject"'
            ) from error
        overflow = isinstance(error, ArithmeticError)
        self.journal.note(report, positions, overflow)
        self.log.failed(report, positions, overflow=overflow)
