"""Descent to a mode by gradients, and second derivatives where there are any.

It is SciPy's: Newton's method in a trust region with a matrix of second derivatives, the same by
conjugate gradients with products of the Hessian, else L-BFGS.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, cast

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.errors import EvaluationError, NumericalError, ShapeError
from surrokit.mode.hill import slide
from surrokit.potentials import (
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

TOLERANCE = 1e-3
"""Nats above the mode at which a search may end: 0.045 standard deviations away."""

STEADY = 3
"""Iterations in a row that gain less than the tolerance, before a search without matrices ends."""

_FLAT = 1e-10  # least curvature that scales a direction, as a part of the largest
_GROWS = 2.0  # times the gain before it, a gain on the way along a valley, which gets faster
_FAINT = 1e-6  # of the tolerance, gains that may be rounding
_ROUNDING = 4 * np.finfo(float).eps  # part of a potential that no two sums of it need agree in
_MEMORY = 30  # corrections that L-BFGS keeps: cheap beside an evaluation
_LEAP = 10.0  # times the way so far, and one at least, a step that is too long for rough gradients

_ROUNDED = 1e-12  # what SciPy's arithmetic may differ by from ours, where a step has length 1

Until: TypeAlias = Callable[[FloatArray, float, FloatArray], bool]
"""Tells from a position (dim,), the potential and its gradient there whether a search may end."""


@attrs.frozen(kw_only=True, eq=False)
class Mode:
    """The position of least potential that a search found.

    Parameters
    ----------
    position : ndarray of shape (dim,)
    value : float
        The potential there, in nats.
    gradient : ndarray of shape (dim,)
    decrement : float or None
        g^T H^-1 g / 2, the nats that one more Newton step would gain; None where no positive
        definite matrix is known.
    hessian : ndarray of shape (dim, dim) or None
        Second derivatives there, or the Gauss-Newton or Fisher matrix in place of them.
    converged : bool
        Whether the search ended because there was nothing left to gain.
    calls : int
        Evaluations, each of value and gradient or of second derivatives.
    """

    position: FloatArray
    value: float
    gradient: FloatArray
    decrement: float | None
    hessian: FloatArray | None
    converged: bool
    calls: int


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
        """Return a square root (dim, dim) in which a first step of length 1 is of use.

        ``value`` and ``gradient (dim,)`` are those where the search begins.
        """
        root = np.asarray(np.linalg.cholesky(self.covariance))
        if self.least is None or not value > self.least:
            return root
        with np.errstate(over="ignore"):  # far from a mode
            slope = float(np.linalg.norm(root.T @ gradient))
        step = 2.0 * (value - self.least) / slope if slope > 0.0 else 1.0
        return root * step if 0.0 < step < np.inf else root


# --- second derivatives ---


def matrix_of(potential: Potential) -> str | None:
    """Return the name of the matrix to search with, ``gauss-newton`` or a capability, or None."""
    if goes_by_adjoint(potential):
        return None
    if has_gauss_newton(potential):
        return "gauss-newton"
    if potential.dim > LARGEST_HESSIAN:
        return None
    offered = potential.capabilities
    return next((name for name in (can.HESSIAN, can.METRIC) if name in offered), None)


def has_gauss_newton(potential: Potential) -> bool:
    """Return whether a Jacobian gives the Gauss-Newton matrix."""
    offered = potential.capabilities >= {can.FORWARD, can.JACOBIAN}
    return offered and offers_curvatures(with_forward(potential).energy)


def goes_by_adjoint(potential: Potential) -> bool:
    """Return whether Jacobians are too expensive for each step, where one could be evaluated."""
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
    return np.asarray(vectors / np.sqrt(np.maximum(sizes, _FLAT * float(sizes.max()))))


# --- what a search has evaluated ---


class _Enough(Exception):  # noqa: N818 - not an error
    """The search has converged, or may evaluate no more."""


class _Flat(Exception):  # noqa: N818 - not an error
    """The potential has no curvature at all, of which Newton's method makes no step."""


@attrs.frozen(eq=False)
class _Point:
    position: FloatArray
    value: float  # infinite where it is not finite or cannot be evaluated
    gradient: FloatArray
    matrix: FloatArray | None  # Gauss-Newton, where a Jacobian was evaluated

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.value) and np.isfinite(self.gradient).all())


