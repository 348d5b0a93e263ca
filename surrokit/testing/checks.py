"""Checks, and what they share: evaluations of a potential by name, and plain copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from numbers import Number
from typing import Any, Literal, TypeAlias

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.registry.components import KINDS, Kind
from surrokit.testing import must
from surrokit.testing.wrappers import WITH_FACTORS, methods_of
from surrokit.types import Capabilities, FloatArray

Level: TypeAlias = Literal["quick", "statistical", "long"]
"""``quick`` is deterministic and takes less than a second, ``statistical`` is seeded and takes
seconds, ``long`` takes more."""

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


def write_and_read(record: Any, where: str = "") -> Any:
    """Return a copy of a record that shares nothing with it, made of plain data alone.

    Plain data are arrays, numbers, strings, None, and records, tuples, lists and mappings of these.
    ``where`` is the record's name in messages, by default its type.

    Raises
    ------
    AssertionError
        If something in it is not plain data.
    """
    value, where = record, where or type(record).__name__
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcSU":
        return value.copy()
    if attrs.has(type(value)):
        copied = object.__new__(type(value))
        for name in (field.name for field in attrs.fields(type(value))):
            item = write_and_read(getattr(value, name), f"{where}.{name}")
            object.__setattr__(copied, name, item)
        return copied
    if isinstance(value, Mapping):
        return {key: write_and_read(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([write_and_read(item, f"{where}[{i}]") for i, item in enumerate(value)])
    if value is None or isinstance(value, str | bool | Number | Enum):
        return value
    kind = f"array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
    raise AssertionError(f"{where} is of type {kind}; what lives across iterations is plain data")
