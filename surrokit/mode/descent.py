"""Descent to a mode by gradients, and second derivatives where there are any.

It is SciPy's: Newton's method in a trust region with a matrix of second derivatives, else L-BFGS.
(Conjugate gradients with products of the Hessian take four times the calls of L-BFGS.)
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.errors import EvaluationError, NumericalError, ShapeError
from surrokit.potentials import (
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

TOLERANCE = 1e-3
"""Nats above the mode at which a search may end: 0.045 standard deviations away."""

_STEADY = 3  # iterations in a row that gain less than the tolerance, before L-BFGS ends

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
        The potential in nats to which the search may come down, of a mode that is known.
    """

    covariance: FloatArray
    least: float | None = None

    def root(self, value: float, gradient: FloatArray) -> FloatArray:
        """Return a square root (dim, dim) in which a first step of length 1 is of use.

        From ``value`` and ``gradient (dim,)`` where the search begins, a quadratic of such a
        covariance would come down in that step.
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
    if has_gauss_newton(potential):
        return None if goes_by_adjoint(potential) else "gauss-newton"
    if potential.dim > 500:  # a whole matrix takes too long
        return None
    offered = potential.capabilities
    return next((name for name in (can.HESSIAN, can.METRIC) if name in offered), None)


def has_gauss_newton(potential: Potential) -> bool:
    """Return whether a Jacobian gives the Gauss-Newton matrix."""
    offered = potential.capabilities >= {can.FORWARD, can.JACOBIAN}
    return offered and offers_curvatures(with_forward(potential).energy)


def goes_by_adjoint(potential: Potential) -> bool:
    """Return whether Jacobians are too expensive for each step, where one could be evaluated.

    With a factor kept, a Jacobian takes a solve for each parameter and an adjoint one: in 64
    dimensions eight gradients have been measured for a Jacobian, and searches by Jacobians take a
    third of the calls.
    """
    adjoint = can.VJP in potential.capabilities and potential.dim >= 32
    return adjoint and has_gauss_newton(potential)


def newton_decrement(hessian: FloatArray, gradient: FloatArray) -> float | None:
    """Return g^T H^-1 g / 2; None where H is not positive definite."""
    try:
        half = np.linalg.solve(np.linalg.cholesky(hessian), gradient)
    except np.linalg.LinAlgError:
        return None
    return 0.5 * float(half @ half)


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
    matrix: FloatArray | None = None  # Gauss-Newton, where a Jacobian was evaluated

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
        self.calls, self.converged = 0, False
        self.hessian: FloatArray | None = None  # at the best
        self.decrement: float | None = None
        self.first: _Point | None = None  # where L-BFGS begins
        self._best: _Point | None = None
        self._last: _Point | None = None
        self._value, self._gain = np.inf, 0.0  # of the last iteration
        self._steady = self._same = 0  # iterations of no gain, values that rounding may tell apart

    @property
    def best(self) -> _Point:
        assert self._best is not None
        return self._best

    def at(self, position: FloatArray) -> _Point:
        """Return the evaluation at a position (dim,), which may be at hand."""
        for known in (self._last, self._best, self.first):
            if known is not None and np.array_equal(known.position, position):
                return known
        self.count()
        self._last = point = self._evaluate(position)
        best = self._best
        if best is not None:
            rounding = 4.0 * np.finfo(float).eps * abs(best.value)
            self._same = self._same + 1 if abs(point.value - best.value) <= rounding else 0
        if not point.finite:
            return point
        if best is None or point.value < best.value:
            self._best, self.hessian, self.decrement = point, None, None
        if self.until is not None and self.until(point.position, point.value, point.gradient):
            raise _Enough
        return point

    def _evaluate(self, position: FloatArray) -> _Point:
        at, matrix = position[None], None
        with np.errstate(all="ignore"):
            try:
                if self.matrix == "gauss-newton":
                    target = with_forward(self.potential)
                    outputs, jacobian = target.forward_and_jacobian(at)
                    values, slopes = gradient_of_energy(target.energy, outputs, jacobian, at)
                    matrix = gauss_newton(target.energy, outputs, jacobian, at)[0]
                else:
                    values, slopes = self.potential.value_and_gradient(at)
            except EvaluationError:
                return _Point(np.array(position), np.inf, np.full(len(position), np.nan))
        value = float(values[0]) if np.isfinite(values[0]) else np.inf
        return _Point(np.array(position), value, np.asarray(slopes[0], dtype=np.float64), matrix)

    def count(self) -> None:
        """Count one more evaluation; the search ends if there may be none."""
        if self.calls >= self.max_calls:
            raise _Enough
        self.calls += 1

    def matrix_at(self, point: _Point) -> FloatArray | None:
        """Return second derivatives at the best point; None at any other, which the search leaves.

        The search ends if a Newton step would gain less than the tolerance.
        """
        if point is not self._best:
            return None
        if self.hessian is None:
            matrix = point.matrix
            if matrix is None:
                self.count()
                at = point.position[None]
                try:
                    if self.matrix == can.HESSIAN:
                        matrix = np.asarray(with_hessian(self.potential).hessian(at)[0])
                    else:
                        matrix = np.asarray(with_metric(self.potential).metric(at)[0])
                except EvaluationError:
                    raise _Enough from None
            if not np.isfinite(matrix).all():
                raise _Enough
            self.hessian = 0.5 * (matrix + matrix.T)
            self.decrement = newton_decrement(self.hessian, point.gradient)
            if self.decrement is not None and self.decrement < self.tolerance:
                self.end()
            if not matrix.any():
                raise _Flat
        return self.hessian

    def end(self) -> None:
        """End the search, which has converged."""
        self.converged = True
        raise _Enough

    def note_iteration(self, intermediate_result: Any) -> None:
        """End the search after several iterations in a row of SciPy's that gain next to nothing.

        One does not count that gained twice as much as the one before it: where a valley is long,
        steps along it begin small, and each is longer than the last.
        """
        gain = self._value - intermediate_result.fun
        if gain >= self.tolerance:
            self._steady = 0
        elif not gain > max(2.0 * self._gain, 1e-6 * self.tolerance):  # less may be rounding
            self._steady += 1
        self._value, self._gain = intermediate_result.fun, gain
        if self._steady == _STEADY:
            self.end()

    def note_rounding(self) -> None:
        """End the search after several evaluations in a row that are the best but for rounding."""
        if self._same >= _STEADY:
            self.end()

    def end_by_jacobian(self) -> None:
        """Evaluate the Gauss-Newton matrix where a search by the adjoint has converged."""
        before = self.best
        self.matrix, self._best, self._last, self.first = "gauss-newton", None, None, None
        try:
            point = self.at(before.position)
        finally:
            self._best = self._best or before
        self.matrix_at(point)


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
            by_matrices = trail.matrix is not None
            how = _by_matrices(trail) if by_matrices else _by_gradients(trail, scales, leaps=leaps)
            trail.converged = bool(minimize(**how).success)
        except _Flat:
            trail.converged = bool(minimize(**_by_gradients(trail, None, leaps=True)).success)
    if trail.converged and goes_by_adjoint(potential):
        with suppress(_Enough):
            trail.end_by_jacobian()
    return Mode(
        position=trail.best.position,
        value=trail.best.value,
        gradient=trail.best.gradient,
        decrement=trail.decrement,
        hessian=trail.hessian,
        converged=trail.converged,
        calls=trail.calls,
    )


def _by_matrices(trail: _Trail) -> dict[str, Any]:
    """Newton's method in the coordinates in which the first matrix is the identity."""
    first = trail.best
    matrix = trail.matrix_at(first)
    assert matrix is not None
    eigenvalues, vectors = np.linalg.eigh(matrix)
    sizes = np.abs(eigenvalues)
    turn = np.asarray(vectors / np.sqrt(np.maximum(sizes, 1e-10 * float(sizes.max()))))

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
        "fun": lambda y: trail.at(first.position + turn @ y).value,
        "x0": np.zeros_like(first.position),
        "jac": jac,
        "hess": hess,
        "method": "trust-exact",
        "options": {**limits, "gtol": 0.0, "maxiter": trail.max_calls},
    }


