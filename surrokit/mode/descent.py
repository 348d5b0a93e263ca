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

Until: TypeAlias = Callable[[FloatArray, float, FloatArray], bool]
"""Decides from a position (dim,), the potential and its gradient there whether a search may end."""


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
        g^T H^-1 g / 2, the nats that one more Newton step would gain; None where no matrix is
        known within which the potential is convex.
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


def spectrum(hessian: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues (dim,) of H, and vectors W (dim, dim) with W^T H W = diag(eigenvalues).

    They are those in the units of the diagonal of H, so that scales do no harm. Where that is as
    good as zero the unit is a usual one.
    """
    sizes = np.abs(np.diag(hessian))
    reported = sizes > 1e-12 * sizes.max()
    usual = np.exp(np.log(sizes[reported]).mean()) if reported.any() else 1.0
    scales = np.sqrt(np.where(reported, sizes, usual))
    eigenvalues, vectors = np.linalg.eigh(hessian / scales / scales[:, None])
    return eigenvalues, vectors / scales[:, None]


def newton_decrement(hessian: FloatArray, gradient: FloatArray) -> float | None:
    """Return g^T H^-1 g / 2; None where H is not positive, or flat in a direction of the slope."""
    sizes, ways = spectrum(hessian)
    pulls, flat = ways.T @ gradient, sizes <= 1e-12
    if sizes[0] < -1e-12 or (np.abs(pulls[flat]) > 1e-6).any():
        return None
    return 0.5 * float(np.sum(np.square(pulls[~flat]) / sizes[~flat]))


def _matrix_of(potential: Potential) -> str | None:
    offered = potential.capabilities
    if offered >= {can.FORWARD, can.JACOBIAN} and offers_curvatures(with_forward(potential).energy):
        return "gauss-newton"
    if potential.dim > 500:  # a whole matrix takes too long
        return None
    return next((name for name in (can.HESSIAN, can.METRIC) if name in offered), None)


# --- what a search has evaluated ---


class Enough(Exception):  # noqa: N818 - not an error
    """The search has converged, or may evaluate no more."""


class _Flat(Exception):  # noqa: N818 - not an error
    """The potential has no curvature at all, and Newton's method no step."""


class _Lower(Exception):  # noqa: N818 - not an error
    """The search has converged, but on its way it has seen a place that is lower."""


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

    best: _Point

    def __init__(
        self, potential: Potential, max_calls: int, tolerance: float, until: Until | None
    ) -> None:
        self.potential, self.matrix = with_gradient(potential), _matrix_of(potential)
        self.max_calls, self.tolerance, self.until = max_calls, tolerance, until
        self.calls, self.converged = 0, False
        self.hessian: FloatArray | None = None  # at the best
        self.decrement: float | None = None
        self.known: list[_Point] = []  # where the search begins, the best and the last
        self.same = -1  # evaluations in a row, after the first, that are the best but for rounding

    def at(self, position: FloatArray) -> _Point:
        """Return the evaluation at a position (dim,), which may be at hand."""
        for point in self.known:
            if np.array_equal(point.position, position):
                return point
        self._count()
        point = self._evaluate(np.array(position))
        if not self.known:
            self.best, self.known = point, [point] * 3
        self.known[2] = point
        rounding = 4.0 * np.finfo(float).eps * abs(self.best.value)
        self.same = self.same + 1 if abs(point.value - self.best.value) <= rounding else 0
        if point.finite and point.value < self.best.value:
            self.best = self.known[1] = point
            self.hessian = self.decrement = None
        shown = point.finite and self.until is not None
        if shown and self.until(point.position, point.value, point.gradient):  # type: ignore[misc]
            raise Enough
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
                return _Point(position, np.inf, np.full(len(position), np.nan))
        value = float(values[0]) if np.isfinite(values[0]) else np.inf
        return _Point(position, value, np.asarray(slopes[0], dtype=np.float64), matrix)

    def _count(self) -> None:
        if self.calls >= self.max_calls:
            raise Enough
        self.calls += 1

    def matrix_at_best(self) -> FloatArray:
        """Return second derivatives; end if a Newton step would gain less than the tolerance."""
        if self.hessian is None:
            matrix = self.best.matrix
            if matrix is None:
                self._count()
                by_hessian = self.matrix == can.HESSIAN
                whole: Any = (with_hessian if by_hessian else with_metric)(self.potential)
                try:
                    matrix = getattr(whole, self.matrix or "")(self.best.position[None])[0]
                except EvaluationError:
                    raise Enough from None
            if not np.isfinite(matrix).all():
                raise Enough
            self.hessian = np.asarray(0.5 * (matrix + matrix.T))
            if not matrix.any():
                raise _Flat
            self.decrement = newton_decrement(self.hessian, self.best.gradient)
            if self.decrement is not None and self.decrement < self.tolerance:
                self.end()
        return self.hessian

    def end(self, value: float = -np.inf) -> None:
        """End the search, which has converged to a value, or begin anew from a lower place.

        A step across a wall is rejected as a rule, whatever is there.
        """
        if self.best.value < value - self.tolerance:
            raise _Lower
        self.converged = True
        raise Enough


# --- searches ---


def descend(
    potential: Potential,
    start: FloatArray,
    *,
    max_calls: int = 200,
    tolerance: float = TOLERANCE,
    until: Until | None = None,
    scales: Scales | None = None,
    rough: bool = False,
) -> Mode:
    """Find a mode by gradients whatever they cost; see :func:`~surrokit.mode.search.find_mode`.

    Where gradients are ``rough`` a step of L-BFGS that is many times as long as the way so far is
    their error, and leads to where a solver may not come back: it is not made.
    """
    start = np.array(start, dtype=np.float64)
    if start.shape != (potential.dim,):
        raise ShapeError(
            f"start must be one position of shape ({potential.dim},), got {start.shape}; pass the "
            "best of several starts"
        )
    trail = _Trail(potential, max_calls, tolerance, until)
    with suppress(Enough), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # SciPy's, that precision was lacking
        if not trail.at(start).finite:
            raise NumericalError(
                "the potential or its gradient is not finite at the start of the search for a "
                "mode; start where it can be evaluated"
            )
        by_matrices = trail.matrix is not None
        while True:
            try:
                how = _by_matrices(trail) if by_matrices else _by_gradients(trail, scales, rough)
                trail.converged = _minimize(how)
                break
            except _Flat:
                by_matrices, scales = False, None
            except _Lower:
                continue  # from there
    best = trail.best
    return Mode(
        position=best.position,
        value=best.value,
        gradient=best.gradient,
        decrement=trail.decrement,
        hessian=trail.hessian,
        converged=trail.converged,
        calls=trail.calls,
    )


def _minimize(how: dict[str, Any]) -> bool:
    """Search as SciPy does; return whether the search converged."""
    from scipy.optimize import minimize  # late: importing it takes longer than many a search

    return bool(minimize(**how).success)


def _by_matrices(trail: _Trail) -> dict[str, Any]:
    """Newton's method in the coordinates in which the first matrix is the identity."""
    first = trail.best
    sizes, ways = spectrum(trail.matrix_at_best())
    turn = ways / np.sqrt(np.where(np.abs(sizes) > 1e-12, np.abs(sizes), 1.0))
    full = -(turn.T @ first.gradient)
    if sizes[0] > 1e-12:  # SciPy's first step, which may end the search before the import of SciPy
        trail.at(first.position + turn @ full)
        trail.matrix_at_best()

    def at(y: FloatArray) -> _Point:
        is_full = np.allclose(y, full, rtol=1e-9, atol=1e-9)
        return trail.at(first.position + turn @ (full if is_full else y))

    def jac(y: FloatArray) -> FloatArray:
        point = at(y)
        return turn.T @ point.gradient if point.finite else np.ones_like(y)

    def hess(y: FloatArray) -> FloatArray:
        # the search never moves to a position that does not lower the potential
        if at(y) is not trail.best:
            return np.eye(len(y))
        matrix = turn.T @ trail.matrix_at_best() @ turn
        if not np.isfinite(matrix).all():
            raise Enough
        return matrix

    radius = max(1.0, 1.01 * float(np.linalg.norm(full)))
    if not radius < np.inf:
        raise Enough
    limits = {"initial_trust_radius": radius, "max_trust_radius": 1e6 * radius}
    return {
        "fun": lambda y: at(y).value,
        "x0": np.zeros_like(first.position),
        "jac": jac,
        "hess": hess,
        "method": "trust-exact",
        "options": {**limits, "gtol": 0.0, "maxiter": trail.max_calls},
    }


def _by_gradients(trail: _Trail, scales: Scales | None, rough: bool) -> dict[str, Any]:
    """L-BFGS, which steps back by half from where the potential is not finite."""
    steady, dim = 3, len(trail.best.position)
    root, unit = _slide_down(trail, scales, rough)
    first = trail.known[0]
    best, last, gained, still = np.zeros(dim), first.value, 0.0, 0

    def fun(y: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        low = trail.best
        if np.allclose(y, unit, rtol=1e-12, atol=1e-12):
            y = unit  # the first step, which has been evaluated
        longest = 10.0 * max(1.0, float(np.abs(best).max()))
        if not rough or float(np.abs(y - best).max()) <= longest:
            point = trail.at(first.position + root @ y)
            if trail.same >= steady:
                trail.end()
            if trail.best is not low:
                best = np.array(y)
            if point.finite:
                return point.value, root.T @ point.gradient
        # as on a parabola whose least value is 0.4 of the way there
        slope = root.T @ low.gradient
        return low.value + 0.25 * abs(float(slope @ (y - best))), -1.5 * slope

    def note(intermediate_result: Any) -> None:
        """End the search after several iterations in a row that gain next to nothing.

        One does not count that gained twice as much as the one before it: where a valley is long,
        steps along it begin small, and each is longer than the last.
        """
        nonlocal last, gained, still
        gain = last - intermediate_result.fun
        if gain >= trail.tolerance:
            still = 0
        elif not gain > max(2.0 * gained, 1e-6 * trail.tolerance):  # less may be rounding
            still += 1
        last, gained = intermediate_result.fun, gain
        if still == steady:
            trail.end(last)

    return {
        "fun": fun,
        "x0": np.zeros(dim),
        "jac": True,
        "method": "L-BFGS-B",
        "callback": note,
        # corrections are cheap beside an evaluation
        "options": {"maxcor": 30, "maxfun": 50 * trail.max_calls, "ftol": 0.0, "gtol": 0.0},
    }


def _slide_down(trail: _Trail, scales: Scales | None, rough: bool) -> tuple[FloatArray, FloatArray]:
    """Slide as long as that gains; return the root of the scales there, and the way down."""
    while True:
        first = trail.known[0] = trail.best
        dim = len(first.position)
        root = np.eye(dim) if scales is None else scales.root(first.value, first.gradient)
        slope = root.T @ first.gradient
        length = float(np.sqrt(slope @ slope))
        unit = (1.0 / length) * -slope if 0.0 < length < np.inf else np.zeros(dim)
        if rough or not _slide(trail, first, root @ unit):
            return root, unit


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
