"""Targets of many kinds for weighted answers, the calls that each may cost, and what is true."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import attrs
import numpy as np

import surrokit as sk
from real_posteriors.cases import CASES
from real_posteriors.targets import Posterior
from surrokit import capabilities as can
from surrokit.targets.bounds import BoundedPotential
from surrokit.types import Capabilities
from surrokit_problems.lynx_hare import LynxHare

BENDS, NARROW = np.array([0.5, -0.3, 0.2]), 0.5
SCHOOLS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
DEGREES, LINKED = 3.0, 0.7
DIRECT, FINE = 1_000_000, 0.008


def banana():
    """Return a normal number, and three that lie about multiples of its square."""

    def both(q):
        away = (q[:, 1:] - BENDS * (np.square(q[:, :1]) - 1.0)) / NARROW**2
        slopes = np.empty_like(q)
        slopes[:, 0] = q[:, 0] * (1.0 - 2.0 * away @ BENDS)
        slopes[:, 1:] = away
        squares = np.square(q[:, 0]) + np.square(NARROW * away).sum(axis=1)
        return 0.5 * squares, slopes

    return sk.potential(value_and_gradient=both, dim=4, batched=True)


def draw_banana(rng):
    """Return direct draws of it."""
    q = rng.standard_normal((DIRECT, 4))
    q[:, 1:] = NARROW * q[:, 1:] + BENDS * (np.square(q[:, :1]) - 1.0)
    return q


def student():
    """Return a Student-t in three dimensions with three degrees of freedom, correlated."""
    precision = np.linalg.inv(np.full((3, 3), LINKED) + (1.0 - LINKED) * np.eye(3))
    power = 0.5 * (DEGREES + 3.0)

    def both(q):
        scaled = q @ precision
        squares = 1.0 + np.sum(q * scaled, axis=1) / DEGREES
        return power * np.log(squares), 2.0 * power * scaled / (DEGREES * squares[:, None])

    return sk.potential(value_and_gradient=both, dim=3, batched=True)


def draw_student(rng):
    """Return direct draws of it."""
    factor = np.linalg.cholesky(np.full((3, 3), LINKED) + (1.0 - LINKED) * np.eye(3))
    normal = rng.standard_normal((DIRECT, 3)) @ factor.T
    return normal / np.sqrt(rng.chisquare(DEGREES, DIRECT) / DEGREES)[:, None]


def eight_schools():
    """Return Rubin's eight schools, non-centred, with half-Cauchy scale 5."""

    def log_density(q):
        mu, log_tau, raw = q[:, 0], q[:, 1], q[:, 2:]
        tau = np.exp(log_tau)
        away = (SCHOOLS - mu[:, None] - tau[:, None] * raw) / ERRORS
        value = -0.5 * np.square(mu / 5.0) - np.log1p(np.square(tau / 5.0)) + log_tau
        value += -0.5 * np.square(raw).sum(axis=1) - 0.5 * np.square(away).sum(axis=1)
        pulls = away / ERRORS
        slopes = np.empty_like(q)
        slopes[:, 0] = -mu / 25.0 + pulls.sum(axis=1)
        of_prior = 1.0 - 2.0 * np.square(tau / 5.0) / (1.0 + np.square(tau / 5.0))
        slopes[:, 1] = of_prior + tau * np.sum(pulls * raw, axis=1)
        slopes[:, 2:] = -raw + tau[:, None] * pulls
        return -value, -slopes

    return sk.potential(value_and_gradient=log_density, dim=10, batched=True)


class MapOfLynxHare(LynxHare):
    """The Lotka-Volterra model without its Jacobian."""

    capabilities: ClassVar[Capabilities] = frozenset({can.FORWARD, can.INITIAL})


def lynx_hare_by_map():
    """Return the posterior of the pelts, whose map to populations has no derivatives."""
    return BoundedPotential(MapOfLynxHare(), LynxHare.parameters)


@attrs.frozen
class Problem:
    """A target, the calls that it may cost, and direct draws of it where there are any.

    The target takes the folder with data, which few need. Where an error is aimed at, a run may end
    before it has used its calls.
    """

    target: Callable[[Path | None], object]
    max_calls: int
    draw: Callable[[np.random.Generator], np.ndarray] | None = None
    surrogate: object = "additive"
    aim: float = 0.02


def of_posteriordb(name):
    """Return a problem of posteriordb, with 100 calls and 20 for each dimension."""

    def target(data):
        return Posterior.read(name, data / "posteriordb").with_gradient()

    return Problem(target, 100 + 20 * CASES[name].dim, aim=FINE)


def bank(data):
    """Return the regression of the Bank Marketing data."""
    return sk.make("potential", "bank", path=str(data / "bank-additional-full.csv.gz"))


PROBLEMS = {
    "banana": Problem(lambda _: banana(), 300, draw_banana),
    "student": Problem(lambda _: student(), 200, draw_student),
    "student-few-nodes": Problem(
        lambda _: student(), 200, draw_student, ("additive", {"n_nodes": 5})
    ),
    "eight-schools": Problem(lambda _: eight_schools(), 300),
    "lynx-hare": Problem(lambda _: "lynx-hare", 150),
    "elliptic-pde": Problem(lambda _: "elliptic-pde", 300),
    "lynx-hare-250": Problem(lambda _: "lynx-hare", 250, aim=FINE),
    "lynx-hare-map": Problem(lambda _: lynx_hare_by_map(), 500, aim=FINE),
    "elliptic-pde-map": Problem(
        lambda _: sk.make("potential", "elliptic-pde", derivatives=False), 500, aim=FINE
    ),
    "elliptic-pde-fine": Problem(lambda _: "elliptic-pde", 300, aim=FINE),
    "bank": Problem(bank, 500),
    **{name: of_posteriordb(name) for name in CASES},
}
"""By name."""

BY_DEFAULT = (
    "banana",
    "student",
    "student-few-nodes",
    "eight-schools",
    "lynx-hare",
    "elliptic-pde",
)
