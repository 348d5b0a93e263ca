"""The surrogate against the exact potential at draws."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.limits import one_thread
from surrokit.types import FloatArray

LARGE = 0.5  #: Error in nats from which on a dot is marked.


@attrs.frozen(kw_only=True, eq=False)
class Comparison:
    """Errors of the surrogate V of a run at its draws, without an exact call."""

    values: FloatArray  # U above its least, at up to 400 draws
    errors: FloatArray  # U - V there, less its median: potentials are known up to a constant

    @classmethod
    def of(cls, run: Any) -> Comparison:
        """Return that of a :class:`~surrokit.result.run.Run`."""
        most = 400
        if run.surrogate is None:
            raise ConfigurationError(
                "this run has no surrogate to look at: it was exact throughout, or was opened from "
                "a file, which holds none; sample with a surrogate, or use surrokit.resume"
            )
        at, values = run.kept.positions.reshape(-1, run.kept.positions.shape[2]), run.kept.values
        known = np.flatnonzero(np.isfinite(values))
        if len(known) < 2:
            raise ConfigurationError("there are no draws to look at a surrogate by; draw some")
        known = known[:: -(-len(known) // most)]
        exact = values.ravel()[known]
        with one_thread():
            found = np.asarray(run.surrogate.value(at[known]), dtype=np.float64)
        apart = exact - np.where(np.isfinite(found), found, np.nan)
        apart -= np.nanmedian(apart) if np.isfinite(apart).any() else 0.0
        return cls(values=exact - exact.min(), errors=apart)

    @property
    def spread(self) -> float:
        """Standard deviation of the errors; NaN where none is known."""
        return float(np.nanstd(self.errors)) if np.isfinite(self.errors).any() else np.nan
