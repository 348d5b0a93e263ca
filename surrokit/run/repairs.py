"""Repairs in warm-up: of a surrogate whose proposals are rejected, and of stuck chains."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.interfaces import Evaluations, Stage, StepInfo
from surrokit.plan.repair import MOST_RESTARTS, PATHS_WORK, Safety
from surrokit.potentials import Potential
from surrokit.result.records import Rescue
from surrokit.surrogate.quality import fit_quality_of
from surrokit.types import FloatArray, IntArray

_STILL_GOOD = 0.5  # nothing is repaired above this part of the paths' acceptance


@attrs.frozen(kw_only=True, eq=False)
class Watch:
    """The latest iterations on the surrogate, as the safety net remembers them.

    Parameters
    ----------
    standing : ndarray of shape (chains,)
        Iterations since each chain last moved.
    acceptance, path_acceptance : ndarray of shape (patience, chains)
        Probability of a move, and acceptance of the paths, in the last iterations, the latest
        last; NaN before there were so many.
    """

    standing: IntArray
    acceptance: FloatArray
    path_acceptance: FloatArray

    @classmethod
    def of(cls, safety: Safety, chains: int) -> Watch:
        """Return the record before the first iteration."""
        empty = np.full((safety.patience, chains), np.nan)
        return cls(
            standing=np.zeros(chains, dtype=np.int64), acceptance=empty, path_acceptance=empty
        )

    def after(self, info: StepInfo) -> Watch:
        """Return the record after one more iteration on the surrogate."""
        return Watch(
            standing=np.where(info.accepted, 0, self.standing + 1),
            acceptance=np.vstack([self.acceptance[1:], info.move_probability]),
            path_acceptance=np.vstack([self.path_acceptance[1:], info.path_acceptance]),
        )

    def complaint(self, safety: Safety, promised: float | None) -> str | None:
        """Return what is wrong with the surrogate, or None.

        Parameters
        ----------
        promised
            Acceptance that the surrogate's own held-out error predicts, if it reports one.
        """
        if np.isnan(self.acceptance).any():
            return None
        paths, exact = self.path_acceptance.mean(axis=0), float(self.acceptance.mean())
        stuck = np.flatnonzero(self.standing >= safety.patience)
        if stuck.size:
            which = "chain" if stuck.size == 1 else "chains"
            return (
                f"{which} {', '.join(map(str, stuck))} had not moved for {safety.patience} "
                "iterations"
            )
        each = self.acceptance.mean(axis=0)
        collapsed = np.flatnonzero((each < safety.collapse * paths) & (paths >= PATHS_WORK))
        if collapsed.size:
            worst = collapsed[0]
            return (
                f"acceptance of chain {worst} was {each[worst]:.3f}, where that of its paths was "
                f"{paths[worst]:.3f}"
            )
        working = float(paths.mean())
        if working < PATHS_WORK:  # a matter of the step size
            return None
        if promised is None or exact > _STILL_GOOD * working:
            return None
        if exact < safety.promise * promised * working:
            return f"acceptance was {exact:.3f}, where the fit's own error promised {promised:.3f}"
        return None


class SafetyNet:
    """Watches a run's surrogate, and says when it has to be repaired.

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
        self._repairs = repairs
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
        """Stop watching, unless draws may have to begin again."""
        self._awake = self._repairs and self._may_restart
        if not self._awake:
            self._unlearnt = []
        self.look_afresh()

    def trouble(self, surrogate: Potential | None, room: int) -> str | None:
        """Return why the surrogate must be repaired in a warm-up that has ``room`` left."""
        return self._complaint(surrogate) if self.may_rescue(room, self.safety.block) else None

    def may_rescue(self, room: int, transitions: int) -> bool:
        """Return whether a warm-up with ``room`` left has time for a repair of so many transitions.

        After it ``patience`` is left for tuning.
        """
        enough = room >= transitions + self.safety.patience
        return self._repairs and enough and len(self.rescues) < self.safety.rescues

    def late_trouble(self, surrogate: Potential | None) -> str | None:
        """Return why kept draws must begin again, if that was asked for."""
        return self._complaint(surrogate) if self._may_restart else None

    def _complaint(self, surrogate: Potential | None) -> str | None:
        if not self._repairs or surrogate is None:
            return None
        quality = fit_quality_of(surrogate)
        promised = None if quality is None else quality.acceptance
        return self._watch.complaint(self.safety, promised)

    def note_repair(self) -> None:
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
        """Draw, independently of the past, whether the next iteration is an exact one."""
        if self.mix == 0.0 or surrogate is None:
            return False
        return bool(rng.random() < self.mix)

    def mix_in(self, probability: float) -> None:
        """Mix in exact transitions from here on, unless settings say how many."""
        if self.safety.mix is None:
            self.mix = probability

    # --- rows for a repair ---

    def listens(self, surrogate: Potential | None, stage: Stage) -> bool:
        """Return whether rows that the schedule does not observe are kept for a repair."""
        if not self._repairs or surrogate is None:
            return False
        if self._may_restart:
            return True
        return stage != "sampling" and len(self.rescues) < self.safety.rescues

    def keep(self, rows: Evaluations) -> None:
        """Keep rows that the learner has not observed, for a repair."""
        self._unlearnt.append(rows)

    def take(self, dim: int) -> Evaluations:
        """Return the rows kept, and forget them."""
        blocks, self._unlearnt = self._unlearnt, []
        return Evaluations.join(blocks, dim)

    @property
    def _may_restart(self) -> bool:
        return self.safety.restart and len(self.restarts) < MOST_RESTARTS
