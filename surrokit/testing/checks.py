"""Checks, and what they share: evaluations of a potential by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.registry.components import KINDS, Kind
from surrokit.testing import must
from surrokit.testing.wrappers import WITH_FACTORS, methods_of
from surrokit.types import Capabilities, FloatArray

Level: TypeAlias = Literal["quick", "statistical"]
"""``quick`` is deterministic and takes less than a second, ``statistical`` is seeded and takes
seconds."""

Factory: TypeAlias = Callable[[], Any]
"""Makes a part afresh, so that nothing leaks from check to check."""

CheckedKind: TypeAlias = Kind | Literal["plugin"]
"""Kinds that can be checked: those of components, and plugin modules."""


@attrs.frozen
class Check:
    """A named property of one kind of part; calling it with a factory runs it.

    Parameters
    ----------
    function
        Raises AssertionError, with a full message, if a part lacks the property. Its first
        docstring line says what the property is.
    needs
        Capabilities without which a potential is not checked.
    cases
        Returns the arguments of each call of the function, from a factory of the part.
    claimed
        Whether a part claims the ability that is checked.
    """

    function: Callable[..., None]
    needs: Capabilities = frozenset()
    cases: Callable[[Factory], Iterable[tuple[Any, ...]]] = lambda make: [(make,)]
    level: Level = "quick"
    claimed: Callable[[Any], object] = lambda _: True

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__

    def applies(self, part: Any) -> bool:
        """Return whether a part is to be checked."""
        return (not self.needs or self.needs <= part.capabilities) and bool(self.claimed(part))

    def __call__(self, make: Factory) -> None:
        """Run the check.

        Raises
        ------
        AssertionError
            If it fails.
        """
        for case in self.cases(make):
            self.function(*case)


CHECKS: dict[CheckedKind, list[Check]] = {**{kind: [] for kind in KINDS}, "plugin": []}
"""All checks by kind, in the order in which they run."""


def check(kind: CheckedKind, *needs: str, **options: Any) -> Callable[[Callable[..., None]], Check]:
    """Declare a function as a check of a kind; further arguments are those of :class:`Check`."""

    def declare(function: Callable[..., None]) -> Check:
        CHECKS[kind].append(Check(function, frozenset(needs), **options))
        return CHECKS[kind][-1]

    return declare


def positions_for(potential: Any, n: int = 7) -> FloatArray:
    """Return starting positions (n, dim) of a potential, or draws from N(0, 0.7^2 I)."""
    rng = np.random.default_rng(20170401)
    if can.INITIAL in potential.capabilities:
        return np.array(potential.initial(rng, n), dtype=np.float64)
    return 0.7 * rng.standard_normal((n, potential.dim))


def place(make: Factory) -> tuple[Any, FloatArray]:
    """Make a potential, and return it with those of :func:`positions_for` where U is finite."""
    potential = make()
    positions = positions_for(potential)
    finite = np.isfinite(potential.value(positions))
    what = f"U is finite at none of {len(positions)} positions around the origin"
    must.hold(finite.any(), f"{what}; give the potential the capability 'initial'")
    return potential, np.asarray(positions[finite])


def answers(potential: Any, positions: FloatArray) -> dict[str, FloatArray]:
    """Return the results of all evaluations that a potential declares, by name."""
    found = {}
    for name in sorted(evaluations_of(potential)):
        results = getattr(potential, name)(*arguments(name, positions))
        several = results if isinstance(results, tuple) else (results,)
        found.update({f"{name}[{i}]": array for i, array in enumerate(several)})
    return found


def evaluations_of(potential: Any) -> frozenset[str]:
    """Return the names of all methods that evaluate a potential, as it declares them."""
    declared = potential.capabilities - {can.INITIAL, *can.OF_ROWS}
    return frozenset({"value"}.union(*(methods_of(name) for name in declared)))


def arguments(method: str, positions: FloatArray) -> tuple[FloatArray, ...]:
    """Return positions and, if a method takes factors, read-only ones that depend on rows alone."""
    if method not in WITH_FACTORS:
        return (positions,)
    dim = positions.shape[1]
    factors = np.cos(3.0 * positions + np.arange(dim))
    if method.endswith("trace_gradient"):
        factors = -0.5 * factors[:, :, None] * factors[:, None, :]
        factors[:, np.arange(dim), np.arange(dim)] += 1.0 + np.sin(positions)
    factors.setflags(write=False)
    return positions, factors
