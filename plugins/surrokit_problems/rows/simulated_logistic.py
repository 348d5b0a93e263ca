"""The simulated logistic regression of section 5.1 of Zhang, Shahbaba and Zhao (2017)."""

from __future__ import annotations

import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray
from surrokit_problems.rows.logistic import LogisticRegression


def simulate_regression(
    n_rows: int, dim: int, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw a design, responses and the coefficients behind them.

    The design is (1/10, X1) with the entries of X1 from N(0, 1/100); coefficients are uniform on
    [0, 1]; responses are Bernoulli(1 / (1 + exp(-x . b))).

    Parameters
    ----------
    n_rows, dim
        Shape of the design.
    seed
        Of everything random here.

    Returns
    -------
    design : ndarray of shape (n_rows, dim)
        Covariates, the constant in front.
    response : ndarray of shape (n_rows,)
        Zeros and ones.
    coefficients : ndarray of shape (dim,)
        The truth.

    Raises
    ------
    ConfigurationError
        If a size is not positive.
    """
    if n_rows < 1 or dim < 1:
        raise ConfigurationError(
            f"n_rows and dim must be at least 1, got {n_rows} and {dim}; the paper has 100000 "
            "and 50"
        )
    rng = np.random.default_rng(seed)
    coefficients = rng.uniform(size=dim)
    design = rng.standard_normal((n_rows, dim))
    design[:, 0] = 1.0
    design *= 0.1
    response = rng.uniform(size=n_rows) < 1.0 / (1.0 + np.exp(-design @ coefficients))
    return design, response.astype(np.float64), coefficients


def simulated_logistic(
    n_rows: int = 100_000, dim: int = 50, prior_variance: float = 100.0, seed: int = 2017
) -> LogisticRegression:
    """Return the regression on simulated data.

    Parameters
    ----------
    n_rows, dim
        Shape of the design, at least 1 each.
    prior_variance
        Of every coefficient, positive.
    seed
        Of the data, at least 0.

    Raises
    ------
    ConfigurationError
        If a number is not positive.
    """
    design, response, _ = simulate_regression(n_rows, dim, seed)
    return LogisticRegression(design, response, prior_variance)
