"""A surrogate from one function: the ten-line plugin."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.potentials import Potential
from surrokit.surrogate.quality import KeepingLearner
from surrokit.types import Capabilities

Fit = Callable[[Evaluations, np.random.Generator], Potential]
"""Fits a potential to evaluations."""


def batch_surrogate(
    fit: Fit,
    *,
    needs: frozenset[str] | set[str] = frozenset({"value"}),
    uses: frozenset[str] | set[str] = frozenset(),
    provides: Capabilities | set[str] = frozenset({GRADIENT}),
) -> BatchSurrogate:
    """Make a surrogate from a function that fits all evaluations at once.

    Parameters
    ----------
    fit
        ``fit(evaluations, rng) -> Potential``; called at each deployment with everything observed
        and the same random state.
    needs, uses
        Which of ``value``, ``gradient``, ``outputs`` and ``jacobian`` it cannot do without, and
        which others it uses where they are known.
    provides
        Capabilities of the potentials it returns.
    """
    needed, used = frozenset(needs), frozenset(uses) | frozenset(needs)
    return BatchSurrogate(fit=fit, needs=needed, uses=used, provides=frozenset(provides))


@attrs.frozen(kw_only=True)
class BatchSurrogate:
    """A surrogate from a function; see :func:`batch_surrogate`."""

    fit: Fit
    needs: frozenset[str]
    uses: frozenset[str]
    provides: Capabilities

    def learner(self, problem: LearningProblem, rng: np.random.Generator) -> BatchLearner:
        """Return a learner that stores what it observes."""
        settings = attrs.asdict(self, recurse=False)
        return BatchLearner(**settings, dim=problem.dim, seed=int(rng.integers(2**63)))


@attrs.define(kw_only=True, eq=False)
class BatchLearner(KeepingLearner):
    """A learner that keeps everything observed, and fits it anew each time."""

    function: Fit = attrs.field(alias="fit")
    needs: frozenset[str]
    uses: frozenset[str]
    provides: Capabilities

    def check(self, evaluations: Evaluations) -> Evaluations:
        """Return the rows whose value is finite."""
        return evaluations.take(np.isfinite(evaluations.values))

    def fit(self) -> Potential:
        """Return what the function makes of everything observed.

        Raises
        ------
        SurrogateFitError
            If nothing finite was observed.
        """
        rows = self.join_observed()
        if len(rows):
            return self.function(rows, np.random.default_rng(self.seed))
        raise SurrogateFitError(
            "a surrogate needs at least one finite evaluation, got none; explore for longer"
        )
