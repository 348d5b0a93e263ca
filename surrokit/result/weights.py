"""What came of weighted answers."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs
import numpy as np

from surrokit.diagnostics import r_hat
from surrokit.types import FloatArray
from surrokit.weighted.answer import Answer
from surrokit.weighted.estimate import Estimate
from surrokit.weighted.figures import Figures


@attrs.frozen(kw_only=True, eq=False, slots=False)
class Weights:
    """Weighted answers of a run, or why there are none.

    Parameters
    ----------
    answer
        What the rounds that are believed say; None where none is.
    refused
        Why weights were not believed, the last time; None if they are.
    rejected
        Rounds that were not believed; what they paid for was learnt from.
    of_surrogates
        Logarithm of the normalising constant of each surrogate, in the rounds believed.
    unnormalized
        What of the target may lack its normalising constant.
    """

    answer: Answer | None = None
    refused: str | None = None
    rejected: int = 0
    of_surrogates: tuple[Estimate, ...] = ()
    unnormalized: tuple[str, ...] = ()

    def account(self) -> dict[str, Any]:
        """Return what there is to write down beside the rounds."""
        calls = 0.0 if self.answer is None else self.answer.calls
        return {
            "refused": self.refused,
            "rejected": self.rejected,
            "calls": calls,
            "unnormalized": list(self.unnormalized),
        }

    @cached_property
    def figures(self) -> Figures:
        """Mean, sd and quantiles of the answer."""
        assert self.answer is not None
        return Figures.of(self.answer)

    @cached_property
    def log_normalizer(self) -> Estimate:
        """Logarithm of the integral of exp(-U)."""
        assert self.answer is not None
        # imported late, so that importing the package stays fast
        from surrokit.weighted.normalizer import log_normalizer

        found = log_normalizer(self.answer.rounds, self.of_surrogates, self.answer.calls)
        return attrs.evolve(found, unnormalized=self.unnormalized)

    @cached_property
    def rhat(self) -> FloatArray:
        """The largest R-hat of chains on the surrogate in any round, shape (dim,)."""
        assert self.answer is not None
        return np.asarray(np.max([r_hat(each.draws) for each in self.answer.rounds], axis=0))
