"""The figures that a summary has of weighted answers."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.diagnostics import QUANTILES
from surrokit.types import FloatArray
from surrokit.weighted.answering import Answering
from surrokit.weighted.estimate import Estimate


@attrs.frozen(kw_only=True, eq=False)
class Figures:
    """Mean, standard deviation and quantiles of each number of a position, with their errors.

    Parameters
    ----------
    mean, sd
        The moments.
    quantiles
        By the names of :data:`~surrokit.diagnostics.QUANTILES`.
    """

    mean: Estimate
    sd: Estimate
    quantiles: dict[str, Estimate]

    @classmethod
    def of(cls, answer: Answering) -> Figures:
        """Return the figures of an answer."""
        quantiles = {name: answer.quantile(part) for name, part in QUANTILES.items()}
        return cls(mean=answer.mean(), sd=answer.sd(), quantiles=quantiles)

    @property
    def named(self) -> dict[str, Estimate]:
        """All of them: ``mean``, ``sd``, ``q05``, ``q50`` and ``q95``."""
        return {"mean": self.mean, "sd": self.sd, **self.quantiles}

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """All of them, without names."""
        return tuple(self.named.values())

    @property
    def effective(self) -> FloatArray:
        """Independent exact draws that would be as good for each of them, shape (dim,)."""
        return np.asarray(np.min([each.effective for each in self.estimates], axis=0))

    @property
    def relative_error(self) -> FloatArray:
        """The largest error of each number, in its standard deviations, shape (dim,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.max([each.error for each in self.estimates], axis=0) / self.sd.value
        return np.where(np.isnan(errors), np.inf, errors)
