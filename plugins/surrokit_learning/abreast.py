"""Searches that go on in step, so that what all of them want next is evaluated as one batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

import numpy as np

from surrokit.capabilities import BY_NAME
from surrokit.errors import EvaluationError
from surrokit.potentials import Potential
from surrokit.types import FloatArray

Result = TypeVar("Result")


def run_abreast(
    exact: Potential, searches: Sequence[Callable[[Potential], Result]]
) -> list[Result]:
    """Return the results of searches that evaluate one potential, in their order.

    Each takes the potential. It runs in a thread of its own, and waits whenever it wants an
    evaluation. Once all of them wait or have ended, what they want is evaluated together in the
    caller's thread. One thread runs at a time. So results depend on the searches alone, and so does
    the order of evaluations. Whatever an evaluation raises, or the first search that does, is
    raised once all have ended.
    """
    if len(searches) == 1:
        return [searches[0](exact)]
    with warnings.catch_warnings():  # filters belong to all threads, and SciPy's searches set some
        warnings.simplefilter("ignore", RuntimeWarning)
        members = [_Member(exact, search) for search in searches]
        try:
            while waiting := [each for each in members if each.request is not None]:
                for method in dict.fromkeys(each.request[0] for each in waiting):
                    alike = [each for each in waiting if each.request[0] == method]
                    for each, answer in zip(alike, _answers(exact, method, alike), strict=True):
                        each.answer = answer
                for each in waiting:
                    each.go_on(each.answer)
        finally:
            for each in members:
                while each.request is not None:  # nobody waits for the search any more
                    each.go_on(SystemExit())
    for each in members:
        if each.error is not None:
            raise each.error
    return [each.result for each in members]


class _Member:
    """The potential as a search in a thread sees it: what would evaluate it is asked for.

    A ``request`` is a method and its arguments, arrays of as many rows each.
    """

    def __init__(self, exact: Potential, search: Callable[[Potential], Any]) -> None:
        self.dim, self.capabilities, self._exact = exact.dim, exact.capabilities, exact
        self.request: Any = None
        self.answer: Any = None
        self.result: Any = None
        self.error: BaseException | None = None
        self._waits: SimpleQueue[None] = SimpleQueue()
        self._answers: SimpleQueue[Any] = SimpleQueue()

        def run() -> None:
            try:
                self.result = search(self)
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

    def value(self, positions: FloatArray) -> FloatArray:
        return np.asarray(self._ask("value", positions))

    def __getattr__(self, name: str) -> Any:
        return partial(self._ask, name) if name in BY_NAME else getattr(self._exact, name)

    def _ask(self, method: str, *arguments: FloatArray) -> Any:
        self.request = method, arguments
        self._waits.put(None)
        answer = self._answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer


def _answers(exact: Potential, method: str, members: Sequence[_Member]) -> list[object]:
    """Return what a method gives for each member's arguments, evaluated as one batch."""
    arguments = [each.request[1] for each in members]
    try:
        with np.errstate(all="ignore"):
            results = getattr(exact, method)(*map(np.concatenate, zip(*arguments, strict=True)))
    except EvaluationError as error:
        if len(members) == 1:
            return [error]
        return [answer for each in members for answer in _answers(exact, method, [each])]
    ends = np.cumsum([len(each[0]) for each in arguments])[:-1]
    if not isinstance(results, tuple):
        return list(np.split(results, ends))
    return list(zip(*(np.split(result, ends) for result in results), strict=True))
