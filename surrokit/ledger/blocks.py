"""Blocks of iterations in a ledger, so that a run can be looked at while it goes on."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surrokit.contracts.methods import CALL_KINDS
from surrokit.ledger.store import Store, array_of, reading
from surrokit.result.trace import DTYPES

Columns = Mapping[str, npt.NDArray[Any]]

_TYPES = {
    "positions": "<f8",
    "numbers": "<f8",
    "outputs": "<f8",
    **{name: np.dtype(of).newbyteorder("<").str for name, of in DTYPES.items()},
}


def write_block(store: Store, stage: str, columns: Columns) -> None:
    """Append iterations of a stage: ``warmup`` or ``sampling``.

    Raises
    ------
    LedgerError
        If they cannot be written.
    """
    shapes = {name: array.shape for name, array in columns.items()}
    data = b"".join(columns[name].astype(_TYPES[name]).tobytes() for name in shapes)
    row = (stage, json.dumps(shapes), data, zlib.crc32(data))
    with store.writing():
        store.execute("INSERT INTO draws (stage, columns, data, crc) VALUES (?, ?, ?, ?)", row)


def forget_blocks(store: Store) -> None:
    """Remove all blocks, for those to be written anew."""
    with store.writing():
        store.execute("DELETE FROM draws")


def read_blocks(store: Store, stage: str, chains: int, dim: int) -> dict[str, npt.NDArray[Any]]:
    """Return the iterations of a stage, as :meth:`History.columns` returns them.

    Raises
    ------
    LedgerError
        If a block is damaged.
    """
    with reading(store.path):
        query = "SELECT id, columns, data, crc FROM draws WHERE stage = ? ORDER BY id"
        blocks = [_block(row, chains, dim) for row in store.rows(query, (stage,))]
        blocks = blocks or [_nothing(chains, dim)]
        names = set.intersection(*(set(block) for block in blocks))
        return {name: np.concatenate([block[name] for block in blocks]) for name in names}


def _block(row: tuple[Any, ...], chains: int, dim: int) -> dict[str, npt.NDArray[Any]]:
    number, columns, data, crc = row
    if crc != zlib.crc32(data):
        raise ValueError(f"the checksum of block {number} is wrong")
    found, at = {}, 0
    for name, shape in json.loads(columns).items():
        of = np.dtype(_TYPES[name])
        size = of.itemsize * math.prod(shape)
        found[name] = array_of(data[at : at + size], shape, of.str)
        at += size
    n = len(found["numbers"])
    shapes = {name: array.shape[1:] for name, array in _nothing(chains, dim).items()}
    if any(found[name].shape != (n, *shape) for name, shape in shapes.items()):
        raise ValueError(f"the arrays of block {number} do not fit each other")
    return found


def _nothing(chains: int, dim: int) -> dict[str, npt.NDArray[Any]]:
    return {
        "positions": np.empty((0, chains, dim)),
        "numbers": np.empty((0, 3 + len(CALL_KINDS))),
        **{name: np.empty((0, chains), dtype=of) for name, of in DTYPES.items()},
    }
