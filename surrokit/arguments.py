"""Arguments and settings as users give them: checked, and turned into what is used."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from numbers import Real
from typing import Any, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.errors import ConfigurationError, MissingDependencyError, ShapeError
from surrokit.types import FloatArray

Mark: TypeAlias = Callable[[str], bool] | None
"""Returns which settings of a record the part offers as its own; None for a hidden field."""


@attrs.frozen
class Limits:
    """A validator of a field, which raises ConfigurationError where ``hold`` is not true.

    ``expected`` are the valid values, in words that follow "must be".
    """

    expected: str
    hold: Callable[[Any], bool]

    def __call__(self, _: Any, attribute: Any, value: Any) -> None:
        """Reject an invalid value."""
        if not self.hold(value):
            raise ConfigurationError(f"{attribute.name} must be {self.expected}, got {value!r}")


def is_number(value: object) -> bool:
    """Return whether a value is a real number and no boolean."""
    return isinstance(value, Real) and not isinstance(value, np.bool_ | bool)


def is_whole(value: object, least: int) -> bool:
    """Return whether a value is a whole number of at least ``least``, and no boolean."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return int(value) >= least


def _finite(value: object) -> float:
    """Return a finite number as it is, and NaN, which fails all comparisons, for anything else."""
    number = float(value) if is_number(value) else math.nan  # type: ignore[arg-type]
    return number if math.isfinite(number) else math.nan


positive = Limits("a positive finite number", lambda value: _finite(value) > 0)
optional_positive = Limits(
    "a positive finite number, or None to have it tuned",
    lambda value: value is None or _finite(value) > 0,
)
not_negative = Limits("a finite number of at least 0", lambda value: _finite(value) >= 0)
fraction = Limits("a number between 0 and 1", lambda value: 0 < _finite(value) < 1)
share = Limits("a number of at least 0 and below 1", lambda value: 0 <= _finite(value) < 1)
up_to_half = Limits("a share between 0 and 0.5", lambda value: 0 <= _finite(value) <= 0.5)
positive_integer = Limits("a whole number of at least 1", lambda value: is_whole(value, 1))
not_negative_integer = Limits("a whole number of at least 0", lambda value: is_whole(value, 0))
optional_positive_integer = Limits(
    "a whole number of at least 1, or None", lambda value: value is None or is_whole(value, 1)
)


def one_of(*choices: str | bool) -> Limits:
    """Return a validator that takes any of the given words or truth values."""

    def hold(value: object) -> bool:
        # compare types too, since 1 == True
        return any(type(value) is type(choice) and value == choice for choice in choices)

    return Limits(f"one of {', '.join(map(repr, choices))}", hold)


def spread(*names: str, without: Collection[str] = ()) -> dict[str, Mark]:
    """Return the metadata of a field whose record of settings the part offers as its own.

    It offers the settings of these names, by default all, ``without`` some.
    """
    return {"surrokit": lambda name: (not names or name in names) and name not in without}


HIDDEN: dict[str, Mark] = {"surrokit": None}
"""Metadata of a field that is no setting, since a run sets it."""


def is_hidden(field: attrs.Attribute[Any]) -> bool:
    """Return whether a field is no setting."""
    return "surrokit" in field.metadata and field.metadata["surrokit"] is None


def offers_of(field: attrs.Attribute[Any]) -> Mark:
    """Return the mark of a field that is spread, None for any other field."""
    mark: Mark = field.metadata.get("surrokit")
    return mark


