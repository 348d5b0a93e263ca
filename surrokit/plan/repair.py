"""What is done where a surrogate fails: repairs, or an exact kernel in its place."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import attrs
import numpy as np

from surrokit.arguments import (
    Limits,
    fraction,
    not_negative_integer,
    positive_integer,
    share,
)
from surrokit.interfaces import Correction, Evaluations, Sampler, Schedule, Stage, StepInfo
from surrokit.potentials import Potential
from surrokit.result.records import Repair
from surrokit.surrogate.quality import fit_quality_of
from surrokit.types import FloatArray

_MIX = Limits("None or a probability of at least 0 and below 1", share.hold)

POOR = 0.7
"""Acceptance, predicted by an exploration, below which exact paths are learnt from."""

REPAIR_LENGTH, REPAIR_LENGTHS = 40, 2
"""Exact transitions at a time, and how many times at most."""

MIXED, SURE = 0.2, 0.9
"""Probability of exact transitions thereafter, unless an acceptance as sure is predicted by then.
Chains stand for long in tails that a poor surrogate has not learnt of."""

PATHS_WORK = 0.1  # below this acceptance on its own potential a sampler does not work at all


@attrs.frozen(kw_only=True)
class Safety:
    """When proposals on a surrogate count as collapsed, and what is done about it.

    In warm-up a collapse brings in a repair: a block of exact transitions. Whatever the schedule
    says, the surrogate learns from their evaluations, and from those of proposals since the last
    fit. It is then fitted and deployed again, and tuning goes on. A collapse is one of:

    - a chain has not moved for ``patience`` iterations;
    - over ``patience`` iterations a chain's acceptance was below ``collapse`` times that of its
      paths, which a perfect surrogate would reach;
    - over as many iterations the acceptance of all chains together was below ``promise`` times
      what the surrogate's own held-out error predicts, and below half of the paths'.

    Where the exact transitions themselves are hardly ever accepted, the step size is to blame; the
    net then gives up.

    From the first kept draw on there are no repairs, because a kernel that depended on the path
    would bias the draws. Only ``mix`` remains: the probability that an iteration is an exact
    transition, independently of the past and fixed in warm-up. A collapse among kept draws gives a
    warning.

    Parameters
    ----------
    patience
        Iterations that a chain may stand still, and over which acceptance is averaged.
    collapse, promise
        Parts of the expected acceptance, between 0 and 1, below which a surrogate is repaired.
    block
        Exact transitions in one repair.
    repairs
        Repairs at most, in warm-up; 0 switches them off.
    mix
        Probability that an iteration after the exploration, kept or not, is an exact transition.
        None for 0, or for :data:`MIXED` where a surrogate had to learn from exact paths because a
        poor acceptance was predicted, and does not predict a good one after that.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    patience: int = attrs.field(default=40, validator=positive_integer)
    collapse: float = attrs.field(default=0.1, validator=fraction)
    promise: float = attrs.field(default=0.25, validator=fraction)
    block: int = attrs.field(default=10, validator=positive_integer)
    repairs: int = attrs.field(default=5, validator=not_negative_integer)
    mix: float | None = attrs.field(default=None, validator=attrs.validators.optional(_MIX))


_STILL_GOOD = 0.5  # nothing is repaired above this part of the paths' acceptance


