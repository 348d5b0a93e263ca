"""Targets, packed to be sent to workers, which evaluate them at single rows, and their replies."""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import attrs
import numpy as np
from threadpoolctl import threadpool_limits

from surrokit.errors import ConfigurationError, ResultTypeError, ShapeError
from surrokit.model.outcome import Place, place_of, say_place
from surrokit.model.source import Source, as_failure
from surrokit.types import FloatArray

KEPT = 4
"""Targets that a worker keeps; a cluster outlives many runs."""

_HOME = uuid.uuid4().hex
_LOOK = 2.0  # seconds between looks whether the parent is alive

_sources: dict[str, Source] = {}
_failures: dict[str, str] = {}
_by_value: dict[str, tuple[ModuleType, str]] = {}


@attrs.frozen
class Payload:
    """A target to send, pickled, by its fingerprint."""

    key: str
    source: bytes = attrs.field(repr=False)
    paths: tuple[str, ...] = ()  # folders that it imports from, beside the usual ones


def send_whole(module: ModuleType, path: Path) -> None:
    """Send a module of a file along with the targets in it, since no worker could import it.

    What lies beside the file can be imported.
    """
    _by_value[module.__name__] = module, str(path.resolve().parent)


def pack(source: Source) -> Payload:
    """Return a target to send: functions of scripts and notebooks too, by their code."""
    import cloudpickle  # late: importing the package stays fast

    for module, _ in _by_value.values():
        if sys.modules.get(module.__name__) is module:  # else no target refers to it any more
            cloudpickle.register_pickle_by_value(module)
    try:
        packed = cloudpickle.dumps(source)
    except Exception as error:
        raise ConfigurationError(
            "worker processes need a copy of the target, and it cannot be pickled: "
            f"{type(error).__name__}: {error}. Open files, sockets, locks, licences and other "
            "live things inside the functions, at their first call, or pass "
            "compute=sk.Compute(executor='threads')"
        ) from error
    paths = tuple(dict.fromkeys(folder for _, folder in _by_value.values()))
    return Payload(hashlib.sha256(packed).hexdigest(), packed, paths)


def cannot_load(reason: str) -> ConfigurationError:
    """Return the error for a target that a worker cannot load."""
    return ConfigurationError(
        f"a worker cannot load the target: {reason}. What its functions import must be installed "
        "where workers run, and data files must be found there; or pass "
        "compute=sk.Compute(executor='threads')"
    )


@attrs.frozen
class Conditions:
    """What decides, beside the target, what a call returns and warns of."""

    errors: dict[str, Any]  # NumPy's treatment of those of floating point
    filters: tuple[bytes, ...]  # of warnings, pickled one by one
    home: str  # the process that asks

    @classmethod
    def now(cls) -> Conditions:
        """Return the conditions that hold in this process."""
        errors: dict[str, Any] = dict(np.geterr())
        return cls(errors, _each(pickle.dumps, tuple(warnings.filters)), whoami())


def whoami() -> str:
    """Return a name for this process, unlike that of any other on any machine."""
    return f"{_HOME}-{os.getpid()}"  # a forked process has the same first part


Notes: TypeAlias = tuple[frozenset[str], frozenset[str]]
"""What is known of a target's precision."""

Warned: TypeAlias = tuple[str, type[Warning], str, int]
"""A warning: its message, its category, its file and its line."""

_BASES = (TimeoutError, ShapeError, ResultTypeError, ArithmeticError, Warning)
"""Classes of exceptions by which failures are told apart."""


@attrs.frozen
class StandIn:
    """Stands for an exception that cannot be sent: its class's name, kind of failure, message."""

    name: str
    base: type[Exception]
    message: str

    def make(self) -> Exception:
        """Return an exception of the same name and message."""
        made: Exception = type(self.name, (self.base,), {})(self.message)
        return made