class _Trail:
    """What a search has evaluated, the best of it, and when it may end."""

    def __init__(
        self, potential: Potential, max_calls: int, tolerance: float, until: Until | None
    ) -> None:
        self.potential, self.matrix = with_gradient(potential), matrix_of(potential)
        self.max_calls, self.tolerance, self.until = max_calls, tolerance, until
        self.calls = 0
        self.converged = False
        self.best: _Point | None = None
        self.first: _Point | None = None  # where the present line begins
        self.hessian: FloatArray | None = None  # at the best
        self.decrement: float | None = None
        self._last: _Point | None = None
        self._value, self._gain = np.inf, 0.0  # of the last iteration
        self._steady = self._same = 0  # iterations of no gain, values that rounding may tell apart

    def at(self, position: FloatArray) -> _Point:
        """Return the evaluation at a position (dim,); that of the best and last one is at hand."""
        for point in (self._last, self.best, self.first):
            if point is not None and np.array_equal(point.position, position):
                return point
        self.count()
        matrix, value, gradient = None, np.inf, np.full(len(position), np.nan)
        with np.errstate(all="ignore"):
            try:
                if self.matrix == "gauss-newton":
                    target, at = with_forward(self.potential), position[None]
                    outputs, jacobian = target.forward_and_jacobian(at)
                    values, slopes = gradient_of_energy(target.energy, outputs, jacobian, at)
                    matrix = gauss_newton(target.energy, outputs, jacobian, at)[0]
                else:
                    values, slopes = self.potential.value_and_gradient(position[None])
                value, gradient = float(values[0]), np.asarray(slopes[0], dtype=np.float64)
            except EvaluationError:
                pass
        point = _Point(
            np.array(position), value if np.isfinite(value) else np.inf, gradient, matrix
        )
        return self._note(point)

    def _note(self, point: _Point) -> _Point:
        self._last, best = point, self.best
        if best is not None:
            same = abs(point.value - best.value) <= _ROUNDING * abs(best.value)
            self._same = self._same + 1 if same else 0
        if not point.finite:
            return point
        if best is None or point.value < best.value:
            self.best, self.hessian, self.decrement = point, None, None
        if self.until is not None and self.until(point.position, point.value, point.gradient):
            raise _Enough
        return point

    def count(self) -> None:
        """Count one more evaluation; the search ends if there may be none."""
        if self.calls >= self.max_calls:
            raise _Enough
        self.calls += 1

    def matrix_at(self, point: _Point) -> FloatArray | None:
        """Return second derivatives at the best point; None at any other, which the search leaves.

        The search ends if a Newton step would gain less than the tolerance.
        """
        if point is not self.best:
            return None
        if self.hessian is None:
            matrix = point.matrix
            if matrix is None:
                self.count()
                matrix = second_derivatives(self.matrix, self.potential, point.position)
            if not np.isfinite(matrix).all():
                raise _Enough
            self.hessian = 0.5 * (matrix + matrix.T)
            self.decrement = newton_decrement(self.hessian, point.gradient)
            if self.decrement is not None and self.decrement < self.tolerance:
                self.converged = True
                raise _Enough
            if not matrix.any():
                raise _Flat
        return self.hessian

    def note_iteration(self, intermediate_result: Any) -> None:
        """End the search after several iterations in a row of SciPy's that gain next to nothing.

        One does not count that gained far more than the one before it: where a valley is long,
        steps along it begin small, and each is longer than the last.
        """
        gain = self._value - intermediate_result.fun
        if gain >= self.tolerance:
            self._steady = 0
        elif not gain > max(_GROWS * self._gain, _FAINT * self.tolerance):
            self._steady += 1
        self._value, self._gain = intermediate_result.fun, gain
        if self._steady == STEADY:
            self.converged = True
            raise _Enough

    def note_rounding(self) -> None:
        """End the search after several evaluations in a row that are the best but for rounding."""
        if self._same >= STEADY:
            self.converged = True
            raise _Enough

    def end_by_jacobian(self) -> None:
        """Evaluate the Gauss-Newton matrix where a search by the adjoint has converged."""
        before = self.lowest
        self.matrix, self.best, self.first, self._last = "gauss-newton", None, None, None
        try:
            point = self.at(before.position)
        finally:
            self.best = self.best or before
        self.matrix_at(point)

    @property
    def lowest(self) -> _Point:
        """The best evaluation so far."""
        assert self.best is not None
        return self.best

    def mode(self) -> Mode:
        """Return the best position so far."""
        best = self.lowest
        return Mode(
            position=best.position,
            value=best.value,
            gradient=best.gradient,
            decrement=self.decrement,
            hessian=self.hessian,
            converged=self.converged,
            calls=self.calls,
        )


# --- searches ---


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
    """Find a mode by gradients whatever they cost; see :func:`~surrokit.mode.search.find_mode`.

    A step of L-BFGS may be many times as long as the way so far only if ``leaps`` is true. Where
    gradients are rough such a step is their error, and leads to where a solver may not come back.
    """
    start = np.array(start, dtype=np.float64)
    if start.shape != (potential.dim,):
        raise ShapeError(
            f"start must be one position of shape ({potential.dim},), got {start.shape}; pass the "
            "best of several starts"
        )
    from scipy.optimize import minimize  # late: importing the package stays fast

    trail = _Trail(potential, max_calls, tolerance, until)
    with suppress(_Enough), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # SciPy's, that precision was lacking
        if not trail.at(start).finite:
            raise NumericalError(
                "the potential or its gradient is not finite at the start of the search for a "
                "mode; start where it can be evaluated"
            )
        try:
            trail.converged = bool(minimize(**_method(trail, scales, leaps=leaps)).success)
        except _Flat:
            trail.converged = bool(minimize(**_by_gradients(trail, None, leaps=True)).success)
    if trail.converged and goes_by_adjoint(potential):
        with suppress(_Enough):
            trail.end_by_jacobian()
    return trail.mode()


