"""Data of a forward map, with what is known of their errors."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import numbers
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.predictive.names import read_name, suggest
from surrokit.settings import is_number
from surrokit.targets.observed.families import (
    ErrorFamily,
    Link,
    LognormalErrors,
    NormalErrors,
    PoissonCounts,
    StudentErrors,
)
from surrokit.targets.observed.scales import Estimated, estimated
from surrokit.types import FloatArray

FamilyName: TypeAlias = Literal["gaussian", "normal", "student", "cauchy", "lognormal", "poisson"]
"""Names of families of errors."""

Scale: TypeAlias = npt.ArrayLike | str | Estimated
"""A known scale, ``"estimate"``, a parameter's name, or :func:`estimated`."""

ESTIMATE = "estimate"
"""In place of a scale: it is not known."""

_FAMILIES = ("gaussian", "student", "lognormal", "poisson")
_USUAL_DEGREES = 4.0


def observed(
    data: npt.ArrayLike,
    scale: Scale | None = None,
    *,
    family: FamilyName = "gaussian",
    degrees: float | None = None,
    link: Link | None = None,
) -> Observed:
    """Say what was observed of a forward map, and how it scatters about the outputs.

    Parameters
    ----------
    data : array_like of shape (m,)
        What was observed, one number for each output.
    scale : float or array_like of shape (m,), or str, or Estimated
        Of the errors. ``"estimate"`` makes it a parameter; another text is the name of a positive
        parameter that is declared; :func:`estimated` says more. None for families without a scale.
    family
        ``"gaussian"``: the scale is the standard deviation; ``"student"``: it is that of Student's
        t; ``"lognormal"``: data and outputs are positive, and it is the standard deviation of
        log data about log outputs; ``"poisson"``: data are counts. ``"normal"`` is the first one,
        and ``"cauchy"`` Student's t with one degree of freedom.
    degrees
        Degrees of freedom of ``"student"``; 4 unless given.
    link
        Of ``"poisson"``: ``"identity"`` (default) where outputs are means of counts, ``"log"``
        where they are logarithms of means.

    Returns
    -------
    Observed
        To be given as ``data`` of :func:`surrokit.forward_potential`.

    Raises
    ------
    ConfigurationError
        If the data are none of the family's, or a setting is missing or makes no sense.
    ShapeError
        If an array is none, or does not fit the data.
    """
    array = numbers("data", data).copy()
    if array.ndim != 1 or not array.size:
        raise ShapeError(f"data must have shape (m,), got {array.shape}; flatten it")
    if not np.isfinite(array).all():
        place = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ConfigurationError(
            f"data must be finite, got {array[place]} at [{place}]; leave out unknown numbers"
        )
    kind = read_family(family, degrees, link)
    kind.check_data(array)
    array.setflags(write=False)
    return Observed(data=array, family=kind, scale=_read_scale(scale, kind, len(array)))


@attrs.frozen(kw_only=True, eq=False)
class Observed:
    """Data and their errors; see :func:`observed`.

    Parameters
    ----------
    data : ndarray of shape (m,)
        What was observed.
    family
        How it scatters.
    scale : ndarray of shape (m,) or Estimated
        Of the errors; ones for a family without.
    """

    data: FloatArray
    family: ErrorFamily
    scale: FloatArray | Estimated


def read_family(given: object, degrees: Any = None, link: Any = None) -> ErrorFamily:
    """Return a family of errors by its name.

    Parameters
    ----------
    given, degrees, link
        As for :func:`observed`.

    Raises
    ------
    ConfigurationError
        If there is no such family, or it has no such setting.
    """
    family, settings = read_name(given, {} if degrees is None else {"degrees": degrees})
    degrees = settings.get("degrees")
    if family not in _FAMILIES:
        near = suggest(given, _FAMILIES) or "; for another, write an energy"
        raise ConfigurationError(
            f"family of errors must be one of {', '.join(_FAMILIES)}, got {given!r}{near}"
        )
    if degrees is not None and family != "student":
        raise ConfigurationError(f"degrees are of the family 'student', not of {family!r}")
    if link is not None and family != "poisson":
        raise ConfigurationError(f"link is of the family 'poisson', not of {family!r}")
    if family == "student":
        nu = _USUAL_DEGREES if degrees is None else degrees
        if not is_number(nu) or not 0.0 < nu < np.inf:
            raise ConfigurationError(f"degrees must be a positive, finite number, got {degrees!r}")
        return StudentErrors(float(nu))
    if family == "poisson":
        if link not in (None, "identity", "log"):
            raise ConfigurationError(f"link must be 'identity' or 'log', got {link!r}")
        return PoissonCounts(link or "identity")
    return NormalErrors() if family == "gaussian" else LognormalErrors()


def _read_scale(scale: Any, family: ErrorFamily, n_data: int) -> FloatArray | Estimated:
    if not family.has_scale:
        if scale is not None:
            raise ConfigurationError(
                f"scale is given, but the family {family.name!r} has none; leave it out"
            )
        return np.ones(n_data)
    if scale is None:
        raise ConfigurationError(
            f"the family {family.name!r} needs scale, that of the errors; give scale='estimate' if "
            "it is not known"
        )
    if isinstance(scale, str):
        scale = estimated() if scale == ESTIMATE else Estimated(name=scale, declared=True)
    if isinstance(scale, Estimated):
        scale.check(n_data)
        return scale
    array = numbers("scale", scale)
    if not (np.isfinite(array).all() and (array > 0.0).all()):
        raise ConfigurationError(f"scale must be positive and finite, got {array}")
    if array.shape not in ((), (n_data,)):
        raise ShapeError(
            f"scale must be one number or have the shape of data, ({n_data},), got {array.shape}"
        )
    return np.broadcast_to(array, (n_data,)).copy()
