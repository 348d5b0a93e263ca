"""Regressions by the name of their family: one door to all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from surrokit.arguments import matched_rows
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.predictive.families import suggest
from surrokit.targets.gaussian import GaussianPrior
from surrokit_problems import ready_made
from surrokit_problems.design import array_from
from surrokit_problems.families import Family
from surrokit_problems.logistic import LogisticRegression
from surrokit_problems.logistic_terms import LOGISTIC
from surrokit_problems.multinomial import MultinomialLogit
from surrokit_problems.ordinal import OrdinalLogit, ordinal
from surrokit_problems.probit import PROBIT
from surrokit_problems.rows import GeneralizedLinearModel

Regression: TypeAlias = (
    GeneralizedLinearModel | LogisticRegression | MultinomialLogit | OrdinalLogit
)
"""A sum over rows."""

MULTINOMIAL = "multinomial"
ORDINAL = "ordinal"

_NAMED: Mapping[str, tuple[Family | Callable[..., Family], tuple[str, ...]]] = {
    "gaussian": (ready_made.gaussian, ("scale",)),
    "student": (ready_made.student_errors, ("scale", "degrees")),
    "logistic-errors": (ready_made.logistic_errors, ("scale",)),
    "logistic": (LOGISTIC, ()),
    "probit": (PROBIT, ()),
    "poisson": (ready_made.poisson, ()),
    "negative-binomial": (ready_made.negative_binomial, ("size",)),
    "gamma": (ready_made.gamma, ("shape",)),
    "exponential": (ready_made.exponential, ()),
    "weibull": (ready_made.weibull, ("shape",)),
}


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
    scale
        Of errors, positive; 1 unless given.
    degrees
        Of freedom, of Student's errors, positive; 4 unless given.
    size
        Of negative binomial counts, with variance m + m^2 / size; positive, 1
        unless given.
    shape
        Of gamma and Weibull distributions, positive; 1 unless given.

    Raises
    ------
    ConfigurationError
        If there is no such family, it has no such setting, numbers make no sense, or pandas objects
        have rows that cannot be matched by their indices.
    ShapeError
        If shapes do not agree.
    TargetError
        If a file cannot be read, or something is not numbers.
    """
    if not isinstance(family, str | Family):
        raise ConfigurationError(
            f"family must be a name or a Family, got {_shown(family)}. Give the family first, "
            "then design and response."
        )
    rows = {"design": design, "response": response, "offset": offset}
    rows = matched_rows({**rows, "weights": weights, "event": event})
    design, response, offset, weights, event = rows.values()
    given = {"scale": scale, "degrees": degrees, "size": size, "shape": shape}
    settings = {name: number for name, number in given.items() if number is not None}
    if family == MULTINOMIAL:
        _refuse("multinomial", {**settings, "offset": offset, "event": event})
        return MultinomialLogit(design, response, prior, weights)
    if family == ORDINAL:
        _refuse("ordinal", {**settings, "event": event})
        return ordinal(design, response, prior, offset, weights)
    chosen = _family(family, settings)
    if event is not None or chosen.responses == "time":
        response = _times(chosen, response, event)
    if chosen is LOGISTIC and offset is None and weights is None:
        return LogisticRegression.of(design, response, prior)
    return GeneralizedLinearModel(design, response, chosen, prior, offset, weights)


def _shown(family: Any) -> str:
    shape = getattr(family, "shape", None)
    return f"{type(family).__name__} of shape {shape}" if shape else repr(family)[:60]


def _family(family: str | Family, settings: dict[str, float]) -> Family:
    if isinstance(family, Family):
        _refuse(family.name, settings)
        return family
    if family not in _NAMED:
        names = sorted([*_NAMED, MULTINOMIAL, ORDINAL])
        raise ConfigurationError(
            f"family must be one of {', '.join(names)}, or a Family, got {family!r}"
            f"{suggest(family, names)}"
        )
    found, own = _NAMED[family]
    _refuse(family, {name: number for name, number in settings.items() if name not in own})
    return found if isinstance(found, Family) else found(**settings)


def _refuse(family: str, settings: Mapping[str, Any]) -> None:
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
