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
    members = [_Member(exact, search) for search in searches]
    with warnings.catch_warnings():  # filters belong to all threads, and SciPy's searches set some
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            for member in members:
                member.start()
            while waiting := [member for member in members if member.request is not None]:
                for member, answer in zip(waiting, _answers(exact, waiting), strict=True):
                    member.go_on(answer)
        finally:
            for member in members:
                while member.request is not None:  # nobody waits for the search any more
                    member.go_on(_Failed(SystemExit()))
    return [member.result() for member in members]


@attrs.frozen(eq=False)
class _Request:
    """A method that a search calls, and its arguments: arrays of as many rows each."""

    method: str
    arguments: tuple[FloatArray, ...]


@attrs.frozen(eq=False)
class _Failed:
    error: BaseException


class _Member(Generic[Result]):
    """A search in a thread, and the request that it waits for; None once it has ended."""

    def __init__(self, exact: Potential, search: Callable[[Potential], Result]) -> None:
        self.request: _Request | None = None
        self._search, self._potential = search, _Asking(exact, self._ask)
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._answers: SimpleQueue[object] = SimpleQueue()
        self._outcome: Result | _Failed | None = None
        # in the caller's context, which holds the run's deadline
        self._thread = Thread(target=copy_context().run, args=(self._run,), daemon=True)

    def start(self) -> None:
        """Go on until the first evaluation is wanted, or the end."""
        self._thread.start()
        self.request = self._requests.get()

    def go_on(self, answer: object) -> None:
        """Go on with what was wanted until the next evaluation is, or the end."""
        self._answers.put(answer)
        self.request = self._requests.get()

    def result(self) -> Result:
        """Return what the search found, or raise what it raised."""
        if isinstance(self._outcome, _Failed):
            raise self._outcome.error
        return cast(Result, self._outcome)

    def _ask(self, request: _Request) -> Any:
        self._requests.put(request)
        answer = self._answers.get()
        if isinstance(answer, _Failed):
            raise answer.error
        return answer

    def _run(self) -> None:
        try:
            self._outcome = self._search(self._potential)
        except BaseException as error:  # raised where the result is asked for
            self._outcome = _Failed(error)
        self._requests.put(None)


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


def _answers(exact: Potential, members: Sequence[_Member[Any]]) -> list[object]:
    """Return what each member waits for; those that call one method share a batch."""
    requests = [cast(_Request, member.request) for member in members]
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
            return [_Failed(error)]
        return [answer for each in requests for answer in _together(exact, method, [each])]
    ends = np.cumsum([len(each[0]) for each in requests])[:-1]
    if not isinstance(results, tuple):
        return list(np.split(results, ends))
    return list(zip(*(np.split(result, ends) for result in results), strict=True))
