"""Settings of an active exploration, and the explorer that they are."""

from __future__ import annotations

import attrs

from surrokit.arguments import fraction, optional_positive_integer
from surrokit.interfaces import Correction, Sampler


@attrs.frozen(kw_only=True, eq=False)
class ActiveSettings:
    """How an active exploration goes.

    Parameters
    ----------
    tuned, correction
        The sampler to tune on the last surrogate, the run's own, and what decides there.
    evaluations
        Exact values at most; None for 100 + 25 dim, or all that the run's budget leaves to
        explorations if that is less.
    acceptance
        Predicted acceptance of independent draws of the process that is good enough.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    tuned: Sampler
    correction: Correction
    evaluations: int | None = attrs.field(default=None, validator=optional_positive_integer)
    acceptance: float = attrs.field(default=0.9, validator=fraction)

    def most(self, dim: int, calls: int | None) -> int:
        """Return how many values may be paid for."""
        if self.evaluations is not None:
            return self.evaluations
        most = 100 + 25 * dim
        return most if calls is None else max(min(most, calls), 1)
