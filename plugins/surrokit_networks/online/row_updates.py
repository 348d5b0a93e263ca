"""Proposition 1 on the equations of a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_networks.online.greville import Greville
from surrokit_networks.online.moment_sums import MomentSums
from surrokit_networks.solving.basis import Basis
from surrokit_networks.solving.design import Counted, Solution, expected_error, write_out
from surrokit_networks.solving.equations import Equations
from surrokit_networks.solving.normal_equations import NormalEquations, normal_equations
from surrokit_networks.solving.orthogonal import triangle_of

_MOST = 2e10
"""Operations from which on first equations are summed up, although that costs half the digits.

Sums over gradients do without a factor of dim, and ridges that are chosen from sums are no smaller
than these can bear.
"""


@attrs.define(kw_only=True, eq=False)
class RowUpdates:
    """Weighted least squares by :class:`~surrokit_networks.online.greville.Greville`'s updates.

    A position is a row for its value and ``dim`` rows for its gradient, each times the root of its
    weight. The first equations are taken in all at once.

    Parameters
    ----------
    basis
        The columns.
    ridge
        lambda; 0 for the Moore-Penrose inverse.
    trains_level
        Whether a constant is fitted too: a column of ones before all others.
    """

    basis: Basis
    ridge: float
    trains_level: bool
    _engine: Greville | None = attrs.field(default=None, init=False, repr=False)

    @property
    def engine(self) -> Greville:
        """What keeps the solution."""
        assert self._engine is not None
        return self._engine

    @property
    def last(self) -> tuple[float, FloatArray]:
        """Level, and coefficients of trend and nodes, (k,); zeros before there are equations."""
        if self._engine is None:
            return 0.0, np.zeros(len(self.basis))
        found = self._engine.solution
        return float(found[0]) if self._lead else 0.0, found[self._lead :]

    @property
    def _lead(self) -> int:
        return int(self.trains_level)

    def absorb(self, equations: Equations) -> None:
        """Take in equations of one target.

        Raises
        ------
        ValueError
            NumPy's LinAlgError, if the first of them cannot be solved.
        """
        if self._engine is None:
            self._engine = self._start(equations)
            return
        for rows in write_out(self.basis, equations, None):
            self._engine.update(np.ascontiguousarray(rows[:, :-1]), rows[:, -1])

    def _start(self, equations: Equations) -> Greville:
        n_free = self._lead + self.basis.n_trend
        if self.ridge > 0.0 and equations.n_rows * len(self.basis) ** 2 > _MOST:
            return Greville.of_sums(self._sums(equations, n_free))
        triangle = triangle_of(write_out(self.basis, equations, None))
        return Greville.of_rows(triangle[:, :-1], triangle[:, -1], n_free=n_free, ridge=self.ridge)

    def _sums(self, equations: Equations, n_free: int) -> MomentSums:
        normal, lead = normal_equations(self.basis, equations), self._lead
        size = lead + len(self.basis)
        sums = MomentSums.empty(size, n_free=n_free, ridge=self.ridge)
        sums.gram[lead:, lead:] = normal.gram
        sums.right[lead:] = normal.right[:, 0]
        sums.squares = float(normal.squares[0])
        if lead:
            sums.gram[0, 0], sums.right[0] = normal.weight, normal.target_sums[0]
            sums.gram[1:, 0] = normal.sums
        return sums

    def solution(self, counted: Counted) -> Solution:
        """Return the minimiser of the weighted squared error + ridge |v|^2, at O(k^2).

        Parameters
        ----------
        counted
            How many equations there are, for the error to expect.
        """
        engine = self.engine
        if engine.unchecked:
            engine.check()
        found, first = engine.solution[:, None].copy(), self._lead + self.basis.n_trend
        return Solution(
            trend=found[self._lead : first],
            weights=found[first:],
            level=found[0] if self._lead else np.zeros(1),
            ridge=self.ridge,
            degrees=engine.degrees,
            error=expected_error(
                counted, engine.sums.squared_error(engine.solution), engine.degrees
            ),
        )

    def normal_equations(self) -> NormalEquations:
        """Return the sums over all equations so far."""
        sums, lead = self.engine.sums, self._lead
        sums.flush()
        whole = np.tril(sums.gram) + np.tril(sums.gram, -1).T
        weight = float(whole[0, 0]) if lead else 0.0
        return NormalEquations(
            gram=whole[lead:, lead:],
            right=sums.right[lead:, None],
            squares=np.array([sums.squares]),
            sums=whole[lead:, 0] if lead else np.zeros(len(self.basis)),
            target_sums=sums.right[:1] if lead else np.zeros(1),
            weight=weight,
            mass=weight,
        )

    def change_ridge(self, ridge: float) -> None:
        """Solve from the sums at another ridge, and go on with it.

        Raises
        ------
        ValueError
            NumPy's LinAlgError, if it cannot be done; nothing has changed then.
        """
        self.engine.sums.flush()
        self._engine = Greville.of_sums(attrs.evolve(self.engine.sums, ridge=ridge))
        self.ridge = ridge

    def state(self) -> dict[str, Any]:
        """Return everything that has been learnt, as plain arrays and numbers."""
        return self.engine.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what ``state`` returned."""
        self._engine = Greville.restore(state)
