"""Constraints by their names, for files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surrokit.coordinates.constraints.constraint import Constraint
from surrokit.coordinates.constraints.directions import Circular, UnitVector
from surrokit.coordinates.constraints.matrices import Correlation, Covariance
from surrokit.coordinates.constraints.ordered import Ordered
from surrokit.coordinates.constraints.simplex import Simplex

CONSTRAINTS: Mapping[str, type[Any]] = {
    each.name: each for each in (Simplex, Ordered, UnitVector, Correlation, Covariance)
}
"""Name to class of those that are made by their number of rows."""


def to_plain(constraint: Constraint | None) -> list[Any] | None:
    """Return a constraint as plain data: its name, and its shape."""
    return None if constraint is None else [constraint.name, list(constraint.shape)]


def from_plain(data: Sequence[Any] | None) -> Constraint | None:
    """Return a constraint from plain data.

    Raises
    ------
    KeyError
        If there is none of that name.
    """
    if data is None:
        return None
    name, shape = data
    if name == Circular.name:
        return Circular(tuple(shape))
    made: Constraint = CONSTRAINTS[name](shape[0])
    return made
