"""The Hudson's Bay Company's pelts of lynx and hare, with the Lotka-Volterra model.

Hare u and lynx v follow du/dt = (alpha - beta v) u and dv/dt = (delta u - gamma) v. The equations
and their sensitivities are solved for many parameter vectors at once. The state is in logarithms,
where both species are of one size and cannot turn negative.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import ClassVar, TypeAlias
from warnings import catch_warnings

import attrs
import numpy as np
from scipy.integrate import ODEintWarning, odeint

from surrokit import capabilities as can
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import EvaluationError, NumericalError
from surrokit.model.model import Model
from surrokit.model.source import in_a_batch_of_one, row_by_row
from surrokit.potentials import CURVATURES, Pointwise
from surrokit.targets.bounds import BoundedPotential
from surrokit.targets.functions import PotentialOfOutputs
from surrokit.types import BoolArray, Capabilities, FloatArray

TIMES: FloatArray = np.arange(21.0)
"""Years since 1900."""

# fmt: off
_HARE = (
    30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1,
    40.3, 57.0, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7,
)
_LYNX = (
    4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4,
    8.0, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6,
)
# fmt: on

COUNTS: FloatArray = np.array([_HARE, _LYNX]).T
"""Pelts of hare and lynx in thousands, shape (21, 2): Hewitt (1921), after Howard (2009)."""

_NAMES = ("alpha", "beta", "gamma", "delta", "hare_0", "lynx_0", "sigma_hare", "sigma_lynx")

_NORMAL_MEAN, _NORMAL_SD = np.array([1.0, 0.05, 1.0, 0.05]), np.array([0.5, 0.05, 0.5, 0.05])
_LOG_MEDIAN = np.array([np.log(10.0), np.log(10.0), -1.0, -1.0])

# The Fortran LSODA of SciPy before 1.17 keeps its state in globals, and other threads may run
# while it calls back into Python.
_LSODA = Lock()

RightSide: TypeAlias = Callable[[FloatArray, float], FloatArray]
"""Slopes of a state at a time."""


class LynxHare(PotentialOfOutputs):
    """U of the eight positive parameters of the Lotka-Volterra model, in nats.

    A position is alpha, beta, gamma, delta (rates a year), hare_0, lynx_0 (thousands, in 1900),
    sigma_hare, sigma_lynx (of log counts). U is ``inf`` where one is not positive and finite. The
    forward map takes it to logarithms of thousands, by year: hare 1900, lynx 1900, hare 1901, ...,
    which are NaN outside the support; :class:`LynxHareEnergy` does the rest.

    Notes
    -----
    Data and model are those of ``hudson_lynx_hare-lotka_volterra`` in posteriordb, after
    Carpenter (2018). Methods raise :class:`~surrokit.errors.EvaluationError` where the equations
    could not be solved.
    """

    parameters: ClassVar[Parameters] = Parameters.declare(dict.fromkeys(_NAMES, (0.0, None)))
    """Names and bounds."""

    dim: ClassVar[int] = 8
    """Numbers in a position."""

    capabilities: ClassVar[Capabilities] = frozenset(
        {can.GRADIENT, can.METRIC, can.FORWARD, can.JACOBIAN, can.INITIAL}
    )
    """What it offers besides the value."""

    def __init__(self, tolerance: float = 1e-11) -> None:
        self.energy = LynxHareEnergy(np.log(COUNTS))
        self.model = Model(_Populations(tolerance), self.dim, each_row=None, outputs=[COUNTS.size])

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return starting positions about a guess from the counts, shape (n, 8).

        Small oscillations have frequency sqrt(alpha gamma) about the levels gamma / delta of hare
        and alpha / beta of lynx, which the guess takes from the period, large oscillations being a
        little slower, and from the mean counts. Scatter is 15 % lognormal: from 20 % on, some
        starts lie nearer to a minor mode where all variation is noise.
        """
        rate = 1.15 * 2.0 * np.pi / 10.0  # years between the two peaks of hare in the counts
        hare, lynx = COUNTS.mean(axis=0)
        guess = np.array([rate, rate / lynx, rate, rate / hare, *COUNTS[0], 0.5, 0.5])
        return guess * np.exp(0.15 * rng.standard_normal((n, self.dim)))


