"""What runs in workers: they keep the targets that were sent, and evaluate them at single rows."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

import attrs
import numpy as np
from threadpoolctl import threadpool_limits

from surrokit.executors.reply import Reply, to_send, try_at
from surrokit.model.source import Source
from surrokit.types import FloatArray

KEPT = 4
"""Targets that a worker keeps; a cluster outlives many runs."""

_HOME = uuid.uuid4().hex
_LOOK = 2.0  # seconds between looks whether the parent is alive

_sources: dict[str, Source] = {}
_failures: dict[str, str] = {}


@attrs.frozen
class Cargo:
    """A target to send.

    Parameters
    ----------
    key
        Its fingerprint.
    payload
        The target, pickled.
    paths
        Folders that it imports from, beside the usual ones.
    """

    key: str
    payload: bytes = attrs.field(repr=False)
    paths: tuple[str, ...] = ()


@attrs.frozen
class Conditions:
    """What decides, beside the target, what a call returns and tells.

    Parameters
    ----------
    errors
        NumPy's treatment of floating-point errors.
    filters
        Filters of warnings, pickled one by one.
    home
        The process that asks.
    """

    errors: dict[str, Any]
    filters: tuple[bytes, ...]
    home: str

    @classmethod
    def now(cls) -> Conditions:
        """Return the conditions that hold in this process."""
        errors: dict[str, Any] = dict(np.geterr())
        return cls(errors, _packed(tuple(warnings.filters)), whoami())


def whoami() -> str:
    """Return a name for this process, unlike that of any other on any machine."""
    return f"{_HOME}-{os.getpid()}"  # a forked process has the same first part


def settle(cargo: Cargo, parent: int) -> None:
    """Begin as a worker of a pool of our own.

    An interrupt is for the parent alone, and a worker ends when its parent is gone.

    Parameters
    ----------
    cargo
        The target.
    parent
        Number of the parent's process. It may have ended before this one could ask for it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.name == "posix":
        if os.getppid() != parent:
            os._exit(1)
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _load(cargo)


def ready(key: str, cargo: Cargo | None, home: str, pause: float = 0.0) -> tuple[str, str | None]:
    """Return this worker's name, and why it cannot load a target; None if it can."""
    time.sleep(pause)  # others take the next such task meanwhile
    if key not in _sources and cargo is not None:
        _load(cargo, alone=whoami() != home)
    return whoami(), None if key in _sources else _failures.get(key)


def evaluate(
    key: str, cargo: Cargo | None, what: str, row: FloatArray, conditions: Conditions
) -> Reply:
    """Return the reply for one row; one without results and error if the target is not here.

    Parameters
    ----------
    key
        Fingerprint of the target.
    cargo
        The target; None if the worker should have it.
    what
        Which of its results.
    row : ndarray of shape (width,)
        The position, and whatever else goes with it.
    conditions
        Those of the process that asks.
    """
    worker = whoami()
    elsewhere = worker != conditions.home
    if key not in _sources and cargo is not None:
        _load(cargo, alone=elsewhere)
    source = _sources.get(key)
    if source is None and cargo is not None:
        raise RuntimeError(f"{worker} cannot load the target: {_failures.get(key)}")
    if source is None:
        return Reply(worker=worker)
    with np.errstate(**conditions.errors):
        if not elsewhere:
            return to_send(try_at(source, what, row), [], _notes(source), worker)
        with _filtered(conditions.filters) as told:
            reply = try_at(source, what, row)
        return to_send(reply, told, _notes(source), worker)


def _load(cargo: Cargo, *, alone: bool = True) -> None:
    sys.path.extend(path for path in cargo.paths if path not in sys.path)
    try:
        _sources[cargo.key] = pickle.loads(cargo.payload)
    except Exception as error:
        _failures[cargo.key] = f"{type(error).__name__}: {error}"
    for key in list(_sources)[:-KEPT]:
        del _sources[key]
    if alone:  # threads of one worker would only wait for those of the others
        threadpool_limits(limits=1, user_api="blas")


def _notes(source: Source) -> Any:
    precision = getattr(source, "precision", None)
    return None if precision is None else precision.notes


@contextmanager
def _filtered(filters: tuple[bytes, ...]) -> Iterator[list[warnings.WarningMessage]]:
    """Filter warnings as the process does that asks, and yield those that it would show."""
    with warnings.catch_warnings(record=True) as told:
        warnings.resetwarnings()
        warnings.filters.extend(_unpacked(filters))  # type: ignore[attr-defined]
        yield told


@lru_cache(maxsize=8)
def _packed(filters: tuple[Any, ...]) -> tuple[bytes, ...]:
    packed = []
    for each in filters:
        with suppress(Exception):  # its category is known nowhere else
            packed.append(pickle.dumps(each))
    return tuple(packed)


@lru_cache(maxsize=8)
def _unpacked(filters: tuple[bytes, ...]) -> list[Any]:
    unpacked = []
    for each in filters:
        with suppress(Exception):  # its category is not known here
            unpacked.append(pickle.loads(each))
    return unpacked


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(1)
