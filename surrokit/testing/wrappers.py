"""Wrappers of a potential that count calls, hide capabilities, fail, or refuse.

They pass on all methods of the inner potential by name, so each works around any potential.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions
from surrokit.capabilities import BY_NAME, METHODS
from surrokit.model import model
from surrokit.potentials import Potential
from surrokit.types import Capabilities, FloatArray

WITH_FACTORS = frozenset(method.name for method in METHODS if method.factor is not None)
"""Methods that take a matrix or a vector with each position."""

_OTHERS: dict[str, tuple[str, ...]] = {
    can.ROWS: ("expand", "row_bounds", "select"),
    can.ROWS_THIRD_ORDER: ("expand", "row_bounds"),
    can.ROWS_IN_BALLS: ("row_bounds",),
    can.ROWS_DRAWN: ("row_draws",),
    can.INITIAL: ("initial",),
}


def methods_of(capability: str) -> tuple[str, ...]:
    """Return the methods that go with a capability."""
    evaluations = (method.name for method in METHODS if method.capability == capability)
    return (*evaluations, *_OTHERS.get(capability, ()))


class Passing(model.Passing):
    """Passes everything on to an inner potential, through :meth:`evaluate`."""

    def __init__(self, inner: Potential) -> None:
        self.inner = inner

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        result: FloatArray = self.evaluate("value", self.inner.value, positions)
        return result

    def __getattr__(self, name: str) -> Any:
        """Return a method of the inner potential, sent through :meth:`evaluate`."""
        attribute = super().__getattr__(name)
        if name not in BY_NAME:
            return attribute
        # what follows the positions is a factor, if anything
        return lambda positions, *factors: self.evaluate(
            name, lambda q: attribute(q, *factors), positions
        )

    def evaluate(self, method: str, function: Any, positions: FloatArray) -> Any:  # noqa: ARG002
        """Return the result of a method of the inner potential, a function of positions alone."""
        return function(positions)


class Wrapped(Passing, model.Wrapper):
    """A potential around another one, to which everything is passed on."""


class CountingPotential(Passing):
    """Counts positions and batches by method, as a user's own potential, and changes nothing.

    Attributes
    ----------
    positions, batches : Counter
        Positions evaluated, and calls, by name of the method.
    """

    def __init__(self, inner: Potential) -> None:
        super().__init__(inner)
        self.positions: Counter[str] = Counter()
        self.batches: Counter[str] = Counter()

    @property
    def calls(self) -> Counter[str]:
        """Positions evaluated, by name of the method."""
        return self.positions

    def evaluate(self, method: str, function: Any, positions: FloatArray) -> Any:
        """Count the positions, and evaluate."""
        self.positions[method] += len(positions)
        self.batches[method] += 1
        return function(positions)

    def gradients(self) -> int:
        """Return the number of positions with a gradient, evaluated with the value or alone."""
        return self.positions["value_and_gradient"] + self.positions["gradient"]

    def forget(self) -> None:
        """Begin to count anew."""
        self.positions.clear()
        self.batches.clear()


class Limited(Wrapped):
    """Offers only those of some ``capabilities`` that the inner potential has."""

    def __init__(self, inner: Potential, capabilities: Capabilities) -> None:
        super().__init__(inner)
        self._left = capabilities & inner.capabilities

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities that are left."""
        return self._left

    def __getattr__(self, name: str) -> Any:
        """Return a method, unless its capability was taken away."""
        promising = [each for each in sorted(can.KNOWN) if name in methods_of(each)]
        if promising and promising[0] not in self._left:
            raise AttributeError(f"{name} was taken away by Limited")
        return super().__getattr__(name)


class Fenced(Wrapped):
    """Fails outside a circle around the origin: values are ``inf``, everything else NaN."""

    def __init__(self, inner: Potential, radius: float) -> None:
        super().__init__(inner)
        self.radius = radius

    def evaluate(self, method: str, function: Any, positions: FloatArray) -> Any:
        """Evaluate, and spoil the results outside the circle."""
        checked = check_positions(positions, self.dim)
        outside = ~(np.square(checked).sum(axis=1) < self.radius**2)
        with np.errstate(all="ignore"):
            results = function(positions)
        several = results if isinstance(results, tuple) else (results,)
        arrays = tuple(np.array(array, dtype=np.float64) for array in several)
        for array in arrays:
            array[outside] = np.nan
        if method in ("value", "value_and_gradient"):
            arrays[0][outside] = np.inf
        return arrays if isinstance(results, tuple) else arrays[0]


class Forbidden(Wrapped):
    """Raises at every evaluation."""

    def evaluate(self, method: str, function: Any, positions: FloatArray) -> Any:  # noqa: ARG002
        """Refuse."""
        raise AssertionError(
            f"{method} was called at {len(positions)} positions of a potential that is no longer "
            "in use; bind must reach every part inside a part"
        )
