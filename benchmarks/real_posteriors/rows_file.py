"""The file of rows: one line of JSON for each posterior, method and seed, added as it is done."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str, int]
"""Posterior, method and seed."""

NOT_FINAL = ("not installed",)
"""Statuses with which a row is tried again."""


def key_of(row: Row) -> Key:
    """Return what a row is of."""
    return row["posterior"], row["method"], row["seed"]


def read_rows(path: Path) -> dict[Key, Row]:
    """Return the rows of a file, the last of each key; none if there is no file.

    A last line that an interrupt has cut is left out.
    """
    found = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for number, line in enumerate(lines):
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            if number < len(lines) - 1:
                raise
            continue
        found[key_of(row)] = row
    return found


def add_row(path: Path, row: Row) -> None:
    """Add a row to a file; a last line that an interrupt has cut goes."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if text and not text.endswith("\n"):
        path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def still_to_do(wanted: Iterable[Key], rows: dict[Key, Row]) -> list[Key]:
    """Return which of the wanted runs have no row yet, or one that should be tried again."""
    return [key for key in wanted if key not in rows or rows[key]["status"] in NOT_FINAL]
