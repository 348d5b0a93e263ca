"""Which way a regression is solved, and how its ridge is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.types import BoolArray, FloatArray
from surrokit_networks.basis import Basis
from surrokit_networks.design import Solution
from surrokit_networks.equations import Equations
from surrokit_networks.normal_equations import NormalEquations, normal_equations
from surrokit_networks.orthogonal import solved
from surrokit_networks.spectrum import Projected, Spectrum, dual_spectrum

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
    """

    solution: Solution
    twin: Solution | None


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
        numpy.linalg.LinAlgError
            If the numbers cannot be handled.
        """
        shown = None if held is None else equations.take(~held)
        if self.ridge is not None and (equations.gradients is None or self.ridge == 0.0):
            ridge = self.ridge
            return Solved(
                solution=solved(basis, equations, ridge, self.block_rows),
                twin=None if shown is None else solved(basis, shown, ridge, self.block_rows),
            )
        if equations.n_rows < basis.n_nodes:
            return self._by_rows(basis, equations, held)
        return self._by_moments(basis, equations, held)

    def _by_rows(self, basis: Basis, equations: Equations, held: BoolArray | None) -> Solved:
        whole = dual_spectrum(basis, equations, self.block_rows)
        if held is None:
            return Solved(
                solution=whole.solution(equations, self._chosen(whole, equations)), twin=None
            )
        shown = equations.take(~held)
        part = dual_spectrum(basis, shown, self.block_rows)
        if self.ridge is None and self.choose_ridge == "held-out":
            away = normal_equations(basis, equations.take(held), self.block_rows)
            ridge = part.held_out(errors_of(away))
        else:
            ridge = self._chosen(whole, equations)
        return Solved(solution=whole.solution(equations, ridge), twin=part.solution(shown, ridge))

    def _by_moments(self, basis: Basis, equations: Equations, held: BoolArray | None) -> Solved:
        n_trend, level = basis.n_trend, equations.trains_level
        if held is None:
            whole = Projected.of(
                normal_equations(basis, equations, self.block_rows), n_trend, level
            )
            return Solved(solution=self._solution(whole, equations), twin=None)
        shown = equations.take(~held)
        kept = normal_equations(basis, shown, self.block_rows)
        away = normal_equations(basis, equations.take(held), self.block_rows)
        whole = Projected.of(kept + away, n_trend, level)
        part = Projected.of(kept, n_trend, level)
        if self.ridge is None and self.choose_ridge == "held-out":
            spectrum = part.spectrum()
            ridge = spectrum.held_out(errors_of(away))
            return Solved(
                solution=whole.solution(equations, ridge), twin=spectrum.solution(shown, ridge)
            )
        solution = self._solution(whole, equations)
        return Solved(solution=solution, twin=part.solution(shown, solution.ridge))

    def _solution(self, whole: Projected, equations: Equations) -> Solution:
        if self.ridge is not None:
            return whole.solution(equations, self.ridge)
        spectrum = whole.spectrum()
        return spectrum.solution(equations, spectrum.cross_validated(equations.count))

    def _chosen(self, spectrum: Spectrum, equations: Equations) -> float:
        return spectrum.cross_validated(equations.count) if self.ridge is None else self.ridge


def errors_of(
    held: NormalEquations,
) -> Callable[[FloatArray, FloatArray, FloatArray], FloatArray]:
    """Return a function that gives the squared error of many fits at held-out rows.

    A constant shift of all values is forgiven, since a potential is known up to a constant.
    """
    gram, right, squares = held.gram, held.right, float(held.squares.sum())
    if held.weight > 0.0:
        centred = held.without_level()
        gram, right, squares = centred.gram, centred.right, float(centred.squares.sum())

    def errors(_: FloatArray, trends: FloatArray, weights: FloatArray) -> FloatArray:
        fits = np.concatenate([trends, weights], axis=1)
        products = np.einsum("jkm,jkm->j", fits, gram @ fits)
        return np.asarray(squares - 2.0 * np.einsum("jkm,km->j", fits, right) + products)

    return errors
