"""Runs in files as tables of evaluations."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surrokit.capabilities import ALL_BY_NAME
from surrokit.errors import LedgerError
from surrokit.history import Trace, trace_of
from surrokit.ledger.facts import Account, read_account
from surrokit.ledger.file import read_blocks, read_weights
from surrokit.ledger.fingerprint import REPORTED, read_parameters
from surrokit.ledger.store import Store, reading
from surrokit.ledger.tape import Event, read_calls
from surrokit.result.records import Weights

_PARTS = {
    "value": ("values",),
    "value_and_gradient": ("values", "gradients"),
    "gradient": ("gradients",),
    "forward": ("outputs",),
    "forward_and_jacobian": ("outputs", "jacobians"),
    "forward_and_gradient": ("outputs", "gradients"),
}


class Ledger:
    """A run in a file, to be read; it may be written at the same time.

    All that reads may raise LedgerError, as damage may be anywhere in a file.

    Parameters
    ----------
    path
        The file.

    Attributes
    ----------
    parameters
        Names, shapes and bounds of the target's parameters.
    transform
        The map to the user's coordinates.
    store
        The open file.

    Raises
    ------
    LedgerError
        If there is no such file, it is no ledger of a run, or it is damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self.store = Store.open(self.path)
        try:
            self.parameters, self.transform = read_parameters(self.store)
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
        return sum(len(event.positions) for event in self.events())

    @property
    def facts(self) -> dict[str, Any]:
        """What the ledger says of the run: its target, settings and account, as plain data."""
        return self.store.facts()

    @property
    def account(self) -> Account | None:
        """What the run has done so far; None if nothing is written yet."""
        return read_account(self.store)

    @property
    def calls(self) -> dict[str, int]:
        """Calls that were made, by kind, without single data rows."""
        counts: Counter[str] = Counter()
        for event in self.events():
            counts.update(event.counts)
        return dict(counts)

    def events(self) -> Iterator[Event]:
        """Yield the batches of exact calls in order, in the coordinates of the model."""
        return read_calls(self.store)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all evaluations, one row for each position, in the order of the calls.

        Returns
        -------
        dict of str to ndarray of shape (n, ...)
            ``order``, ``kind``, ``stage``, ``iteration``, ``seconds`` (of a position: its share of
            the batch), ``failed``, ``message``, ``positions (n, dim)`` in the user's coordinates
            and ``unbounded (n, dim)`` in the sampling coordinates; and what the model returned, in
            the user's coordinates and without priors that stand beside the parameters: ``values``
            (U), ``gradients``, ``outputs``, ``jacobians``, each where some call gave it, NaN
            elsewhere.
        """
        events = [event for event in self.events() if len(event.positions)]
        with reading(self.path):
            dim, sizes = self.transform.n_user, [len(event.positions) for event in events]
            at = np.concatenate([np.empty((0, dim)), *(e.positions[:, :dim] for e in events)])

            def each(of: Callable[[Event], Any], kind: Any) -> npt.NDArray[Any]:
                return np.repeat([of(event) for event in events], sizes).astype(kind)

            causes = [event.causes.get(i) for event in events for i in range(len(event.positions))]
            messages = np.array(["" if of is None else of.report for of in causes], dtype=np.str_)
            failed = [np.zeros(0, dtype=bool), *map(_is_nan, events)]
            return {
                "order": each(lambda event: event.number, np.int64),
                "kind": each(lambda event: ALL_BY_NAME[event.kind].kind, np.str_),
                "stage": each(lambda event: event.stage, np.str_),
                "iteration": each(lambda event: event.iteration, np.int64),
                "seconds": each(lambda event: event.seconds / len(event.positions), np.float64),
                "message": messages,
                "failed": (messages != "") | np.concatenate(failed),
                "positions": at,
                "unbounded": self.transform.to_unbounded(at),
                **_results(events, sizes),
            }

    def traces(self) -> tuple[Trace, Trace]:
        """Return the iterations of the warm-up, and those kept, as far as they are written."""
        with reading(self.path):
            chains = int(self.facts["settings"]["chains"])
            account = self.account
        warmup, kept = (
            read_blocks(self.store, stage, chains, self.parameters.free)
            for stage in ("warmup", "sampling")
        )
        with reading(self.path):
            n = None if account is None else account.kept
            kept = {name: array[:n] for name, array in kept.items()}
            return trace_of(warmup, self.transform), trace_of(kept, self.transform)

    def weights(self) -> Weights | None:
        """Return weighted answers as far as they are written; None where none were asked for.

        Raises
        ------
        LedgerError
            If the file is damaged, or they are of what a model of another library reports.
        """
        account = self.account
        if account is None or account.weights is None:
            return None
        if self.facts[REPORTED] is not None:
            raise LedgerError(
                f"{self.path} has weighted answers of a model of another library, which a file "
                "cannot hold; read them with surrokit.resume(path, target)"
            )
        return read_weights(self.store, account.weights, self.parameters.dim)


def _results(events: list[Event], sizes: list[int]) -> dict[str, npt.NDArray[Any]]:
    """Return what came back, by name; NaN where a call did not give it."""
    named = [
        dict(zip(_PARTS.get(e.kind, ()), e.results or (), strict=False)) | e.named for e in events
    ]
    found = {}
    for name in dict.fromkeys(
        ["values", "gradients", "outputs", "jacobians", *(name for e in events for name in e.named)]
    ):
        shape = next((each[name].shape[1:] for each in named if name in each), None)
        if shape is not None:
            rows = (
                each.get(name, np.full((n, *shape), np.nan))
                for each, n in zip(named, sizes, strict=True)
            )
            found[name] = np.concatenate([*rows])
    return found


def _is_nan(event: Event) -> npt.NDArray[np.bool_]:
    """Return which rows failed or have NaN in what came back."""
    n = len(event.positions)
    if event.results is None:
        return np.ones(n, dtype=bool)
    nan = [np.isnan(array.reshape(n, -1)).any(axis=1) for array in event.results]
    return np.asarray(np.any([np.zeros(n, dtype=bool), *nan], axis=0))