def _by_gradients(trail: _Trail, scales: Scales | None, *, leaps: bool) -> dict[str, Any]:
    """L-BFGS, which steps back by half from where the potential is not finite."""
    slides = True
    while slides:
        first = trail.first = trail.best
        start, dim = first.position, len(first.position)
        root = np.eye(dim) if scales is None else scales.root(first.value, first.gradient)
        slope = root.T @ first.gradient
        length = float(np.sqrt(slope @ slope))
        unit = (1.0 / length) * -slope if 0.0 < length < np.inf else np.zeros(dim)
        slides = leaps and _slide(trail, first, root @ unit)

    def fun(y: FloatArray) -> tuple[float, FloatArray]:
        if np.allclose(y, unit, rtol=1e-12, atol=1e-12):
            y = unit  # the first step, which has been evaluated
        position, low = start + root @ y, trail.best
        # at most ten times the way so far, and one at least
        longest = 10.0 * max(1.0, float(np.abs(low.position - start).max()))
        if leaps or float(np.abs(position - low.position).max()) <= longest:
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
        # corrections are cheap beside an evaluation
        "options": {"maxcor": 30, "maxfun": 50 * trail.max_calls, "ftol": 0.0, "gtol": 0.0},
    }


def _slide(trail: _Trail, here: _Point, step: FloatArray) -> bool:
    """Evaluate after a step (dim,), and farther on while the potential falls exponentially.

    So it does where the logarithm of a scale is far too small: by steps of usual length it would
    take very many evaluations to come down. The mean slope along a line is the arithmetic one of a
    quadratic's, and the logarithmic one of an exponential's. Return whether there was a second
    evaluation.
    """
    width, level = 1.0, float(len(step))  # nats that may be left
    for i in range(8):
        there = trail.at(here.position + width * step)
        before, after = float(here.gradient @ step), float(there.gradient @ step)
        if not (there.finite and -math.inf < before < 2.0 * after < 0.0):
            return i > 0
        rate, drop = math.log(before / after) / width, here.value - there.value
        exponential, quadratic = (after - before) / rate, -0.5 * width * (before + after)
        off, left = abs(drop - exponential), -after / rate
        if off >= min(abs(drop - quadratic), 0.05 * exponential) or left <= 2.0 * level:
            return i > 0
        here, width = there, math.log(left / level) / rate
    return True