def lynx_hare(tolerance: float = 1e-11) -> BoundedPotential:
    """Return the posterior in logarithms of its eight parameters.

    Parameters
    ----------
    tolerance
        Of the solver, relative and absolute, positive; ten times as much with sensitivities.
    """
    return BoundedPotential(LynxHare(tolerance), LynxHare.parameters)


@attrs.frozen
class _Populations:
    """Log populations and their derivatives: NaN outside the support."""

    tolerance: float

    def at(self, what: str, rows: FloatArray) -> tuple[FloatArray, ...]:
        if rows.ndim == 1:
            return in_a_batch_of_one(self, what, rows)
        n, inside = len(rows), np.flatnonzero(_in_support(rows))
        causes: dict[int, Exception] = {}
        try:
            results = self._solve(what, rows[inside])
        except EvaluationError as error:
            causes = {int(inside[i]): cause for i, cause in error.causes.items()}
            results = error.results
        if len(inside) < n:
            spread = [np.full((n, *result.shape[1:]), np.nan) for result in results]
            for full, result in zip(spread, results, strict=True):
                full[inside] = result
            results = tuple(spread)
        if causes:
            raise EvaluationError(causes, results, n=n)
        return results

    def _solve(self, what: str, rows: FloatArray) -> tuple[FloatArray, ...]:
        def solve(positions: FloatArray) -> tuple[FloatArray, ...]:
            n = len(positions)
            if what == "forward":
                return (
                    log_populations(positions[:, :6], TIMES, self.tolerance).reshape(
                        n, COUNTS.size
                    ),
                )
            logs, sensitivities = log_populations_and_sensitivities(
                positions[:, :6], TIMES, 10.0 * self.tolerance
            )
            jacobian = np.zeros((n, COUNTS.size, LynxHare.dim))
            jacobian[:, :, :6] = sensitivities.reshape(n, COUNTS.size, 6)
            return logs.reshape(n, COUNTS.size), jacobian

        try:
            return solve(rows)
        except NumericalError:
            # one wild row must not cost the others their evaluation
            return row_by_row(lambda row: tuple(r[0] for r in solve(row[None])), rows).unwrap()


