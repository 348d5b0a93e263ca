"""Data with a row for each term, as one array or several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import matched_rows, unmasked
from surrokit.errors import ShapeError
from surrokit.types import IntArray

Rows: TypeAlias = Any
"""Some rows of the data, in the form that the data were given in."""


def _arrays_of(given: Any) -> Any:
    if isinstance(given, Mapping):
        given = matched_rows(given)
    elif isinstance(given, tuple):
        given = tuple(matched_rows({f"data[{k}]": each for k, each in enumerate(given)}).values())
    return _each(_protected, given)


def _protected(array: Any) -> Any:
    """Return a view that no function can write to, since all calls share the data."""
    view = np.asarray(unmasked(array)).view()
    view.setflags(write=False)
    return view


@attrs.frozen(eq=False)
class RowData:
    """Arrays with one row for each term.

    Parameters
    ----------
    given
        An array, or several in a tuple or a dictionary.

    Raises
    ------
    ShapeError
        If there is no array, or they do not have the same number of rows.
    """

    given: Any = attrs.field(converter=_arrays_of)

    def __attrs_post_init__(self) -> None:
        lengths = [array.shape[:1] for array in self._arrays()]
        if not lengths or len(set(lengths)) > 1 or lengths[0] in ((), (0,)):
            raise ShapeError(
                "data must be arrays with one row for each term, at least one row, got "
                f"{[array.shape for array in self._arrays()]}; give them the same first dimension"
            )

    def __len__(self) -> int:
        return len(self._arrays()[0])

    def take(self, rows: slice | IntArray) -> Rows:
        """Return some rows."""
        return _each(lambda array: array[rows], self.given)

    def blocks(self, size: int) -> Iterator[tuple[slice, Rows]]:
        """Yield slices of the rows, and the rows."""
        for start in range(0, len(self), size):
            part = slice(start, min(start + size, len(self)))
            yield part, self.take(part)

    @property
    def by_name(self) -> dict[str, Any]:
        """The arrays: by the user's names, else ``data``, with a number where there are several."""
        if isinstance(self.given, Mapping):
            return {str(name): array for name, array in self.given.items()}
        if isinstance(self.given, tuple):
            return {f"data_{place}": array for place, array in enumerate(self.given)}
        return {"data": self.given}

    def _arrays(self) -> list[Any]:
        if isinstance(self.given, Mapping):
            return list(self.given.values())
        return list(self.given) if isinstance(self.given, tuple) else [self.given]


def _each(function: Any, given: Any) -> Any:
    """Return what a function makes of each array, in the same form."""
    if isinstance(given, Mapping):
        return {name: function(array) for name, array in given.items()}
    if isinstance(given, tuple):
        return tuple(function(array) for array in given)
    return function(given)
