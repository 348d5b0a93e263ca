"""Distributions of single numbers, as SciPy and others have them, in the place of priors.

What serves has ``logpdf``, of arrays of numbers; where it has ``support`` too, that bounds its
parameter. SciPy is not imported here, as that takes long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray, Pair

_SLACK = 1e-6

Form = Callable[..., tuple[Any, Any]]


def _cauchy(y: FloatArray) -> tuple[Any, Any]:
    return -np.log1p(y * y), -2.0 * y / (1.0 + y * y)


def _normal(y: FloatArray, *_ends: object) -> tuple[Any, Any]:
    return -0.5 * y * y, -y


FORMS: dict[str, Form] = {
    "beta": lambda y, a, b: (
        (a - 1.0) * np.log(y) + (b - 1.0) * np.log1p(-y),
        (a - 1.0) / y - (b - 1.0) / (1.0 - y),
    ),
    "cauchy": _cauchy,
    "expon": lambda y: (-y, -np.ones_like(y)),
    "gamma": lambda y, a: ((a - 1.0) * np.log(y) - y, (a - 1.0) / y - 1.0),
    "halfcauchy": _cauchy,
    "halfnorm": _normal,
    "invgamma": lambda y, a: (-(a + 1.0) * np.log(y) - 1.0 / y, (1.0 / y - a - 1.0) / y),
    "lognorm": lambda y, s: (
        -np.log(y) - 0.5 * np.square(np.log(y) / s),
        -(1.0 + np.log(y) / (s * s)) / y,
    ),
    "norm": _normal,
    "t": lambda y, df: (-0.5 * (df + 1.0) * np.log1p(y * y / df), -(df + 1.0) * y / (df + y * y)),
    "truncnorm": _normal,
    "uniform": lambda y: (np.zeros_like(y), np.zeros_like(y)),
}
"""Log densities in y = (x - loc) / scale but for a constant, and their derivatives, by name.

