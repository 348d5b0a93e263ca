"""What a method hands over, before it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from surrokit.types import FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Drawn:
    """Draws, what they cost, and what was said about them.

    Parameters
    ----------
    draws : ndarray of shape (chains, draws, dim)
        In the user's coordinates.
    calls_before, calls
        Exact calls by kind, in positions: before the first kept draw, and in all.
    seconds
        All of them, but compilation.
    warnings
        That the result deserves a look, each in words.
    acceptance
        Mean over the chains; None where it says nothing.
    chains
        Whether the draws come from chains, so that R-hat says something.
    ess
        Effective draws where a method tells them itself, as it must for weighted points; None to
        estimate them from the chains.
    extra
        What else is worth keeping.
    """

    draws: FloatArray
    calls_before: Mapping[str, int]
    calls: Mapping[str, int]
    seconds: float
    warnings: tuple[str, ...] = ()
    acceptance: float | None = None
    chains: bool = True
    ess: float | None = None
    extra: Mapping[str, Any] = attrs.field(factory=dict)
