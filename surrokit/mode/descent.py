"""The way down to a mode by SciPy's optimisers, with the derivatives that a potential offers.

With second derivatives the search is Newton's method in a trust region. A forward map's
Gauss-Newton matrix takes their place, since its Jacobian gives that without further calls; in many
dimensions, where an adjoint gives gradients for a fraction of a Jacobian, only where the search
ends. With gradients alone the search is L-BFGS. Positions are evaluated one at a time through the
potential, so that a recording potential counts and keeps them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from surrokit import capabilities as can
from surrokit.contracts.potential import Potential
from surrokit.errors import NumericalError, ShapeError
from surrokit.mode.mode import Mode
from surrokit.mode.scales import Scales
from surrokit.mode.steps.second_derivatives import scaling
from surrokit.mode.steps.slide import Height, slide
from surrokit.mode.way import Enough, Until, Way
from surrokit.types import FloatArray

TOLERANCE = 1e-3
"""Nats above the mode at which a search may end: 0.045 standard deviations away."""

_MEMORY = 30  # corrections that L-BFGS keeps: cheap beside an evaluation
_LEAP = 10.0  # times the way so far, and one at least, a step that is too long for rough gradients
_ROUNDED = 1e-12  # what SciPy's arithmetic may differ by from ours, where a step has length 1
_SHORTER = 0.5  # part of the way to a position that is not finite, as far as the next step may go


def descend(
    potential: Potential,
    start: FloatArray,
    *,
    max_calls: int = 200,
    tolerance: float = TOLERANCE,
    until: Until | None = None,
    scales: Scales | None = None,
    leaps: bool = True,
) -> Mode:
    """Go down to the position of least potential near a start, by gradients whatever they cost.

    The search steps back from a position that cannot be evaluated or whose potential is not
    finite. One search sees one mode. For a potential whose evaluations count, see
    :func:`~surrokit.mode.search.find_mode`.

    Parameters
    ----------
    potential
        One with capability ``gradient``.
    start : ndarray of shape (dim,)
        A position where potential and gradient are finite.
    max_calls
        Evaluations after which the best position so far is returned.
    tolerance
        Nats; the search ends where a Newton step would gain less, or iterations of L-BFGS do.
    until
        Called with each finite position (dim,) that is paid for, the potential and its gradient
        there; the search ends where it returns True.
    scales
        What is known of the covariance of the mass; a search by gradients alone goes in coordinates
        in which that is the identity. Where there are matrices it is not needed.
    leaps
        Whether a step of L-BFGS may be many times as long as the way so far. Where gradients are
        rough such a step is their error, and leads to where a solver may not come back.

    Returns
    -------
    Mode
        The best position seen, converged or not.

    Raises
    ------
    CapabilityError
        If the potential has no gradient.
    NumericalError
        If the potential or its gradient is not finite at the start.
    ShapeError
        If ``start`` is not one position.
    """
    start = np.array(start, dtype=np.float64)
    if start.shape != (potential.dim,):
        raise ShapeError(
            f"start must be one position of shape ({potential.dim},), got {start.shape}; pass the "
            "best of several starts"
        )
    way = Way(potential, max_calls, tolerance, until)
    try:
        if not way.at(start).finite:
            raise NumericalError(
                "the potential or its gradient is not finite at the start of the search for a "
                "mode; start where it can be evaluated"
            )
        if way.matrix is not None:
            _go_by_matrices(way, start)
        elif can.HESSIAN_PRODUCT in potential.capabilities:
            _trust_region_of_products(way, start)
        else:
            _QuasiNewton(way, start, scales, leaps=leaps).run()
    except Enough:
        pass
    with suppress(Enough):
        way.look_around()
    return way.mode()


class _Outside(Exception):  # noqa: N818 - not an error
    """The potential is not finite where the search went."""

    def __init__(self, step: FloatArray) -> None:
        super().__init__()
        self.step = step


class _Flat(Exception):  # noqa: N818 - not an error
    """The potential has no curvature at all, of which SciPy's Newton's method makes no step."""


def _go_by_matrices(way: Way, start: FloatArray) -> None:
    """Run Newton's method, or where there is no curvature, L-BFGS from there on."""
    try:
        _trust_region(way, start)
    except _Flat:
        at = way.lowest
        if way.at(at).gradient.any():
            _QuasiNewton(way, at, None, leaps=True).run()
        else:
            way.converged = True


def _trust_region(way: Way, start: FloatArray) -> None:
    """Run Newton's method in the coordinates in which the first matrix is the identity."""
    from scipy.optimize import minimize

    first = way.at(start)
    matrix = way.matrix_at(first)
    assert matrix is not None
    if not matrix.any():
        raise _Flat
    turn = scaling(matrix)

    def fun(y: FloatArray) -> float:
        return way.at(start + turn @ y).value

    def jac(y: FloatArray) -> FloatArray:
        point = way.at(start + turn @ y)
        return turn.T @ point.gradient if point.finite else np.ones_like(y)

    def hess(y: FloatArray) -> FloatArray:
        matrix = way.matrix_at(way.at(start + turn @ y))
        # the search never moves to a position that does not lower the potential
        if matrix is None:
            return np.eye(len(y))
        turned = turn.T @ matrix @ turn
        if not turned.any():
            raise _Flat
        return turned

    radius = max(1.0, 1.01 * float(np.linalg.norm(turn.T @ first.gradient)))
    options = {
        "initial_trust_radius": radius,
        "max_trust_radius": 1e6 * radius,
        "gtol": 0.0,
        "maxiter": way.max_calls,
    }
    _quietly(
        minimize, fun, np.zeros_like(start), jac, hess=hess, method="trust-exact", options=options
    )