@attrs.frozen(eq=False)
class Reply:
    """Results of one row, or why there are none, from a worker."""

    results: tuple[FloatArray, ...] | None = None
    error: Exception | StandIn | None = None
    place: Place | None = None  # of the error
    notes: Notes | None = None
    warned: tuple[Warned, ...] = ()
    worker: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the worker has not got the target."""
        return self.results is None and self.error is None

    def unpack(self, source: Source) -> tuple[FloatArray, ...]:
        """Return the results, or raise what was raised; warn as was warned.

        The target in this process learns what is known of its precision.
        """
        for message, category, file, line in self.warned:
            warnings.warn_explicit(message, category, file, line, registry=_SEEN)
        if self.notes is not None:
            source.precision.add(self.notes)  # type: ignore[attr-defined]
        if self.results is not None:
            return self.results
        assert self.error is not None
        error = self.error.make() if isinstance(self.error, StandIn) else self.error
        if self.place is not None:
            say_place(error, self.place)
        raise error


_SEEN: dict[str | tuple[str, type[Warning], int], int] = {}
"""Warnings that filters show but once."""


def try_at(source: Source, what: str, row: FloatArray) -> Reply:
    """Evaluate a source at one row, and keep what it raises."""
    try:
        return Reply(results=source.at(what, row))
    except BaseException as error:
        return Reply(error=as_failure(error))


def to_send(reply: Reply, warned: list[warnings.WarningMessage], notes: Any, worker: str) -> Reply:
    """Return a reply that any process can read."""
    error = reply.error
    return attrs.evolve(
        reply,
        error=_sendable(error) if isinstance(error, Exception) else error,
        place=place_of(error) if isinstance(error, Exception) else None,
        notes=notes,
        warned=tuple(
            (str(each.message), _category(each), each.filename, each.lineno) for each in warned
        ),
        worker=worker,
    )


def _sendable(error: Exception) -> Exception | StandIn:
    try:
        copy = pickle.loads(pickle.dumps(error))
        if type(copy) is type(error) and str(copy) == str(error):
            return error
    except Exception:  # whatever its class does when it is taken apart
        pass
    base = next((base for base in _BASES if isinstance(error, base)), Exception)
    return StandIn(name=type(error).__name__, base=base, message=str(error))


def _category(warned: warnings.WarningMessage) -> type[Warning]:
    try:
        pickle.dumps(warned.category)
    except Exception:  # a class that only the worker knows
        return UserWarning
    return warned.category


def begin_as_worker(payload: Payload, parent: int) -> None:
    """Begin as a worker of a pool of our own.

    An interrupt is for the parent alone, and a worker ends when its parent, the process of that
    number, is gone: perhaps before this one could ask for it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.name == "posix":
        if os.getppid() != parent:
            os._exit(1)
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _load(payload)


def ready(
    key: str, payload: Payload | None, home: str, pause: float = 0.0
) -> tuple[str, str | None]:
    """Return this worker's name, and why it cannot load a target; None if it can."""
    time.sleep(pause)  # others take the next such task meanwhile
    if key not in _sources and payload is not None:
        _load(payload, alone=whoami() != home)
    return whoami(), None if key in _sources else _failures.get(key)


def evaluate(
    key: str, payload: Payload | None, what: str, row: FloatArray, conditions: Conditions
) -> Reply:
    """Return the reply for one row (width,), a position and whatever else goes with it.

    It has neither results nor an error where the target of that fingerprint is not here, and was
    not sent.
    """
    worker = whoami()
    elsewhere = worker != conditions.home
    if key not in _sources and payload is not None:
        _load(payload, alone=elsewhere)
    source = _sources.get(key)
    if source is None and payload is not None:
        raise RuntimeError(f"{worker} cannot load the target: {_failures.get(key)}")
    if source is None:
        return Reply(worker=worker)
    with np.errstate(**conditions.errors):
        if not elsewhere:
            return to_send(try_at(source, what, row), [], _notes(source), worker)
        with _filtered(conditions.filters) as warned:
            reply = try_at(source, what, row)
        return to_send(reply, warned, _notes(source), worker)


def _load(payload: Payload, *, alone: bool = True) -> None:
    sys.path.extend(path for path in payload.paths if path not in sys.path)
    try:
        _sources[payload.key] = pickle.loads(payload.source)
    except Exception as error:
        _failures[payload.key] = f"{type(error).__name__}: {error}"
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
    with warnings.catch_warnings(record=True) as warned:
        warnings.resetwarnings()
        warnings.filters.extend(_each(pickle.loads, filters))  # type: ignore[attr-defined]
        yield warned


@lru_cache(maxsize=16)
def _each(change: Callable[[Any], Any], filters: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return filters pickled or unpickled, without those whose category is unknown elsewhere."""
    changed = []
    for each in filters:
        with suppress(Exception):
            changed.append(change(each))
    return tuple(changed)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(1)
