"""Where Stan puts the numbers of each variable."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from surrokit.types import IntArray

_NAME = re.compile(r"^(.*?)((?:\.\d+)*)$", re.DOTALL)


@attrs.frozen(eq=False)
class Layout:
    """Shapes of variables, and where Stan puts their numbers.

    Parameters
    ----------
    shapes
        Name to shape. Names of parts of tuples and complex numbers are Stan's own: ``pair:1``,
        ``z.real``.
    places
        For each number of the variables one after another, arrays in C order, its place in
        Stan's vector, where the first index of an array moves fastest.
    """

    shapes: Mapping[str, tuple[int, ...]]
    places: IntArray

    @classmethod
    def of(cls, names: Sequence[str]) -> Layout:
        """Return that of Stan's names of single numbers: ``a``, ``b.1``, ``c.1.2``."""
        variables: dict[str, dict[tuple[int, ...], int]] = {}
        for place, name in enumerate(names):
            match = _NAME.match(name)
            assert match is not None
            index = tuple(map(int, match[2].split(".")[1:]))
            variables.setdefault(match[1], {})[index] = place
        shapes = {
            name: tuple(np.max(list(where), axis=0).tolist()) for name, where in variables.items()
        }
        places = [where[index] for where in variables.values() for index in sorted(where)]
        return cls(shapes, np.array(places, dtype=np.int64))

    @property
    def sizes(self) -> dict[str, int]:
        """Count of the numbers of each variable."""
        return {name: int(np.prod(shape, dtype=int)) for name, shape in self.shapes.items()}