def check_positions(positions: npt.ArrayLike, dim: int) -> FloatArray:
    """Return positions in double precision; ShapeError unless they are rows of ``dim`` numbers."""
    array = np.asarray(positions, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != dim:
        raise ShapeError(
            f"positions must have shape (n, {dim}), got {array.shape}; pass one row for each point"
        )
    return array


def all_finite(array: FloatArray) -> bool:
    """Return whether all numbers are finite; one product is the cheapest test where they are."""
    flat = array.reshape(-1)
    return math.isfinite(flat.dot(flat)) or bool(np.isfinite(array).all())


def check_vectors(vectors: npt.ArrayLike, positions: FloatArray) -> FloatArray:
    """Return vectors in double precision; ShapeError unless there is one for each position."""
    return _check("vectors", vectors, positions.shape)


def check_matrices(matrices: npt.ArrayLike, positions: FloatArray) -> FloatArray:
    """Return matrices in double precision; ShapeError unless they are (n, dim, dim)."""
    return _check("matrices", matrices, (*positions.shape, positions.shape[1]))


def _check(what: str, given: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    array = np.asarray(given, dtype=np.float64)
    if array.shape != shape:
        raise ShapeError(
            f"{what} must have shape {shape}, got {array.shape}; pass one for each position"
        )
    return array


def check_functions(**functions: object) -> None:
    """Raise ConfigurationError, by name, unless an argument is a function or None."""
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise ConfigurationError(
                f"{name} must be a function of a position, got {function!r}; pass the function "
                "itself, without calling it"
            )


def check_flag(name: str, value: object) -> None:
    """Raise ConfigurationError unless a value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ConfigurationError(f"{name} must be True or False, got {value!r}")


def check_seconds(name: str, value: object) -> None:
    """Raise ConfigurationError unless a value is None or a finite number of seconds above 0."""
    if value is not None and not _finite(value) > 0:
        raise ConfigurationError(f"{name} must be a number of seconds above 0, got {value!r}")


def check_methods(name: str, given: object, methods: tuple[str, ...], such_as: str) -> None:
    """Raise ConfigurationError unless an object, or None, has the methods that will be called.

    ``such_as`` is an example, for the message.
    """
    missing = [method for method in methods if not callable(getattr(given, method, None))]
    if given is not None and (missing or isinstance(given, type)):
        raise ConfigurationError(
            f"{name} must be an object with {' and '.join(methods)}, such as {such_as}, got "
            f"{given!r}"
        )


def numbers(what: str, value: object) -> FloatArray:
    """Return numbers in double precision, copied only where necessary; NaN where a mask hides them.

    Text is rejected even where it spells a number, and None too, which NumPy would read as NaN.
    ShapeError, which says ``what`` it is, is raised if the value holds anything but real numbers,
    or lists of different lengths.
    """
    try:
        array = np.asarray(unmasked(value))
        foreign = array.dtype.kind == "O" and any(
            item is None or isinstance(item, str | bytes) for item in array.flat
        )
        if array.dtype.kind in "USTMmc" or foreign:
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        text = repr(value)
        raise ShapeError(
            f"{what} must be numbers, equally many in each row, got "
            f"{text if len(text) <= 200 else f'{text[:200]} ...'}"
        ) from error


def unmasked(value: Any) -> Any:
    """Return a value with NaN in place of numbers that a mask hides, which are missing.

    NumPy would take the numbers behind the mask. Masked arrays are looked for in lists and tuples,
    too.
    """
    if isinstance(value, np.ma.MaskedArray):
        if not np.ma.is_masked(value) or value.dtype.kind not in "iubfcO":
            return value.data
        whole: Any = value.astype(np.float64) if value.dtype.kind in "iub" else value
        return whole.filled(np.nan)
    if isinstance(value, list | tuple):
        nested = any(isinstance(item, list | tuple | np.ma.MaskedArray) for item in value)
        return [unmasked(item) for item in value] if nested else value
    return value


def matched(values: Any, name: str, like: Any, whose: str) -> Any:
    """Return values with a row for each of another array's, matched by index where both have one.

    What is no pandas Series or frame is returned as it is. ``name`` and ``whose`` are what both are
    called. ConfigurationError is raised if both have an index, and the rows of one are not all
    among those of the other.
    """
    own, other = _index(values), _index(like)
    if own is None or other is None or own.equals(other):
        return values
    if own.is_unique and other.is_unique and other.isin(own).all():
        return values.reindex(other)
    raise ConfigurationError(
        f"{name} and {whose} have different indices, so that their rows cannot be matched; give "
        f"{name} the index of {whose}, or its .to_numpy() if rows are in the same order"
    )


def matched_rows(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return arrays by what they are called, each :func:`matched` to the first with an index."""
    first = next((name for name, each in values.items() if _index(each) is not None), None)
    if first is None:
        return dict(values)
    return {name: matched(each, name, values[first], first) for name, each in values.items()}


def _index(values: Any) -> Any:
    """Return the index of a pandas object; None of anything else."""
    index = getattr(values, "index", None)
    known = all(hasattr(index, name) for name in ("equals", "isin", "is_unique"))
    return index if known and hasattr(values, "iloc") and hasattr(values, "to_numpy") else None


def read_seed(seed: object) -> np.random.Generator:
    """Return the generator of a run.

    Parameters
    ----------
    seed
        A whole number, a generator, or None for entropy of the operating system.

    Raises
    ------
    ConfigurationError
        If it is none of these.
    """
    try:
        return np.random.default_rng(seed)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"seed must be a whole number of at least 0, a numpy generator or None, got {seed!r}"
        ) from error


def load_library(name: str, extra: str, purpose: str = "for this target") -> Any:
    """Return an optional library, which an extra of surrokit brings.

    ``purpose`` follows "is needed". MissingDependencyError is raised if it cannot be imported.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"{name} is needed {purpose} and cannot be imported ({error}); run "
            f"python -m pip install 'surrokit[{extra}]'"
        ) from error