def _trust_region_of_products(way: Way, start: FloatArray) -> None:
    from scipy.optimize import minimize

    def fun(q: FloatArray) -> float:
        return way.at(q).value

    def jac(q: FloatArray) -> FloatArray:
        point = way.at(q)
        return point.gradient if point.finite else np.ones_like(q)

    _quietly(
        minimize,
        fun,
        start,
        jac,
        hessp=way.product,
        method="trust-ncg",
        callback=lambda q: way.note_iteration(way.at(q).value),
        options={"gtol": 0.0, "maxiter": way.max_calls},
    )


class _QuasiNewton:
    """L-BFGS in a box that keeps it where the potential is finite."""

    def __init__(self, way: Way, start: FloatArray, scales: Scales | None, *, leaps: bool) -> None:
        self._way, self._start, self._scales, self._leaps = way, start, scales, leaps
        self._half = np.inf
        self._go_on_from(start)
        self._unit: FloatArray | None = _first_step(self._root.T @ way.at(start).gradient)

    def run(self) -> None:
        """Go down until there is no more to gain."""
        assert self._unit is not None
        if _slide_along(self._evaluate, self._unit, level=len(self._start)) > 1:
            self._go_on_from(self._way.lowest)
            self._unit = None
        while not self._has_ended():
            pass

    def _has_ended(self) -> bool:
        """Return whether SciPy's search ended within its box; if not, there is another about it."""
        try:
            self._way.converged = self._minimize()
        except _Outside as met:
            away = self._move_to_lowest()
            self._half = _SHORTER * float(np.abs(met.step - away).max())
            return False
        if np.abs(self._move_to_lowest()).max() < self._half:  # not at an edge of the box
            return True
        self._way.converged = False
        return False

    def _minimize(self) -> bool:
        from scipy.optimize import minimize

        dim, most = len(self._start), self._way.max_calls
        return _quietly(
            minimize,
            self._evaluate,
            np.zeros(dim),
            True,
            method="L-BFGS-B",
            bounds=None if np.isinf(self._half) else [(-self._half, self._half)] * dim,
            callback=lambda y: self._way.note_iteration(self._way.at(self._place(y)).value),
            options={"maxcor": _MEMORY, "maxfun": most, "ftol": 0.0, "gtol": 0.0},
        )

    def _evaluate(self, y: FloatArray) -> tuple[float, FloatArray]:
        position = self._place(y)
        lowest = self._way.lowest
        if not self._leaps and (times := _leap(self._start, lowest, position)) > 1.0:
            here = np.linalg.solve(self._root, lowest - self._at)
            raise _Outside(here + (y - here) / times)
        point = self._way.at(position)
        if not point.finite:
            raise _Outside(y)
        self._way.note_rounding()
        return point.value, self._root.T @ point.gradient

    def _place(self, y: FloatArray) -> FloatArray:
        """Return the position (dim,) of a step in the coordinates of the search."""
        if self._unit is not None and np.allclose(y, self._unit, rtol=_ROUNDED, atol=_ROUNDED):
            y = self._unit  # SciPy's first step, which has been paid for
        return np.asarray(self._at + self._root @ y)

    def _go_on_from(self, position: FloatArray) -> None:
        """Take coordinates in which the first step of L-BFGS from a position is 1 long."""
        first, self._at = self._way.at(position), position
        if self._scales is None:
            self._root = np.eye(len(position))
        else:
            self._root = self._scales.root(first.value, first.gradient)

    def _move_to_lowest(self) -> FloatArray:
        """Go on about the best position, in the same coordinates; return the step to it (dim,)."""
        before, self._at = self._at, self._way.lowest
        return np.asarray(np.linalg.solve(self._root, self._at - before))


def _first_step(slope: FloatArray) -> FloatArray:
    """Return the step (dim,) that L-BFGS takes first."""
    with np.errstate(over="ignore"):  # far from a mode
        norm = float(np.sqrt(slope @ slope))
    return (1.0 / norm) * -slope if 0.0 < norm < np.inf else np.zeros_like(slope)


def _slide_along(
    fun: Callable[[FloatArray], tuple[float, FloatArray]], unit: FloatArray, *, level: float
) -> int:
    """Return how many evaluations were made along a direction (dim,), one at least."""

    def height(way: float) -> Height:
        try:
            value, slope = fun(way * unit)
        except _Outside:
            return Height(way=way, value=np.inf, slope=np.inf)
        return Height(way=way, value=value, slope=float(slope @ unit))

    return slide(height, height(0.0), level=level)


def _leap(start: FloatArray, here: FloatArray, position: FloatArray) -> float:
    """Return how many times a step from here (dim,) is longer than the longest that may be."""
    way = max(1.0, float(np.abs(here - start).max()))
    return float(np.abs(position - here).max()) / (_LEAP * way)


def _quietly(
    minimize: Callable[..., Any], fun: object, x0: FloatArray, jac: object, **how: object
) -> bool:
    """Return whether SciPy found a minimum, without its warning that precision was lacking."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        return bool(minimize(fun, x0, jac=jac, **how).success)
