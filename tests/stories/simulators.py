"""Models of people's own, which worker processes import."""

from __future__ import annotations

import time

import numpy as np
from scipy.integrate import cumulative_trapezoid, solve_ivp

SECONDS = 0.02
"""Of one call of the simulator, in place of three."""
REDSHIFTS = np.linspace(0.05, 1.2, 30)
GRID = np.linspace(0.0, 1.2, 241)
TIMES = np.linspace(0.0, 8.0, 40)


def moduli(offset, matter):
    """Return the distance moduli of supernovae in a flat universe."""
    rate = 1 / np.sqrt(matter * (1 + GRID) ** 3 + 1 - matter)
    distance = np.interp(REDSHIFTS, GRID, cumulative_trapezoid(rate, GRID, initial=0.0))
    return offset + 5 * np.log10((1 + REDSHIFTS) * distance)


SUPERNOVAE = moduli(43.2, 0.3) + 0.1 * np.random.default_rng(5).standard_normal(30)


def supernovae(M, Om):
    """Return the log likelihood of the supernovae, slowly."""
    time.sleep(SECONDS)
    misfit = (SUPERNOVAE - moduli(M, Om)) / 0.1
    return -0.5 * misfit @ misfit


def swing(frequency, damping):
    """Return the angles of a pendulum with friction."""
    solved = solve_ivp(
        lambda _, y: (y[1], -(frequency**2) * np.sin(y[0]) - damping * y[1]),
        (0.0, TIMES[-1]),
        (1.0, 0.0),
        t_eval=TIMES,
        rtol=1e-7,
        atol=1e-9,
    )
    return solved.y[0]


def spectrum(wavelengths, low, high, heights, width):
    """Return two lines of one width."""
    lines = np.exp(-0.5 * ((wavelengths[:, None] - np.array([low, high])) / width) ** 2)
    return lines @ np.asarray(heights)
