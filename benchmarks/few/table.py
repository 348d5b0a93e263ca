"""The table of a comparison: medians over seeds, and what did not end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

SCORES = ("gskl", "mmtv")


def table(rows: list[dict[str, Any]], problems: Iterable[str], methods: Iterable[str]) -> str:
    """Return a table of a line for each problem and method, and a column for each budget."""
    budgets = sorted({row["budget"] for row in rows})
    lines = [f"| problem | method | {' | '.join(f'{n} values' for n in budgets)} |"]
    lines.append("| --- " * (2 + len(budgets)) + "|")
    methods = list(methods)
    for problem in problems:
        for method in methods:
            keys = [{"problem": problem, "method": method, "budget": n} for n in budgets]
            cells = [_cell([row for row in rows if key.items() <= row.items()]) for key in keys]
            lines.append(f"| {problem} | {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(rows: list[dict[str, Any]]) -> str:
    """Return the medians of what ended, and how many did not for which reason."""
    ended = [row for row in rows if "status" not in row]
    said = []
    if ended:
        gskl, mmtv = (np.median([row[name] for row in ended]) for name in SCORES)
        rates = [row["acceptance"] for row in ended if "acceptance" in row]
        said.append(f"{gskl:.2g} / {mmtv:.2g}" + (f" ({np.median(rates):.2f})" if rates else ""))
    counts = Counter(row["status"] for row in rows if "status" in row)
    said += [f"{count} {status}" for status, count in counts.items()]
    return ", ".join(said) or "-"
