"""Normal equations gathered as rows come in, and solved when a solution is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_networks.solving.basis import Basis
from surrokit_networks.solving.design import Counted, Solution
from surrokit_networks.solving.equations import Equations, join
from surrokit_networks.solving.normal_equations import NormalEquations, normal_equations
from surrokit_networks.solving.spectrum import Projected

_PENDING = 512
"""Positions that are kept until their products are taken, which is cheaper together."""


@attrs.define(kw_only=True, eq=False)
class Moments:
    """Weighted least squares by sums over rows: one Cholesky factorisation for each solution.

    Taking in a position costs O(k^2) for k columns, with its gradient no more than twice that
    (:mod:`surrokit_networks.solving.normal_equations`); a solution costs O(k^3).

    Parameters
    ----------
    basis
        The columns.
    ridge
        lambda; 0 for the Moore-Penrose inverse, so far as sums of squares can tell it.
    trains_level
        Whether a constant is fitted too.
    """

    basis: Basis
    ridge: float
    trains_level: bool
    _normal: NormalEquations | None = attrs.field(default=None, init=False, repr=False)
    _pending: list[Equations] = attrs.field(factory=list, init=False, repr=False)
    _last: FloatArray | None = attrs.field(default=None, init=False, repr=False)

    @property
    def last(self) -> tuple[float, FloatArray]:
        """Level, and coefficients (k,) of trend and nodes, in the last solution; or zeros."""
        if self._last is None:
            return 0.0, np.zeros(len(self.basis))
        return float(self._last[0]), self._last[1:]

    def absorb(self, equations: Equations) -> None:
        """Take in equations of one target."""
        self._pending.append(equations)
        if sum(map(len, self._pending)) >= _PENDING:
            self._gather()

    def _gather(self) -> None:
        if not self._pending:
            return
        more = normal_equations(self.basis, join(self._pending))
        self._pending = []
        self._normal = more if self._normal is None else self._normal + more

    def solution(self, counted: Counted) -> Solution:
        """Return the minimiser of the weighted squared error + ridge |v|^2.

        Parameters
        ----------
        counted
            How many equations there are, for the error to expect.

        Raises
        ------
        ValueError
            NumPy's LinAlgError, if it cannot be had.
        """
        self._gather()
        assert self._normal is not None
        projected = Projected.of(self._normal, self.basis.n_trend, self.trains_level)
        if self.ridge > 0.0:
            solution = projected.solution(counted, self.ridge)
        else:
            solution = projected.spectrum().solution(counted, 0.0)
        self._last = np.concatenate([solution.level[None], solution.trend, solution.weights])[:, 0]
        return solution

    def normal_equations(self) -> NormalEquations:
        """Return the sums over all equations so far."""
        self._gather()
        assert self._normal is not None
        return self._normal

    def change_ridge(self, ridge: float) -> None:
        """Solve at another ridge from now on."""
        self.ridge = ridge

    def state(self) -> dict[str, Any]:
        """Return the sums and the last solution, as plain arrays and numbers."""
        self._gather()
        assert self._normal is not None
        state = attrs.asdict(self._normal)
        last = None if self._last is None else self._last.copy()
        return {"last": last, **{k: np.array(v) for k, v in state.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what ``state`` returned."""
        arrays = {name: np.array(state[name], dtype=np.float64) for name in _SUMS}
        weight, mass = float(state["weight"]), float(state["mass"])
        self._normal = NormalEquations(**arrays, weight=weight, mass=mass)
        last = state["last"]
        self._last = None if last is None else np.array(last, dtype=np.float64)


_SUMS = ("gram", "right", "squares", "sums", "target_sums")
