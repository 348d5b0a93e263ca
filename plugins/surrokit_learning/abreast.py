"""Searches that go on in step, so that what all of them want next is evaluated as one batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeAlias, TypeVar, cast

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
            while waiting := [each for each in members if each.request is not None]:
                requests = [cast(_Request, each.request) for each in waiting]
                for each, answer in zip(waiting, _answers(exact, requests), strict=True):
                    each.go_on(answer)
        finally:
            for each in members:
                while each.request is not None:  # nobody waits for the search any more
                    each.go_on(SystemExit())
    for each in members:
        if each.error is not None:
            raise each.error
    return [each.result for each in members]


_Request: TypeAlias = tuple[str, tuple[FloatArray, ...]]
"""A method that a search calls, and its arguments: arrays of as many rows each."""


class _Member(Generic[Result]):
    """A search in a thread: what it wants next, or its result or the error that ended it."""

    result: Result

    def __init__(self, exact: Potential, search: Callable[[Potential], Result]) -> None:
        self.request: _Request | None = None
        self.error: BaseException | None = None
        self._waits: SimpleQueue[None] = SimpleQueue()
        self._answers: SimpleQueue[Any] = SimpleQueue()

        def run() -> None:
            try:
                self.result = search(_Asking(exact, self._ask))
            except BaseException as error:  # raised in the caller's thread
                self.error = error
            self._waits.put(None)

        # in the caller's context, which holds the run's deadline
        Thread(target=copy_context().run, args=(run,), daemon=True).start()
        self._waits.get()

    def go_on(self, answer: object) -> None:
        """Go on with what was wanted, or an error, until something else is, or the end."""
        self.request = None
        self._answers.put(answer)
        self._waits.get()

    def _ask(self, method: str, *arguments: FloatArray) -> Any:
        self.request = method, arguments
        self._waits.put(None)
        answer = self._answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer


class _Asking:
    """The potential as a search sees it: what would evaluate it is asked for."""

    def __init__(self, exact: Potential, ask: Callable[..., Any]) -> None:
        self._exact, self._ask = exact, ask

    @property
    def dim(self) -> int:
        return self._exact.dim

    @property
    def capabilities(self) -> Capabilities:
        return self._exact.capabilities

    def value(self, positions: FloatArray) -> FloatArray:
        values: FloatArray = self._ask("value", positions)
        return values

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._exact, name)
        return partial(self._ask, name) if name in BY_NAME else attribute


def _answers(exact: Potential, requests: Sequence[_Request]) -> list[object]:
    """Return what each request is for; those that call one method share a batch."""
    answers: list[object] = [None] * len(requests)
    for method in dict.fromkeys(method for method, _ in requests):
        of = [i for i, request in enumerate(requests) if request[0] == method]
        shared = _together(exact, method, [requests[i][1] for i in of])
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
