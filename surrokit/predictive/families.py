"""Families of responses, by all their names: means, probabilities of classes, and draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from math import gamma
from typing import Any, ClassVar

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray

_KNOWN: Mapping[str, Mapping[str, float]] = {
    "gaussian": {"scale": 1.0},
    "student": {"scale": 1.0, "degrees": 4.0},
    "logistic-errors": {"scale": 1.0},
    "logistic": {},
    "probit": {},
    "poisson": {},
    "negative-binomial": {"size": 1.0},
    "gamma": {"shape": 1.0},
    "exponential": {},
    "weibull": {"shape": 1.0},
}
"""Families of one linear predictor, and their known numbers as they usually are."""

NAMES = tuple(_KNOWN)
"""Families of one linear predictor."""

_MOST_COUNTED = 1e18


@attrs.frozen(eq=False)
class ResponseFamily:
    """A family of responses to one linear predictor, as far as predictions go.

    For a family of one's own give a subclass with :meth:`mean` and :meth:`draw`.
    """

    name: str
    settings: Mapping[str, float]  # known numbers

    @property
    def scale(self) -> float:
        """The known scale of errors; 1 where there is none."""
        return float(self.settings.get("scale", 1.0))

    @property
    def of_errors(self) -> bool:
        """Whether responses are real numbers about the predictor, in its units."""
        return "scale" in self.settings

    @property
    def binary(self) -> bool:
        """Whether responses are zeros and ones."""
        return self.name in ("logistic", "probit")

    @property
    def log_mean(self) -> float:
        """How log means grow with the predictor; 0 where means are that, or probabilities."""
        if self.name in ("exponential", "weibull"):
            return -1.0 / self.settings.get("shape", 1.0)
        return 0.0 if self.of_errors or self.binary else 1.0

    def count(self, dim: int, n_columns: int) -> int:
        """Return how many classes there are: two, or 0 where responses are no classes."""
        del dim, n_columns
        return 2 if self.binary else 0

    def means(self, positions: FloatArray, design: FloatArray, offset: FloatArray) -> FloatArray:
        """Return means of responses (n, n_rows), for positions (n, dim)."""
        return self.mean(positions @ design.T + offset)

    def draws(
        self,
        rng: np.random.Generator,
        positions: FloatArray,
        design: FloatArray,
        offset: FloatArray,
    ) -> FloatArray:
        """Return a response of each row at each position, shape (n, n_rows)."""
        return self.draw(rng, positions @ design.T + offset, self.scale)

    def mean(self, e: FloatArray) -> FloatArray:
        """Return means of responses to linear predictors."""
        from scipy.special import expit, ndtr

        match self.name:
            case "logistic":
                return np.asarray(expit(e))
            case "probit":
                return np.asarray(ndtr(e))
            case "exponential" | "weibull":
                shape = self.settings.get("shape", 1.0)
                return gamma(1.0 + 1.0 / shape) * _exp(-e / shape)
        return e if self.of_errors else _exp(e)  # errors have mean zero

    def draw(self, rng: np.random.Generator, e: FloatArray, scale: Any) -> FloatArray:
        """Return responses to linear predictors; ``scale`` is that of normal errors alone."""
        drawn: Any
        known = self.settings
        match self.name:
            case "gaussian":
                drawn = rng.normal(e, scale)
            case "student":
                drawn = e + known["scale"] * rng.standard_t(known["degrees"], size=e.shape)
            case "logistic-errors":
                drawn = rng.logistic(e, known["scale"])
            case "logistic" | "probit":
                drawn = rng.random(e.shape) < self.mean(e)
            case "poisson":
                drawn = rng.poisson(np.minimum(_exp(e), _MOST_COUNTED))
            case "negative-binomial":
                rates = rng.gamma(known["size"], np.minimum(_exp(e), _MOST_COUNTED) / known["size"])
                drawn = rng.poisson(np.minimum(rates, _MOST_COUNTED))
            case "gamma":
                drawn = rng.gamma(known["shape"], _exp(e) / known["shape"])
            case _:  # exponential and Weibull's times
                shape = known.get("shape", 1.0)
                drawn = _exp(-e / shape) * rng.weibull(shape, size=e.shape)
        return np.asarray(drawn, dtype=np.float64)


def response_family(name: str, settings: Mapping[str, float] | None = None) -> ResponseFamily:
    """Return a family of one predictor by its name, with its known numbers; others are as usual.

    ConfigurationError is raised if there is no such family, or it has no such setting.
    """
    if name not in NAMES:
        raise ConfigurationError(
            f"family must be one of {', '.join(NAMES)}, got {name!r}{suggest(name, NAMES)}"
        )
    known = {**_KNOWN[name], **(settings or {})}
    odd = sorted(set(known) - set(_KNOWN[name]))
    if odd:
        raise ConfigurationError(
            f"the family {name!r} has no setting {' and no '.join(odd)}; it has "
            f"{', '.join(_KNOWN[name]) or 'none'}"
        )
    return ResponseFamily(name, known)


def _exp(e: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.minimum(e, 700.0)))  # a mean that is still a number


# --- classes ---

MULTINOMIAL = "multinomial"
ORDINAL = "ordinal"


class Classes(ABC):
    """Classes 0, ..., m of responses."""

    name: ClassVar[str]
    settings: ClassVar[Mapping[str, float]] = {}

    @abstractmethod
    def count(self, dim: int, n_columns: int) -> int:
        """Return how many classes there are, for positions of ``dim`` numbers."""

    @abstractmethod
    def means(self, positions: FloatArray, design: FloatArray, offset: FloatArray) -> FloatArray:
        """Return the probability of each class, shape (n, n_rows, m + 1).

        They are for positions (n, dim), a dense or sparse design (n_rows, n_columns), and known
        parts (n_rows,) of the predictors.
        """

    def draws(
        self,
        rng: np.random.Generator,
        positions: FloatArray,
        design: FloatArray,
        offset: FloatArray,
    ) -> FloatArray:
        """Return a class of each row at each position, shape (n, n_rows)."""
        below = np.cumsum(self.means(positions, design, offset), axis=2)
        uniforms = rng.random(below.shape[:2])[..., None]
        return np.asarray((uniforms > below[..., :-1]).sum(axis=2), dtype=np.float64)


@attrs.frozen
class MultinomialClasses(Classes):
    """Classes with probabilities in proportion to 1, exp(e_1), ..., exp(e_m), without an offset.

    Positions hold the coefficients of e_1, then those of e_2, and so on.
    """

    name: ClassVar[str] = MULTINOMIAL

    def count(self, dim: int, n_columns: int) -> int:
        """Return how many classes there are, for positions of ``dim`` numbers."""
        return dim // n_columns + 1

    def means(self, positions: FloatArray, design: FloatArray, offset: FloatArray) -> FloatArray:
        """Return the probability of each class."""
        from scipy.special import softmax

        del offset
        coefficients = positions.reshape(len(positions), -1, design.shape[1])
        predictors = np.einsum("rd,nkd->nrk", design, coefficients, optimize=True)
        return np.asarray(softmax(np.pad(predictors, ((0, 0), (0, 0), (1, 0))), axis=2))


@attrs.frozen
class OrdinalClasses(Classes):
    """Classes with P(class <= k) = 1 / (1 + exp(e - c_k)).

    Positions hold the coefficients of e, then the cutpoints c_0 < ... < c_(m-1).
    """

    name: ClassVar[str] = ORDINAL

    def count(self, dim: int, n_columns: int) -> int:
        """Return how many classes there are, for positions of ``dim`` numbers."""
        return dim - n_columns + 1

    def means(self, positions: FloatArray, design: FloatArray, offset: FloatArray) -> FloatArray:
        """Return the probability of each class."""
        from scipy.special import expit

        n_columns = design.shape[1]
        predictors = np.asarray(design @ positions[:, :n_columns].T).T + offset
        upper = positions[:, None, n_columns:] - predictors[..., None]
        below = np.pad(expit(upper), ((0, 0), (0, 0), (1, 1)), constant_values=(0.0, 1.0))
        above = np.pad(expit(-upper), ((0, 0), (0, 0), (1, 1)), constant_values=(1.0, 0.0))
        # from the nearer end, or small probabilities lose their digits
        return np.where(below[..., 1:] < 0.5, np.diff(below, axis=2), -np.diff(above, axis=2))


# --- names that other libraries give families ---

_ALSO: Mapping[str, str] = {
    "bernoulli": "logistic",
    "binomial": "logistic",
    "logit": "logistic",
    "categorical": "multinomial",
    "cumulative": "ordinal",
    "normal": "gaussian",
    "nbinom": "negative-binomial",
    "negativebinomial": "negative-binomial",
    "negbinomial": "negative-binomial",
    "student-t": "student",
    "studentt": "student",
    "t": "student",
    "log-normal": "lognormal",
}
"""Statsmodels, R, PyMC, Bambi and brms have these; in lower case, with a dash between words."""

CAUCHY = "cauchy"
"""Student's t with one degree of freedom, the usual name of a robust family."""