class Repairs:
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
        self.repairs: list[Repair] = []
        self._chains = chains
        self._repairs = self._awake = repairs
        self._block: list[float] = []
        self._unlearnt: list[Evaluations] = []
        self.look_afresh()

    def look_afresh(self) -> None:
        """Forget the iterations on a surrogate that is no longer in use."""
        # probabilities of moves and acceptance of paths, (2, chains), of each
        self._latest: deque[FloatArray] = deque(maxlen=self.safety.patience)
        self._standing = np.zeros(self._chains, dtype=np.int64)  # iterations without a move

    def saw(self, info: StepInfo) -> None:
        """Note an iteration on the surrogate."""
        if self._awake:
            self._latest.append(np.array([info.move_probability, info.path_acceptance]))
            self._standing = np.where(info.accepted, 0, self._standing + 1)

    def draws_begin(self) -> None:
        """Stop watching."""
        self._awake, self._unlearnt = False, []

    def trouble(self, surrogate: Potential | None, room: int) -> str | None:
        """Return why the surrogate must be repaired in a warm-up that has ``room`` left."""
        return self._complaint(surrogate) if self.may_repair(room, self.safety.block) else None

    def may_repair(self, room: int, transitions: int) -> bool:
        """Return whether a repair leaves ``patience`` iterations of warm-up for tuning."""
        enough = room >= transitions + self.safety.patience
        return self._repairs and enough and len(self.repairs) < self.safety.repairs

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
        acceptance, of_paths = np.stack(self._latest, axis=1)
        paths = of_paths.mean(axis=0)
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
        may_repair = stage != "sampling" and len(self.repairs) < self.safety.repairs
        return self._repairs and surrogate is not None and may_repair

    def keep(self, rows: Evaluations) -> None:
        """Keep evaluations that the learner has not observed."""
        self._unlearnt.append(rows)

    def take(self, dim: int) -> Evaluations:
        """Return the evaluations kept, and forget them."""
        blocks, self._unlearnt = self._unlearnt, []
        return Evaluations.join(blocks, dim)


HOPELESS = 0.01
"""A surrogate whose iterations forget less than this part is dropped, whatever its calls cost."""

_NEEDED = 0.25  # part of a sub-chain's steps that a draw takes, since sub-chains tend to be long


@attrs.frozen(kw_only=True, eq=False)
class Fallback:
    """An exact kernel, and what an independent draw is expected to cost with it.

    Parameters
    ----------
    sampler, correction
        The kernel; not bound to a potential yet.
    seconds_per_draw
        Seconds for one about independent draw of every chain, with its share of the warm-up that
        this kernel would still need.
    seconds_per_value
        Seconds for the target's value at one position of every chain.
    steps_per_draw
        Integrator steps in that draw; None where nothing is integrated.
    described
        Kind of part to its name, for the output.
    """

    name: str
    sampler: Sampler
    correction: Correction
    schedule: Schedule
    seconds_per_draw: float
    seconds_per_value: float
    steps_per_draw: float | None = None
    described: Mapping[str, str] = attrs.field(factory=dict)

    def complaint(self, forgotten: float, seconds: float = 0.0, steps: float = 0.0) -> str | None:
        """Return why the surrogate is to be dropped, or None.

        If an iteration forgets a part f, each draw is worth f / (2 - f) independent draws. In
        general f is 1 less the correlation of successive draws; with independent proposals it is
        their acceptance.

        Parameters
        ----------
        seconds
            Seconds of an iteration on the surrogate; at least those of the exact values count.
        steps
            Integrator steps of an iteration on the surrogate. If they are very many, so are those
            of the exact kernel.
        """
        if not forgotten >= HOPELESS:
            return f"an iteration on the surrogate would forget {max(forgotten, 0.0):.3f} only"
        worth = forgotten / (2.0 - forgotten)
        on_surrogate = max(seconds, self.seconds_per_value) / worth
        exact = self.seconds_per_draw
        if self.steps_per_draw is not None:
            exact *= max(_NEEDED * steps / self.steps_per_draw, 1.0)
        if on_surrogate <= exact:
            return None
        return (
            f"a draw on the surrogate would be worth {worth:.2g} independent ones; each of these "
            f"would take {in_words(on_surrogate)}, but {in_words(exact)} with {self.name}"
        )


def in_words(seconds: float) -> str:
    """Return a time with its unit."""
    if seconds >= 60:
        return f"{seconds / 60:.3g} min"
    if seconds >= 1:
        return f"{seconds:.3g} s"
    number, unit = (1e3 * seconds, "ms") if seconds >= 1e-4 else (1e6 * seconds, "us")
    return f"{number:.0f} {unit}" if number >= 10 else f"{number:.2g} {unit}"
