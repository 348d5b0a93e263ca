"""Descent to a mode by gradients, with second derivatives where there are any."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias, cast

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.errors import EvaluationError, NumericalError, ShapeError
from surrokit.potentials import (
    GradientPotential,
    HessianProductPotential,
    Potential,
    offers_curvatures,
    with_forward,
    with_gradient,
    with_hessian,
    with_metric,
)
from surrokit.targets.differences import gauss_newton
from surrokit.targets.functions import gradient_of_energy
from surrokit.types import FloatArray

LARGEST_HESSIAN = 500
"""Largest dimension in which a whole matrix of second derivatives is evaluated."""

ADJOINT_FROM = 32
"""Least dimension in which a search goes by the adjoint where a forward map offers that as well.

With a factor kept, a Jacobian takes a solve for each parameter and an adjoint one: in 64 dimensions
eight gradients have been measured for a Jacobian, and searches by Jacobians take a third of the
calls."""

_FLAT = 1e-10  # least curvature that scales a direction, as a part of the largest


def matrix_of(potential: Potential) -> str | None:
    """Return the name of the matrix to search with, ``gauss-newton`` or a capability, or None."""
    offered = potential.capabilities
    if goes_by_adjoint(potential):
        return None
    if has_gauss_newton(potential):
        return "gauss-newton"
    if potential.dim > LARGEST_HESSIAN:
        return None
    return next((name for name in (can.HESSIAN, can.METRIC) if name in offered), None)


def has_gauss_newton(potential: Potential) -> bool:
    """Return whether a Jacobian gives the Gauss-Newton matrix."""
    offered = potential.capabilities >= {can.FORWARD, can.JACOBIAN}
    return offered and offers_curvatures(with_forward(potential).energy)


def goes_by_adjoint(potential: Potential) -> bool:
    """Return whether Jacobians are too dear for each step of a search, where one could be had."""
    adjoint = can.VJP in potential.capabilities and potential.dim >= ADJOINT_FROM
    return adjoint and has_gauss_newton(potential)


def second_derivatives(name: str | None, potential: Potential, q: FloatArray) -> FloatArray:
    """Return the Hessian or the metric at one position; NaN where it cannot be evaluated."""
    try:
        if name == can.HESSIAN:
            return np.asarray(with_hessian(potential).hessian(q[None])[0])
        return np.asarray(with_metric(potential).metric(q[None])[0])
    except EvaluationError:
        return np.full((len(q), len(q)), np.nan)


def gauss_newton_at(potential: Potential, q: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Return value, gradient and Gauss-Newton matrix from one Jacobian."""
    target = with_forward(potential)
    outputs, jacobian = target.forward_and_jacobian(q[None])
    values, gradients = gradient_of_energy(target.energy, outputs, jacobian, q[None])
    return (
        float(values[0]),
        gradients[0],
        gauss_newton(target.energy, outputs, jacobian, q[None])[0],
    )


def newton_decrement(hessian: FloatArray, gradient: FloatArray) -> float | None:
    """Return g^T H^-1 g / 2; None where H is not positive definite."""
    try:
        half = np.linalg.solve(np.linalg.cholesky(hessian), gradient)
    except np.linalg.LinAlgError:
        return None
    return 0.5 * float(half @ half)


def scaling(matrix: FloatArray) -> FloatArray:
    """Return T with T^T |matrix| T = identity; the scale of flat directions is bounded."""
    eigenvalues, vectors = np.linalg.eigh(matrix)
    sizes = np.abs(eigenvalues)
    largest = float(sizes.max())
    if largest == 0.0:
        return np.eye(len(matrix))
    return np.asarray(vectors / np.sqrt(np.maximum(sizes, _FLAT * largest)))


@attrs.frozen(kw_only=True, eq=False)
class Mode:
    """The position of least potential that a search found.

    Parameters
    ----------
    position : ndarray of shape (dim,)
        The position.
    value : float
        The potential there, in nats.
    gradient : ndarray of shape (dim,)
        Its gradient there.
    decrement : float or None
        g^T H^-1 g / 2, the nats that one more Newton step would gain; None where no positive
        definite matrix is known.
    hessian : ndarray of shape (dim, dim) or None
        Second derivatives there, or the Gauss-Newton or Fisher matrix in place of them.
    converged : bool
        Whether the search ended because there was nothing left to gain.
    calls : int
        Evaluations paid for, each of value and gradient or of second derivatives.
    """

    position: FloatArray
    value: float
    gradient: FloatArray
    decrement: float | None
    hessian: FloatArray | None
    converged: bool
    calls: int


@attrs.frozen(kw_only=True, eq=False)
class Point:
    """A position that has been paid for.

    Parameters
    ----------
    position : ndarray of shape (dim,)
        The position.
    value : float
        The potential there; infinite where it is not finite or cannot be evaluated.
    gradient : ndarray of shape (dim,)
        Its gradient; NaN where it cannot be evaluated.
    gauss_newton : ndarray of shape (dim, dim) or None
        The Gauss-Newton matrix, where a Jacobian was paid for.
    """

    position: FloatArray
    value: float
    gradient: FloatArray
    gauss_newton: FloatArray | None

    @property
    def finite(self) -> bool:
        """Whether potential and gradient are finite."""
        return bool(np.isfinite(self.value) and np.isfinite(self.gradient).all())


