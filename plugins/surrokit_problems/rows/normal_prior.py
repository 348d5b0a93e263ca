"""Independent normal priors of the coefficients, or none."""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from surrokit import gaussian_prior
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import FloatArray

USUAL_PRIOR = gaussian_prior(0.0, 10.0)
"""Of every coefficient, as in section 5.1 of Zhang, Shahbaba and Zhao (2017)."""


@attrs.frozen(kw_only=True, eq=False)
class NormalPrior:
    """Minus the log density of independent normal coefficients; a flat one counts as 1.

    Parameters
    ----------
    mean, precision : ndarray of shape (dim,)
        Of each; a precision of 0 for none.
    """

    mean: FloatArray
    precision: FloatArray

    @classmethod
    def of(cls, prior: GaussianPrior | None, dim: int) -> NormalPrior:
        """Return the form in which models take a prior; None is a flat one.

        Raises
        ------
        ConfigurationError
            If it is no normal prior.
        ShapeError
            If it is one of another number of coefficients.
        """
        if prior is None:
            return cls(mean=np.zeros(dim), precision=np.zeros(dim))
        if not isinstance(prior, GaussianPrior):
            raise ConfigurationError(
                "prior must be that of surrokit.gaussian_prior, or None for a flat one, got "
                f"{prior!r}; give prior=surrokit.gaussian_prior(mean, sd)"
            )
        for name, array in (("mean", prior.mean), ("sd", prior.sd)):
            if array.shape not in ((), (dim,)):
                raise ShapeError(
                    f"{name} of the prior must be one number or have shape ({dim},), one for each "
                    f"coefficient, got {array.shape}"
                )
        return cls(
            mean=np.broadcast_to(prior.mean, (dim,)).copy(),
            precision=np.broadcast_to(prior.sd**-2.0, (dim,)).copy(),
        )

    @property
    def proper(self) -> bool:
        """Whether it bounds every coefficient."""
        return bool((self.precision > 0.0).all())

    def value(self, positions: FloatArray) -> FloatArray:
        """Return it, shape (n,), at coefficients of shape (n, dim)."""
        half = 0.5 * np.square(positions - self.mean) @ self.precision
        return np.asarray(half + self.constant)

    @cached_property
    def constant(self) -> float:
        """The sum of log(sd sqrt(2 pi)) over the coefficients that it bounds."""
        proper = self.precision[self.precision > 0.0]
        return float(0.5 * np.log(2.0 * np.pi / proper).sum())

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What has no density: a flat prior of some coefficient."""
        return () if self.proper else ("a flat prior",)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return its gradient, shape (n, dim)."""
        return np.asarray(self.precision * (positions - self.mean))
