"""The Lotka-Volterra equations and their sensitivities, for many parameter vectors at once.

Hare u and lynx v follow du/dt = (alpha - beta v) u and dv/dt = (delta u - gamma) v. The state is
in logarithms, where both species are of one size and cannot turn negative.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TypeAlias
from warnings import catch_warnings

import numpy as np
from scipy.integrate import ODEintWarning, odeint

from surrokit.errors import NumericalError
from surrokit.types import FloatArray

RightSide: TypeAlias = Callable[[FloatArray, float], FloatArray]

# Positions of a batch share one step size, so each one's error depends a little on the others;
# these tolerances keep that, summed over 42 outputs, below 1e-6 nats.
_VALUE_TOLERANCE = 1e-11
_SENSITIVITY_TOLERANCE = 1e-10
_STEPS_BETWEEN_TIMES = 500
_SUCCESS = "Integration successful."

# The Fortran LSODA of SciPy before 1.17 keeps its state in globals, and other threads may run
# while it calls back into Python.
_LSODA = Lock()


def log_populations(parameters: FloatArray, times: FloatArray) -> FloatArray:
    """Solve for the logarithms of both populations, log u and log v, shape (n, n_times, 2).

    Parameters
    ----------
    parameters : ndarray of shape (n, 6)
        Positive rows of alpha, beta, gamma, delta, u(times[0]), v(times[0]).
    times : ndarray of shape (n_times,)
        Increasing times; the first is that of the initial populations.

    Raises
    ------
    NumericalError
        If the solver gives up on any row, or the result is not finite.
    """
    n = len(parameters)
    start = np.log(parameters[:, 4:].T).ravel()
    path = _follow(_right_side(parameters), start, times, _VALUE_TOLERANCE)
    return path.reshape(len(times), 2, n).transpose(2, 0, 1)


def log_populations_and_sensitivities(
    parameters: FloatArray, times: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Solve for the logarithms of both populations and their derivatives.

    Parameters
    ----------
    parameters, times
        As for :func:`log_populations`.

    Returns
    -------
    logs : ndarray of shape (n, n_times, 2)
        log u and log v.
    sensitivities : ndarray of shape (n, n_times, 2, 6)
        Their derivatives in the six parameters.

    Raises
    ------
    NumericalError
        If the solver gives up on any row, or the result is not finite.
    """
    n = len(parameters)
    start = np.zeros((7, 2, n))
    start[4, 0] = start[5, 1] = 1.0  # in the initial populations' logarithms
    start[1, 1] = start[3, 0] = 1.0  # the offsets of _right_side_with_sensitivities
    start[6] = np.log(parameters[:, 4:].T)
    right_side = _right_side_with_sensitivities(parameters)
    path = _follow(right_side, start.ravel(), times, _SENSITIVITY_TOLERANCE)
    rows = path.reshape(len(times), 7, 2, n).transpose(3, 0, 2, 1)
    sensitivities = rows[..., :6].copy()
    sensitivities[:, :, 1, 1] -= 1.0
    sensitivities[:, :, 0, 3] -= 1.0
    sensitivities /= parameters[:, None, None, :]
    return rows[..., 6].copy(), sensitivities


def _right_side(parameters: FloatArray) -> RightSide:
    """Return d(log u, log v)/dt as a function of the state, laid out as (2, n) and flattened.

    LSODA copies what it is given, so one output array serves all calls.
    """
    rates = np.concatenate([parameters[:, 0], -parameters[:, 2]])
    couplings = np.concatenate([-parameters[:, 1], parameters[:, 3]])
    other_species = np.arange(len(rates)).reshape(2, -1)[::-1].ravel()
    slopes = np.empty_like(rates)

    def right_side(state: FloatArray, _: float) -> FloatArray:
        state.take(other_species, None, slopes, "clip")
        np.exp(slopes, slopes)
        np.multiply(slopes, couplings, slopes)
        np.add(slopes, rates, slopes)
        return slopes

    return right_side


def _right_side_with_sensitivities(parameters: FloatArray) -> RightSide:
    """Return the slopes of sensitivities and logarithms, laid out as (7, 2, n) and flattened.

    Rows 0 to 5 of the state are derivatives in the logarithms of the parameters, A of log u and
    B of log v; row 6 is the logarithms themselves. With w = -beta v, A' = w B, plus w for
    beta and plus alpha for alpha; likewise B' = delta u A, plus delta u for delta and minus
    gamma for gamma. Keeping B + 1 for beta and A + 1 for delta absorbs the terms plus w and plus
    delta u, so that every slope is a coupling times an entry of the other species, plus a
    constant: four passes over flat arrays, which is what a call costs.
    """
    n = len(parameters)
    alpha, beta, gamma, delta = parameters[:, :4].T
    terms = np.zeros((7, 2, n))
    terms[0, 0] = terms[6, 0] = alpha
    terms[2, 1] = terms[6, 1] = -gamma
    constants = terms.ravel()
    couplings = np.broadcast_to(np.array([-beta, delta]), (7, 2, n)).ravel()

    swapped = np.arange(14 * n).reshape(7, 2, n)[:, ::-1]
    sources = np.concatenate([np.broadcast_to(swapped[6], (7, 2, n)).ravel(), swapped[:6].ravel()])
    gathered = np.ones(28 * n)  # the last 2 n stay 1: the factors of the logarithms' own rows
    taken, weights, factors = gathered[: 26 * n], gathered[: 14 * n], gathered[14 * n :]
    slopes = np.empty(14 * n)

    def right_side(state: FloatArray, _: float) -> FloatArray:
        state.take(sources, None, taken, "clip")
        np.exp(weights, weights)
        np.multiply(weights, couplings, weights)
        np.multiply(weights, factors, slopes)
        np.add(slopes, constants, slopes)
        return slopes

    return right_side


def _follow(
    right_side: RightSide, start: FloatArray, times: FloatArray, tolerance: float
) -> FloatArray:
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
            mxstep=_STEPS_BETWEEN_TIMES,
            full_output=True,
        )
    if report["message"] != _SUCCESS:
        raise NumericalError(
            f"the populations could not be followed from time {times[0]:g} to {times[-1]:g}: "
            f"{report['message']}"
        )
    if not np.isfinite(path).all():
        raise NumericalError("the populations are not finite at some times")
    result: FloatArray = path
    return result
