"""Rows that repeat one another, and what their numbers say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surrokit.experiments.contract import Finished
from surrokit.types import FloatArray

LOW, HIGH = 0.1, 0.9
"""Between these quantiles lie 80 % of the repeats, as in the error bars of figure 3."""


def repeats(finished: Sequence[Finished], *names: str) -> dict[tuple[Any, ...], list[Finished]]:
    """Return the rows for each combination of some settings, in the order in which they come."""
    groups: dict[tuple[Any, ...], list[Finished]] = {}
    for row in finished:
        groups.setdefault(tuple(row.settings[name] for name in names), []).append(row)
    return groups


def quantiles(numbers: Sequence[float] | FloatArray) -> dict[str, float]:
    """Return ``low``, ``median`` and ``high`` of several numbers, at least one."""
    found = np.quantile(numbers, [LOW, 0.5, HIGH]).tolist()
    return dict(zip(("low", "median", "high"), found, strict=True))


def median(rows: Sequence[Finished], name: str) -> float | None:
    """Return the median over rows of a number of their results; None where none has it."""
    known = [row.result[name] for row in rows if row.result[name] is not None]
    return float(np.median(known)) if known else None
