"""Blocks of iterations and rounds in a ledger, so that a run can be looked at while it goes on."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surrokit.contracts.methods import CALL_KINDS
from surrokit.errors import SurrokitError
from surrokit.history.scratch import Scratch
from surrokit.history.trace import DTYPES
from surrokit.ledger.store import Store, array_of, reading
from surrokit.result.weights import Weights
from surrokit.weighted.answer import Answer
from surrokit.weighted.estimate import Estimate
from surrokit.weighted.round import Round

Columns = Mapping[str, npt.NDArray[Any]]

ROUND = "round"
"""Stage of blocks that hold a round of weighted answers."""

_NO_ROUNDS = "their rounds are not in this file"

_ESTIMATED = ("value", "error", "effective", "degrees", "calls")

_TYPES = {
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
    data = b"".join(columns[name].astype(_type_of(name)).tobytes() for name in shapes)
    row = (stage, json.dumps(shapes), data, zlib.crc32(data))
    with store.writing():
        store.execute("INSERT INTO draws (stage, columns, data, crc) VALUES (?, ?, ?, ?)", row)


def forget_blocks(store: Store) -> None:
    """Remove all blocks, for those to be written anew."""
    with store.writing():
        store.execute("DELETE FROM draws")


def read_blocks(
    store: Store, stage: str, chains: int, dim: int, scratch: Scratch
) -> dict[str, npt.NDArray[Any]]:
    """Return the iterations of a stage, as :meth:`History.columns` returns them.

    Parameters
    ----------
    store
        The ledger.
    stage
        Which.
    chains, dim
        Sizes.
    scratch
        Makes room for them; there is one block in memory at a time.

    Raises
    ------
    LedgerError
        If a block is damaged.
    """
    with reading(store.path):
        blocks = [
            (number, {name: tuple(shape) for name, shape in json.loads(columns).items()})
            for number, columns in store.rows(
                "SELECT id, columns FROM draws WHERE stage = ? ORDER BY id", (stage,)
            )
        ]
        if not blocks:
            return _nothing(chains, dim)
        names = set.intersection(*(set(shapes) for _, shapes in blocks))
        n = sum(shapes["numbers"][0] for _, shapes in blocks)
        first = blocks[0][1]
        found = {name: scratch.empty((n, *first[name][1:]), _type_of(name)) for name in names}
        at = 0
        for number, _ in blocks:
            query = "SELECT id, columns, data, crc FROM draws WHERE id = ?"
            block = _block(store.rows(query, (number,))[0], chains, dim)
            size = len(block["numbers"])
            for name, array in found.items():
                array[at : at + size] = block[name]
            at += size
        return found


def write_rounds(store: Store, weights: Weights) -> None:
    """Write the rounds of weighted answers, in place of those that were written before.

    Raises
    ------
    LedgerError
        If they cannot be written.
    """
    with store.writing():
        store.execute("DELETE FROM draws WHERE stage = ?", (ROUND,))
    rounds = () if weights.answer is None else weights.answer.rounds
    for each, constant in zip(rounds, weights.of_surrogates, strict=True):
        columns = {
            "draws": each.draws,
            "paid": each.paid,
            "log_weights": each.log_weights,
            "log_evens": each.log_evens,
            "hindsight": each.hindsight,
            "tilt": each.tilt,
            "learnt": np.array([each.learnt]),
            "constant": np.array([getattr(constant, name) for name in _ESTIMATED]),
        }
        write_block(store, ROUND, columns)


def read_weights(store: Store, told: Mapping[str, Any], dim: int) -> Weights:
    """Return weighted answers as far as they are written.

    Parameters
    ----------
    store
        The ledger.
    told
        What it says of them beside their rounds: ``refused``, ``rejected``, ``calls`` and
        ``unnormalized``.
    dim
        Of a position.

    Raises
    ------
    LedgerError
        If a round is damaged.
    """
    with reading(store.path):
        query = "SELECT id, columns, data, crc FROM draws WHERE stage = ? ORDER BY id"
        found = [_round(row, dim) for row in store.rows(query, (ROUND,))]
        rounds = tuple(each for each, _ in found)
        return Weights(
            answer=Answer(rounds=rounds, calls=float(told["calls"])) if rounds else None,
            refused=told["refused"] if rounds else told["refused"] or _NO_ROUNDS,
            rejected=int(told["rejected"]),
            of_surrogates=tuple(constant for _, constant in found),
            unnormalized=tuple(map(str, told.get("unnormalized", ()))),
        )


def _type_of(name: str) -> str:
    return _TYPES.get(name, "<f8")


def _round(row: tuple[Any, ...], dim: int) -> tuple[Round, Estimate]:
    columns = _unpack(row)
    if columns["paid"].shape[1] != dim:
        raise ValueError(f"the round of block {row[0]} has another dimension")
    constant = dict(zip(_ESTIMATED, columns.pop("constant"), strict=True))
    learnt = int(columns.pop("learnt")[0])
    try:
        return Round(learnt=learnt, **columns), Estimate(**constant)
    except SurrokitError as error:
        raise ValueError(f"the arrays of block {row[0]} are no round") from error


def _block(row: tuple[Any, ...], chains: int, dim: int) -> dict[str, npt.NDArray[Any]]:
    found = _unpack(row)
    n = len(found["numbers"])
    shapes = {name: array.shape[1:] for name, array in _nothing(chains, dim).items()}
    if any(found[name].shape != (n, *shape) for name, shape in shapes.items()):
        raise ValueError(f"the arrays of block {row[0]} do not fit each other")
    return found


def _unpack(row: tuple[Any, ...]) -> dict[str, npt.NDArray[Any]]:
    number, columns, data, crc = row
    if crc != zlib.crc32(data):
        raise ValueError(f"the checksum of block {number} is wrong")
    found, at = {}, 0
    for name, shape in json.loads(columns).items():
        of = np.dtype(_type_of(name))
        size = of.itemsize * math.prod(shape)
        found[name] = array_of(data[at : at + size], shape, of.str)
        at += size
    return found


def _nothing(chains: int, dim: int) -> dict[str, npt.NDArray[Any]]:
    return {
        "positions": np.empty((0, chains, dim)),
        "numbers": np.empty((0, 3 + len(CALL_KINDS))),
        **{name: np.empty((0, chains), dtype=of) for name, of in DTYPES.items()},
    }
