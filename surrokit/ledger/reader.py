"""Runs in files as tables of evaluations."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surrokit.arguments import load_library
from surrokit.capabilities import ALL_BY_NAME
from surrokit.coordinates.constraints import CoordinateMap
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import ConfigurationError, LedgerError
from surrokit.history import Trace, trace_of
from surrokit.ledger.facts import read_account, read_progress
from surrokit.ledger.file import read_blocks, read_weights
from surrokit.ledger.fingerprint import REPORTED, read_parameters
from surrokit.ledger.store import Store, reading
from surrokit.ledger.tape import Event, read_events
from surrokit.output.files import write_csv, write_parquet
from surrokit.result.records import Weights

_PARTS = {
    "value": ("values",),
    "value_and_gradient": ("values", "gradients"),
    "gradient": ("gradients",),
    "forward": ("outputs",),
    "forward_and_jacobian": ("outputs", "jacobians"),
    "forward_and_gradient": ("outputs", "gradients"),
    "hessian": ("matrices",),
    "metric": ("matrices",),
}


class Ledger:
    """A run in a file, to be read; it may be written at the same time.

    Parameters
    ----------
    path
        The file.
    run
        Number of the run, in the order in which runs were begun; None for the last one.

    Attributes
    ----------
    parameters
        Names, shapes and bounds of the target's parameters.
    store
        The open file.

    Raises
    ------
    LedgerError
        If there is no such file or run, it is no ledger, or it is damaged.
    """

    def __init__(self, path: str | os.PathLike[str], run: int | None = None) -> None:
        self.path = Path(path).absolute()
        self.store = Store.open(self.path, run=run)
        try:
            self.parameters, self._transform = read_parameters(self.store)
        except BaseException:
            self.store.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self.store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Return the number of positions evaluated."""
        with reading(self.path):
            query = "SELECT coalesce(sum(length(positions) / (8 * width)), 0) FROM events "
            query += "WHERE run = ? AND kind != 'mark'"
            return int(self.store.rows(query, (self.store.run,))[0][0])

    @property
    def runs(self) -> list[int]:
        """Numbers of all runs in the file."""
        with reading(self.path):
            return self.store.runs

    @property
    def facts(self) -> dict[str, Any]:
        """What the ledger says of the run: its target, settings and account, as plain data."""
        return self.store.facts()

    @property
    def account(self) -> dict[str, Any] | None:
        """What the run has done so far; None if nothing is written yet."""
        return read_account(self.store)

    @property
    def progress(self) -> str | None:
        """How far the run is by its exact calls, in a sentence; None if nothing is written yet."""
        return read_progress(self.store)

    @property
    def calls(self) -> dict[str, int]:
        """Calls that were paid for, by kind.

        Single data rows are not among them; ``facts["account"]["calls"]`` counts them.
        """
        counts: Counter[str] = Counter()
        for event in self.events():
            counts.update(event.counts)
        return dict(counts)

    def events(self) -> Iterator[Event]:
        """Yield the batches of exact calls in order, in the coordinates of the model.

        Raises
        ------
        LedgerError
            If one is damaged.
        """
        return read_events(self.store, calls_alone=True)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all evaluations, one row for each position, in the order of the calls.

        Returns
        -------
        dict of str to ndarray of shape (n, ...)
            ``order``, ``kind``, ``stage``, ``iteration``, ``seconds`` (of a position: its share of
            the batch), ``failed``, ``message``, ``accepted`` (whether a chain was there after some
            iteration), ``positions (n, dim)`` in the user's coordinates and ``unbounded (n, dim)``
            in the sampling coordinates; and what the model returned, in the user's coordinates and
            without priors that stand beside the parameters: ``values`` (U), ``gradients``,
            ``outputs``, ``jacobians``, ``matrices``, each where some call gave it, NaN elsewhere.

        Raises
        ------
        LedgerError
            If the file is damaged.
        """
        events = [event for event in self.events() if len(event.positions)]
        with reading(self.path):
            return self._table(events)

    def _table(self, events: list[Event]) -> dict[str, npt.NDArray[Any]]:
        dim, sizes = self._transform.n_user, [len(event.positions) for event in events]
        at = np.concatenate([np.empty((0, dim)), *(event.positions[:, :dim] for event in events)])
        visited = self._visited()
        found: dict[str, npt.NDArray[Any]] = {
            "order": np.repeat([event.number for event in events], sizes).astype(np.int64),
            "kind": np.repeat([ALL_BY_NAME[e.kind].kind for e in events], sizes).astype(np.str_),
            "stage": np.repeat([event.stage for event in events], sizes).astype(np.str_),
            "iteration": np.repeat([event.iteration for event in events], sizes).astype(np.int64),
            "seconds": np.repeat(
                [e.seconds / n for e, n in zip(events, sizes, strict=True)], sizes
            ),
            "message": np.array(
                [what for event in events for what in _messages(event)], dtype=np.str_
            ),
            "accepted": np.array([row.tobytes() in visited for row in at], dtype=bool),
            "positions": at,
            "unbounded": self._transform.to_unbounded(at),
            **_results(events, sizes),
        }
        found["failed"] = (found["message"] != "") | _is_nan(events)
        return found

    def _visited(self) -> set[bytes]:
        warmup, kept = self.traces()
        both = [trace.positions.reshape(-1, self.parameters.free) for trace in (warmup, kept)]
        return {row.tobytes() for rows in both for row in self._transform.to_bounded(rows)}

    def traces(self) -> tuple[Trace, Trace]:
        """Return the iterations of the warm-up, and those kept, as far as they are written.

        Raises
        ------
        LedgerError
            If the file is damaged.
        """
        with reading(self.path):
            facts = self.facts
            chains = int(facts["settings"]["chains"])
            n_kept = (self.account or {}).get("kept")
        warmup, kept = (
            read_blocks(self.store, stage, chains, self.parameters.free)
            for stage in ("warmup", "sampling")
        )
        with reading(self.path):
            kept = {name: array[:n_kept] for name, array in kept.items()}
            before = trace_of(warmup, self._transform)
            return before, trace_of(kept, self._transform)

    def weights(self) -> Weights | None:
        """Return weighted answers as far as they are written; None where none were asked for.

        Raises
        ------
        LedgerError
            If the file is damaged, or they are of what a model of another library reports.
        """
        told = (self.account or {}).get("weights")
        if told is not None and REPORTED in self.facts:
            raise LedgerError(
                f"{self.path} has weighted answers of a model of another library, which a file "
                "cannot hold; read them with surrokit.resume(path, target)"
            )
        with reading(self.path):
            return None if told is None else read_weights(self.store, told, self.parameters.dim)

    @property
    def transform(self) -> CoordinateMap:
        """The map to the user's coordinates."""
        return self._transform

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the table of :meth:`to_arrays` with a column for each number.

        Raises
        ------
        LedgerError
            If the file is damaged.
        """
        arrays, labels = self.to_arrays(), Parameters(self.parameters.specs).labels
        found: dict[str, npt.NDArray[Any]] = {}
        for name, array in arrays.items():
            if name == "positions":
                found |= {label: array[:, i] for i, label in enumerate(labels)}
            elif array.ndim == 1:
                found[name] = array
            else:
                for index in np.ndindex(array.shape[1:]):
                    inside = ",".join(map(str, index))
                    found[f"{name}[{inside}]"] = array[(slice(None), *index)]
        return found

    def to_pandas(self) -> Any:
        """Return all evaluations as a data frame, with a column for each number.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.
        """
        pandas = load_library("pandas", "pandas", "for a data frame")
        return pandas.DataFrame(self.columns())

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write all evaluations as a table: ``.csv`` or ``.parquet``.

        Raises
        ------
        ConfigurationError
            If the ending is another one.
        MissingDependencyError
            If pyarrow is needed and not installed.
        """
        path = Path(path)
        writers = {".csv": write_csv, ".parquet": write_parquet}
        if path.suffix.lower() not in writers:
            raise ConfigurationError(
                f"the ending of {path.name!r} does not say how to write a table; use .csv or "
                ".parquet"
            )
        writers[path.suffix.lower()](self.columns(), path)


