"""What differs between two records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

HASH = "#"
"""What a hash begins with."""

Record = Mapping[str, Any]
"""``made_with``: names to versions; ``runs``: names to fingerprints."""


def differences(before: Record, after: Record, *, all_runs: bool = True) -> list[str]:
    """Return a line for each run that differs, with the names of what differs in it."""
    found = []
    for name, run in before["runs"].items():
        if name not in after["runs"]:
            found += [f"{name}: only before"] if all_runs else []
        elif run != after["runs"][name]:
            found.append(f"{name}: {_what_differs(run, after['runs'][name])}")
    return found + [f"{name}: only after" for name in after["runs"] if name not in before["runs"]]


def other_versions(before: Record, after: Record) -> list[str]:
    """Return what the two were made with where it is not the same: hashes may differ for it."""
    return [
        f"{name}: {was} before, {now} after"
        for name, was, now in _unequal(before["made_with"], after["made_with"])
    ]


def _what_differs(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    groups = []
    for group in dict.fromkeys([*before, *after]):
        unequal = list(_unequal(before.get(group, {}), after.get(group, {})))
        if unequal:
            groups.append(f"{group} ({', '.join(_told(*entry) for entry in unequal)})")
    return ", ".join(groups)


def _unequal(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for name in dict.fromkeys([*before, *after]):
        was, now = before.get(name), after.get(name)
        if was != now:
            yield name, was, now


def _told(name: str, was: Any, now: Any) -> str:
    """Return a name, with what it was and is unless those are hashes."""
    is_hash = any(isinstance(value, str) and value.startswith(HASH) for value in (was, now))
    return name if is_hash else f"{name} {was} -> {now}"