def _method(trail: _Trail, scales: Scales | None, *, leaps: bool) -> dict[str, Any]:
    """Return SciPy's arguments for the search that a potential allows for."""
    if trail.matrix is not None:
        return _by_matrices(trail)
    if can.HESSIAN_PRODUCT in trail.potential.capabilities:
        return _by_products(trail)
    return _by_gradients(trail, scales, leaps=leaps)


def _by_matrices(trail: _Trail) -> dict[str, Any]:
    """Newton's method in the coordinates in which the first matrix is the identity."""
    first = trail.lowest
    matrix = trail.matrix_at(first)
    assert matrix is not None
    turn = scaling(matrix)

    def fun(y: FloatArray) -> float:
        return trail.at(first.position + turn @ y).value

    def jac(y: FloatArray) -> FloatArray:
        point = trail.at(first.position + turn @ y)
        return turn.T @ point.gradient if point.finite else np.ones_like(y)

    def hess(y: FloatArray) -> FloatArray:
        # the search never moves to a position that does not lower the potential
        matrix = trail.matrix_at(trail.at(first.position + turn @ y))
        return np.eye(len(y)) if matrix is None else turn.T @ matrix @ turn

    radius = max(1.0, 1.01 * float(np.linalg.norm(turn.T @ first.gradient)))
    limits = {"initial_trust_radius": radius, "max_trust_radius": 1e6 * radius}
    return {
        "fun": fun,
        "x0": np.zeros_like(first.position),
        "jac": jac,
        "hess": hess,
        "method": "trust-exact",
        "options": {**limits, "gtol": 0.0, "maxiter": trail.max_calls},
    }


def _by_products(trail: _Trail) -> dict[str, Any]:
    """Newton's method by conjugate gradients."""
    exact = cast(HessianProductPotential, trail.potential)

    def jac(q: FloatArray) -> FloatArray:
        point = trail.at(q)
        return point.gradient if point.finite else np.ones_like(q)

    def product(q: FloatArray, vector: FloatArray) -> FloatArray:
        trail.count()
        return np.asarray(exact.hessian_product(q[None], vector[None])[0])

    return {
        "fun": lambda q: trail.at(q).value,
        "x0": trail.lowest.position,
        "jac": jac,
        "hessp": product,
        "method": "trust-ncg",
        "callback": trail.note_iteration,
        "options": {"gtol": 0.0, "maxiter": trail.max_calls},
    }


def _by_gradients(trail: _Trail, scales: Scales | None, *, leaps: bool) -> dict[str, Any]:
    """L-BFGS, which steps back by half from where the potential is not finite."""
    falls = True
    while falls:
        first = trail.first = trail.lowest
        start, dim = first.position, len(first.position)
        root = np.eye(dim) if scales is None else scales.root(first.value, first.gradient)
        unit = _first_step(root.T @ first.gradient)
        falls = slide(partial(_height, trail, first, root @ unit, leaps), level=dim)

    def fun(y: FloatArray) -> tuple[float, FloatArray]:
        if np.allclose(y, unit, rtol=_ROUNDED, atol=_ROUNDED):
            y = unit  # has been evaluated
        position, low = start + root @ y, trail.lowest
        if leaps or not _is_leap(start, low.position, position):
            point = trail.at(position)
            if point.finite:
                trail.note_rounding()
                return point.value, root.T @ point.gradient
        # as on a parabola whose least value is 0.4 of the way there
        drop = float(low.gradient @ (position - low.position))
        return low.value + 0.25 * abs(drop), -1.5 * (root.T @ low.gradient)

    return {
        "fun": fun,
        "x0": np.zeros(dim),
        "jac": True,
        "method": "L-BFGS-B",
        "callback": trail.note_iteration,
        "options": {"maxcor": _MEMORY, "maxfun": 50 * trail.max_calls, "ftol": 0.0, "gtol": 0.0},
    }


def _first_step(slope: FloatArray) -> FloatArray:
    """Return the step (dim,) that L-BFGS takes first."""
    with np.errstate(over="ignore"):  # far from a mode
        norm = float(np.sqrt(slope @ slope))
    return (1.0 / norm) * -slope if 0.0 < norm < np.inf else np.zeros_like(slope)


def _height(
    trail: _Trail, first: _Point, step: FloatArray, leaps: bool, way: float
) -> tuple[float, float, float]:
    """Return a height of :mod:`surrokit.mode.hill` after so many steps (dim,) from a point."""
    position = first.position + way * step
    if leaps or not _is_leap(first.position, trail.lowest.position, position):
        point = trail.at(position)
        if point.finite:
            return way, point.value, float(point.gradient @ step)
    return way, np.inf, np.inf


def _is_leap(start: FloatArray, here: FloatArray, position: FloatArray) -> bool:
    """Return whether a step from here (dim,) is longer than the longest that may be."""
    way = max(1.0, float(np.abs(here - start).max()))
    return float(np.abs(position - here).max()) > _LEAP * way
