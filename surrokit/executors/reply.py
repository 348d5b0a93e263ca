"""What a worker sends back for one row."""

from __future__ import annotations

import pickle
import warnings
from typing import Any, TypeAlias

import attrs

from surrokit.errors import ResultTypeError, ShapeError
from surrokit.model.cause import Place, place_of, say_place
from surrokit.model.source import Source, as_failure
from surrokit.types import FloatArray

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
