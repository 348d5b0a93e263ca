"""The energy of position and momentum."""

from __future__ import annotations

import attrs

from surrokit.protocols import Metric, Potential
from surrokit.records import Phase
from surrokit.types import FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Hamiltonian:
    """H(q, p) = U(q) + K(p), section 2.1 of Zhang, Shahbaba and Zhao (2017).

    Parameters
    ----------
    potential
        U, exact or a fitted surrogate: nothing here can tell.
    metric
        K.
    """

    potential: Potential
    metric: Metric

    def energy(self, phase: Phase) -> FloatArray:
        """Return H of each chain, shape (n,), from a phase whose cache holds the values."""
        return phase.cache["value"] + self.metric.energy(phase.momenta)
