"""The Hudson's Bay Company's pelts of lynx and hare, with the Lotka-Volterra model."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import EvaluationError, NumericalError
from surrokit.model.model import Model, ModelPotential
from surrokit.model.source import in_a_batch_of_one, row_by_row
from surrokit.targets.bounds import BoundedPotential
from surrokit.targets.functions import PotentialOfOutputs
from surrokit.types import Capabilities, FloatArray, IntArray
from surrokit_problems.ode.energy import LynxHareEnergy, in_support
from surrokit_problems.ode.lotka_volterra import log_populations, log_populations_and_sensitivities

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

_PERIOD = 10.0
"""Years between the two peaks of hare, read off the counts."""


class LynxHare(PotentialOfOutputs, ModelPotential):
    """U of the eight positive parameters of the Lotka-Volterra model, in nats.

    A position is alpha, beta, gamma, delta (rates a year), hare_0, lynx_0 (thousands, in 1900),
    sigma_hare, sigma_lynx (of log counts). U is ``inf`` where one is not positive and finite. The
    forward map takes it to log populations; :class:`LynxHareEnergy` does the rest.

    Notes
    -----
    Data and model are those of ``hudson_lynx_hare-lotka_volterra`` in posteriordb, after
    Carpenter (2018). Methods raise :class:`~surrokit.errors.ShapeError` unless positions are rows
    of 8 numbers, and :class:`~surrokit.errors.EvaluationError` where the equations could not be
    solved at some of them. Wrap it in :class:`surrokit.targets.bounds.BoundedPotential` to sample
    logarithms.
    """

    parameters: ClassVar[Parameters] = Parameters.declare(dict.fromkeys(_NAMES, (0.0, None)))
    """Names and bounds."""

    dim: ClassVar[int] = 8
    """Numbers in a position."""

    capabilities: ClassVar[Capabilities] = frozenset(
        {can.GRADIENT, can.METRIC, can.FORWARD, can.JACOBIAN, can.INITIAL}
    )
    """What it offers besides the value."""

    def __init__(self) -> None:
        self.energy = LynxHareEnergy(np.log(COUNTS))
        self.model = Model(Populations(), self.dim, each_row=None, outputs=[COUNTS.size])

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return log populations at positions of shape (n, 8).

        Returns
        -------
        ndarray of shape (n, 42)
            Logarithms of thousands, by year: hare 1900, lynx 1900, hare 1901, ... NaN outside the
            support.
        """
        return self.model.evaluate("forward", check_positions(positions, self.dim))[0]

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log populations as :meth:`forward` does, and their derivatives (n, 42, 8)."""
        q = check_positions(positions, self.dim)
        outputs, jacobian = self.model.evaluate("forward_and_jacobian", q)
        return outputs, jacobian

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return starting positions about a guess from the counts, shape (n, 8).

        Small oscillations have frequency sqrt(alpha gamma) about the levels gamma / delta of hare
        and alpha / beta of lynx. The guess takes these from the period, a little faster since
        large oscillations are slower than small ones, and from the mean counts; the initial
        populations are the first counts. Scatter is 15 % lognormal in every parameter: from 20 %
        on, some starts lie nearer to a minor mode where all variation is noise.
        """
        rate = 1.15 * 2.0 * np.pi / _PERIOD
        hare, lynx = COUNTS.mean(axis=0)
        guess = np.array([rate, rate / lynx, rate, rate / hare, *COUNTS[0], 0.5, 0.5])
        return guess * np.exp(0.15 * rng.standard_normal((n, self.dim)))


def lynx_hare() -> BoundedPotential:
    """Return the posterior in logarithms of its eight parameters."""
    return BoundedPotential(LynxHare(), LynxHare.parameters)


class Populations:
    """Log populations, and their derivatives."""

    def at(self, what: str, row: FloatArray) -> tuple[FloatArray, ...]:
        """Return results at a position of shape (8,)."""
        return in_a_batch_of_one(self, what, row)

    def together(self, what: str, rows: FloatArray) -> tuple[FloatArray, ...]:
        """Return results at positions of shape (n, 8)."""
        return _solve(_outputs if what == "forward" else _outputs_and_jacobian, rows)


def _outputs(positions: FloatArray) -> tuple[FloatArray, ...]:
    logs = log_populations(positions[:, :6], TIMES)
    return (logs.reshape(len(positions), COUNTS.size),)


def _outputs_and_jacobian(positions: FloatArray) -> tuple[FloatArray, ...]:
    n = len(positions)
    logs, sensitivities = log_populations_and_sensitivities(positions[:, :6], TIMES)
    jacobian = np.zeros((n, COUNTS.size, LynxHare.dim))
    jacobian[:, :, :6] = sensitivities.reshape(n, COUNTS.size, 6)
    return logs.reshape(n, COUNTS.size), jacobian


def _solve(
    solve: Callable[[FloatArray], tuple[FloatArray, ...]], positions: FloatArray
) -> tuple[FloatArray, ...]:
    """Solve inside the support; NaN outside it, and an error that names what failed inside."""
    n = len(positions)
    rows = np.flatnonzero(in_support(positions))
    causes: dict[int, Exception] = {}
    try:
        results = _together_or_alone(solve, positions[rows])
    except EvaluationError as error:
        causes = {int(rows[i]): cause for i, cause in error.causes.items()}
        results = error.results
    if len(rows) < n:
        results = tuple(_spread(result, rows, n) for result in results)
    if causes:
        raise EvaluationError(causes, results, n=n)
    return results


def _together_or_alone(
    solve: Callable[[FloatArray], tuple[FloatArray, ...]], positions: FloatArray
) -> tuple[FloatArray, ...]:
    try:
        return solve(positions)
    except NumericalError:
        # one wild row must not cost the others their evaluation
        return row_by_row(lambda row: tuple(r[0] for r in solve(row[None])), positions).unwrap()


def _spread(result: FloatArray, rows: IntArray, n: int) -> FloatArray:
    full = np.full((n, *result.shape[1:]), np.nan)
    full[rows] = result
    return full
