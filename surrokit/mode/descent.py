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
from typing import Any, TypeAlias, cast

import numpy as np

from surrokit import capabilities as can
from surrokit.contracts.matrices import HessianProductPotential
from surrokit.contracts.potential import Potential, with_gradient
from surrokit.errors import NumericalError, ShapeError
from surrokit.mode.mode import Mode
from surrokit.mode.point import Point, evaluate
from surrokit.mode.scales import Scales
from surrokit.mode.second_derivatives import (
    goes_by_adjoint,
    matrix_of,
    newton_decrement,
    scaling,
    second_derivatives,
)
from surrokit.mode.slide import Height, slide
from surrokit.types import FloatArray

Until: TypeAlias = Callable[[FloatArray, float, FloatArray], bool]
"""Tells from a position (dim,), the potential and its gradient there whether a search may end."""

TOLERANCE = 1e-3
"""Nats above the mode at which a search may end: 0.045 standard deviations away."""

_STEADY = 3
"""Iterations in a row that gain less than the tolerance, before a search without matrices ends."""
_ROUNDING = 4 * np.finfo(float).eps  # part of a potential that no two sums of it need agree in
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
    search = _Search(potential, max_calls, tolerance, until)
    try:
        if not search.at(start).finite:
            raise NumericalError(
                "the potential or its gradient is not finite at the start of the search for a "
                "mode; start where it can be evaluated"
            )
        if search.matrix is not None:
            _trust_region(search, start)
        elif can.HESSIAN_PRODUCT in potential.capabilities:
            _trust_region_of_products(search, start)
        else:
            _quasi_newton(search, start, scales, leaps=leaps)
    except _Enough:
        pass
    with suppress(_Enough):
        search.look_around()
    return search.mode()


class _Enough(Exception):  # noqa: N818 - not an error
    """The search has converged, or may pay for no more."""


class _Outside(Exception):  # noqa: N818 - not an error
    """The potential is not finite where the search went."""

    def __init__(self, step: FloatArray) -> None:
        super().__init__()
        self.step = step


class _Search:
    """The evaluations of a search, and the best of them."""

    def __init__(
        self, potential: Potential, max_calls: int, tolerance: float, until: Until | None
    ) -> None:
        self.potential = with_gradient(potential)
        self.until = until
        self.max_calls = max_calls
        self.tolerance = tolerance
        self.calls = 0
        self.first: Point | None = None
        self.best: Point | None = None
        self.last: Point | None = None
        self.hessian: FloatArray | None = None  # at the best
        self.decrement: float | None = None
        self.converged = False
        self.steady = 0
        self.same = 0  # evaluations in a row that are the best value but for rounding
        self.matrix = matrix_of(potential)

    def at(self, position: FloatArray) -> Point:
        """Return the evaluation at a position; the first, best and last are not paid for again.

        Raises
        ------
        _Enough
            If no more calls may be made, or ``until`` ends the search.
        """
        for point in (self.last, self.best, self.first):
            if point is not None and np.array_equal(point.position, position):
                return point
        self._pay()
        point = self.last = self._evaluate(np.array(position))
        self.first = self.first or point
        if self.best is not None:
            same = abs(point.value - self.best.value) <= _ROUNDING * abs(self.best.value)
            self.same = self.same + 1 if same else 0
        if point.finite and (self.best is None or point.value < self.best.value):
            self.best, self.hessian, self.decrement = point, None, None
        if self._seen_enough(point):
            raise _Enough
        return point

    def _seen_enough(self, point: Point) -> bool:
        if self.until is None or not point.finite:
            return False
        return self.until(point.position, point.value, point.gradient)

    def matrix_at(self, point: Point) -> FloatArray | None:
        """Return second derivatives at the best point; None at any other, which the search leaves.

        Raises
        ------
        _Enough
            If a Newton step would gain less than the tolerance, the matrix is not finite, or no
            more calls may be made.
        """
        if point is not self.best:
            return None
        if self.hessian is None:
            matrix = point.gauss_newton
            if matrix is None:
                self._pay()
                matrix = second_derivatives(self.matrix, self.potential, point.position)
            if not np.isfinite(matrix).all():
                raise _Enough
            self.hessian = 0.5 * (matrix + matrix.T)
            self.decrement = newton_decrement(self.hessian, point.gradient)
            if self.decrement is not None and self.decrement < self.tolerance:
                self.converged = True
                raise _Enough
        return self.hessian

    def product(self, q: FloatArray, vector: FloatArray) -> FloatArray:
        """Return the Hessian times a vector."""
        self._pay()
        potential = cast(HessianProductPotential, self.potential)
        return np.asarray(potential.hessian_product(q[None], vector[None])[0])

    def note_iteration(self, value: float) -> None:
        """Take note of the value at the end of an iteration.

        Raises
        ------
        _Enough
            If several iterations in a row gained less than the tolerance.
        """
        self.steady = self.steady + 1 if self.last_value - value < self.tolerance else 0
        self.last_value = value
        if self.steady == _STEADY:
            self.converged = True
            raise _Enough

    def look_around(self) -> None:
        """Pay for the Gauss-Newton matrix where a search by the adjoint has converged.

        Raises
        ------
        _Enough
            If no more calls may be made, or the matrix is of no use.
        """
        if self.converged and goes_by_adjoint(self.potential):
            assert self.best is not None
            self._pay()
            self.matrix = "gauss-newton"
            point = self._evaluate(self.best.position)
            self.best = point if point.finite else self.best
            self.matrix_at(point)

    last_value = np.inf

    @property
    def lowest(self) -> FloatArray:
        """The best position so far, shape (dim,)."""
        assert self.best is not None
        return self.best.position

    def mode(self) -> Mode:
        """Return the best position so far."""
        assert self.best is not None
        return Mode(
            position=self.best.position,
            value=self.best.value,
            gradient=self.best.gradient,
            decrement=self.decrement,
            hessian=self.hessian,
            converged=self.converged,
            calls=self.calls,
        )

    def _pay(self) -> None:
        if self.calls >= self.max_calls:
            raise _Enough
        self.calls += 1

    def _evaluate(self, position: FloatArray) -> Point:
        return evaluate(self.potential, position, gauss_newton=self.matrix == "gauss-newton")


