"""Likelihood and priors of the lynx-hare model, given the populations."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from surrokit.potentials import CURVATURE_DERIVATIVES, CURVATURES
from surrokit.types import BoolArray, Capabilities, FloatArray

_RATE = {"mean": 1.0, "sd": 0.5}
_INTERACTION = {"mean": 0.05, "sd": 0.05}
_NORMAL_MEAN = np.array([_RATE["mean"], _INTERACTION["mean"], _RATE["mean"], _INTERACTION["mean"]])
_NORMAL_SD = np.array([_RATE["sd"], _INTERACTION["sd"], _RATE["sd"], _INTERACTION["sd"]])
_LOG_MEDIAN = np.array([np.log(10.0), np.log(10.0), -1.0, -1.0])


def in_support(positions: FloatArray) -> BoolArray:
    """Return which positions (n, 8) are positive and finite, shape (n,)."""
    return np.asarray(((positions > 0) & (positions < np.inf)).all(axis=1))


@attrs.frozen(eq=False)
class LynxHareEnergy:
    """U from log populations and parameters, in nats, without constants.

    Counts are lognormal about the populations, with one sigma for each species. Priors: alpha and
    gamma N(1, 0.5^2), beta and delta N(0.05, 0.05^2), initial populations lognormal(log 10, 1),
    sigmas lognormal(-1, 1); those of the case study by Carpenter (2018), "Predator-prey population
    dynamics: the Lotka-Volterra model in Stan".

    Parameters
    ----------
    log_counts : ndarray of shape (n_times, 2)
        Logarithms of the counts of hare and lynx.
    """

    log_counts: FloatArray

    capabilities: ClassVar[Capabilities] = frozenset({CURVATURES, CURVATURE_DERIVATIVES})
    """What it offers besides value and gradients."""

    @property
    def observed_data(self) -> dict[str, FloatArray]:
        """Log counts, beside the outputs."""
        return {"outputs": self.log_counts.ravel()}

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,).

        Parameters
        ----------
        outputs : ndarray of shape (n, 2 n_times)
            Log populations as :meth:`LynxHare.forward` gives them; NaN where they are not known.
        positions : ndarray of shape (n, 8)
            Parameters; U is ``inf`` where they are not positive and finite.
        """
        inside = in_support(positions)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            misfit = np.square(self._residuals(outputs)).sum(axis=1) / np.square(positions[:, 6:])
            likelihood = len(self.log_counts) * np.log(positions[:, 6:]) + 0.5 * misfit
            value = likelihood.sum(axis=1) + _minus_log_prior(positions)
        return np.where(inside, value, np.inf)

    def value_and_gradients(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U (n,), its gradient in the outputs (n, 2 n_times), and in the positions (n, 8).

        Gradients are NaN where U is infinite or not known.
        """
        inside = in_support(positions)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            sigma = positions[:, 6:]
            residuals = self._residuals(outputs)
            by_outputs = -(residuals / np.square(sigma)[:, None, :]).reshape(outputs.shape)
            by_positions = _gradient_of_minus_log_prior(positions)
            misfit = np.square(residuals).sum(axis=1) / np.square(sigma)
            by_positions[:, 6:] += (len(self.log_counts) - misfit) / sigma
        by_outputs[~inside] = np.nan
        by_positions[~inside] = np.nan
        return self.value(outputs, positions), by_outputs, by_positions

    def curvatures(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return what a Gauss-Newton matrix takes: (n, 2 n_times), and (n, 8, 8).

        In the outputs the precision of a log count, 1 / sigma^2. In the positions the precision
        of each prior, for a lognormal one that of the logarithm (1 / x^2), and of each sigma the
        Fisher information of the n_times counts, 2 n_times / sigma^2. NaN outside the support.
        """
        inside = in_support(positions)
        n_times, dim = outputs.shape[1] // 2, positions.shape[1]
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            precisions = 1.0 / np.square(positions[:, 4:])
            by_outputs = np.tile(precisions[:, 2:], n_times)
            precisions[:, 2:] *= 1.0 + 2.0 * n_times
        by_positions = np.zeros((len(positions), dim, dim))
        by_positions[:, np.arange(4), np.arange(4)] = 1.0 / np.square(_NORMAL_SD)
        by_positions[:, np.arange(4, dim), np.arange(4, dim)] = precisions
        by_outputs[~inside] = np.nan
        by_positions[~inside] = np.nan
        return by_outputs, by_positions

    def curvature_gradients(
        self,
        outputs: FloatArray,
        positions: FloatArray,
        by_outputs_weights: FloatArray,
        by_positions_weights: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradients of sum(X * C) + tr(B R), shapes (n, 2 n_times) and (n, 8).

        C and R are those of :meth:`curvatures`, X and B their weights, of the same shapes. Only
        the parameters with lognormal priors change them. NaN outside the support.
        """
        inside = in_support(positions)
        n, n_times = len(positions), outputs.shape[1] // 2
        own = np.arange(4, positions.shape[1])
        weights = by_positions_weights[:, own, own]
        weights[:, 2:] *= 1.0 + 2.0 * n_times
        weights[:, 2:] += by_outputs_weights.reshape(n, n_times, 2).sum(axis=1)
        by_outputs, by_positions = np.zeros_like(outputs), np.zeros_like(positions)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            by_positions[:, 4:] = -2.0 * weights / positions[:, 4:] ** 3
        by_outputs[~inside] = np.nan
        by_positions[~inside] = np.nan
        return by_outputs, by_positions

    def _residuals(self, outputs: FloatArray) -> FloatArray:
        return self.log_counts - outputs.reshape(-1, *self.log_counts.shape)


def _minus_log_prior(positions: FloatArray) -> FloatArray:
    scaled = (positions[:, :4] - _NORMAL_MEAN) / _NORMAL_SD
    logs = np.log(positions[:, 4:])
    total: FloatArray = 0.5 * np.square(scaled).sum(axis=1)
    total += (logs + 0.5 * np.square(logs - _LOG_MEDIAN)).sum(axis=1)
    return total


def _gradient_of_minus_log_prior(positions: FloatArray) -> FloatArray:
    gradient = np.empty_like(positions)
    gradient[:, :4] = (positions[:, :4] - _NORMAL_MEAN) / np.square(_NORMAL_SD)
    gradient[:, 4:] = (1.0 + np.log(positions[:, 4:]) - _LOG_MEDIAN) / positions[:, 4:]
    return gradient
