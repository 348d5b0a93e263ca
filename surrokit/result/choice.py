"""The choice of parts that nobody named, as data; its text is how it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import attrs


@attrs.frozen(kw_only=True)
class Replacement:
    """One part that a run gave up for another.

    Parameters
    ----------
    kind
        ``"sampler"`` or ``"surrogate"``.
    old, new
        The sampler before (None where it was not replaced itself), and the one from there on.
    reason
        Why, with the figures measured.
    """

    kind: str
    old: str | None = None
    new: str
    reason: str

    def __str__(self) -> str:
        if self.old is None:
            return f"then {self.new} instead: {self.reason}"
        return f"later {self.new} instead of {self.old}: {self.reason}"


@attrs.frozen(kw_only=True)
class Choice:
    """Parts that a policy picked, and those that took their place later.

    Parameters
    ----------
    parts
        Kind of part to the part as it would be typed; empty where the user named them.
    reasons
        Why these, with the figures measured.
    replaced
        What was given up later, in order.
    """

    parts: Mapping[str, str] = attrs.field(factory=dict)
    reasons: tuple[str, ...] = ()
    replaced: tuple[Replacement, ...] = ()

    @classmethod
    def of_dict(cls, told: Mapping[str, Any] | None) -> Self | None:
        """Return a choice from the plain data that :func:`attrs.asdict` makes of it."""
        if told is None:
            return None
        return cls(
            parts=dict(told["parts"]),
            reasons=tuple(told["reasons"]),
            replaced=tuple(Replacement(**each) for each in told["replaced"]),
        )

    def because(self, reason: str) -> Self:
        """Return it with one more reason."""
        return attrs.evolve(self, reasons=(*self.reasons, reason))

    def replace(self, replacement: Replacement) -> Self:
        """Return it with one more replacement."""
        return attrs.evolve(self, replaced=(*self.replaced, replacement))

    def __str__(self) -> str:
        begun = ", ".join(f"{kind}={part}" for kind, part in self.parts.items())
        if not begun and self.replaced:
            begun = str(self.replaced[0].old)
        why = "; ".join(self.reasons)
        first = f"{begun}: {why}" if why else begun
        return "; ".join([first, *map(str, self.replaced)])
