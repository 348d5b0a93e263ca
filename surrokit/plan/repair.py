"""What is done where a surrogate fails: repairs, or an exact kernel in its place."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from surrokit.arguments import (
    Limits,
    fraction,
    not_negative_integer,
    one_of,
    positive_integer,
    share,
)
from surrokit.interfaces import Correction, Sampler, Schedule

MOST_RESTARTS = 3
"""Restarts after which draws are kept, whatever happens."""

_MIX = Limits("None or a probability of at least 0 and below 1", share.hold)

POOR = 0.7
"""Acceptance, foretold by an exploration, below which exact paths are learnt from."""

LESSON, LESSONS = 40, 2
"""Exact transitions at a time, and how many times at most."""

MIXED, SURE = 0.2, 0.9
"""Probability of exact transitions thereafter, unless an acceptance as sure is foretold by then.
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
    warning. With ``restart`` the draws so far become warm-up, the surrogate is repaired, and draws
    begin again, at most three times. The kernel is then still fixed before the first kept draw, but
    whether draws are kept depends on the draws; so ``restart`` must be asked for.

    Parameters
    ----------
    patience
        Iterations that a chain may stand still, and over which acceptance is averaged.
    collapse, promise
        Parts of the expected acceptance, between 0 and 1, below which a surrogate is repaired.
    block
        Exact transitions in one repair.
    rescues
        Repairs at most, in warm-up; 0 switches the net off.
    mix
        Probability that an iteration after the exploration, kept or not, is an exact transition.
        None for 0, or for :data:`MIXED` where a surrogate had to learn from exact paths because a
        poor acceptance was foretold, and does not foretell a good one after that.
    restart
        Whether a collapse among kept draws starts them again.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    patience: int = attrs.field(default=40, validator=positive_integer)
    collapse: float = attrs.field(default=0.1, validator=fraction)
    promise: float = attrs.field(default=0.25, validator=fraction)
    block: int = attrs.field(default=10, validator=positive_integer)
    rescues: int = attrs.field(default=5, validator=not_negative_integer)
    mix: float | None = attrs.field(default=None, validator=attrs.validators.optional(_MIX))
    restart: bool = attrs.field(default=False, validator=one_of(True, False))


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
