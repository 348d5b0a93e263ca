"""Positions that are rejected because the target failed there, counted and reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import attrs
import numpy as np

from surrokit.contracts.methods import CallKind
from surrokit.contracts.potential import Potential
from surrokit.failures.account import REMEMBERED, FailureAccount
from surrokit.failures.log import FailureLog
from surrokit.limits.penalties import without_penalties
from surrokit.model.calls import Calls
from surrokit.model.cause import MINUS_INFINITY, RETURNED_NAN, Cause, Cure
from surrokit.model.model import from_model, model_of
from surrokit.types import BoolArray, FloatArray


class Rejections:
    """Turns what cannot be decided into rejections, with their causes.

    Parameters
    ----------
    calls
        The calls of the model.
    target
        The target, in the sampling coordinates.

    Attributes
    ----------
    account
        Failures by kind: positions at which the target raised, returned NaN, or claimed an
        infinite density.
    log
        Warns of failures.
    last : tuple of ndarray of shape (dim,) and float, or None
        The latest position at which U is finite, and U there.
    """

    def __init__(self, calls: Calls, target: Potential) -> None:
        self.account = FailureAccount(calls.retries if calls.on_error == "retry" else 0)
        self.log = FailureLog()
        self.last: tuple[FloatArray, float] | None = None
        self._calls, self._target = calls, target
        self._kind: CallKind = "value"
        self._at: FloatArray = np.empty((0, 0))

    @contextmanager
    def evaluating(self, kind: CallKind, positions: FloatArray) -> Iterator[None]:
        """Take note of failures of the calls in the block, which evaluate positions.

        Parameters
        ----------
        kind
            Kind of call.
        positions : ndarray of shape (n, dim) or (n,)
            In the sampling coordinates; numbers (n,) of data rows are no positions.
        """
        self._kind, self._at = kind, positions
        calls = self._calls
        calls.begin(len(positions))
        with np.errstate(all="ignore"):  # overflow far out is rejected and counted
            yield
        for cure in calls.cures:
            self.account.cure(self._outside(cure))
        if calls.causes:
            cause = next(iter(calls.causes.values()))
            at = positions[list(calls.causes)]
            self.log.failed(cause.report, at, overflow=cause.overflow)
        elif calls.as_a_whole is not None:
            cause = calls.as_a_whole
            self.log.failed(cause.report, positions, overflow=cause.overflow)

    @contextmanager
    def aside(self, *, afresh: bool = False) -> Iterator[FailureAccount]:
        """Count failures in the block in an account of its own, without warnings or retries.

        Parameters
        ----------
        afresh
            Whether what is known is evaluated once more.
        """
        kept = self.account, self.log
        self.account, self.log = FailureAccount(), FailureLog(told=True)
        try:
            with self._calls.aside(afresh=afresh):
                yield self.account
        finally:
            self.account, self.log = kept

    def decidable(self, values: FloatArray) -> FloatArray:
        """Return U, shape (n,), with ``inf`` in place of NaN and -inf, which count as failures.

        From :data:`surrokit.limits.penalties.EDGE` on U is infinite, too. U = -inf is no valid
        density: a chain there would never leave.
        """
        values = without_penalties(values)
        self._note_last(values)
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
            self.log.failed(RETURNED_NAN.report, self._at[nan], overflow=True)
            self.account.reject(RETURNED_NAN.kind, RETURNED_NAN.report, self._kind, self._at[nan])

    def _outside(self, cure: Cure) -> Cure:
        """Return a cure with its position in the sampling coordinates; data rows have none."""
        if not cure.position.ndim:
            return cure
        width = model_of(self._target).dim
        place = from_model(self._target, cure.position[None, :width])[0]
        return attrs.evolve(cure, position=place)

    def _note_last(self, values: FloatArray) -> None:
        if not len(values):
            return
        i = int(np.where(values > -np.inf, values, np.inf).argmin())
        if np.isfinite(values[i]):
            self.last = self._at[i].copy(), float(values[i])
