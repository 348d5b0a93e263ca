"""Families of responses by the names that other libraries give them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

from surrokit.errors import ConfigurationError

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

    Parameters
    ----------
    family
        A name; anything else, and a name that is not known here, is returned as it is.
    settings
        Of the family.

    Raises
    ------
    ConfigurationError
        If degrees of freedom are given for ``"cauchy"``.
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
    """Return the end of a message about an unknown family: which one may be meant, if any.

    Parameters
    ----------
    family
        What was given.
    names
        Families that there are.
    """
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
