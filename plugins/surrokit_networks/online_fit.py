"""A least-squares fit that goes on: in the frame of a first one, without keeping rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.surrogate.quality import FitQuality
from surrokit.types import FloatArray
from surrokit_networks.equations import (
    Equations,
    NormalEquations,
    join,
    normal_equations,
    write_out,
)
from surrokit_networks.greville import Greville, RowSums
from surrokit_networks.least_squares import Projected, Solution, expected_error, triangle_of
from surrokit_networks.potentials import FittedNetwork
from surrokit_networks.regression import Frame, Regression
from surrokit_networks.training_rows import TrainingRows

_PENDING = 512
"""Positions that are kept at most until they are taken in together."""

_KEPT, _LEAST_JUDGED = 200, 10
"""Rows that the estimate of the error looks back on, and below which there is none."""

_MANY_ROWS = 3
"""Part of the columns in rows from which on solving sums takes less time than updates."""

_MANY = 2e10
"""Operations from which on first equations are summed up, although that costs half the digits:
sums over gradients do without a factor of dim, and ridges that are chosen from sums are no smaller
than these can bear."""


@attrs.define(kw_only=True, eq=False)
class OnlineFit:
    """The least-squares fit of one frame to rows that come in blocks and are not kept.

    A position is a row for its value and ``dim`` rows for its gradient, each times the root of its
    weight. Equations are taken in when a network is asked for: the first by orthogonal
    transformations, later ones by Proposition 1 (:class:`~surrokit_networks.greville.Greville`).
    Where there is a ridge and rows are many, which gradients soon make, they go into the sums that
    it keeps, and these are solved: that takes less time.

    Parameters
    ----------
    regression
        What is fitted.
    frame
        Whitening, columns, known trend, origin and ridge.
    engine : Greville or None
        Keeps the solution; None before there are equations.
    count, total_weight
        Of all equations so far; see :class:`~surrokit_networks.equations.Equations`.
    n_points
        Points; one that comes again in a later block counts again.
    weight, target_sum
        Sums of the weights of rows, and weighted of targets.
    feature_sums : ndarray of shape (k,)
        Weighted sums of columns' values: with these, what gradients alone leave open.
    judged : ndarray of shape (n, 3)
        Of the last rows V - U, |L^T grad(V - U)|^2 and |L^T grad U|^2, before they were learnt
        from; NaN where no gradient is known.
    first : FitQuality or None
        The error of the first fit, until enough rows were judged.
    chosen_at
        Independent equations from which the ridge was chosen.
    deployed : ndarray of shape (1 + k,) or None
        Level and coefficients of the last network that was asked for.
    """

    regression: Regression
    frame: Frame
    engine: Greville | None = None
    count: float = 0.0
    total_weight: float = 0.0
    n_points: int = 0
    weight: float = 0.0
    target_sum: float = 0.0
    feature_sums: FloatArray = attrs.field()
    judged: FloatArray = attrs.field(factory=lambda: np.empty((0, 3)))
    first: FitQuality | None = None
    chosen_at: float = 0.0
    deployed: FloatArray | None = None
    _pending: list[Equations] = attrs.field(factory=list, init=False, repr=False)

    @feature_sums.default
    def _no_sums(self) -> FloatArray:
        return np.zeros(len(self.frame.basis))

    @property
    def _lead(self) -> int:
        return int(self.regression.trains_level)

    def absorb(self, rows: TrainingRows) -> None:
        """Take in rows.

        Raises
        ------
        SurrogateFitError
            If the first of them cannot be fitted.
        """
        if not len(rows):
            return
        frame = self.frame
        equations = self._equations(rows)
        self._pending.append(equations)
        self.count += equations.count
        self.total_weight += equations.total_weight
        self.n_points += len(rows)
        self.weight += float(rows.weights.sum())
        self.target_sum += float(rows.weights @ equations.targets[:, 0])
        self.chosen_at = self.chosen_at or self.count
        if frame.border is not None:
            self.frame = attrs.evolve(frame, border=frame.border.widen(rows))
        if self.regression.level_is_open:
            self.feature_sums += rows.weights @ frame.basis.features(equations.whitened)
        if self.engine is None or sum(map(len, self._pending)) >= _PENDING:
            self._take_in()

    def _take_in(self) -> None:
        """Take in the equations that were kept for it."""
        if not self._pending:
            return
        equations, self._pending = join(self._pending), []
        basis = self.frame.basis
        try:
            if self.engine is None:
                self.engine = self._start(equations)
            elif self.frame.ridge > 0.0 and _MANY_ROWS * equations.n_rows > len(basis):
                sums = self._sums(normal_equations(basis, equations))
                self.engine = Greville.of_sums(self.engine.sums.plus(sums))
            else:
                for rows in write_out(basis, equations):
                    self.engine.update(np.ascontiguousarray(rows[:, :-1]), rows[:, -1])
        except np.linalg.LinAlgError as error:
            raise _unsolved(error) from error

    def _equations(self, rows: TrainingRows) -> Equations:
        origin = float(self.frame.origin[0])
        return self.frame.less(self.regression.equations(rows, self.frame.whitening, origin))

    def _start(self, equations: Equations) -> Greville:
        basis, ridge = self.frame.basis, self.frame.ridge
        n_free = self._lead + basis.n_trend
        if ridge > 0.0 and equations.n_rows * len(basis) ** 2 > _MANY:
            return Greville.of_sums(self._sums(normal_equations(basis, equations)))
        triangle = triangle_of(write_out(basis, equations))
        return Greville.of_rows(triangle[:, :-1], triangle[:, -1], n_free=n_free, ridge=ridge)

    def _sums(self, normal: NormalEquations) -> RowSums:
        """Return normal equations as sums over rows, with the level as the first column."""
        lead, basis = self._lead, self.frame.basis
        n_free = lead + basis.n_trend
        sums = RowSums.empty(lead + len(basis), n_free=n_free, ridge=self.frame.ridge)
        sums.gram[lead:, lead:] = normal.gram
        sums.right[lead:] = normal.right[:, 0]
        sums.squares = float(normal.squares[0])
        if lead:
            sums.gram[0, 0], sums.right[0] = normal.weight, normal.target_sums[0]
            sums.gram[1:, 0] = normal.sums
        return sums

    def judge(self, rows: TrainingRows) -> None:
        """Compare the last network with rows outside the far tail, before they are taken in.

        This is the prequential rule (Dawid 1984, J. R. Stat. Soc. A 147(2)). The network changes,
        so the estimate lags behind it by some of the rows that it looks back on.
        """
        rows = rows.take(rows.trust == 1.0)
        if not len(rows) or self.deployed is None:
            return
        level, trend, weights = np.split(self.deployed[:, None], [1, 1 + self.frame.basis.n_trend])
        nothing = {"ridge": 0.0, "degrees": 0.0, "error": 0.0}
        solution = Solution(level=level[0], trend=trend, weights=weights, **nothing)
        values, slopes = self.frame.network(solution).value_and_gradient(rows.positions)
        lengths = (
            np.square(part @ self.frame.whitening.factor).sum(axis=1)
            for part in (slopes - rows.gradients, rows.gradients)
        )
        more = np.column_stack([values - rows.values, *lengths])
        self.judged = np.concatenate([self.judged, more])[-_KEPT:]

    @property
    def quality(self) -> FitQuality | None:
        """The error at the last rows; that of the first fit as long as there are few."""
        if len(self.judged) < _LEAST_JUDGED:
            return self.first
        known = self.judged[np.isfinite(self.judged[:, 1:]).all(axis=1), 1:].sum(axis=0)
        return FitQuality(
            variance=float(np.var(self.judged[:, 0])),
            gradient_error=float(np.sqrt(known[0] / known[1])) if known[1] > 0.0 else None,
            n_points=len(self.judged),
        )

    def network(self) -> FittedNetwork:
        """Return the network that fits everything so far best.

        Raises
        ------
        SurrogateFitError
            If its weights are not finite.
        """
        self._take_in()
        assert self.engine is not None
        if self.regression.ridge is None and self.count >= 2.0 * self.chosen_at:
            self.choose_ridge()
        if self.engine.unchecked:
            self.engine.check()
        solution = self._solution(self.engine)
        if not solution.finite:
            raise _unsolved("weights are not finite")
        parts = [solution.level[None], solution.trend, solution.weights]
        self.deployed = np.concatenate(parts)[:, 0]
        return FittedNetwork(
            network=self.frame.network(solution),
            n_points=self.n_points,
            ridge=solution.ridge,
            degrees=solution.degrees,
            gcv_error=solution.error,
            border=self.frame.border,
            quality=self.quality,
        )

    def _solution(self, engine: Greville) -> Solution:
        found, lead = engine.solution[:, None].copy(), self._lead
        n_free = lead + self.frame.basis.n_trend
        level = found[0] if lead else np.zeros(1)
        if self.regression.level_is_open:
            reached = float(self.feature_sums @ engine.solution)
            level = np.array([(self.target_sum - reached) / self.weight])
        squares = engine.sums.squared_error(engine.solution)
        return Solution(
            trend=found[lead:n_free],
            weights=found[n_free:],
            level=level,
            ridge=self.frame.ridge,
            degrees=engine.degrees,
            error=expected_error(self.count, self.total_weight, squares, engine.degrees),
        )

    def choose_ridge(self) -> None:
        """Choose the ridge anew from the sums, by generalised cross-validation.

        Few rows want a larger ridge than many do. Measured on a logistic posterior in 20
        dimensions, in the frame of 160 values: with 650 values Var(V - U) is 0.13 where the ridge
        follows, and 0.29 where it does not; with 1300 values 0.09 and 0.14.
        """
        assert self.engine is not None
        self.chosen_at = self.count
        sums, lead = self.engine.sums, self._lead
        whole = sums.whole_gram()
        weight = float(whole[0, 0]) if lead else 0.0
        normal = NormalEquations(
            gram=whole[lead:, lead:],
            right=sums.right[lead:, None],
            squares=np.array([sums.squares]),
            sums=whole[lead:, 0] if lead else np.zeros(len(whole)),
            target_sums=sums.right[:1] if lead else np.zeros(1),
            weight=weight,
            mass=weight,
        )
        try:
            projected = Projected.of(normal, self.frame.basis.n_trend, bool(lead))
            ridge = projected.spectrum().cross_validated(self.count)
            self.engine = Greville.of_sums(attrs.evolve(sums, ridge=ridge))
        except np.linalg.LinAlgError:
            return  # it stays what it was
        self.frame = attrs.evolve(self.frame, ridge=ridge)

    def state(self) -> dict[str, Any]:
        """Return all that changes, as plain arrays and numbers."""
        self._take_in()
        assert self.engine is not None
        state: dict[str, Any] = {name: getattr(self, name) for name in _NUMBERS}
        return {
            **state,
            "feature_sums": self.feature_sums.copy(),
            "judged": self.judged.copy(),
            "deployed": None if self.deployed is None else self.deployed.copy(),
            "first": None if self.first is None else attrs.asdict(self.first),
            "engine": self.engine.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what ``state`` returned."""
        for name in _NUMBERS:
            setattr(self, name, type(getattr(self, name))(state[name]))
        self.feature_sums = np.array(state["feature_sums"], dtype=np.float64)
        self.judged = np.array(state["judged"], dtype=np.float64)
        deployed = state["deployed"]
        self.deployed = None if deployed is None else np.array(deployed, dtype=np.float64)
        self.first = None if state["first"] is None else FitQuality(**state["first"])
        self.engine = Greville.restore(state["engine"])


_NUMBERS = ("count", "total_weight", "n_points", "weight", "target_sum", "chosen_at")


def _unsolved(why: object) -> SurrogateFitError:
    return SurrogateFitError(
        f"the online least-squares problem of the network could not be solved ({why}); use "
        "updates='refit', whiten=True and ridge=None, or rescale the parameters"
    )
