"""Declarations of parameters by what they are."""

from __future__ import annotations

from typing import Any

import attrs

from surrokit.coordinates.constraints.constraint import Constraint
from surrokit.coordinates.constraints.directions import Circular, UnitVector
from surrokit.coordinates.constraints.matrices import Correlation, Covariance
from surrokit.coordinates.constraints.ordered import Ordered
from surrokit.coordinates.constraints.simplex import Simplex
from surrokit.coordinates.parameters import Parameter
from surrokit.errors import ConfigurationError
from surrokit.settings import is_whole

Shape = int | tuple[int, ...]
"""Shape of a parameter; a number is the length of a vector."""


def real(shape: Shape = (), *, prior: Any = None, unit: str | None = None) -> Parameter:
    """Declare real numbers.

    Parameters
    ----------
    shape
        Shape of the parameter; ``()`` for a number, a whole number for a vector.
    prior
        A univariate distribution, of each number: a frozen one of ``scipy.stats``, or whatever has
        ``logpdf`` and ``support``. Where its support ends, so does the parameter.
    unit
        What the numbers are measured in, such as ``"Mpc"``. Tables, pictures and files show it
        beside the name; nothing is converted.

    Raises
    ------
    ConfigurationError
        If the shape is none, the prior is none of single numbers, or the unit is no text.
    """
    return Parameter(_shape(shape), prior=prior, unit=unit)


def positive(shape: Shape = (), *, prior: Any = None, unit: str | None = None) -> Parameter:
    """Declare numbers above 0; see :func:`real`."""
    return Parameter(_shape(shape), lower=0.0, prior=prior, unit=unit)


def interval(
    lower: float,
    upper: float,
    shape: Shape = (),
    *,
    prior: Any = None,
    unit: str | None = None,
) -> Parameter:
    """Declare numbers between two bounds; see :func:`real`."""
    return Parameter(_shape(shape), lower=lower, upper=upper, prior=prior, unit=unit)


def simplex(size: int) -> Parameter:
    """Declare ``size`` positive numbers that sum to 1."""
    return _tied(Simplex(_at_least(2, size, "a simplex")))


def ordered(size: int, *, unit: str | None = None) -> Parameter:
    """Declare ``size`` numbers in increasing order; see :func:`real` for the unit."""
    return attrs.evolve(_tied(Ordered(_at_least(1, size, "an ordered vector"))), unit=unit)


def unit_vector(size: int) -> Parameter:
    """Declare a vector of ``size`` numbers and length 1."""
    return _tied(UnitVector(_at_least(2, size, "a unit vector")))


def circular(shape: Shape = (), *, prior: Any = None) -> Parameter:
    """Declare angles in (-pi, pi], both ends of which are one.

    Parameters
    ----------
    shape
        As for :func:`real`.
    prior
        Of each angle, such as ``scipy.stats.vonmises(kappa, loc)``.

    Raises
    ------
    ConfigurationError
        If the shape is none, or the prior is none of angles.
    """
    constraint = Circular(_shape(shape))
    return Parameter(constraint.shape, constraint=constraint, prior=prior)


def correlation(size: int) -> Parameter:
    """Declare a correlation matrix of ``size`` rows."""
    return _tied(Correlation(_at_least(2, size, "a correlation matrix")))


def covariance(size: int) -> Parameter:
    """Declare a covariance matrix of ``size`` rows."""
    return _tied(Covariance(_at_least(1, size, "a covariance matrix")))


def _tied(constraint: Constraint) -> Parameter:
    return Parameter(constraint.shape, constraint=constraint)


def _shape(shape: Shape) -> tuple[int, ...]:
    return (int(shape),) if is_whole(shape, 1) else shape  # type: ignore[arg-type,return-value]


def _at_least(least: int, size: int, what: str) -> int:
    if not is_whole(size, least):
        raise ConfigurationError(
            f"the size of {what} must be a whole number of at least {least}, got {size!r}"
        )
    return int(size)
