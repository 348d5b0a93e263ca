"""E q to far more digits than what is measured against it."""

from __future__ import annotations

from typing import Any

import numpy as np

import surrokit as sk
from surrokit.contracts.potential import Potential, with_gradient
from surrokit.diagnostics import mean_error, r_hat
from surrokit.types import FloatArray
from surrokit_paper.chains.chain import complete

_AT_ONCE = 100  # positions: the gradient of a logistic regression takes memory for rows x positions


def reference_mean(
    whole: Potential, target: Potential, n_draws: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Return E q from a long run of this project's own, with the gradient as control variates.

    Parameters
    ----------
    whole
        The target with all that it offers, which is sampled.
    target
        The same with its gradient; it may be cheaper.
    n_draws
        Of each of four chains.
    rng
        Generator.

    Returns
    -------
    dict
        ``mean``, shape (dim,); ``rhat``, the largest over parameters; ``acceptance``;
        ``relative_error``, the standard error of the mean over |E q|, and ``plain_error``, what it
        were without the control variates.

    Raises
    ------
    KeyboardInterrupt
        If somebody ended the run.
    """
    run = complete(sk.sample(whole, surrogate="additive", draws=n_draws, seed=rng, progress=False))
    controlled = with_gradients(run.draws, _gradients(target, run.draws))
    mean = controlled.mean(axis=(0, 1))
    size = np.linalg.norm(mean)
    return {
        "mean": mean,
        "rhat": float(np.max(r_hat(run.draws))),
        "acceptance": float(run.acceptance.mean()),
        "relative_error": float(np.linalg.norm(mean_error(controlled)) / size),
        "plain_error": float(np.linalg.norm(mean_error(run.draws)) / size),
    }


def with_gradients(draws: FloatArray, gradients: FloatArray) -> FloatArray:
    """Return draws less the part of them that the gradient explains: one mean, less variance.

    The mean of grad U under exp(-U) is 0, so a linear function of it may be taken away. Where U is
    nearly quadratic, next to nothing is left but the mean (Mira, Solgi and Imparato 2013,
    doi:10.1007/s11222-012-9344-6).

    Parameters
    ----------
    draws : ndarray of shape (chains, draws, dim)
        From the exact target.
    gradients : ndarray of shape (chains, draws, dim)
        Of U at them.
    """
    dim = draws.shape[-1]
    slopes = gradients.reshape(-1, dim)
    positions = draws.reshape(-1, dim)
    design = np.column_stack([np.ones(len(slopes)), slopes])
    weights = np.linalg.lstsq(design, positions, rcond=None)[0][1:]
    return draws - gradients @ weights


def _gradients(target: Potential, draws: FloatArray) -> FloatArray:
    positions = draws.reshape(-1, draws.shape[-1])
    exact = with_gradient(target)
    blocks = [
        exact.value_and_gradient(positions[first : first + _AT_ONCE])[1]
        for first in range(0, len(positions), _AT_ONCE)
    ]
    return np.concatenate(blocks).reshape(draws.shape)
