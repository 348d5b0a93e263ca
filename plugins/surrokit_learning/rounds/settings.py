"""Settings of an exploration in rounds."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from surrokit.arguments import (
    fraction,
    one_of,
    optional_positive_integer,
    positive,
    positive_integer,
)
from surrokit.capabilities import GRADIENT
from surrokit.contracts.explorer import Explorer
from surrokit.interfaces import Correction, Sampler
from surrokit.types import Capabilities
from surrokit_learning.region.box import Box, optional_box

Start: TypeAlias = Literal["auto", "mode", "sobol", "burst"]
"""How the first points are found."""


@attrs.frozen(kw_only=True, eq=False)
class RoundsSettings:
    """How an exploration in rounds goes.

    Parameters
    ----------
    sampler, correction
        The kernel that draws from the surrogate.
    tuned
        The sampler to tune on the last surrogate: the run's own.
    burst
        The explorer that finds the first points with ``start="burst"``.
    start
        ``"mode"``: a search for the mode from the best start, and draws from the Laplace
        approximation there; it needs gradients. ``"sobol"``: points spread over a box.
        ``"burst"``: whatever another explorer pays for. ``"auto"``: ``"mode"`` where gradients are
        paid for, else ``"sobol"``.
    gradients
        Whether points are evaluated with their gradients (of forward maps: Jacobians); None for
        where the target offers them.
    evaluations
        Exact evaluations at most; None for 100 + 10 dim with gradients, beside those of the search
        for the mode, and 200 + 20 dim without.
    batch
        Points in a round.
    acceptance
        Predicted acceptance of independent draws that is good enough; without gradients on average
        over three rounds.
    searches
        Starts at most from which to search for modes; None for as many as a part of the evaluations
        pays for (:data:`~surrokit_learning.rounds.allowance.SEARCHED`), three at least. One is
        enough where the target says that it is convex.
    patience
        Rounds after which to stop if they are no better than as many before them; None for 3 with
        gradients and 10 without.
    transitions
        Of each chain on the surrogate in a round.
    box
        Lower and upper corners, in the sampling coordinates, of the box that ``"sobol"`` fills.
    scale
        Half the box's width about the best start, where there is neither a box nor a target that
        draws starting positions of its own.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    sampler: Sampler
    correction: Correction
    tuned: Sampler
    burst: Explorer
    start_by: Start = attrs.field(
        default="auto", validator=one_of("auto", "mode", "sobol", "burst"), alias="start"
    )
    gradients: bool | None = None
    evaluations: int | None = attrs.field(default=None, validator=optional_positive_integer)
    batch: int = attrs.field(default=20, validator=positive_integer)
    acceptance: float = attrs.field(default=0.9, validator=fraction)
    searches: int | None = attrs.field(default=None, validator=optional_positive_integer)
    patience: int | None = attrs.field(default=None, validator=optional_positive_integer)
    transitions: int = attrs.field(default=60, validator=positive_integer)
    box: Box | None = attrs.field(default=None, converter=optional_box)
    scale: float = attrs.field(default=2.0, validator=positive)

    @property
    def needs(self) -> Capabilities:
        """Gradients, if a setting asks for them, and what the burst needs."""
        needs = self.burst.needs if self.start_by == "burst" else frozenset()
        by_gradient = self.start_by == "mode" or self.gradients is True
        return needs | {GRADIENT} if by_gradient else needs