def evaluate(potential: GradientPotential, position: FloatArray, *, gauss_newton: bool) -> Point:
    """Pay for a position (dim,): for its Jacobian to have the Gauss-Newton matrix, else less."""
    matrix: FloatArray | None = None
    with np.errstate(all="ignore"):
        try:
            if gauss_newton:
                value, gradient, matrix = gauss_newton_at(potential, position)
            else:
                values, gradients = potential.value_and_gradient(position[None])
                value, gradient = float(values[0]), gradients[0]
        except EvaluationError:
            value, gradient = np.inf, np.full(len(position), np.nan)
    return Point(
        position=position,
        value=value if np.isfinite(value) else np.inf,
        gradient=np.asarray(gradient, dtype=np.float64),
        gauss_newton=matrix,
    )


@attrs.frozen(kw_only=True, eq=False)
class Scales:
    """What is known of the covariance of the mass before a search for the mode.

    Parameters
    ----------
    covariance : ndarray of shape (dim, dim)
        Positive definite.
    least : float, optional
        The potential in nats to which the search may come down, of a mode that is known. Its first
        step then goes as far as a quadratic of such a covariance would have to.
    """

    covariance: FloatArray
    least: float | None = None

    def root(self, value: float, gradient: FloatArray) -> FloatArray:
        """Return a square root, shape (dim, dim), in which a first step of length 1 is of use.

        Parameters
        ----------
        value : float
            The potential where the search begins.
        gradient : ndarray of shape (dim,)
            Its gradient there.
        """
        root = np.asarray(np.linalg.cholesky(self.covariance))
        if self.least is None or not value > self.least:
            return root
        with np.errstate(over="ignore"):  # far from a mode
            slope = float(np.linalg.norm(root.T @ gradient))
        step = 2.0 * (value - self.least) / slope if slope > 0.0 else 1.0
        return root * step if 0.0 < step < np.inf else root


MOST = 8
"""Evaluations along one line at most."""

STEEPER = 2.0
"""Times that the slope at one point must be that at the next, for their drop to tell a quadratic
from an exponential."""

OFF = 0.05
"""Part of the drop by which an exponential may miss it."""

INSIDE = 0.1
"""Part of a bracket that the next point keeps away from both its ends."""


@attrs.frozen(kw_only=True)
class Height:
    """The potential at a point of a line.

    Parameters
    ----------
    way
        How far along the line.
    value, slope
        The potential in nats and its derivative along the line; both infinite where the potential
        cannot be evaluated, so that the line ends before.
    """

    way: float
    value: float
    slope: float


Line: TypeAlias = Callable[[float], Height]
"""The potential as far along a line as told."""


def slide(line: Line, start: Height, *, level: float) -> int:
    """Evaluate a potential along a line, down to where it no longer falls exponentially.

    The first evaluation is at 1. More follow only if an exponential explains it better than a
    quadratic does.

    Parameters
    ----------
    line
        What evaluates, and keeps what it has seen.
    start
        At 0, where the potential falls along the line.
    level
        Nats that are not worth another evaluation.

    Returns
    -------
    int
        How many evaluations there were.
    """
    lower = line(1.0)
    rate = rate_between(start, lower)
    upper: Height | None = None
    for paid in range(1, MOST):
        if rate is None:
            return paid
        way = _beyond(lower, rate, level) if upper is None else _between(lower, upper, rate, level)
        if way is None:
            return paid
        point = line(way)
        if point.slope >= 0.0:
            upper = point
        else:
            before, lower = lower, point
            rate = rate_between(before, lower) if upper is None else rate
    return MOST


def rate_between(start: Height, end: Height) -> float | None:
    """Return the rate at which a potential falls exponentially between two points of a line.

    None where a quadratic explains the difference of the potentials better, or slopes are too much
    alike to tell. The mean slope is the arithmetic one of a quadratic's, and the logarithmic one of
    an exponential's.
    """
    if not (
        -math.inf < start.slope < 0.0 and end.slope < 0.0 and start.slope < STEEPER * end.slope
    ):
        return None
    width, drop = end.way - start.way, start.value - end.value
    rate = math.log(start.slope / end.slope) / width
    if not (rate > 0.0 and math.isfinite(drop)):
        return None
    exponential = (end.slope - start.slope) / rate
    quadratic = -0.5 * width * (start.slope + end.slope)
    off = abs(drop - exponential)
    return rate if off < min(abs(drop - quadratic), OFF * exponential) else None


def _beyond(lower: Height, rate: float, level: float) -> float | None:
    """Return where an exponential is within a level of its end; None if it nearly is."""
    left = -lower.slope / rate
    return lower.way + math.log(left / level) / rate if left > 2.0 * level else None