@attrs.frozen(eq=False)
class LynxHareEnergy:
    """U from log populations and parameters, in nats, without constants.

    Counts are lognormal about the populations, with one sigma for each species. Priors: alpha and
    gamma N(1, 0.5^2), beta and delta N(0.05, 0.05^2), initial populations lognormal(log 10, 1),
    sigmas lognormal(-1, 1); those of the case study by Carpenter (2018), "Predator-prey population
    dynamics: the Lotka-Volterra model in Stan".

    ``log_counts (n_times, 2)`` are those of hare and lynx.
    """

    log_counts: FloatArray

    capabilities: ClassVar[Capabilities] = frozenset({CURVATURES})
    """What it offers besides value and gradients."""

    @property
    def observed_data(self) -> dict[str, FloatArray]:
        """Log counts, beside the outputs."""
        return {"outputs": self.log_counts.ravel()}

    def pointwise(self, outputs: FloatArray, positions: FloatArray) -> Pointwise:
        """Return the log density of each log count, (n, 2 n_times), and the log prior, (n,)."""
        sigma = np.tile(positions[:, 6:], len(self.log_counts))
        residuals = self._residuals(outputs).reshape(outputs.shape) / sigma
        rows = -0.5 * np.square(residuals) - np.log(sigma) - 0.5 * np.log(2.0 * np.pi)
        constant = outputs.shape[1] * 0.5 * np.log(2.0 * np.pi)
        prior = -self.value(outputs, positions) - rows.sum(axis=1) - constant
        return {"outputs": rows}, {"prior": prior}

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), of outputs (n, 2 n_times) as :meth:`LynxHare.forward` gives them.

        It is ``inf`` where parameters, ``positions (n, 8)``, are not positive and finite.
        """
        sigma, logs = positions[:, 6:], positions[:, 4:]
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            misfit = np.square(self._residuals(outputs)).sum(axis=1) / np.square(sigma)
            value = (len(self.log_counts) * np.log(sigma) + 0.5 * misfit).sum(axis=1)
            scaled, logs = (positions[:, :4] - _NORMAL_MEAN) / _NORMAL_SD, np.log(logs)
            prior = 0.5 * np.square(scaled).sum(axis=1)
            value += prior + (logs + 0.5 * np.square(logs - _LOG_MEDIAN)).sum(axis=1)
        return np.where(_in_support(positions), value, np.inf)

    def value_and_gradients(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U (n,), its gradient in the outputs (n, 2 n_times), and in the positions (n, 8).

        Gradients are NaN where U is infinite or not known.
        """
        residuals, sigma = self._residuals(outputs), positions[:, 6:]
        by_positions = np.empty_like(positions)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            by_outputs = -(residuals / np.square(sigma)[:, None, :]).reshape(outputs.shape)
            by_positions[:, :4] = (positions[:, :4] - _NORMAL_MEAN) / np.square(_NORMAL_SD)
            logs = np.log(positions[:, 4:])
            by_positions[:, 4:] = (1.0 + logs - _LOG_MEDIAN) / positions[:, 4:]
            misfit = np.square(residuals).sum(axis=1) / np.square(sigma)
            by_positions[:, 6:] += (len(self.log_counts) - misfit) / sigma
        _forget_outside(positions, by_outputs, by_positions)
        return self.value(outputs, positions), by_outputs, by_positions

    def curvatures(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return what a Gauss-Newton matrix takes: (n, 2 n_times), and (n, 8, 8).

        In the outputs the precision of a log count, 1 / sigma^2. In the positions the precision
        of each prior, for a lognormal one that of the logarithm (1 / x^2), and of each sigma the
        Fisher information of the n_times counts, 2 n_times / sigma^2. NaN outside the support.
        """
        n_times, own = outputs.shape[1] // 2, np.arange(8)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            precisions = 1.0 / np.square(positions[:, 4:])
            by_outputs = np.tile(precisions[:, 2:], n_times)
            precisions[:, 2:] *= 1.0 + 2.0 * n_times
        by_positions = np.zeros((len(positions), 8, 8))
        by_positions[:, own[:4], own[:4]] = 1.0 / np.square(_NORMAL_SD)
        by_positions[:, own[4:], own[4:]] = precisions
        _forget_outside(positions, by_outputs, by_positions)
        return by_outputs, by_positions

    def _residuals(self, outputs: FloatArray) -> FloatArray:
        return self.log_counts - outputs.reshape(-1, *self.log_counts.shape)


def _in_support(positions: FloatArray) -> BoolArray:
    """Return which positions (n, 8) are positive and finite, shape (n,)."""
    return np.asarray(((positions > 0) & (positions < np.inf)).all(axis=1))


def _forget_outside(positions: FloatArray, *results: FloatArray) -> None:
    """Put NaN where positions are outside the support."""
    outside = ~_in_support(positions)
    for result in results:
        result[outside] = np.nan


def log_populations(
    parameters: FloatArray, times: FloatArray, tolerance: float = 1e-11
) -> FloatArray:
    """Solve for the logarithms of both populations, log u and log v, shape (n, n_times, 2).

    ``parameters (n, 6)`` are positive rows of alpha, beta, gamma, delta, u and v at the first of
    increasing ``times (n_times,)``.

    A NumericalError says that the solver gave up on any row, or the result is not finite.
    """
    n = len(parameters)
    start = np.log(parameters[:, 4:].T).ravel()
    path = _follow(_right_side(parameters), start, times, tolerance)
    return path.reshape(len(times), 2, n).transpose(2, 0, 1)


def log_populations_and_sensitivities(
    parameters: FloatArray, times: FloatArray, tolerance: float = 1e-10
) -> tuple[FloatArray, FloatArray]:
    """Solve for log u and log v, (n, n_times, 2), and derivatives in parameters, (..., 2, 6)."""
    n = len(parameters)
    start = np.zeros((7, 2, n))
    start[4, 0] = start[5, 1] = 1.0  # in the initial populations' logarithms
    start[1, 1] = start[3, 0] = 1.0  # the offsets of _right_side_with_sensitivities
    start[6] = np.log(parameters[:, 4:].T)
    right_side = _right_side_with_sensitivities(parameters)
    path = _follow(right_side, start.ravel(), times, tolerance)
    rows = path.reshape(len(times), 7, 2, n).transpose(3, 0, 2, 1)
    sensitivities = rows[..., :6].copy()
    sensitivities[:, :, 1, 1] -= 1.0
    sensitivities[:, :, 0, 3] -= 1.0
    sensitivities /= parameters[:, None, None, :]
    return rows[..., 6].copy(), sensitivities


def _right_side(parameters: FloatArray) -> RightSide:
    """Return d(log u, log v)/dt as a function of the state, laid out as (2, n) and flattened."""
    rates = np.concatenate([parameters[:, 0], -parameters[:, 2]])
    couplings = np.concatenate([-parameters[:, 1], parameters[:, 3]])
    other_species = np.arange(len(rates)).reshape(2, -1)[::-1].ravel()
    return lambda state, _: np.asarray(rates + couplings * np.exp(state[other_species]))


def _right_side_with_sensitivities(parameters: FloatArray) -> RightSide:
    """Return the slopes of sensitivities and logarithms, laid out as (7, 2, n) and flattened.

    Rows 0 to 5 of the state are derivatives in the logarithms of the parameters, A of log u and
    B of log v; row 6 is the logarithms themselves. With w = -beta v, A' = w B, plus w for
    beta and plus alpha for alpha; likewise B' = delta u A, plus delta u for delta and minus
    gamma for gamma. Keeping B + 1 for beta and A + 1 for delta absorbs the terms plus w and plus
    delta u, so that every slope is a coupling times an entry of the other species, plus a
    constant.
    """
    n = len(parameters)
    alpha, beta, gamma, delta = parameters[:, :4].T
    terms = np.zeros((7, 2, n))
    terms[0, 0] = terms[6, 0] = alpha
    terms[2, 1] = terms[6, 1] = -gamma
    constants = terms.ravel()
    couplings = np.broadcast_to(np.array([-beta, delta]), (7, 2, n)).ravel()

    swapped = np.arange(14 * n).reshape(7, 2, n)[:, ::-1]
    of_logs = np.broadcast_to(swapped[6], (7, 2, n)).ravel()
    others, factors = swapped[:6].ravel(), np.ones(14 * n)  # 1 for the logarithms' own rows

    def right_side(state: FloatArray, _: float) -> FloatArray:
        factors[: 12 * n] = state[others]
        return np.asarray(np.exp(state[of_logs]) * couplings * factors + constants)

    return right_side


def _follow(
    right_side: RightSide, start: FloatArray, times: FloatArray, tolerance: float
) -> FloatArray:
    # Positions of a batch share one step size, so each one's error depends a little on the others;
    # the tolerances keep that, summed over 42 outputs, below 1e-6 nats.
    if not start.size:
        return np.empty((len(times), 0))
    # odeint warns of what its report says as well
    quiet = catch_warnings(action="ignore", category=ODEintWarning)
    with _LSODA, quiet, np.errstate(over="ignore", invalid="ignore"):
        path, report = odeint(
            right_side,
            start,
            times,
            rtol=tolerance,
            atol=tolerance,
            mxstep=500,  # between two times
            full_output=True,
        )
    if report["message"] != "Integration successful.":
        raise NumericalError(
            f"the populations could not be followed from time {times[0]:g} to {times[-1]:g}: "
            f"{report['message']}"
        )
    if not np.isfinite(path).all():
        raise NumericalError("the populations are not finite at some times")
    return np.asarray(path)
