"""Rows in blocks, so that scratch arrays stay small."""

from __future__ import annotations

from collections.abc import Iterator

_SCRATCH = 2_000_000
"""Numbers of scratch that a block may take."""

_CACHED = 16_384
"""Numbers of scratch that a block of elementwise work may take: 128 kB stay in the cache, and the
allocator reuses them. Measured: in larger arrays, which the system maps anew each time, the value
and gradient of a thousand nodes at 32 positions took two and a half times as long."""


def row_blocks(n_rows: int, scratch: int) -> Iterator[slice]:
    """Yield slices that cover rows in order.

    Parameters
    ----------
    n_rows
        How many rows there are.
    scratch
        Numbers of scratch that each row takes.
    """
    return _blocks(n_rows, scratch, _SCRATCH)


def cached_blocks(n_rows: int, scratch: int) -> Iterator[slice]:
    """Yield slices that cover rows in order, so small that their scratch stays in the cache.

    Parameters
    ----------
    n_rows
        How many rows there are.
    scratch
        Numbers of scratch that each row takes.
    """
    return _blocks(n_rows, scratch, _CACHED)


def _blocks(n_rows: int, scratch: int, most: int) -> Iterator[slice]:
    size = max(1, most // max(1, scratch))
    for start in range(0, n_rows, size):
        yield slice(start, start + size)
