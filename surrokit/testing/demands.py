"""What checks are written with: demands, differences, evaluations by name, and plain copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from numbers import Number
from typing import Any, Literal, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from surrokit import capabilities as can
from surrokit.registry.components import Kind
from surrokit.testing.wrappers import WITH_FACTORS, methods_of
from surrokit.types import Capabilities, FloatArray

Level: TypeAlias = Literal["quick", "statistical", "long"]
"""``quick`` is deterministic and takes less than a second, ``statistical`` is seeded and takes
seconds, ``long`` takes more."""

Factory: TypeAlias = Callable[[], Any]
"""Makes a part afresh, so that nothing leaks from check to check."""

Function: TypeAlias = Callable[[FloatArray], FloatArray]
"""A function of rows (n, dim) that returns an array whose first axis runs over the rows."""

CheckedKind: TypeAlias = Kind | Literal["wrapper", "plugin"]
"""Kinds that can be checked: those of components, wrappers of potentials, plugin modules."""


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
    level
        How long it takes.
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


CHECKS: dict[CheckedKind, list[Check]] = {
    kind: []
    for kind in (
        *("potential", "surrogate", "explorer", "schedule", "sampler", "integrator", "metric"),
        *("correction", "policy", "wrapper", "plugin"),
    )
}
"""All checks by kind, in the order in which they run."""


def check(kind: CheckedKind, *needs: str, **options: Any) -> Callable[[Callable[..., None]], Check]:
    """Declare a function as a check of a kind; further arguments are those of :class:`Check`."""

    def declare(function: Callable[..., None]) -> Check:
        CHECKS[kind].append(Check(function, frozenset(needs), **options))
        return CHECKS[kind][-1]

    return declare


def demand(condition: object, message: str) -> None:
    """Raise AssertionError unless a condition holds."""
    if not condition:
        raise AssertionError(message)


def demand_shape(array: Any, shape: tuple[int, ...], what: str, kind: str = "f") -> None:
    """Demand an array of a shape, of double precision or of another kind: ``i``, ``b``."""
    demand(isinstance(array, np.ndarray), f"{what} must be an ndarray, got {type(array).__name__}")
    demand(array.shape == shape, f"{what} must have shape {shape}, got {array.shape}")
    held = {"f": "double precision (float64)", "i": "whole numbers", "b": "truth values"}[kind]
    right = array.dtype == np.float64 if kind == "f" else array.dtype.kind == kind
    demand(right, f"{what} must be of {held}, got {array.dtype}")


def demand_equal(first: npt.ArrayLike, second: npt.ArrayLike, what: str) -> None:
    """Demand that two arrays are equal bit for bit, NaN included."""
    demand_close(first, second, what, rtol=0.0, atol=0.0)


def demand_close(
    actual: npt.ArrayLike,
    expected: npt.ArrayLike,
    what: str,
    *,
    rtol: float = 1e-8,
    atol: npt.ArrayLike = 1e-10,
) -> None:
    """Demand that two arrays agree within ``atol`` + ``rtol`` times the larger entry."""
    found, wanted = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    demand(found.shape == wanted.shape, f"{what} must have shape {wanted.shape}, got {found.shape}")
    with np.errstate(invalid="ignore"):
        room = np.asarray(atol) + rtol * np.maximum(np.abs(found), np.abs(wanted))
        far = ~(np.abs(found - wanted) <= room) & ~(found == wanted)
    far &= ~(np.isnan(found) & np.isnan(wanted))
    if far.any():
        where = tuple(int(i) for i in np.argwhere(far)[0])
        raise AssertionError(
            f"{what}: at index {where} got {found[where]:.10g}, expected {wanted[where]:.10g} "
            f"within {np.broadcast_to(room, far.shape)[where]:.2g}; "
            f"{int(far.sum())} of {far.size} entries are off"
        )


def demand_semi_definite(matrices: FloatArray, what: str) -> None:
    """Demand symmetric matrices (n, k, k) without a negative eigenvalue, up to rounding."""
    demand_symmetric(matrices, what)
    least = np.linalg.eigvalsh(matrices)[:, 0] + 1e-9 * np.abs(matrices).max(axis=(1, 2))
    what = f"{what} must have no negative eigenvalue, got {least.min():.3g}"
    demand((least >= 0).all(), f"{what}; give the Fisher information")


def demand_symmetric(matrices: FloatArray, what: str) -> None:
    """Demand symmetric matrices (n, k, k), up to rounding."""
    atol = 1e-9 * np.abs(matrices).max(axis=(1, 2), keepdims=True)
    what = f"{what} against its transpose"
    demand_close(matrices, matrices.transpose(0, 2, 1), what, atol=atol)


def demand_untouched(call: Callable[[], object], arrays: Mapping[str, FloatArray]) -> None:
    """Demand that a call leaves arrays as they are, which are read-only meanwhile."""
    before = {name: array.copy() for name, array in arrays.items()}
    for array in arrays.values():
        array.setflags(write=False)
    call()
    for name, array in arrays.items():
        demand_equal(array, before[name], f"{name} before and after")


def difference(
    function: Function, positions: FloatArray, step: float = 1e-4
) -> tuple[FloatArray, FloatArray]:
    """Return the derivative of a function of rows, shape (n, ..., dim), and its error.

    The derivative is Richardson's combination of differences at ``step``, relative to 1 + abs(q),
    and twice that. The error is how far these two are apart, plus how far the combination is from
    that at twice the steps, which shows the noise of adaptive solvers, plus that of rounding.
    """
    columns, errors = [], []
    for k in range(positions.shape[1]):
        slopes, size = [], np.zeros(())
        for times in (4.0, 2.0, 1.0):
            h = times * step * (1.0 + np.abs(positions[:, k]))
            upper, lower = positions.copy(), positions.copy()
            upper[:, k] += h
            lower[:, k] -= h
            above, below = function(upper), function(lower)
            width = (upper[:, k] - lower[:, k]).reshape((-1,) + (1,) * (above.ndim - 1))
            slopes.append((above - below) / width)
            size = np.maximum(np.abs(above), np.abs(below))
        wider, wide, narrow = slopes
        fine, coarse = (4.0 * narrow - wide) / 3.0, (4.0 * wide - wider) / 3.0
        columns.append(fine)
        rounding = 8.0 * np.finfo(float).eps * size / step
        errors.append(np.abs(narrow - wide) + np.abs(fine - coarse) + rounding)
    return np.stack(columns, axis=-1), np.stack(errors, axis=-1)


def demand_derivative(
    found: FloatArray, function: Function, positions: FloatArray, what: str
) -> None:
    """Demand that an array is the derivative of a function of rows, as far as differences agree."""
    demand_near(found, *difference(function, positions), f"{what} against differences")


def demand_near(found: FloatArray, expected: FloatArray, error: FloatArray, what: str) -> None:
    """Demand that an array is what differences give, up to a few times their error."""
    room = 3.0 * error + 1e-8 * (1.0 + np.abs(expected).max())
    demand_close(found, expected, what, rtol=1e-6, atol=room)


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
    demand(finite.any(), f"{what}; give the potential the capability 'initial'")
    return potential, np.asarray(positions[finite])


def answers(potential: Any, positions: FloatArray) -> dict[str, FloatArray]:
    """Return the results of all evaluations that a potential declares, by name."""
    found = {"value": potential.value(positions)}
    for name in evaluations_of(potential) - {"value"}:
        results = getattr(potential, name)(*arguments(potential, name, positions))
        several = results if isinstance(results, tuple) else (results,)
        found.update({f"{name}[{i}]": array for i, array in enumerate(several)})
    return found


def evaluations_of(potential: Any) -> frozenset[str]:
    """Return the names of all methods that evaluate a potential, as it declares them."""
    declared = potential.capabilities - {can.INITIAL, *can.OF_ROWS}
    return frozenset({"value"}.union(*(methods_of(name) for name in declared)))


def arguments(potential: Any, method: str, positions: FloatArray) -> tuple[FloatArray, ...]:
    """Return positions and, if a method takes factors, read-only ones that depend on rows alone."""
    if method not in WITH_FACTORS:
        return (positions,)
    dim = positions.shape[1]
    factors = np.cos(3.0 * positions + np.arange(dim))
    if method.endswith("trace_gradient"):
        factors = -0.5 * factors[:, :, None] * factors[:, None, :]
        factors[:, np.arange(dim), np.arange(dim)] += 1.0 + np.sin(positions)
    if method == "forward_hessian_product":
        m = potential.forward(positions_for(potential)[:1]).shape[1]
        factors = np.cos(factors[:, None, :] + np.arange(m)[:, None])
    factors.setflags(write=False)
    return positions, factors


def write_and_read(record: Any, where: str = "") -> Any:
    """Return a copy of a record that shares nothing with it, made of plain data alone.

    Plain data are arrays, numbers, strings, None, and records, tuples, lists and mappings of these.

    Parameters
    ----------
    where
        The record's name in messages; by default its type.

    Raises
    ------
    AssertionError
        If something in it is not plain data; the message says where.
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
