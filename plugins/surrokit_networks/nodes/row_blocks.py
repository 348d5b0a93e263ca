"""Rows in blocks, so that scratch arrays stay small."""

from __future__ import annotations

from collections.abc import Iterator

_SCRATCH = 2_000_000
"""Numbers of scratch that a block may take."""


def row_blocks(n_rows: int, scratch: int) -> Iterator[slice]:
    """Yield slices that cover rows in order.

    Parameters
    ----------
    n_rows
        How many rows there are.
    scratch
        Numbers of scratch that each row takes.
    """
    size = max(1, _SCRATCH // max(1, scratch))
    for start in range(0, n_rows, size):
        yield slice(start, start + size)
