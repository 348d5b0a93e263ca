"""What a reader of a run's figures must know, as records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

FEWEST_EFFECTIVE = 100
"""Effective draws below which means are uncertain by a tenth of a standard deviation, and R-hat
itself tells little."""


@attrs.frozen(kw_only=True)
class Finding:
    """One thing that a reader of the figures must know.

    Parameters
    ----------
    name
        A word for programs, such as ``r_hat`` or ``stopped``.
    message
        What was found and what to do about it, without a full stop.
    warns
        Whether the draws may be wrong by it, or worth less than they seem.
    """

    name: str
    message: str
    warns: bool


@attrs.frozen
class Verdict:
    """All findings about a run; as text, a line for each.

    Parameters
    ----------
    findings
        Those that warn come first.
    """

    findings: tuple[Finding, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether no finding warns."""
        return not self.warnings

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Findings by which the draws may be wrong, or worth less than they seem."""
        return tuple(finding for finding in self.findings if finding.warns)

    @property
    def messages(self) -> tuple[str, ...]:
        """What each finding says, without full stops."""
        return tuple(finding.message for finding in self.findings)

    def named(self, name: str) -> tuple[Finding, ...]:
        """Return the findings of one name; empty if there are none."""
        return tuple(finding for finding in self.findings if finding.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data."""
        return {"sound": self.sound, "findings": [attrs.asdict(each) for each in self.findings]}

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __str__(self) -> str:
        kinds = {True: "Warning", False: "Note"}
        return "\n".join(f"{kinds[each.warns]}: {each.message}." for each in self.findings)
