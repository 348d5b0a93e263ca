"""Names for the arrays that travel between the parts."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
"""Double-precision array; the docstring that uses it gives the shape."""

Pair: TypeAlias = tuple[FloatArray, FloatArray]
"""Two arrays, such as U (n,) and its gradient (n, dim)."""

BoolArray: TypeAlias = npt.NDArray[np.bool_]
"""Array of truth values, one for each chain or row."""

IntArray: TypeAlias = npt.NDArray[np.int64]
"""Array of whole numbers, such as steps taken or status codes."""

Capabilities: TypeAlias = frozenset[str]
"""What a potential can do beyond its value; the names are in :mod:`surrokit.capabilities`."""

Cache: TypeAlias = Mapping[str, FloatArray]
"""Arrays known at the chains' positions, such as ``{"value": (n,), "gradient": (n, dim)}``.

They belong to the sampler's potential. The first axis of every array runs over chains.
"""
