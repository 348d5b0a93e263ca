"""Searches that go on in step, so that what all of them want next is evaluated as one batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar, cast

import attrs
import numpy as np

from surrokit.capabilities import BY_NAME
from surrokit.errors import EvaluationError
from surrokit.potentials import Potential
from surrokit.types import Capabilities, FloatArray

Result = TypeVar("Result")


def run_abreast(
    exact: Potential, searches: Sequence[Callable[[Potential], Result]]
) -> list[Result]:
    """Return the results of searches that evaluate one potential, in their order.

    Each search runs in a thread of its own, and waits whenever it wants an evaluation. Once all of
    them wait or have ended, what they want is evaluated together in the caller's thread. One thread
    runs at a time. So results depend on the searches alone, and so does the order of evaluations.

    Parameters
    ----------
    exact
        The potential; methods of :mod:`surrokit.capabilities` evaluate it.
    searches
        Each takes the potential to evaluate.

    Raises
    ------
    Exception
        Whatever an evaluation raises, or the first of the searches that raises.
    """
    if len(searches) == 1:
        return [searches[0](exact)]
    with warnings.catch_warnings():  # filters belong to all threads, and SciPy's searches set some
        warnings.simplefilter("ignore", RuntimeWarning)
        members = [_Member(exact, search) for search in searches]
        try:
            while waiting := [each for each in members if isinstance(each.last, _Request)]:
                requests = [cast(_Request, each.last) for each in waiting]
                for each, answer in zip(waiting, _answers(exact, requests), strict=True):
                    each.go_on(answer)
        finally:
            for each in members:
                while isinstance(each.last, _Request):  # nobody waits for the search any more
                    each.go_on(SystemExit())
    for each in members:
        if isinstance(each.last, BaseException):
            raise each.last
    return [cast(_Ended[Result], each.last).result for each in members]


@attrs.frozen(eq=False)
class _Request:
    """A method that a search calls, and its arguments: arrays of as many rows each."""

    method: str
    arguments: tuple[FloatArray, ...]


@attrs.frozen(eq=False)
class _Ended(Generic[Result]):
    result: Result


class _Member(Generic[Result]):
    """A search in a thread; what it asked for last, its end, or the error that ended it."""

    def __init__(self, exact: Potential, search: Callable[[Potential], Result]) -> None:
        self._asked: SimpleQueue[_Request | _Ended[Result] | BaseException] = SimpleQueue()
        self._answers: SimpleQueue[Any] = SimpleQueue()

        def run() -> None:
            try:
                self._asked.put(_Ended(search(_Asking(exact, self._ask))))
            except BaseException as error:  # raised in the caller's thread
                self._asked.put(error)

        # in the caller's context, which holds the run's deadline
        Thread(target=copy_context().run, args=(run,), daemon=True).start()
        self.last = self._asked.get()

    def go_on(self, answer: object) -> None:
        """Go on with what was wanted, or an error, until something else is, or the end."""
        self._answers.put(answer)
        self.last = self._asked.get()

    def _ask(self, request: _Request) -> Any:
        self._asked.put(request)
        answer = self._answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer


class _Asking:
    """The potential as a search sees it: what would evaluate it is asked for."""

    def __init__(self, exact: Potential, ask: Callable[[_Request], Any]) -> None:
        self._exact, self._ask = exact, ask

    @property
    def dim(self) -> int:
        return self._exact.dim

    @property
    def capabilities(self) -> Capabilities:
        return self._exact.capabilities

    def value(self, positions: FloatArray) -> FloatArray:
        values: FloatArray = self._ask(_Request("value", (positions,)))
        return values

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._exact, name)
        if name not in BY_NAME:
            return attribute
        return lambda *arguments: self._ask(_Request(name, arguments))


def _answers(exact: Potential, requests: Sequence[_Request]) -> list[object]:
    """Return what each request is for; those that call one method share a batch."""
    answers: list[object] = [None] * len(requests)
    for method in dict.fromkeys(request.method for request in requests):
        of = [i for i, request in enumerate(requests) if request.method == method]
        shared = _together(exact, method, [requests[i].arguments for i in of])
        for i, answer in zip(of, shared, strict=True):
            answers[i] = answer
    return answers


def _together(
    exact: Potential, method: str, requests: Sequence[tuple[FloatArray, ...]]
) -> list[object]:
    """Return what a method gives for the arguments of each request, evaluated as one batch."""
    batch = [np.concatenate(column) for column in zip(*requests, strict=True)]
    try:
        with np.errstate(all="ignore"):
            results = getattr(exact, method)(*batch)
    except EvaluationError as error:
        if len(requests) == 1:
            return [error]
        return [answer for each in requests for answer in _together(exact, method, [each])]
    ends = np.cumsum([len(each[0]) for each in requests])[:-1]
    if not isinstance(results, tuple):
        return list(np.split(results, ends))
    return list(zip(*(np.split(result, ends) for result in results), strict=True))
