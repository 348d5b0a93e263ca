"""Means and standard deviations of a posterior, with how far draws can be trusted on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from surrokit.diagnostics import effective_sample_size, mean_error
from surrokit.types import FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Marginals:
    """What draws say of each parameter by itself; all arrays have shape (dim,).

    Parameters
    ----------
    means, sds
        Of the posterior.
    mean_errors, sd_errors
        Monte Carlo standard errors of both.
    ess
        Bulk effective sample sizes.
    """

    means: FloatArray
    mean_errors: FloatArray
    sds: FloatArray
    sd_errors: FloatArray
    ess: FloatArray

    @classmethod
    def of(cls, draws: FloatArray) -> Marginals:
        """Return those of draws.

        The error of a standard deviation is that of the mean of squared deviations, over twice the
        standard deviation.

        Parameters
        ----------
        draws : ndarray of shape (chains, draws, dim)
            Draws.
        """
        means = draws.mean(axis=(0, 1))
        squares = np.square(draws - means)
        sds = draws.std(axis=(0, 1), ddof=1)
        with np.errstate(divide="ignore", invalid="ignore"):  # a parameter that never moved
            sd_errors = mean_error(squares) / (2.0 * sds)
        return cls(
            means=means,
            mean_errors=mean_error(draws),
            sds=sds,
            sd_errors=sd_errors,
            ess=effective_sample_size(draws, "bulk"),
        )

    @classmethod
    def from_dict(cls, kept: Mapping[str, Sequence[float]]) -> Marginals:
        """Return what :meth:`to_dict` gave; other keys are passed over."""
        fields = (field.name for field in attrs.fields(cls))
        return cls(**{name: np.array(kept[name], dtype=np.float64) for name in fields})

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists of numbers by name."""
        return {name: array.tolist() for name, array in attrs.asdict(self).items()}

    def means_apart(self, other: Marginals) -> FloatArray:
        """Return the differences of both means in their standard error, shape (dim,)."""
        error = np.hypot(self.mean_errors, other.mean_errors)
        return np.asarray((self.means - other.means) / error)

    def sds_apart(self, other: Marginals) -> FloatArray:
        """Return the differences of both standard deviations in their standard error.

        On the scale of logarithms, where an error does not grow with what it is the error of.
        """
        error = np.hypot(self.sd_errors / self.sds, other.sd_errors / other.sds)
        return np.asarray(np.log(self.sds / other.sds) / error)


def largest_by_chance(n: int, level: float = 0.99) -> float:
    """Return what the largest of n standard normal numbers, signs aside, stays under.

    Parameters
    ----------
    n
        How many. Where they are correlated it stays under it with more than this probability
        (Sidak 1967, doi:10.1080/01621459.1967.10482935).
    level
        With this probability.
    """
    from scipy.special import ndtri

    return float(ndtri(0.5 + 0.5 * level ** (1.0 / n)))
