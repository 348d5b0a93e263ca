"""The agreement of two samplers on a posterior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_paper.measures.marginals import largest_by_chance

_CHANCE = 0.99


@attrs.frozen(kw_only=True)
class Agreement:
    """Means and standard deviations of one sampler compared with those of another.

    Parameters
    ----------
    means
        Largest difference of two means over parameters, in Monte Carlo standard errors of that
        difference; None where one of the samplers never moved.
    sds
        Largest difference of two standard deviations, in theirs.
    sds_relative
        Largest difference of two standard deviations, as a part of the other's.
    sds_error
        What chance gives for that at least as often as not: the largest Monte Carlo standard error
        of such a difference, as a part of the other's standard deviation.
    chance
        What as many independent normal numbers exceed once in a hundred times, in absolute value.
    """

    means: float | None
    sds: float | None
    sds_relative: float | None
    sds_error: float | None
    chance: float

    @classmethod
    def of(cls, result: Mapping[str, Any], reference: Mapping[str, Any]) -> Agreement:
        """Compare two results of :func:`surrokit_paper.measures.measured_run.measure`."""
        mean = _array(result, "mean") - _array(reference, "mean")
        sd, other = _array(result, "sd"), _array(reference, "sd")
        mean_error = np.hypot(_array(result, "mean_error"), _array(reference, "mean_error"))
        sd_error = np.hypot(_array(result, "sd_error"), _array(reference, "sd_error"))
        return cls(
            means=_largest(mean, mean_error),
            sds=_largest(sd - other, sd_error),
            sds_relative=_largest(sd - other, other),
            sds_error=_largest(sd_error, other),
            chance=largest_by_chance(len(sd), _CHANCE),
        )


def _array(result: Mapping[str, Any], name: str) -> FloatArray:
    # what is not finite was written down as None
    return np.array(result[name], dtype=np.float64)


def _largest(difference: FloatArray, unit: FloatArray) -> float | None:
    with np.errstate(divide="ignore", invalid="ignore"):
        found = float(np.max(np.abs(difference / unit)))
    return found if np.isfinite(found) else None
