"""Values that are retried before a gradient is made of them."""

from __future__ import annotations

from typing import Any

from surrokit.contracts.potential import Potential
from surrokit.cost.calls import ExactCalls
from surrokit.errors import EvaluationError
from surrokit.targets.differences import Differences
from surrokit.types import Capabilities, FloatArray


def with_retries(paid: Potential, exact: ExactCalls) -> Potential:
    """Return a potential whose values are retried one by one, if it makes differences of them.

    Parameters
    ----------
    paid
        A potential that counts its calls.
    exact
        Counts and retries; from here on what is wrapped does the latter.
    """
    if exact.on_error != "retry" or not isinstance(paid, Differences):
        return paid
    exact.retries_here = False
    return paid.over(lambda values: Retried(values, exact))


class Retried:
    """A potential whose failed values are evaluated again, each by itself.

    A difference to a neighbour that failed by chance would be another one the next time, and paths
    that follow it would not lead back.

    Parameters
    ----------
    inner
        The potential.
    exact
        Counts and retries.
    """

    def __init__(self, inner: Potential, exact: ExactCalls) -> None:
        self.inner = inner
        self._exact = exact

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.inner.dim

    @property
    def capabilities(self) -> Capabilities:
        """What the inner potential offers."""
        return self.inner.capabilities

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim); NaN where it failed.

        Raises
        ------
        EvaluationError
            If the potential raised at some positions in every attempt.
        """
        outcome = self._exact.retry("value", lambda q: (self.inner.value(q),), positions)
        if outcome.causes or outcome.results is None:
            raise EvaluationError(dict(outcome.causes), outcome.results or (), n=outcome.n)
        return outcome.results[0]

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the inner potential."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.inner, name)
