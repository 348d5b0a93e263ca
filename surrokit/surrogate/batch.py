"""A surrogate from one function: the ten-line plugin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.contracts.learner import Evaluations, LearningProblem
from surrokit.contracts.potential import Potential
from surrokit.errors import SurrogateFitError
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
    needs
        Which of ``value``, ``gradient``, ``outputs`` and ``jacobian`` it cannot do without.
    uses
        Which others it makes use of.
    provides
        Capabilities of the potentials it returns.

    Returns
    -------
    BatchSurrogate
        To be given to :func:`surrokit.sample`, or returned by a component's factory.
    """
    return BatchSurrogate(
        fit=fit,
        needs=frozenset(needs),
        uses=frozenset(uses) | frozenset(needs),
        provides=frozenset(provides),
    )


@attrs.frozen(kw_only=True)
class BatchSurrogate:
    """What :func:`batch_surrogate` returns."""

    fit: Fit
    needs: frozenset[str]
    uses: frozenset[str]
    provides: Capabilities

    def learner(self, problem: LearningProblem, rng: np.random.Generator) -> BatchLearner:
        """Return a learner that stores what it observes."""
        return BatchLearner(self, problem.dim, int(rng.integers(2**63)))


class BatchLearner:
    """Stores evaluations and fits them afresh whenever asked.

    Parameters
    ----------
    surrogate
        Settings.
    dim
        Numbers in a position.
    seed
        Of the generator that each fit receives.
    """

    def __init__(self, surrogate: BatchSurrogate, dim: int, seed: int) -> None:
        self._surrogate = surrogate
        self._dim = dim
        self._seed = seed
        self._blocks: list[Evaluations] = []

    @property
    def needs(self) -> frozenset[str]:
        """What it cannot learn without."""
        return self._surrogate.needs

    @property
    def uses(self) -> frozenset[str]:
        """What it makes use of."""
        return self._surrogate.uses

    @property
    def provides(self) -> Capabilities:
        """Capabilities of its fitted potentials."""
        return self._surrogate.provides

    def observe(self, evaluations: Evaluations) -> None:
        """Keep the rows whose value is finite."""
        finite = evaluations.take(np.isfinite(evaluations.values))
        if len(finite):
            self._blocks.append(finite)

    def fitted(self) -> Potential:
        """Return what the function makes of everything observed.

        Raises
        ------
        SurrogateFitError
            If nothing finite was observed.
        """
        if not self._blocks:
            raise SurrogateFitError(
                "a surrogate needs at least one finite evaluation, got none; explore for longer"
            )
        rows = Evaluations.joined(self._blocks, self._dim)
        return self._surrogate.fit(rows, np.random.default_rng(self._seed))

    def state(self) -> dict[str, Any]:
        """Return the rows and the seed."""
        rows = attrs.asdict(Evaluations.joined(self._blocks, self._dim))
        return {"seed": self._seed, "rows": rows}

    def restored(self, state: Mapping[str, Any]) -> BatchLearner:
        """Return a learner with the rows and the seed of ``state``."""
        learner = BatchLearner(self._surrogate, self._dim, int(state["seed"]))
        learner.observe(Evaluations(**state["rows"]))
        return learner
