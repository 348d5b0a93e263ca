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
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

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

_sources: dict[str, Source] = {}
_by_value: dict[str, tuple[ModuleType, str]] = {}


@attrs.frozen
class Payload:
    """A target to send, pickled, by its fingerprint."""

    key: str
    source: bytes = attrs.field(repr=False)
    paths: tuple[str, ...]  # folders that it imports from, beside the usual ones
    home: str  # the process that sends it


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
    return Payload(hashlib.sha256(packed).hexdigest(), packed, paths, whoami())


def whoami() -> str:
    """Return a name for this process, unlike that of any other on any machine."""
    return f"{_HOME}-{os.getpid()}"  # a forked process has the same first part


@attrs.frozen(eq=False)
class Reply:
    """Results of one row, or why there are none, from a worker; neither if it lacks the target.

    An exception that cannot be sent is given by its class's name, kind of failure and message.
    """

    results: tuple[FloatArray, ...] | None = None
    error: Exception | tuple[str, type[Exception], str] | None = None
    place: Place | None = None  # of the error

    @property
    def is_empty(self) -> bool:
        """Whether the worker has not got the target."""
        return self.results is None and self.error is None

    def unpack(self) -> tuple[FloatArray, ...]:
        """Return the results, or raise what was raised."""
        if self.results is not None:
            return self.results
        assert self.error is not None
        error = self.error
        if isinstance(error, tuple):
            name, base, message = error
            error = type(name, (base,), {})(message)
        if self.place is not None:
            say_place(error, self.place)
        raise error


def try_at(source: Source, what: str, row: FloatArray) -> Reply:
    """Evaluate a source at one row, and keep what it raises."""
    try:
        return Reply(results=source.at(what, row))
    except BaseException as error:
        return Reply(error=as_failure(error))


def evaluate(
    key: str, payload: Payload | None, what: str, row: FloatArray, errors: dict[str, Any]
) -> Reply:
    """Return the reply for one row (width,), a position and whatever else goes with it.

    It is empty where the target of that fingerprint is not here, and was not sent. ``errors`` is
    NumPy's treatment of those of floating point in the process that asks.
    """
    if key not in _sources and payload is not None and (failure := load(payload)):
        raise RuntimeError(f"a worker cannot load the target: {failure}")
    source = _sources.get(key)
    if source is None:
        return Reply()
    with np.errstate(**errors):
        reply = try_at(source, what, row)
    if not isinstance(reply.error, Exception):
        return reply
    return Reply(error=_sendable(reply.error), place=place_of(reply.error))


def _sendable(error: Exception) -> Exception | tuple[str, type[Exception], str]:
    with suppress(Exception):  # whatever its class does when it is taken apart
        copy = pickle.loads(pickle.dumps(error))
        if type(copy) is type(error) and str(copy) == str(error):
            return error
    # by these failures are told apart
    kinds = (TimeoutError, ShapeError, ResultTypeError, ArithmeticError, Warning)
    base = next((kind for kind in kinds if isinstance(error, kind)), Exception)
    return type(error).__name__, base, str(error)


def load(payload: Payload) -> str | None:
    """Keep a target here; return why that cannot be done, if so."""
    sys.path.extend(path for path in payload.paths if path not in sys.path)
    try:
        _sources[payload.key] = pickle.loads(payload.source)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    for key in list(_sources)[:-KEPT]:
        del _sources[key]
    if whoami() != payload.home:  # threads of one worker would only wait for those of the others
        threadpool_limits(limits=1, user_api="blas")
    return None


def work(connection: Any, payload: Payload, parent: int) -> None:
    """Work for a pool of our own: say why the target cannot be loaded, or None, and take rows.

    An interrupt is for the parent alone, and a worker ends when its parent, the process of that
    number, is gone: perhaps before this one could ask for it.
    """

    def end_with_it() -> None:
        while os.getppid() == parent:
            time.sleep(2.0)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.name == "posix":
        threading.Thread(target=end_with_it, daemon=True).start()
    with suppress(EOFError, OSError):  # the parent lets it go
        connection.send(load(payload))
        while True:
            what, row, errors = connection.recv()
            connection.send(evaluate(payload.key, None, what, row, errors))
