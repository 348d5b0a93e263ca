"""Regressions by the name of their family: one door to all of them."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from surrokit.arguments import matched_rows
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.predictive.families import suggest
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import FloatArray
from surrokit_problems import families
from surrokit_problems.classes import MultinomialLogit, OrdinalLogit, ordinal
from surrokit_problems.design import array_from
from surrokit_problems.families import LOGISTIC, TERMS, Family
from surrokit_problems.rows import GeneralizedLinearModel

Regression: TypeAlias = GeneralizedLinearModel | OrdinalLogit
"""A sum over rows."""


def regression(
    family: str | Family,
    design: Any,
    response: Any,
    *,
    prior: GaussianPrior | float | None = None,
    offset: Any = None,
    weights: Any = None,
    event: Any = None,
    scale: float | None = None,
    degrees: float | None = None,
    size: float | None = None,
    shape: float | None = None,
    columns: FloatArray | None = None,
) -> Regression:
    """Return the potential of a regression's coefficients: a sum over rows, and a prior.

    Parameters
    ----------
    family
        ``"gaussian"``, ``"student"``, ``"logistic-errors"`` (errors of regression),
        ``"logistic"``, ``"probit"`` (zeros and ones), ``"multinomial"`` (classes 0, 1, ..., m),
        ``"ordinal"`` (the same in their order, with cutpoints behind the coefficients),
        ``"poisson"``, ``"negative-binomial"`` (counts of mean exp(x . b)), ``"gamma"`` (positive,
        of mean exp(x . b)), ``"exponential"``, ``"weibull"`` (times, with hazards in proportion to
        exp(x . b)); or a :class:`~surrokit_problems.families.Family` of one's own.
    design : array_like or SciPy sparse matrix of shape (n_rows, dim), or path
        Covariates, a column of ones included where an intercept is wanted (not with ordered
        categories); or the path of an .npy or .npz file that holds them.
    response : array_like of shape (n_rows,), or path
        One for each row.
    prior
        Of the coefficients, normal; a number is the standard deviation of all of them, about 0;
        None is flat.
    offset : array_like of shape (n_rows,), or path, optional
        Known parts of the predictors, such as the logarithm of an exposure.
    weights : array_like of shape (n_rows,), or path, optional
        How often each row counts.
    event : array_like of shape (n_rows,), or path, optional
        For times: 1 where the event came at that time, 0 where it had not come yet. None if it
        always came.
    scale, degrees
        Both positive: of errors, 1 unless given; and of freedom, of Student's errors, 4 unless
        given.
    size
        Positive, of negative binomial counts, with variance m + m^2 / size; 1 unless given.
    shape
        Positive, of gamma and Weibull distributions; 1 unless given.
    columns : ndarray of shape (n_columns + 1, dim), optional
        What coefficients are of: the predictors are (x, 1) A b, with A these columns, such as those
        of features about their means, without a copy of the data. Not of ordered categories.

    Raises
    ------
    ConfigurationError, ShapeError, TargetError
        If there is no such family or setting, numbers make no sense, pandas objects have rows that
        cannot be matched by their indices, shapes do not agree, or a file cannot be read.
    """
    if not isinstance(family, str | Family):
        raise ConfigurationError(
            f"family must be a name or a Family, got {reprlib.repr(family)}. Give the family "
            "first, then design and response."
        )
    rows = {"design": design, "response": response, "offset": offset}
    rows = matched_rows({**rows, "weights": weights, "event": event})
    design, response, offset, weights, event = rows.values()
    given = {"scale": scale, "degrees": degrees, "size": size, "shape": shape}
    settings = {name: number for name, number in given.items() if number is not None}
    if family == "multinomial":
        _reject("multinomial", {**settings, "offset": offset, "event": event})
        return MultinomialLogit(design, response, prior, weights, columns)
    if family == "ordinal":
        _reject("ordinal", {**settings, "event": event, "columns": columns})
        return ordinal(design, response, prior, offset, weights)
    if isinstance(family, Family):
        _reject(family.name, settings)
        chosen = family
    elif family in TERMS:
        chosen = families.family(family, **settings)
    else:
        names = sorted([*TERMS, "multinomial", "ordinal"])
        raise ConfigurationError(
            f"family must be one of {', '.join(names)}, or a Family, got {family!r}"
            f"{suggest(family, names)}"
        )
    if event is not None or chosen.responses == "time":
        response = _times(chosen, response, event)
    return GeneralizedLinearModel(design, response, chosen, prior, offset, weights, columns)


def _reject(family: str, settings: Mapping[str, Any]) -> None:
    odd = [name for name, value in settings.items() if value is not None]
    if odd:
        raise ConfigurationError(
            f"the family {family!r} has no {' and no '.join(odd)}; leave that out"
        )


def _times(family: Family, response: Any, event: Any) -> Any:
    """Return times, minus themselves where they were censored."""
    if family.responses != "time":
        raise ConfigurationError(
            f"event goes with times, which the family {family.name!r} does not have; leave it out"
        )
    times = array_from(response, "response")
    came = np.ones(times.shape) if event is None else array_from(event, "event")
    if times.shape != came.shape:
        raise ShapeError(
            f"event must have the shape of response, {times.shape}, got {came.shape}; give 1 or 0 "
            "for each time"
        )
    if not np.isin(came, (0.0, 1.0)).all():
        raise ConfigurationError("event must be zeros and ones, got others; give 1 where it came")
    if not (times > 0.0).all():
        raise ConfigurationError(
            f"response must be times above 0, got {times.min():g}; drop such rows, and give event "
            "where times were censored"
        )
    return np.where(came == 1.0, times, -times)


def logistic(
    design: str | Path | npt.ArrayLike | sparse.sparray | sparse.spmatrix,
    response: str | Path | npt.ArrayLike,
    prior_variance: float = 100.0,
) -> GeneralizedLinearModel:
    """Return logistic regression with a normal prior of one variance about 0.

    Parameters
    ----------
    design : array_like or SciPy sparse matrix of shape (n_rows, dim), or path
        Covariates, a column of ones included where an intercept is wanted; or the path of an .npy
        or .npz file that holds them.
    response : array_like of shape (n_rows,), or path
        Zeros and ones.
    prior_variance
        Of every coefficient, positive.

    Raises
    ------
    ConfigurationError, ShapeError, TargetError
        If the variance is not positive; and as :func:`regression`.
    """
    if not 0.0 < prior_variance < np.inf:
        raise ConfigurationError(
            f"prior_variance must be positive and finite, got {prior_variance}; the paper has 100"
        )
    return GeneralizedLinearModel(design, response, LOGISTIC, float(np.sqrt(prior_variance)))


def simulate_regression(
    n_rows: int, dim: int, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw a design (n_rows, dim), responses (n_rows,) and the coefficients (dim,) behind them.

    The design is (1/10, X1) with the entries of X1 from N(0, 1/100); coefficients are uniform on
    [0, 1]; responses are Bernoulli(1 / (1 + exp(-x . b))).

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
) -> GeneralizedLinearModel:
    """Return the simulated regression of section 5.1 of Zhang, Shahbaba and Zhao (2017).

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
    return logistic(design, response, prior_variance)
