"""Named numbers and arrays that a user's function returns beside its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import numbers
from surrokit.capabilities import ALL_BY_NAME
from surrokit.errors import ResultTypeError, ShapeError
from surrokit.model.outcome import Outcome, Quantities, Results, say_place
from surrokit.types import FloatArray

MOST_NAMES, MOST_NUMBERS = 64, 4096
"""Quantities of one evaluation at most, and numbers in them: a file holds them all."""

NAMED = "="
"""Begins the name of a quantity where arrays of other kinds have names too."""


def part(given: Any) -> tuple[Any, Any]:
    """Return what a function gave without the dictionary at its end, and that; None without."""
    if not (isinstance(given, tuple) and len(given) > 1 and isinstance(given[-1], Mapping)):
        return given, None
    return given[0] if len(given) == 2 else given[:-1], given[-1]


def read_quantities(given: Mapping[Any, Any] | None, lead: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the dictionary of a function as copies of arrays, to be put after its results.

    Nothing is to be put there without one. Shapes begin with ``lead``: () for one position.
    ShapeError or ResultTypeError is raised for what is none.
    """
    if given is None:
        return ()
    if strange := [name for name in given if not (isinstance(name, str) and name.isidentifier())]:
        raise ResultTypeError(
            f"a quantity has the name {strange[0]!r}, which is no identifier; call it by letters, "
            "digits and underscores"
        )
    found = {name: np.array(numbers(f"the quantity {name!r}", of)) for name, of in given.items()}
    for name, array in found.items():
        if array.shape[: len(lead)] != lead:
            raise ShapeError(
                f"the quantity {name!r} of {lead[0]} positions has shape {array.shape}; return one "
                "row for each position"
            )
    n = sum(array.size for array in found.values()) // max((1, *lead))
    if len(found) > MOST_NAMES or n > MOST_NUMBERS:
        raise ResultTypeError(
            f"a function returned {len(found)} quantities of {n} numbers, and {MOST_NAMES} of "
            f"{MOST_NUMBERS} are kept at most; return fewer"
        )
    return (found,)


@attrs.define(eq=False)
class Layout:
    """Names and shapes of a model's quantities, once they are known: they never change.

    ``taken`` are names of parameters.
    """

    shapes: Mapping[str, tuple[int, ...]] | None = None
    taken: tuple[str, ...] = ()

    def fix(self, found: Mapping[str, tuple[int, ...]]) -> None:
        """Take note of names and shapes, or raise ShapeError if they are others than before."""
        if found == self.shapes:
            return
        if self.shapes is not None:
            before, now = (_listed(each) for each in (self.shapes, found))
            raise ShapeError(
                f"a function returned quantities {now} at one position, and {before} before that; "
                "it must always return the same"
            )
        if both := [name for name in found if name in self.taken]:
            raise ResultTypeError(
                f"{both[0]!r} is a parameter, and a quantity cannot have its name; give another"
            )
        self.shapes = dict(found)

    def names(self, what: str, results: Results | None) -> tuple[str, ...]:
        """Return the names of the quantities behind results; none where there are none."""
        has_any = results is not None and len(results) > len(ALL_BY_NAME[what].gives)
        return tuple(self.shapes or ()) if has_any else ()

    def join(self, outcome: Outcome) -> Outcome:
        """Return an outcome with quantities as arrays behind its results, in the order of names.

        A row fails whose quantities are others than before, or NaN; where U is infinite or a map
        has failed they may be missing, and are infinite.
        """
        results, n = outcome.results, outcome.n
        if results is None or not (outcome.beside or self.shapes != {}):
            return outcome
        usable = [i for i in range(n) if np.isfinite(results[0][i]).all()]
        wrong: dict[int, Exception] = {}
        for i in usable:
            try:
                self._check(outcome.beside.get(i, {}))
            except (ShapeError, ResultTypeError) as error:
                say_place(error, None)  # it would be a line of ours
                wrong[i] = error
        causes = {**outcome.causes, **wrong}
        if len(wrong) == n:
            return Outcome(n=n, results=None, causes=causes)
        shapes = (self.shapes or {}).items()
        arrays = {name: np.full((n, *shape), np.inf) for name, shape in shapes}
        for i in set(usable) - wrong.keys():
            for name, array in arrays.items():
                array[i] = outcome.beside[i][name]
        if wrong:
            results = tuple(array.copy() for array in results)
            for array in results:
                array[list(wrong)] = np.nan
        return Outcome(n=n, results=(*results, *arrays.values()), causes=causes)

    def _check(self, given: Quantities) -> None:
        self.fix({name: array.shape for name, array in given.items()})
        for name, array in given.items():
            if np.isnan(array).any():
                raise ResultTypeError(
                    f"the quantity {name!r} is NaN where the density is not; return a number, or "
                    "let the function fail there"
                )


def _listed(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} of shape {shape}" for name, shape in shapes.items()) or "none"


class Recent:
    """What was evaluated beside U at the latest positions, by position."""

    MOST = 2**23  #: Numbers that are kept, with a guess of what a position takes besides.

    def __init__(self) -> None:
        self._rows: dict[bytes, Quantities] = {}

    def add(self, positions: FloatArray, found: Quantities) -> None:
        """Keep arrays (n, ...) at positions (n, dim); of those before as many as there is room."""
        for i, key in enumerate(map(_key, positions)):
            self._rows.pop(key, None)  # the latest are last
            self._rows[key] = {name: array[i] for name, array in found.items()}
        size = 64 + sum(array[0].size for array in found.values())
        while len(self._rows) > max(self.MOST // size, 2 * len(positions)):
            del self._rows[next(iter(self._rows))]

    def at(self, positions: FloatArray) -> Quantities:
        """Return them at positions (n, dim), and keep these; NaN where they are not known."""
        if not self._rows:
            return {}
        keys = [_key(position) for position in positions]
        rows = [self._rows.get(key, {}) for key in keys]
        for key, row in zip(keys, rows, strict=True):
            if row:
                self._rows.pop(key, None)
                self._rows[key] = row
        likes = {name: of for row in rows for name, of in row.items()}
        return {
            name: np.stack([row.get(name, np.full(like.shape, np.nan)) for row in rows])
            for name, like in likes.items()
        }


def _key(position: FloatArray) -> bytes:
    return np.asarray(position + 0.0).tobytes()  # zero has no sign
