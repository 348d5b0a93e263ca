"""The solution of a regression, and the choice of its ridge."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.types import BoolArray, FloatArray
from surrokit_networks.solving.basis import Basis
from surrokit_networks.solving.design import Solution
from surrokit_networks.solving.equations import Equations
from surrokit_networks.solving.normal_equations import NormalEquations, normal_equations
from surrokit_networks.solving.orthogonal import solve
from surrokit_networks.solving.spectrum import (
    Projected,
    Spectrum,
    dual_spectrum,
    largest_of_the_best,
)

ChooseRidge: TypeAlias = Literal["gcv", "held-out"]
"""How a ridge is chosen: generalised cross-validation, or the error at points held out."""


@attrs.frozen(kw_only=True, eq=False)
class Solved:
    """A regression, and its twin.

    Parameters
    ----------
    solution
        Fitted to all rows.
    twin : Solution or None
        Fitted to the rows that are not held out, at the same ridge.
    basis
        The columns that were fitted.
    """

    solution: Solution
    twin: Solution | None
    basis: Basis


@attrs.frozen(kw_only=True)
class Solver:
    """How weights are found.

    Parameters
    ----------
    ridge : float, optional
        A fixed lambda; None to choose it.
    choose_ridge
        How; both from one eigendecomposition.
    block_rows : int, optional
        Positions worked on at a time; None for as many as take a few megabytes.
    """

    ridge: float | None
    choose_ridge: ChooseRidge
    block_rows: int | None = None

    def solve(self, basis: Basis, equations: Equations, held: BoolArray | None) -> Solved:
        """Return the solution, and its twin where some rows are held out.

        Parameters
        ----------
        basis
            The columns.
        equations
            The rows.
        held : ndarray of bool, shape (n,), or None
            Rows that are not shown to the twin.

        Raises
        ------
        ValueError
            NumPy's LinAlgError, if the numbers cannot be handled.
        """
        if self.ridge is not None and (equations.gradients is None or self.ridge == 0.0):
            return self._fix(basis, equations, held, self.ridge)
        if equations.n_rows < basis.n_nodes:
            return self._by_rows(basis, equations, held)
        return self._by_moments(basis, equations, held)

    def _fix(
        self, basis: Basis, equations: Equations, held: BoolArray | None, ridge: float
    ) -> Solved:
        solution = solve(basis, equations, ridge, self.block_rows)
        if held is None:
            return Solved(solution=solution, twin=None, basis=basis)
        twin = solve(basis, equations.take(~held), ridge, self.block_rows)
        return Solved(solution=solution, twin=twin, basis=basis)

    def _by_rows(self, basis: Basis, equations: Equations, held: BoolArray | None) -> Solved:
        whole = dual_spectrum(basis, equations, self.block_rows)
        if held is None:
            solution = whole.solution(equations, self._choose(whole, equations))
            return Solved(solution=solution, twin=None, basis=basis)
        shown = equations.take(~held)
        part = dual_spectrum(basis, shown, self.block_rows)
        ridge = self._choose(whole, equations)
        if self.ridge is None:
            away = normal_equations(basis, equations.take(held), self.block_rows)
            ridge = self._guard(part, ridge, away)
        return Solved(
            solution=whole.solution(equations, ridge), twin=part.solution(shown, ridge), basis=basis
        )

    def _by_moments(self, basis: Basis, equations: Equations, held: BoolArray | None) -> Solved:
        n_trend, level = basis.n_trend, equations.trains_level
        if held is None:
            whole = Projected.of(
                normal_equations(basis, equations, self.block_rows), n_trend, level
            )
            return Solved(solution=self._solution(whole, equations), twin=None, basis=basis)
        shown = equations.take(~held)
        kept = normal_equations(basis, shown, self.block_rows)
        away = normal_equations(basis, equations.take(held), self.block_rows)
        whole = Projected.of(kept + away, n_trend, level)
        part = Projected.of(kept, n_trend, level)
        if self.ridge is None and self.choose_ridge == "held-out":
            return _by_held_out(basis, whole, part, equations, shown, away)
        solution = self._solution(whole, equations)
        twin = part.solution(shown, solution.ridge, counted=False)
        if self.ridge is None and not _no_worse(twin.trend, twin.weights, part, away):
            return _by_held_out(basis, whole, part, equations, shown, away)
        return Solved(solution=solution, twin=twin, basis=basis)

    def _solution(self, whole: Projected, equations: Equations) -> Solution:
        if self.ridge is not None:
            return whole.solution(equations, self.ridge)
        spectrum = whole.spectrum()
        return spectrum.solution(equations, spectrum.cross_validated(equations.count))

    def _choose(self, spectrum: Spectrum, equations: Equations) -> float:
        return spectrum.cross_validated(equations.count) if self.ridge is None else self.ridge

    def _guard(self, part: Spectrum, ridge: float, away: NormalEquations) -> float:
        if self.choose_ridge == "held-out":
            return _least_held_out(part, away)
        trends, weights = part.along(np.array([ridge]))
        return (
            ridge if _no_worse(trends[0], weights[0], part, away) else _least_held_out(part, away)
        )


def _by_held_out(
    basis: Basis,
    whole: Projected,
    part: Projected,
    equations: Equations,
    shown: Equations,
    away: NormalEquations,
) -> Solved:
    spectrum = part.spectrum()
    ridge = _least_held_out(spectrum, away)
    return Solved(
        solution=whole.solution(equations, ridge), twin=spectrum.solution(shown, ridge), basis=basis
    )


def _no_worse(
    trend: FloatArray, weights: FloatArray, part: Projected | Spectrum, away: NormalEquations
) -> bool:
    """Return whether a network does no worse where it was not fitted than its trend alone."""
    nothing = np.zeros_like(weights)
    _, alone = part.complete(nothing)
    errors = squared_errors(away, np.array([trend, alone]), np.array([weights, nothing]))
    return bool(errors[0] <= errors[1])


def _least_held_out(part: Spectrum, away: NormalEquations) -> float:
    return largest_of_the_best(part.ridges, squared_errors(away, *part.along(part.ridges)))


def squared_errors(held: NormalEquations, trends: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the squared errors of fits at rows that they were not fitted to, shape (j,).

    A constant shift of all values is forgiven, since a potential is known up to a constant.

    Parameters
    ----------
    held
        The rows.
    trends : ndarray of shape (j, p, m)
        Coefficients of trends.
    weights : ndarray of shape (j, s, m)
        Node weights.
    """
    normal = held.without_level() if held.weight > 0.0 else held
    fits = np.concatenate([trends, weights], axis=1)
    products = np.einsum("jkm,jkm->j", fits, normal.gram @ fits)
    crossed = np.einsum("jkm,km->j", fits, normal.right)
    return np.asarray(float(normal.squares.sum()) - 2.0 * crossed + products)
