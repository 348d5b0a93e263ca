"""The schedules that learn never, or once."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.interfaces import Decision, Moment


@attrs.frozen
class Never:
    """Nothing is learnt: the sampler stays on the potential it was given."""

    @property
    def learns(self) -> bool:
        """Never."""
        return False

    @property
    def deployment_rate(self) -> float:
        """Nothing is deployed."""
        return 0.0

    def exploration(self, gradients: bool) -> None:
        """Leave the length of the exploration to the explorer."""

    def decide(self, moment: Moment, rng: np.random.Generator) -> Decision:  # noqa: ARG002
        """Return that nothing is to be done."""
        return Decision(observe=False, deploy=False, frozen=True)


@attrs.frozen
class Once:
    """Learn while exploring, deploy once when the exploration ends, then freeze.

    Algorithm 3 of Zhang, Shahbaba and Zhao (2017). The kernel of the kept draws does not depend
    on their past.
    """

    @property
    def learns(self) -> bool:
        """Always."""
        return True

    @property
    def deployment_rate(self) -> float:
        """Nothing is deployed after the first fit."""
        return 0.0

    def exploration(self, gradients: bool) -> None:
        """Leave the length of the exploration to the explorer."""

    def decide(self, moment: Moment, rng: np.random.Generator) -> Decision:  # noqa: ARG002
        """Return what to do after an iteration."""
        exploring = moment.stage == "exploration"
        return Decision(
            observe=exploring, deploy=moment.explored, frozen=moment.explored or not exploring
        )