SciPy checks its arguments in each call, which takes most of the time of a surrogate with priors.
"""


def closed_form(prior: Any) -> Callable[[FloatArray], Pair] | None:
    """Return log densities (n, k) of numbers in the support, and their derivatives.

    None for a distribution that is not one of :data:`FORMS`.
    """
    family: Any = getattr(prior, "dist", None)
    name = getattr(family, "name", None)
    if type(family).__module__ != "scipy.stats._continuous_distns" or name not in FORMS:
        return None
    names = [*filter(None, (family.shapes or "").split(", ")), "loc", "scale"]
    given = {"loc": 0.0, "scale": 1.0, **dict(zip(names, prior.args, strict=False)), **prior.kwds}
    loc, scale = np.asarray(given.pop("loc"), float), np.asarray(given.pop("scale"), float)
    form, shapes = FORMS[name], [np.asarray(given[each], float) for each in names[:-2]]
    median = np.asarray(prior.ppf(0.5))
    constant = prior.logpdf(median) - form((median - loc) / scale, *shapes)[0]

    def value_and_slope(x: FloatArray) -> Pair:
        with np.errstate(all="ignore"):  # at the ends of the support
            log_density, slope = form((x - loc) / scale, *shapes)
        return log_density + constant, slope / scale

    return value_and_slope


def check_prior(prior: Any, size: int) -> None:
    """Raise ConfigurationError unless a prior is a distribution of each of ``size`` numbers."""
    if not callable(getattr(prior, "logpdf", None)):
        raise ConfigurationError(
            "a prior must be a frozen distribution of scipy.stats with a density, such as "
            f"scipy.stats.gamma(2), or have logpdf and support, got {prior!r}"
        )
    wanted = (2, size)
    try:
        low, high = (np.broadcast_to(end, wanted) for end in _support_of(prior))
        middle = np.where(np.isinf(low), np.where(np.isinf(high), 0.0, high - 1.0), low + 1.0)
        known = np.isfinite(low) & np.isfinite(high)
        middle[known] = low[known] + 0.5 * (high - low)[known]
        shape: object = np.shape(prior.logpdf(middle))
    except ConfigurationError:
        raise
    except Exception as error:  # whatever a distribution of something else raises
        shape = f"{type(error).__name__}: {error}"
    if shape != wanted:
        raise ConfigurationError(
            f"a prior must be a frozen distribution of single numbers, got {prior!r}, whose logpdf "
            f"of an array of shape {wanted} gives {shape}; add the density of several numbers "
            "together to the log density"
        )


def inside(prior: Any, lower: float, upper: float) -> tuple[float, float]:
    """Return bounds of a number that has a prior: its support, where that is narrower.

    ConfigurationError is raised where no density lies within, or it is none of a number.
    """
    name = name_of(prior)
    if _repeats(prior):
        raise ConfigurationError(
            f"the density of the prior {name} repeats, so that it is none of a number on the line; "
            "add it to the density of a surrokit.circular(), or take scipy.stats.vonmises_line"
        )
    ends = lower, upper
    low, high = _support_of(prior)
    if (low > lower).any() or (high < upper).any():
        if (low != low.flat[0]).any() or (high != high.flat[0]).any():
            raise ConfigurationError(
                f"the prior {name} has another support for each number; declare "
                "these by names of their own, each with its prior"
            )
        lower, upper = max(lower, float(low.flat[0])), min(upper, float(high.flat[0]))
    cut_off = log_mass(prior, lower, upper) if lower < upper else None
    if not lower < upper or (cut_off is not None and np.isneginf(cut_off).any()):
        raise ConfigurationError(
            f"the prior {name} lies outside the parameter's bounds {ends}; give bounds that hold "
            "it, or leave them out"
        )
    return lower, upper


def _support_of(prior: Any) -> Pair:
    """Return where a prior's density is not zero, ends of shape () or (size,).

    ConfigurationError is raised if it is no pair of numbers in order.
    """
    support = getattr(prior, "support", None)
    given = support() if callable(support) else (-np.inf, np.inf)
    try:
        low, high = (np.asarray(end, dtype=np.float64) for end in given)
        in_order = bool((low < high).all())
    except (TypeError, ValueError):
        in_order = False
    if not in_order:
        raise ConfigurationError(
            f"the support of a prior must be a pair of numbers in order, got {given!r} of {prior!r}"
        )
    return low, high


def _repeats(prior: Any) -> bool:
    """Return whether a density goes on and on, as that of an angle may: no density of a number."""
    below = getattr(prior, "cdf", None)
    with np.errstate(all="ignore"):  # far out, where powers overflow
        return callable(below) and bool((np.asarray(below(1e6)) > 1.0 + _SLACK).any())


def log_mass(prior: Any, low: float, high: float) -> FloatArray | None:
    """Return the logarithm of the probability between two bounds, shape () or (size,).

    It is what a density lacks that the bounds of its parameter cut off. None where a prior that
    they do cut off has no distribution function.
    """
    least, most = _support_of(prior)
    if (least >= low).all() and (most <= high).all():
        return np.zeros(())
    below = getattr(prior, "cdf", None)
    if not callable(below):
        return None
    above = getattr(prior, "sf", getattr(prior, "ccdf", None))
    with np.errstate(divide="ignore"):
        left = np.asarray(below(high), dtype=np.float64) - np.asarray(below(low))
        if callable(above):  # far up, where a distribution function is 1 but for rounding
            left = np.maximum(left, np.asarray(above(low)) - np.asarray(above(high)))
        return np.asarray(np.log(left))


def quantiles(prior: Any, parts: npt.ArrayLike, bounds: Any, size: int) -> FloatArray | None:
    """Return quantiles of what the bounds of its parameter leave of a prior, by probabilities.

    These have shape (n,) or (n, size), and quantiles (n, size). None where a prior of ``size``
    numbers has no quantiles, or bounds cut it off and it has no distribution function. Both bounds
    are numbers, or (size,).
    """
    quantile = getattr(prior, "ppf", getattr(prior, "icdf", None))
    if not callable(quantile):
        return None
    try:
        least, most = _support_of(prior)
        cut = bool((least < bounds[0]).any() or (most > bounds[1]).any())
        with np.errstate(invalid="ignore"):  # a flat one has none
            first, last = (prior.cdf(end) for end in bounds) if cut else (0.0, 1.0)
            rows = np.asarray(parts, dtype=np.float64)
            found = [quantile(np.asarray(first + part * (last - first))) for part in rows]
        return np.stack([np.broadcast_to(np.asarray(each, float), (size,)) for each in found])
    except Exception:  # a distribution is code of the user's
        return None


def name_of(prior: Any) -> str:
    """Return what a distribution is called."""
    return str(getattr(getattr(prior, "dist", None), "name", type(prior).__name__))
