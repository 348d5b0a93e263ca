"""The first section of a page: whether the draws can be used, and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit.modes import describe_searches
from surrokit.shown.elements import Markup, items, join, named, tag
from surrokit.types import FloatArray


def headline(run: Any) -> str:
    """Return the verdict on a run in one sentence.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    """
    n = len(run.verdict.warnings)
    if not run.draws.shape[1]:
        return "There are no draws."
    if n:
        return f"{n} warning{'s' if n > 1 else ''}: read before you use the draws."
    return "Nothing speaks against these draws."


def findings(run: Any) -> Markup:
    """Return the verdict on a run with all findings, and advice.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    """
    rows = []
    for finding in run.verdict:
        word = "Warning" if finding.warns else "Note"
        label = tag("span", f"{word}: ", class_=f"word {word.lower()}")
        rows.append(tag("li", label, f"{finding.message}."))
    warns = bool(run.verdict.warnings) or not run.draws.shape[1]
    told = tag("ul", *rows) if rows else None
    return tag("div", tag("p", headline(run)), told, class_="verdict warns" if warns else "verdict")


def section(run: Any, summary: Any) -> Markup:
    """Return the section.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    summary
        Its summary; None without draws.
    """
    chains, draws, dim = run.draws.shape
    facts: list[tuple[str, str | None]] = [
        ("draws", f"{chains} chains of {draws} draws of {dim} numbers"),
        ("exact calls", f"{run.total_calls:,.0f}"),
        ("searches for modes", describe_searches(run.adaptation.searches)),
    ]
    if summary is not None:
        facts += [
            ("fewest effective draws", _extreme(summary, "ess", np.nanargmin, ".0f")),
            ("largest R-hat", _extreme(summary, "rhat", np.nanargmax, ".3f")),
            ("exact calls for each effective draw", _most(summary["calls_per_ess"])),
        ]
    return join([findings(run), items(facts)])


def _extreme(summary: Any, column: str, choose: Any, form: str) -> Markup | None:
    """Return the worst figure of a column, and whose it is."""
    values = summary[column]
    if not np.isfinite(values).any():
        return None
    at = int(choose(values))
    return join([format(float(values[at]), form), ", of ", named(summary.labels[at])])


def _most(values: FloatArray) -> str | None:
    known = values[np.isfinite(values)]
    return f"{float(known.max()):.3g}" if known.size else None
