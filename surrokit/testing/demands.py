"""What checks are written with: demands, differences, evaluations by name, and plain copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from numbers import Number
from typing import Any, Literal, TypeAlias, TypeVar

import attrs
import numpy as np
import numpy.typing as npt

from surrokit import capabilities as can
from surrokit.testing.wrappers import WITH_FACTORS, methods_of
from surrokit.types import FloatArray

Level: TypeAlias = Literal["quick", "statistical", "long"]
"""``quick`` is deterministic and takes less than a second, ``statistical`` is seeded and takes
seconds, ``long`` takes more."""

Factory: TypeAlias = Callable[[], Any]
"""Makes a part afresh, so that nothing leaks from check to check."""

Function: TypeAlias = Callable[[FloatArray], FloatArray]
"""A function of rows (n, dim) that returns an array whose first axis runs over the rows."""

Record = TypeVar("Record")


@attrs.frozen
class Check:
    """A named property of one kind of part.

    Parameters
    ----------
    function
        Takes a factory and raises AssertionError, with a full message, if a part that it makes
        lacks the property. Its first docstring line says what the property is.
    level
        How long it takes.
    applies
        Whether a part claims the ability that is checked.
    """

    function: Callable[[Factory], None]
    level: Level = "quick"
    applies: Callable[[Any], bool] = lambda _: True

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__


def checks(
    *functions: Callable[[Factory], None],
    level: Level = "quick",
    applies: Callable[[Any], bool] = lambda _: True,
) -> tuple[Check, ...]:
    """Return checks of one level that apply to the same parts."""
    return tuple(Check(function, level, applies) for function in functions)


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
    a, b = np.asarray(first), np.asarray(second)
    equal_nan = a.dtype.kind == "f" and b.dtype.kind == "f"
    if a.shape == b.shape and np.array_equal(a, b, equal_nan=equal_nan):
        return
    difference = f"shapes {a.shape} and {b.shape}"
    if a.shape == b.shape:
        unlike = (a != b) & ~((a != a) & (b != b))
        difference = f"{int(unlike.sum())} of {a.size} entries"
    raise AssertionError(f"{what} must be equal bit for bit, but differ: {difference}")


def demand_close(
    actual: npt.ArrayLike,
    expected: npt.ArrayLike,
    what: str,
    *,
    rtol: float = 1e-8,
    atol: npt.ArrayLike = 1e-10,
) -> None:
    """Demand that two arrays agree within ``atol`` + ``rtol`` times the larger entry."""
    found, wanted = np.asarray(actual), np.asarray(expected)
    demand(
        found.shape == wanted.shape,
        f"{what}: got shape {found.shape} where shape {wanted.shape} is expected",
    )
    room = np.asarray(atol) + rtol * np.maximum(np.abs(found), np.abs(wanted))
    with np.errstate(invalid="ignore"):
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
    scale = np.abs(matrices).max(axis=(1, 2), keepdims=True)
    turned = matrices.transpose(0, 2, 1)
    demand_close(matrices, turned, f"{what} against its transpose", atol=1e-9 * scale)
    least = np.linalg.eigvalsh(matrices)[:, 0] + 1e-9 * scale[:, 0, 0]
    demand(
        (least >= 0).all(),
        f"{what} must have no negative eigenvalue, but the least is {least.min():.3g}; where "
        "second derivatives are negative, give the Fisher information instead",
    )


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
    """Return the derivative of a function of rows, and an estimate of its error.

    Parameters
    ----------
    function
        Returns shape (n, ...).
    positions : ndarray of shape (n, dim)
        Where to differentiate.
    step
        Half the distance between the two points of a difference, relative to 1 + abs(q).

    Returns
    -------
    derivative : ndarray of shape (n, ..., dim)
        Richardson's combination of differences at ``step`` and twice that.
    error : ndarray of the same shape
        How far the two differences are apart, plus how far the combination is from that at twice
        the steps, plus the error of rounding. The second term shows noise, such as that of a solver
        with adaptive steps.
    """
    columns, errors = [], []
    for k in range(positions.shape[1]):
        narrow, size = _central(function, positions, k, step)
        wide, _ = _central(function, positions, k, 2.0 * step)
        wider, _ = _central(function, positions, k, 4.0 * step)
        fine, coarse = (4.0 * narrow - wide) / 3.0, (4.0 * wide - wider) / 3.0
        columns.append(fine)
        rounding = 8.0 * np.finfo(float).eps * size / step
        errors.append(np.abs(narrow - wide) + np.abs(fine - coarse) + rounding)
    return np.stack(columns, axis=-1), np.stack(errors, axis=-1)


def _central(
    function: Function, positions: FloatArray, k: int, step: float
) -> tuple[FloatArray, FloatArray]:
    h = step * (1.0 + np.abs(positions[:, k]))
    upper, lower = positions.copy(), positions.copy()
    upper[:, k] += h
    lower[:, k] -= h
    above, below = function(upper), function(lower)
    width = (upper[:, k] - lower[:, k]).reshape((-1,) + (1,) * (above.ndim - 1))
    return (above - below) / width, np.maximum(np.abs(above), np.abs(below))


def demand_derivative(
    found: FloatArray, function: Function, positions: FloatArray, what: str
) -> None:
    """Demand that an array is the derivative of a function of rows, by differences.

    The tolerance is wide where the differences disagree with each other.
    """
    expected, error = difference(function, positions)
    demand_near(found, expected, error, f"{what} against differences")


def demand_near(found: FloatArray, expected: FloatArray, error: FloatArray, what: str) -> None:
    """Demand that an array is what differences give, up to a few times their error."""
    room = 3.0 * error + 1e-8 * (1.0 + np.abs(expected).max())
    demand_close(found, expected, what, rtol=1e-6, atol=room)


N_POSITIONS = 7
"""Positions at which potentials are evaluated."""


def positions_for(potential: Any) -> FloatArray:
    """Return positions at which a potential can be evaluated, shape (n, dim).

    They are its own starting positions if it has any, and otherwise draws from N(0, 0.7^2 I).
    """
    rng = np.random.default_rng(20170401)
    if can.INITIAL in potential.capabilities:
        return np.array(potential.initial(rng, N_POSITIONS), dtype=np.float64)
    return 0.7 * rng.standard_normal((N_POSITIONS, potential.dim))


def place(make: Factory) -> tuple[Any, FloatArray]:
    """Make a potential, and return it with those of :func:`positions_for` where U is finite."""
    potential = make()
    positions = positions_for(potential)
    finite = np.isfinite(potential.value(positions))
    demand(
        finite.any(),
        f"U is finite at none of {len(positions)} positions around the origin; give the "
        "potential the capability 'initial', so that chains and checks know where to start",
    )
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
    """Return the arguments of an evaluation.

    They are the positions and, if the method takes factors, a read-only matrix or vector for each
    position that depends on its row alone.
    """
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


def has(*names: str) -> Any:
    """Return a function that tells whether a potential has all these capabilities."""
    return lambda potential: potential.capabilities.issuperset(names)


def write_and_read(record: Record, where: str = "") -> Record:
    """Return a copy of a record that shares nothing with it, made of plain data alone.

    A record that lives across iterations holds arrays, numbers, strings, None, and records, tuples,
    lists and mappings of these; nothing else can be saved and restored.

    Parameters
    ----------
    record
        The record.
    where
        Its name in messages; by default its type.

    Raises
    ------
    AssertionError
        If something in it is not plain data; the message says where.
    """
    value: Any = record
    copied: Any = value
    where = where or type(value).__name__
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcSU":
        copied = value.copy()
    elif attrs.has(type(value)):
        copied = object.__new__(type(value))
        for name in (field.name for field in attrs.fields(type(value))):
            item = write_and_read(getattr(value, name), f"{where}.{name}")
            object.__setattr__(copied, name, item)
    elif isinstance(value, Mapping):
        copied = {key: write_and_read(item, f"{where}[{key!r}]") for key, item in value.items()}
    elif isinstance(value, list | tuple):
        copied = type(value)(
            [write_and_read(item, f"{where}[{i}]") for i, item in enumerate(value)]
        )
    elif value is not None and not isinstance(value, str | bool | Number | Enum):
        kind = f"array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
        raise AssertionError(
            f"{where} is of type {kind}; what lives across iterations must be a record of arrays "
            "of numbers, numbers, strings, None and records, tuples or mappings of these"
        )
    return copied  # type: ignore[no-any-return]
