"""The settings of the safety net for surrogates whose proposals are hardly ever accepted."""

from __future__ import annotations

import attrs

from surrokit.errors import ConfigurationError
from surrokit.settings import (
    Limits,
    fraction,
    not_negative_integer,
    one_of,
    positive_integer,
    share,
)

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

    def is_futile(self, acceptance: float) -> bool:
        """Return whether exact transitions failed as well, so that no surrogate is to blame."""
        return acceptance < PATHS_WORK


def check_safety(safety: object) -> Safety:
    """Return the settings of a run's safety net; the defaults for None.

    Raises
    ------
    ConfigurationError
        If something else is given.
    """
    if safety is None:
        return Safety()
    if not isinstance(safety, Safety):
        raise ConfigurationError(
            f"safety must be a surrokit.Safety(...) or None for the usual one, got {safety!r}; to "
            "switch it off pass surrokit.Safety(rescues=0)"
        )
    return safety
