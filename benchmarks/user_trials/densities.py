"""Targets as a new user writes them: plain functions of one position, and little else."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import surrokit as sk
from surrokit.types import FloatArray

Density = Callable[[FloatArray], float]

FAILING = 0.05
"""Part of the solves that fail, where some do."""

# --- two modes ---


def two_modes(q: FloatArray) -> float:
    """Return the log density of 2/3 N(3, I) + 1/3 N(-3, I)."""
    right, left = -0.5 * np.sum((q - 3.0) ** 2), -0.5 * np.sum((q + 3.0) ** 2)
    return float(np.logaddexp(np.log(2 / 3) + right, np.log(1 / 3) + left))


def slope_of_two_modes(q: FloatArray) -> FloatArray:
    """Return its gradient."""
    right = 1.0 / (1.0 + 0.5 * np.exp(-6.0 * q.sum()))  # what the right mode weighs here
    return right * (3.0 - q) + (1.0 - right) * (-3.0 - q)


# --- twenty correlated dimensions ---


@cache
def covariance() -> FloatArray:
    """Return a covariance of condition 1000, its axes turned at random, shape (20, 20)."""
    axes, _ = np.linalg.qr(np.random.default_rng(20).standard_normal((20, 20)))
    return np.asarray((axes * np.geomspace(0.03, 30.0, 20)) @ axes.T)


@cache
def precision() -> FloatArray:
    """Return its inverse."""
    return np.linalg.inv(covariance())


def correlated(q: FloatArray) -> float:
    """Return the log density of the normal with that covariance about 1."""
    return float(-0.5 * (q - 1.0) @ precision() @ (q - 1.0))


def slope_of_correlated(q: FloatArray) -> FloatArray:
    """Return its gradient."""
    return np.asarray(-precision() @ (q - 1.0))


# --- an epidemic ---

DAYS = np.arange(1.0, 15.0)
PEOPLE = 763
EPIDEMIC = {"infection": (0, None), "recovery": (0, None), "infected": (0, 1)}


def flow(_: float, y: FloatArray, infection: Any, recovery: Any) -> FloatArray:
    """Return how parts of the people, susceptible and infected, change in time."""
    susceptible, infected = y
    new = infection * susceptible * infected
    return np.stack([-new, new - recovery * infected])


def in_bed(q: FloatArray) -> FloatArray:
    """Return how many are expected to be infected each day."""
    infection, recovery, infected = q
    start = [1.0 - infected, infected]
    how: dict[str, Any] = {"t_eval": DAYS, "rtol": 1e-6, "atol": 1e-9}
    solved = solve_ivp(flow, (0.0, DAYS[-1]), start, args=(infection, recovery), **how)
    if not solved.success:
        raise RuntimeError(solved.message)
    return np.asarray(PEOPLE * solved.y[1])


@cache
def counted() -> FloatArray:
    """Return counts of each day."""
    expected = in_bed(np.array([1.7, 0.5, 0.003]))
    return np.asarray(np.random.default_rng(763).poisson(expected), dtype=float)


def density_of_counts(q: FloatArray, expected: FloatArray) -> Any:
    """Return the log density, of one position or of columns of them, by what they expect."""
    infection, recovery, infected = q
    expected = np.maximum(expected, 1e-9)
    misfit = counted() @ np.log(expected) - expected.sum(axis=0)
    return misfit - 0.5 * (infection / 2.0) ** 2 - 0.5 * recovery**2 - infected / 0.02


def sir(q: FloatArray) -> float:
    """Return the log density: Poisson counts, half normal rates, few infected on the first day."""
    return float(density_of_counts(q, in_bed(q)))


def fails_somewhere(density: Density) -> Density:
    """Return a density that fails at one in twenty positions, always the same ones."""

    def patchy(q: FloatArray) -> float:
        # the last digits of a position depend on how many are transformed at once
        if zlib.crc32(q.astype(np.float32).tobytes()) < FAILING * 2**32:
            raise RuntimeError("the solver did not converge")
        return density(q)

    return patchy


def fails_by_chance(density: Density, seed: int) -> Density:
    """Return a density that fails one time in twenty, wherever it is."""
    rng = np.random.default_rng(seed)

    def moody(q: FloatArray) -> float:
        if rng.random() < FAILING:
            raise RuntimeError("the solver did not converge")
        return density(q)

    return moody


# --- a curve through points ---

TIMES = np.linspace(0.0, 10.0, 40)
CURVE = {"a": (0, 10), "b": (0.5, 5), "c": (0, 10), "d": (0, 0.5), "sigma": (0.01, 1)}


@cache
def measured() -> FloatArray:
    """Return what was measured at these times."""
    noise = np.random.default_rng(40).standard_normal(len(TIMES))
    return np.asarray(3.0 * np.exp(-1.5 * TIMES) + 1.5 * np.exp(-0.2 * TIMES) + 0.1 * noise)


def density_of_curves(q: FloatArray) -> FloatArray:
    """Return the log density of each row (n, 5), flat within the bounds."""
    a, b, c, d, sigma = q.T[..., None]
    misfit = (measured() - a * np.exp(-b * TIMES) - c * np.exp(-d * TIMES)) / sigma
    return np.asarray(-0.5 * np.sum(misfit**2, axis=-1) - len(TIMES) * np.log(sigma[..., 0]))


def curve(q: FloatArray) -> float:
    """Return the log density."""
    return float(density_of_curves(q[None])[0])


# --- a regression on raw columns ---

CHILDREN = 434
REGRESSION = {"beta": sk.real(4), "sigma": (0, None)}


@cache
def children() -> tuple[FloatArray, FloatArray]:
    """Return columns 1, mother's school, mother's IQ and their product, and the scores."""
    rng = np.random.default_rng(CHILDREN)
    school = (rng.random(CHILDREN) < 0.79).astype(float)
    iq = rng.normal(100.0, 15.0, CHILDREN)
    columns = np.stack([np.ones(CHILDREN), school, iq, school * iq], axis=1)
    score = columns @ [-11.5, 51.3, 1.1, -0.5] + rng.normal(0.0, 18.0, CHILDREN)
    return columns, score


def scores(q: FloatArray) -> float:
    """Return the log density: flat, but for a half Cauchy density of sigma."""
    columns, score = children()
    misfit = (score - columns @ q[:4]) / q[4]
    noise = -CHILDREN * np.log(q[4]) - np.log1p((q[4] / 2.5) ** 2)
    return float(-0.5 * misfit @ misfit + noise)


def slope_of_scores(q: FloatArray) -> FloatArray:
    """Return its gradient."""
    columns, score = children()
    misfit = (score - columns @ q[:4]) / q[4]
    prior = -2.0 * q[4] / (2.5**2 + q[4] ** 2)
    noise = (misfit @ misfit - CHILDREN) / q[4] + prior
    return np.append(columns.T @ misfit / q[4], noise)
