"""The kinds of exact calls."""

from __future__ import annotations

from typing import Literal, TypeAlias

CallKind: TypeAlias = Literal[
    "value", "gradient", "forward", "jacobian", "hessian", "metric", "rows"
]
"""Kinds of exact calls, counted in positions (``rows``: in data rows)."""

CALL_KINDS: tuple[CallKind, ...] = (
    "value",
    "gradient",
    "forward",
    "jacobian",
    "hessian",
    "metric",
    "rows",
)
"""All of them."""
