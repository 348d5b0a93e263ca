"""What a run's safety net knows: whom to call on, what it has seen, what it has done."""

from __future__ import annotations

import numpy as np

from surrokit.exact_moves import ExactMoves
from surrokit.protocols import Potential
from surrokit.records import Evaluations, Stage, StepInfo
from surrokit.result import fit_quality_of
from surrokit.safety import MOST_RESTARTS, Rescue, Safety, Watch


class SafetyNet:
    """Watches a run's surrogate, and says when it has to be repaired.

    Parameters
    ----------
    safety
        The settings.
    chains
        How many.
    exact
        The exact kernel; None where there is no surrogate.
    learns
        Whether there is a learner to repair the surrogate with.
    """

    def __init__(
        self, safety: Safety, chains: int, exact: ExactMoves | None, *, learns: bool
    ) -> None:
        self.safety = safety
        self.exact = exact
        self.rescues: list[Rescue] = []
        self.restarts: list[Rescue] = []
        self._chains = chains
        self._repairs = learns and exact is not None
        self._block: list[float] = []
        self._awake = self._repairs
        self._watch = Watch.of(safety, chains)
        self._unlearnt: list[Evaluations] = []

    # --- watching ---

    def saw(self, info: StepInfo) -> None:
        """Take in what an iteration on the surrogate did."""
        if self._awake:
            self._watch = self._watch.after(info)

    def look_afresh(self) -> None:
        """Forget what was seen of a surrogate that is no longer in use."""
        self._watch = Watch.of(self.safety, self._chains)

    def draws_begin(self) -> None:
        """Watch no longer, unless draws may have to begin again."""
        self._awake = self._repairs and self._may_restart
        if not self._awake:
            self._unlearnt = []
        self.look_afresh()

    def trouble(self, surrogate: Potential | None, room: int) -> str | None:
        """Return why the surrogate must be repaired in a warm-up that has ``room`` left."""
        enough = room >= self.safety.shortest and len(self.rescues) < self.safety.rescues
        return self._complaint(surrogate) if enough else None

    def late_trouble(self, surrogate: Potential | None) -> str | None:
        """Return why kept draws must begin again, if that was asked for."""
        return self._complaint(surrogate) if self._may_restart else None

    def _complaint(self, surrogate: Potential | None) -> str | None:
        if not self._repairs or surrogate is None:
            return None
        quality = fit_quality_of(surrogate)
        promised = None if quality is None else quality.acceptance
        return self._watch.complaint(self.safety, promised)

    def repaired(self) -> None:
        """Take note that a repair is over; give up where its exact transitions failed, too."""
        if self._block and self.safety.is_futile(float(np.mean(self._block))):
            self._repairs = False
        self._block = []
        self._awake = self._repairs
        self.look_afresh()

    def saw_exact(self, info: StepInfo) -> None:
        """Take in what an exact transition of a repair did."""
        self._block.append(float(info.move_probability.mean()))

    # --- mixing ---

    def mixes(self, surrogate: Potential | None, rng: np.random.Generator) -> bool:
        """Return whether the next iteration is an exact one: a toss that knows no past."""
        if self.safety.mix == 0 or surrogate is None:
            return False
        return bool(rng.random() < self.safety.mix)

    # --- rows for a repair ---

    def listens(self, surrogate: Potential | None, stage: Stage) -> bool:
        """Return whether rows that the schedule does not observe are kept for a repair."""
        if not self._repairs or surrogate is None:
            return False
        if self._may_restart:
            return True
        return stage != "sampling" and len(self.rescues) < self.safety.rescues

    def keep(self, rows: Evaluations) -> None:
        """Keep rows that nothing was learnt from."""
        self._unlearnt.append(rows)

    def taken(self, dim: int) -> Evaluations:
        """Return the rows kept, and forget them."""
        blocks, self._unlearnt = self._unlearnt, []
        return Evaluations.joined(blocks, dim)

    @property
    def _may_restart(self) -> bool:
        return self.safety.restart and len(self.restarts) < MOST_RESTARTS
