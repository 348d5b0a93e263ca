"""Data of models that are written down in several languages, made here from fixed seeds."""

from __future__ import annotations

import numpy as np

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
"""The eight schools of Rubin (1981)."""

GROUPS = np.repeat(np.arange(6), 5)
IN_GROUPS = np.random.default_rng(8).normal(GROUPS.astype(float), 1.0)
"""Thirty rows of six groups."""

_MATRIX = np.array([[1.0, 0.6, 0.0], [0.6, 2.0, -0.3], [0.0, -0.3, 0.5]])
CORRELATED = np.random.default_rng(9).multivariate_normal([0.5, 0.0, -1.0], _MATRIX, size=40)
"""Forty rows of three correlated numbers."""

_rng = np.random.default_rng(10)
SLOPE_AT = _rng.normal(size=80)
GRADES = np.digitize(1.2 * SLOPE_AT + _rng.logistic(size=80), [-1.0, 0.5, 2.0])
"""Grades 0 to 3 of eighty."""

_rng = np.random.default_rng(11)
MIXED = np.where(
    _rng.uniform(size=150) < 0.4, _rng.normal(-1.5, 0.7, 150), _rng.normal(2.0, 1.0, 150)
)
"""Two normal components."""

N_PERSONS, N_ITEMS = 340, 60
_rng = np.random.default_rng(12)
ABILITY, DIFFICULTY = _rng.normal(size=N_PERSONS), _rng.normal(0.3, 1.2, size=N_ITEMS)
ANSWERS = (
    _rng.uniform(size=(N_PERSONS, N_ITEMS)) < 1.0 / (1.0 + np.exp(DIFFICULTY - ABILITY[:, None]))
).astype(int)
"""Answers of 340 persons to 60 items (Rasch), so that there are 400 parameters and two more."""


def _returns(n: int, omega: float, alpha: float, beta: float) -> np.ndarray:
    rng = np.random.default_rng(13)
    values, variance = np.empty(n), 1.0
    for i in range(n):
        values[i] = np.sqrt(variance) * rng.normal()
        variance = omega + alpha * values[i] ** 2 + beta * variance
    return values


RETURNS = _returns(400, 0.2, 0.3, 0.5)
"""Returns of 400 days, whose variance begins at 1 (GARCH(1,1) of Bollerslev, 1986)."""

_rng = np.random.default_rng(14)
PLACES = np.sort(_rng.uniform(-3.0, 3.0, size=40))
HEIGHTS = np.sin(2.0 * PLACES) + 0.3 * PLACES + _rng.normal(0.0, 0.3, size=40)
"""A smooth curve at forty places, with noise."""

_rng = np.random.default_rng(15)
COLUMNS = _rng.normal(size=(100_000, 10))
_LOGITS = -0.5 + COLUMNS @ np.linspace(-1.0, 1.0, 10)
EVENTS = (_rng.uniform(size=100_000) < 1.0 / (1.0 + np.exp(-_LOGITS))).astype(int)
"""Yes or no of 100,000 rows."""


def _infected(days: np.ndarray, contact: float, recovery: float, first: float) -> np.ndarray:
    from scipy.integrate import solve_ivp

    def flow(_: float, shares: np.ndarray) -> list[float]:
        new = contact * shares[0] * shares[1]
        return [-new, new - recovery * shares[1]]

    solved = solve_ivp(
        flow, (0.0, days[-1]), [1.0 - first, first], t_eval=days, rtol=1e-9, atol=1e-9
    )
    return np.asarray(solved.y[1])


DAYS = np.arange(1.0, 21.0)
SICK = _infected(DAYS, 1.3, 0.4, 0.02) + np.random.default_rng(16).normal(0.0, 0.02, size=20)
"""The share of the infected on twenty days of an epidemic, with noise."""
