"""What changes in the course of a run, and whether draws are kept meanwhile: by what happens."""

from __future__ import annotations

from surrokit.contracts.schedule import Decision, Moment
from surrokit.result.run import Adaptation
from surrokit.run.net import SafetyNet

Kernel = tuple[object, ...]
"""The frozen parts that move chains and decide; a changed one is another object."""


class Adapting:
    """What is known of a run's adaptation so far.

    A draw is kept under adaptation if the kernel changes among the draws, and also if the schedule
    left open that it might: whether it does may depend on where the chains go.

    Attributes
    ----------
    frozen
        Whether the schedule has said that it deploys nothing any more.
    """

    def __init__(self) -> None:
        self.frozen = False
        self._kept_under_adaptation = False
        self._though_frozen: list[int] = []
        self._kernel: Kernel | None = None

    def begin_again(self) -> None:
        """Take note that the draws so far are warm-up, and that adaptation starts anew."""
        self.frozen = self._kept_under_adaptation = False

    def draws_begin(self, kernel: Kernel) -> None:
        """Take note of the kernel that the draws begin with."""
        self._kernel = kernel

    def decided(self, moment: Moment, decision: Decision, kernel: Kernel) -> None:
        """Take in what a schedule decided, and the kernel that chains move by from here on."""
        if decision.deploy and self.frozen:
            self._though_frozen.append(moment.iteration)
        self.frozen = self.frozen or decision.frozen
        if moment.stage == "sampling":
            might_change = decision.deploy or not decision.frozen
            self._kept_under_adaptation |= might_change or not _same(kernel, self._kernel)

    def told(self, deployments: list[int], training_rows: int, net: SafetyNet) -> Adaptation:
        """Return it as the result of a run tells it."""
        return Adaptation(
            deployments=tuple(deployments),
            training_rows=training_rows,
            frozen_before_draws=not self._kept_under_adaptation,
            rescues=tuple(net.rescues),
            restarts=tuple(net.restarts),
            mix=net.safety.mix,
            deployed_though_frozen=tuple(self._though_frozen),
        )


def _same(kernel: Kernel, other: Kernel | None) -> bool:
    if other is None or len(kernel) != len(other):
        return False
    return all(one is another for one, another in zip(kernel, other, strict=True))