def _between(lower: Height, upper: Height, rate: float, level: float) -> float | None:
    """Return where an exponential and a line, which make slopes of both signs, are least together.

    None if they are there within a level of the lower point's potential.
    """
    width = upper.way - lower.way
    if math.isinf(upper.slope):
        return lower.way + 0.5 * width
    falling = (upper.slope - lower.slope) / -math.expm1(-rate * width)
    rising = lower.slope + falling
    if not rising > 0.0:
        return None
    step = math.log(falling / rising) / rate
    gain = -(rising * step + falling * math.expm1(-rate * step) / rate)
    if gain <= level:
        return None
    return lower.way + min(max(step, INSIDE * width), (1.0 - INSIDE) * width)


Until: TypeAlias = Callable[[FloatArray, float, FloatArray], bool]
"""Tells from a position (dim,), the potential and its gradient there whether a search may end."""

STEADY = 3
"""Iterations in a row that gain less than the tolerance, before a search without matrices ends."""
_GROWS = 2.0  # times the gain before it, a gain on the way along a valley, which gets faster
_FAINT = 1e-6  # of the tolerance, gains that may be rounding
_ROUNDING = 4 * np.finfo(float).eps  # part of a potential that no two sums of it need agree in


class Enough(Exception):  # noqa: N818 - not an error
    """The search has converged, or may pay for no more."""


class Way:
    """What a search down to a mode has paid for, and the best of it.

    Parameters
    ----------
    potential
        One with capability ``gradient``.
    max_calls
        Evaluations at most.
    tolerance
        Nats that are not worth going on for.
    until
        Called with each finite position that is paid for; the search ends where it returns True.

    Attributes
    ----------
    calls
        Evaluations so far.
    best
        The one of least potential; None before the first.
    converged
        Whether there is no more to gain.
    matrix
        What second derivatives are made of; None where there are none.
    """

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
        self.last_value = np.inf
        self.last_gain = 0.0
        self.same = 0  # evaluations in a row that are the best value but for rounding
        self.matrix = matrix_of(potential)

    def at(self, position: FloatArray) -> Point:
        """Return the evaluation at a position; the first, best and last are not paid for again.

        :class:`Enough` ends the search if no more calls may be made, or ``until`` ends the search.
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
            raise Enough
        return point

    def _seen_enough(self, point: Point) -> bool:
        if self.until is None or not point.finite:
            return False
        return self.until(point.position, point.value, point.gradient)

    def matrix_at(self, point: Point) -> FloatArray | None:
        """Return second derivatives at the best point; None at any other, which the search leaves.

        :class:`Enough` ends the search if a Newton step would gain less than the tolerance, the
        matrix is not finite, or no more calls may be made.
        """
        if point is not self.best:
            return None
        if self.hessian is None:
            matrix = point.gauss_newton
            if matrix is None:
                self._pay()
                matrix = second_derivatives(self.matrix, self.potential, point.position)
            if not np.isfinite(matrix).all():
                raise Enough
            self.hessian = 0.5 * (matrix + matrix.T)
            self.decrement = newton_decrement(self.hessian, point.gradient)
            if self.decrement is not None and self.decrement < self.tolerance:
                self.converged = True
                raise Enough
        return self.hessian

    def product(self, q: FloatArray, vector: FloatArray) -> FloatArray:
        """Return the Hessian times a vector."""
        self._pay()
        potential = cast(HessianProductPotential, self.potential)
        return np.asarray(potential.hessian_product(q[None], vector[None])[0])

    def note_iteration(self, value: float) -> None:
        """Take note of the value at the end of an iteration.

        :class:`Enough` ends the search if several in a row gained less than the tolerance. One
        does not count that gained far more than the one before it: where a valley is long, steps
        along it begin small, and each is longer than the last.
        """
        gain = self.last_value - value
        if gain >= self.tolerance:
            self.steady = 0
        elif not gain > max(_GROWS * self.last_gain, _FAINT * self.tolerance):
            self.steady += 1
        self.last_value, self.last_gain = value, gain
        if self.steady == STEADY:
            self.converged = True
            raise Enough

    def note_rounding(self) -> None:
        """Take note of an evaluation that rounding may not tell from the best.

        :class:`Enough` ends the search if several in a row were such.
        """
        if self.same >= STEADY:
            self.converged = True
            raise Enough

    def look_around(self) -> None:
        """Pay for the Gauss-Newton matrix where a search by the adjoint has converged.

        :class:`Enough` ends the search if no more calls may be made, or the matrix is of no use.
        """
        if self.converged and goes_by_adjoint(self.potential):
            assert self.best is not None
            self._pay()
            self.matrix = "gauss-newton"
            point = self._evaluate(self.best.position)
            self.best = point if point.finite else self.best
            self.matrix_at(point)

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
            raise Enough
        self.calls += 1

    def _evaluate(self, position: FloatArray) -> Point:
        return evaluate(self.potential, position, gauss_newton=self.matrix == "gauss-newton")


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