def _messages(event: Event) -> list[str]:
    found = [""] * len(event.positions)
    for row, cause in event.causes.items():
        found[row] = cause.report
    return found


def _named(event: Event) -> dict[str, npt.NDArray[Any]]:
    """Return what came back, by name."""
    if event.results is None:
        return {}
    return dict(zip(_PARTS.get(event.kind, ()), event.results, strict=False))


def _results(events: list[Event], sizes: list[int]) -> dict[str, npt.NDArray[Any]]:
    named = [_named(event) for event in events]
    found = {}
    for name in ("values", "gradients", "outputs", "jacobians", "matrices"):
        shapes = [each[name].shape[1:] for each in named if name in each]
        if not shapes:
            continue
        # kinds of matrices differ in shape; the most frequent one is told
        shape = Counter(shapes).most_common(1)[0][0]
        rows = [
            each[name]
            if name in each and each[name].shape[1:] == shape
            else np.full((n, *shape), np.nan)
            for each, n in zip(named, sizes, strict=True)
        ]
        found[name] = np.concatenate(rows)
    return found


def _is_nan(events: list[Event]) -> npt.NDArray[np.bool_]:
    """Return which rows failed or have NaN in what came back."""
    rows: list[npt.NDArray[np.bool_]] = [np.zeros(0, dtype=bool)]
    for event in events:
        if event.results is None:
            rows.append(np.ones(len(event.positions), dtype=bool))
            continue
        flat = [array.reshape(len(array), -1) for array in event.results]
        joined = np.hstack([np.zeros((len(event.positions), 1)), *flat])
        rows.append(np.asarray(np.isnan(joined).any(axis=1)))
    return np.concatenate(rows)
