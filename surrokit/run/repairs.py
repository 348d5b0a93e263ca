"""The safety net: when a run's surrogate has to be repaired, and what repairs learn from."""

from __future__ import annotations

from collections import deque

import numpy as np

from surrokit.interfaces import Evaluations, Stage, StepInfo
from surrokit.plan.repair import MOST_RESTARTS, PATHS_WORK, Safety
from surrokit.potentials import Potential
from surrokit.result.records import Rescue
from surrokit.surrogate.quality import fit_quality_of

_STILL_GOOD = 0.5  # nothing is repaired above this part of the paths' acceptance


class SafetyNet:
    """Watches the proposals on a run's surrogate.

    Parameters
    ----------
    repairs
        Whether there are a learner and an exact kernel to repair the surrogate with.

    Attributes
    ----------
    mix
        Probability that an iteration is an exact transition.
    """

    def __init__(self, safety: Safety, chains: int, *, repairs: bool) -> None:
        self.safety = safety
        self.mix = safety.mix or 0.0
        self.rescues: list[Rescue] = []
        self.restarts: list[Rescue] = []
        self._chains = chains
        self._repairs = self._awake = repairs
        self._block: list[float] = []
        self._unlearnt: list[Evaluations] = []
        self.look_afresh()

    def look_afresh(self) -> None:
        """Forget the iterations on a surrogate that is no longer in use."""
        self._latest: deque[StepInfo] = deque(maxlen=self.safety.patience)
        self._standing = np.zeros(self._chains, dtype=np.int64)  # iterations without a move

    def saw(self, info: StepInfo) -> None:
        """Note an iteration on the surrogate."""
        if self._awake:
            self._latest.append(info)
            self._standing = np.where(info.accepted, 0, self._standing + 1)

    def draws_begin(self) -> None:
        """Stop watching, unless draws may have to begin again."""
        self._awake = self._repairs and self._may_restart
        if not self._awake:
            self._unlearnt = []
        self.look_afresh()

    def trouble(self, surrogate: Potential | None, room: int) -> str | None:
        """Return why the surrogate must be repaired in a warm-up that has ``room`` left."""
        return self._complaint(surrogate) if self.may_rescue(room, self.safety.block) else None

    def may_rescue(self, room: int, transitions: int) -> bool:
        """Return whether a repair leaves ``patience`` iterations of warm-up for tuning."""
        enough = room >= transitions + self.safety.patience
        return self._repairs and enough and len(self.rescues) < self.safety.rescues

    def late_trouble(self, surrogate: Potential | None) -> str | None:
        """Return why kept draws must begin again, if that was asked for."""
        return self._complaint(surrogate) if self._may_restart else None

    def _complaint(self, surrogate: Potential | None) -> str | None:
        if not self._repairs or surrogate is None or len(self._latest) < self.safety.patience:
            return None
        quality = fit_quality_of(surrogate)
        return self.complaint(None if quality is None else quality.acceptance)

    def complaint(self, predicted: float | None) -> str | None:
        """Return what is wrong with the surrogate, by the latest iterations, or None.

        Parameters
        ----------
        predicted
            Acceptance that the surrogate's own held-out error predicts, if it reports one.
        """
        safety = self.safety
        acceptance = np.stack([info.move_probability for info in self._latest])
        paths = np.stack([info.path_acceptance for info in self._latest]).mean(axis=0)
        stuck = np.flatnonzero(self._standing >= safety.patience)
        if stuck.size:
            which = "chain" if stuck.size == 1 else "chains"
            return (
                f"{which} {', '.join(map(str, stuck))} had not moved for {safety.patience} "
                "iterations"
            )
        each, exact = acceptance.mean(axis=0), float(acceptance.mean())
        collapsed = np.flatnonzero((each < safety.collapse * paths) & (paths >= PATHS_WORK))
        if collapsed.size:
            worst = collapsed[0]
            return (
                f"acceptance of chain {worst} was {each[worst]:.3f}, where that of its paths was "
                f"{paths[worst]:.3f}"
            )
        working = float(paths.mean())  # below PATHS_WORK the step size is to blame
        if predicted is None or working < PATHS_WORK or exact > _STILL_GOOD * working:
            return None
        if exact < safety.promise * predicted * working:
            return f"acceptance was {exact:.3f}, where the fit's own error promised {predicted:.3f}"
        return None

    def note_repair(self) -> None:
        """Note that a repair is over; give up where its exact transitions failed, too."""
        if self._block and float(np.mean(self._block)) < PATHS_WORK:
            self._repairs = False
        self._block = []
        self._awake = self._repairs
        self.look_afresh()

    def saw_exact(self, info: StepInfo) -> None:
        """Note an exact transition of a repair."""
        self._block.append(float(info.move_probability.mean()))

    def mixes(self, surrogate: Potential | None, rng: np.random.Generator) -> bool:
        """Draw, independently of the past, whether the next iteration is an exact one."""
        return self.mix > 0.0 and surrogate is not None and bool(rng.random() < self.mix)

    def mix_in(self, probability: float) -> None:
        """Mix in exact transitions from here on, unless settings say how many."""
        if self.safety.mix is None:
            self.mix = probability

    def listens(self, surrogate: Potential | None, stage: Stage) -> bool:
        """Return whether evaluations that the schedule does not observe are kept for a repair."""
        may_rescue = stage != "sampling" and len(self.rescues) < self.safety.rescues
        return self._repairs and surrogate is not None and (self._may_restart or may_rescue)

    def keep(self, rows: Evaluations) -> None:
        """Keep evaluations that the learner has not observed."""
        self._unlearnt.append(rows)

    def take(self, dim: int) -> Evaluations:
        """Return the evaluations kept, and forget them."""
        blocks, self._unlearnt = self._unlearnt, []
        return Evaluations.join(blocks, dim)

    @property
    def _may_restart(self) -> bool:
        return self.safety.restart and len(self.restarts) < MOST_RESTARTS
