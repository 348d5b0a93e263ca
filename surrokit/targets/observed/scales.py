"""Scales of errors that are not known: parameters of their own, one for each group of data."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import numbers
from surrokit.coordinates.parameters import Parameter
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray, IntArray

_SPREADS = 2.5
_DEGREES = 3.0


def estimated(
    groups: npt.ArrayLike | None = None,
    *,
    prior: Any = None,
    times: npt.ArrayLike = 1.0,
    name: str | None = None,
) -> Estimated:
    """Declare scales of errors that are not known.

    They become positive parameters of the target, with draws like all others.

    Parameters
    ----------
    groups : array_like of shape (m,), optional
        The group of each datum, each group with a scale of its own: whole numbers from 0 on for one
        parameter that is a vector, or texts for a parameter each. One scale for all data unless
        given.
    prior
        A frozen univariate distribution of ``scipy.stats``, of each scale. By default half of
        Student's t with 3 degrees of freedom, whose scale is 2.5 standard deviations of the
        group's data.
    times : float or array_like of shape (m,)
        Factors by which each datum's scale differs from that of its group: for errors that are
        known up to a factor.
    name
        Of the parameter; with groups that are texts, what stands before each. A positive parameter
        of this name that is declared already serves, and its prior stands beside it.

    Raises
    ------
    ConfigurationError
        If groups are neither texts nor whole numbers from 0 on, factors are not positive, or
        the prior or the name is none.
    """
    if prior is not None:
        Parameter((), lower=0.0, prior=prior)  # refuses what is no distribution
    if name is not None and (not isinstance(name, str) or not name):
        raise ConfigurationError(f"the name of an estimated scale must be text, got {name!r}")
    return Estimated(
        groups=None if groups is None else Groups.read(groups),
        prior=prior,
        times=_read_factors(times),
        name=name,
    )


@attrs.frozen(eq=False)
class Groups:
    """Groups of data.

    Parameters
    ----------
    of_data : ndarray of shape (m,)
        The number of each datum's group.
    labels
        Their names; None where they are numbers.
    """

    of_data: IntArray
    labels: tuple[str, ...] | None

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.of_data.max()) + 1

    @classmethod
    def read(cls, given: npt.ArrayLike) -> Groups:
        """Read groups as a user gives them.

        Raises
        ------
        ConfigurationError
            If they are neither texts nor whole numbers of which none is left out.
        """
        array = np.asarray(given)
        if array.ndim == 1 and array.size and all(isinstance(each, str) for each in array.tolist()):
            labels = tuple(dict.fromkeys(array.tolist()))
            return cls(np.array([labels.index(each) for each in array.tolist()]), labels)
        whole = array.dtype.kind in "iu" and array.ndim == 1 and array.size > 0
        if not whole or not np.array_equal(np.unique(array), np.arange(int(array.max()) + 1)):
            raise ConfigurationError(
                "groups must be one whole number for each datum, from 0 on and none left out, or a "
                f"text for each, got {given!r}"
            )
        return cls(array.astype(np.int64), None)


@attrs.frozen(kw_only=True, eq=False)
class Estimated:
    """Scales that are not known; see :func:`estimated`."""

    groups: Groups | None = None
    prior: Any = None
    times: FloatArray = attrs.field(factory=lambda: np.ones(()))
    name: str | None = None
    declared: bool = False
    """Whether the parameter must be declared already."""

    def check(self, n_data: int) -> None:
        """Raise ShapeError unless there are a group and a factor for each datum."""
        if self.groups is not None and len(self.groups.of_data) != n_data:
            raise ShapeError(
                f"groups must be given for each of the {n_data} data, got "
                f"{len(self.groups.of_data)}"
            )
        if self.times.shape not in ((), (n_data,)):
            raise ShapeError(
                f"times of an estimated scale must be one number or have shape ({n_data},), one "
                f"for each datum, got {self.times.shape}"
            )

    def declare(self, name: str, spread: FloatArray) -> dict[str, Parameter]:
        """Return the parameters that it takes, by name.

        Parameters
        ----------
        name
            What they are called where ``name`` is None.
        spread : ndarray of shape (m,)
            Data in the units of the scale.
        """
        called = self.name or name
        groups = np.zeros(len(spread), dtype=np.int64)
        if self.groups is None:
            return {called: self._one((), _typical(spread, groups, self.times))}
        typical = _typical(spread, self.groups.of_data, self.times)
        if self.groups.labels is None:
            return {called: self._one((self.groups.count,), typical)}
        return {
            f"{called}_{label}": self._one((), typical[[i]])
            for i, label in enumerate(self.groups.labels)
        }

    def _one(self, shape: tuple[int, ...], typical: FloatArray) -> Parameter:
        prior = HalfStudent(_SPREADS * typical) if self.prior is None else self.prior
        return Parameter(shape, lower=0.0, prior=prior)


@attrs.frozen(eq=False)
class HalfStudent:
    """Half of Student's t distribution with 3 degrees of freedom: a prior of scales.

    Parameters
    ----------
    scale : ndarray of shape (k,)
        Of each of k numbers.
    """

    scale: FloatArray

    def support(self) -> tuple[float, float]:
        """Return that scales are positive."""
        return 0.0, np.inf

    def logpdf(self, x: FloatArray) -> FloatArray:
        """Return log densities, of the shape of ``x (..., k)``."""
        constant = math.log(4.0 / (math.pi * math.sqrt(_DEGREES)))
        square = np.square(x / self.scale) / _DEGREES
        density = constant - np.log(self.scale) - 2.0 * np.log1p(square)
        return np.where(x < 0.0, -np.inf, density)

    def ppf(self, part: npt.ArrayLike) -> FloatArray:
        """Return the quantiles of a probability, shape (k,)."""
        from scipy.special import stdtrit  # late: importing the package stays fast

        return np.asarray(self.scale * stdtrit(_DEGREES, 0.5 + 0.5 * np.asarray(part)))


def _typical(spread: FloatArray, groups: IntArray, times: FloatArray) -> FloatArray:
    """Return the standard deviation of each group's data, or else their size, shape (k,)."""
    factors = np.broadcast_to(times, spread.shape)
    found = np.ones(int(groups.max()) + 1)
    for group in range(len(found)):
        data, own = spread[groups == group], factors[groups == group]
        size = next((s for s in (data.std(), np.sqrt(np.square(data).mean())) if s > 0.0), 1.0)
        found[group] = size / np.sqrt(np.square(own).mean())
    return found


def _read_factors(times: npt.ArrayLike) -> FloatArray:
    array = numbers("times of an estimated scale", times)
    if not (np.isfinite(array).all() and (array > 0.0).all()):
        raise ConfigurationError(
            f"times of an estimated scale must be positive and finite, got {array}"
        )
    return array