def read_name(family: Any, settings: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return a family's own name and settings, from a name that people know it by.

    Anything but a name, and a name that is not known here, is returned as it is.
    ConfigurationError is raised if degrees of freedom are given for ``"cauchy"``.
    """
    given = dict(settings)
    if not isinstance(family, str):
        return family, given
    plain = _plain(family)
    if plain != CAUCHY:
        return _ALSO.get(plain, plain), given
    if given.get("degrees") not in (None, 1, 1.0):
        raise ConfigurationError(
            f"the family 'cauchy' has one degree of freedom, got degrees={given['degrees']!r}; "
            "leave it out, or take the family 'student'"
        )
    return "student", {**given, "degrees": 1.0}


def suggest(family: object, names: Collection[str]) -> str:
    """Return the end of a message about an unknown family: which of ``names`` may be meant."""
    also = {**_ALSO, CAUCHY: "student"}
    known = dict(zip(names, names, strict=True))
    known |= {other: name for other, name in also.items() if name in names}
    near = get_close_matches(_plain(str(family)), known, n=1)
    if not near:
        return ""
    here = "" if near[0] == known[near[0]] else f", here {known[near[0]]!r}"
    return f"; do you mean {near[0]!r}{here}?"


def _plain(family: str) -> str:
    return family.strip().lower().replace("_", "-").replace(" ", "-")