def _trust_region(search: _Search, start: FloatArray) -> None:
    """Run Newton's method in the coordinates in which the first matrix is the identity."""
    from scipy.optimize import minimize

    first = search.at(start)
    matrix = search.matrix_at(first)
    assert matrix is not None
    turn = scaling(matrix)

    def fun(y: FloatArray) -> float:
        return search.at(start + turn @ y).value

    def jac(y: FloatArray) -> FloatArray:
        point = search.at(start + turn @ y)
        return turn.T @ point.gradient if point.finite else np.ones_like(y)

    def hess(y: FloatArray) -> FloatArray:
        matrix = search.matrix_at(search.at(start + turn @ y))
        # the search never moves to a position that does not lower the potential
        return np.eye(len(y)) if matrix is None else turn.T @ matrix @ turn

    radius = max(1.0, 1.01 * float(np.linalg.norm(turn.T @ first.gradient)))
    options = {
        "initial_trust_radius": radius,
        "max_trust_radius": 1e6 * radius,
        "gtol": 0.0,
        "maxiter": search.max_calls,
    }
    _quietly(
        minimize, fun, np.zeros_like(start), jac, hess=hess, method="trust-exact", options=options
    )


def _trust_region_of_products(search: _Search, start: FloatArray) -> None:
    from scipy.optimize import minimize

    def fun(q: FloatArray) -> float:
        return search.at(q).value

    def jac(q: FloatArray) -> FloatArray:
        point = search.at(q)
        return point.gradient if point.finite else np.ones_like(q)

    _quietly(
        minimize,
        fun,
        start,
        jac,
        hessp=search.product,
        method="trust-ncg",
        callback=lambda q: search.note_iteration(search.at(q).value),
        options={"gtol": 0.0, "maxiter": search.max_calls},
    )


def _quasi_newton(
    search: _Search, start: FloatArray, scales: Scales | None, *, leaps: bool
) -> None:
    """Run L-BFGS in a box that keeps it where the potential is finite."""
    from scipy.optimize import minimize

    half, at = np.inf, start
    root = _root(search.at(at), scales)
    unit: FloatArray | None

    def place(y: FloatArray) -> FloatArray:
        if unit is not None and np.allclose(y, unit, rtol=_ROUNDED, atol=_ROUNDED):
            y = unit  # SciPy's first step, which has been paid for
        return np.asarray(at + root @ y)

    def fun(y: FloatArray) -> tuple[float, FloatArray]:
        position = place(y)
        if not leaps and (times := _leap(start, search.lowest, position)) > 1.0:
            here = np.linalg.solve(root, search.lowest - at)
            raise _Outside(here + (y - here) / times)
        point = search.at(position)
        if not point.finite:
            raise _Outside(y)
        if search.same >= _STEADY:
            search.converged = True
            raise _Enough
        return point.value, root.T @ point.gradient

    def note(y: FloatArray) -> None:
        search.note_iteration(search.at(place(y)).value)

    unit = _first_step(root.T @ search.at(at).gradient)
    if _slide_along(fun, unit, level=len(start)) > 1:
        at, unit = search.lowest, None
        root = _root(search.at(at), scales)
    while True:
        try:
            search.converged = _quietly(
                minimize,
                fun,
                np.zeros_like(start),
                True,
                method="L-BFGS-B",
                bounds=None if np.isinf(half) else np.full((len(start), 2), [-half, half]),
                callback=note,
                options={"maxcor": _MEMORY, "maxfun": search.max_calls, "ftol": 0.0, "gtol": 0.0},
            )
        except _Outside as met:
            at, before = search.lowest, at
            away = np.linalg.solve(root, at - before)
            half = _SHORTER * float(np.abs(met.step - away).max())
            continue
        at, before = search.lowest, at
        if np.abs(np.linalg.solve(root, at - before)).max() < half:  # not at an edge of the box
            return
        search.converged = False


def _root(first: Point, scales: Scales | None) -> FloatArray:
    """Return the matrix (dim, dim) of coordinates in which the first step of L-BFGS is 1 long."""
    if scales is None:
        return np.eye(len(first.position))
    return scales.root(first.value, first.gradient)


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
