"""Named parameters: shapes, bounds and constraints."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from textwrap import shorten
from typing import Any, Protocol, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import is_number, is_whole, numbers
from surrokit.coordinates.constraints import (
    Circular,
    Constraint,
    Correlation,
    Ordered,
    Simplex,
    UnitVector,
)
from surrokit.coordinates.distributions import check_prior, inside
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import BoolArray, FloatArray, Pair

Bounds: TypeAlias = tuple[float | None, float | None]
"""Lower and upper bound; None or an infinity means no bound."""


@attrs.frozen
class Parameter:
    """Shape and bounds of one named parameter.

    Parameters
    ----------
    shape
        Shape of the parameter; ``()`` for a number.
    lower, upper
        Open bounds; None or an infinity means no bound.
    constraint
        What ties its numbers together; None for nothing.
    prior
        A univariate distribution with ``logpdf`` and ``support``, such as a frozen one of SciPy, of
        each number; None for none. Where its support is narrower, it takes the place of the bounds.

    Raises
    ------
    ConfigurationError
        If a bound is NaN, or the lower one is not below the upper one, or the prior is no
        univariate distribution, lies outside of the bounds or stands beside a constraint.
    """

    shape: tuple[int, ...] = ()
    lower: float | None = attrs.field(default=None, kw_only=True)
    upper: float | None = attrs.field(default=None, kw_only=True)
    constraint: Constraint | None = attrs.field(default=None, kw_only=True)
    prior: Any = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.shape, tuple) or not all(is_whole(n, 1) for n in self.shape):
            raise ConfigurationError(
                "a parameter's shape must be a tuple of whole numbers of at least 1, got "
                f"{self.shape!r}"
            )
        for bound in (self.lower, self.upper):
            if bound is not None and not is_number(bound):
                raise ConfigurationError(
                    f"bounds of a parameter must be numbers or None, got {bound!r}"
                )
        lower, upper = self.bounds
        if not lower < upper or lower == np.inf or upper == -np.inf:
            raise ConfigurationError(
                f"bounds of a parameter must be numbers with lower < upper, got ({self.lower}, "
                f"{self.upper}); use None for a side without a bound"
            )
        if self.prior is None:
            return
        check_prior(self.prior, self.size)
        if self.constraint is not None:
            raise ConfigurationError(
                f"a prior is given for {self.constraint.meaning}; add it to the density of the "
                "target"
            )
        for side, bound in zip(("lower", "upper"), inside(self.prior, lower, upper), strict=True):
            object.__setattr__(self, side, bound if np.isfinite(bound) else None)

    @property
    def bounds(self) -> tuple[float, float]:
        """Lower and upper bound, infinite where there is none."""
        return (
            -np.inf if self.lower is None else float(self.lower),
            np.inf if self.upper is None else float(self.upper),
        )

    @property
    def size(self) -> int:
        """Count of its numbers."""
        return int(np.prod(self.shape, dtype=int))

    @property
    def free(self) -> int:
        """Count of the numbers on the whole line that it is sampled by."""
        return self.size if self.constraint is None else self.constraint.free

    @property
    def varies(self) -> BoolArray:
        """Which of its numbers are not constant, shape (size,)."""
        return np.ones(self.size, bool) if self.constraint is None else self.constraint.varies

    @property
    def indices(self) -> list[str]:
        """What stands in brackets behind the name of each of its numbers; empty for a number."""
        return [",".join(map(str, index)) for index in np.ndindex(self.shape)]


class Distribution(Protocol):
    """A prior of single numbers, such as a frozen distribution of ``scipy.stats``."""

    def logpdf(self, x: Any, /) -> Any:
        """Return the logarithm of the density."""


Declaration: TypeAlias = Parameter | Bounds | Distribution | None
Declared: TypeAlias = Mapping[str, Declaration]


@attrs.frozen
class Parameters:
    """All parameters of a target, in order.

    Parameters
    ----------
    specs
        Name to parameter; the position vector holds the parameters in this order, arrays in C
        order.
    """

    specs: Mapping[str, Parameter]

    @classmethod
    def declare(cls, specs: Declared) -> Parameters:
        """Read declarations: bounds, None for none, a :class:`Parameter`, or its prior alone."""
        given: Any = specs
        if not isinstance(given, Mapping):
            raise ConfigurationError(
                "parameters must be a dictionary of names and bounds (None, a pair, a prior, or "
                f"surrokit.real(...)), got {given!r}; pass {{'a': None, 'b': (0, 1)}}"
            )
        if not specs:
            raise ConfigurationError("parameters must name at least one parameter, got none")
        declared = cls({name: _read(name, spec) for name, spec in specs.items()})
        labels = declared.labels
        twice = sorted({label for label in labels if labels.count(label) > 1})
        if twice:
            raise ConfigurationError(
                f"parameters give two numbers the name {twice[0]!r}; rename one of them"
            )
        return declared

    @classmethod
    def unnamed(cls, dim: int) -> Parameters:
        """Return ``dim`` unbounded numbers called q[0], q[1], ..."""
        return cls({"q": Parameter((dim,))})

    def demand(self, names: Iterable[str]) -> None:
        """Raise ConfigurationError unless each name is that of a parameter as a whole."""
        self.find(names)
        for name in names:
            if name not in self.specs:
                raise ConfigurationError(
                    f"{name!r} is a single number, and a prior is one of each number of a "
                    f"parameter; name one of {', '.join(self.specs)}"
                )

    def with_priors(self, priors: Mapping[str, Distribution]) -> Parameters:
        """Return parameters with other priors of those that are named, within their bounds.

        ConfigurationError is raised if a name or a prior is none.
        """
        self.demand(priors)
        return Parameters(
            {
                name: attrs.evolve(spec, prior=priors.get(name, spec.prior))
                for name, spec in self.specs.items()
            }
        )

    @cached_property
    def dim(self) -> int:
        """Count of the numbers in a position."""
        return sum(spec.size for spec in self.specs.values())

    @cached_property
    def free(self) -> int:
        """Count of the numbers on the whole line that a position is sampled by."""
        return sum(spec.free for spec in self.specs.values())

    @property
    def varies(self) -> BoolArray:
        """Which numbers of a position are not constant, shape (dim,)."""
        return np.concatenate([spec.varies for spec in self.specs.values()])

    @property
    def bounded(self) -> bool:
        """Whether any parameter has a bound."""
        return any(spec.bounds != (-np.inf, np.inf) for spec in self.specs.values())

    @property
    def tied(self) -> bool:
        """Whether a constraint ties numbers of any parameter together."""
        return any(spec.constraint is not None for spec in self.specs.values())

    def split(self, positions: FloatArray) -> dict[str, FloatArray]:
        """Return position vectors (..., dim) as arrays by name, each in its own shape."""
        lead = positions.shape[:-1]
        return {
            name: positions[..., where].reshape(lead + self.specs[name].shape)
            for name, where in self.slices().items()
        }

    @property
    def labels_on_line(self) -> list[str]:
        """A name for each number on the line: its own, or that of the parameter it belongs to."""
        labels = []
        for name, spec in self.specs.items():
            own = Parameters({name: spec}).labels
            labels += own if spec.constraint is None else [name] * spec.free
        return labels

    @property
    def labels(self) -> list[str]:
        """A name for each number: ``rate``, ``w[0]``, ``w[1]``, ``m[0,1]``."""
        return [
            f"{name}[{index}]" if index else name
            for name, spec in self.specs.items()
            for index in spec.indices
        ]

    def slices(self) -> dict[str, slice]:
        """Return the slice of each parameter in the position vector."""
        ends = itertools.accumulate(spec.size for spec in self.specs.values())
        pairs = zip(self.specs.items(), ends, strict=True)
        return {name: slice(end - spec.size, end) for (name, spec), end in pairs}

    def find(self, names: Iterable[str]) -> list[int]:
        """Return the columns of parameters by name (``w``), and of numbers by label (``w[0]``).

        ConfigurationError is raised if there is none of that name.
        """
        wanted = [names] if isinstance(names, str) else list(names)
        places = {label: [i] for i, label in enumerate(self.labels)}
        places |= {name: list(range(self.dim))[where] for name, where in self.slices().items()}
        for name in wanted:
            if name not in places:
                known = shorten(", ".join(self.specs), 200, placeholder=" ...")
                raise ConfigurationError(
                    f"no parameter is named {name!r}; name some of {known}, or single numbers "
                    "such as 'w[0]'"
                )
        return list(dict.fromkeys(column for name in wanted for column in places[name]))

    def bounds(self) -> Pair:
        """Return lower and upper bounds, each of shape (dim,), infinite where there is none."""
        pairs = [spec.bounds for spec in self.specs.values() for _ in range(spec.size)]
        lower, upper = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
        return lower, upper

    def position(self, values: Mapping[str, object] | Sequence[float] | FloatArray) -> FloatArray:
        """Return position vectors, shape (..., dim), from values by name or from an array."""
        if not isinstance(values, Mapping):
            return numbers("a position", values)
        if set(values) != set(self.specs):
            raise ShapeError(
                f"values by name must be given for {', '.join(self.specs)}, "
                f"got {', '.join(map(str, values)) or 'none'}"
            )
        parts = []
        for name, spec in self.specs.items():
            array = numbers(f"parameter {name!r}", values[name])
            lead = array.shape[: array.ndim - len(spec.shape)]
            if lead + spec.shape != array.shape:
                raise ShapeError(
                    f"parameter {name!r} must have shape {spec.shape}, got {array.shape}"
                )
            parts.append(array.reshape(*lead, spec.size))
        shapes = [part.shape[:-1] for part in parts]
        try:
            rows = np.broadcast_shapes(*shapes)
        except ValueError as error:
            given = ", ".join(
                f"{shape} of {name}" for name, shape in zip(self.specs, shapes, strict=True)
            )
            raise ShapeError(
                f"values by name must be given for equally many positions, got {given}"
            ) from error
        return np.concatenate([np.broadcast_to(p, (*rows, p.shape[-1])) for p in parts], axis=-1)


def _read(name: object, spec: Declaration) -> Parameter:
    known = isinstance(name, str) and bool(name)
    if not known or any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in str(name)):
        raise ConfigurationError(
            f"a parameter's name must be text that files can hold, got {name!r}"
        )
    if isinstance(spec, Parameter):
        return spec
    if callable(getattr(spec, "logpdf", None)):
        return Parameter(prior=spec)
    if spec is not None and (not isinstance(spec, tuple | list) or len(spec) != 2):
        raise ConfigurationError(
            f"parameter {name!r} must be declared by None, a pair (lower, upper), a frozen "
            f"distribution of scipy.stats or surrokit.real(...), got {spec!r}"
        )
    lower, upper = spec or (None, None)
    return Parameter(lower=lower, upper=upper)


Shape = int | tuple[int, ...]
"""Shape of a parameter; a number is the length of a vector."""


def real(shape: Shape = (), *, prior: Any = None) -> Parameter:
    """Declare real numbers.

    Parameters
    ----------
    shape
        Shape of the parameter; ``()`` for a number, a whole number for a vector.
    prior
        A univariate distribution, of each number: a frozen one of ``scipy.stats``, or whatever has
        ``logpdf`` and ``support``. Where its support ends, so does the parameter.

    Raises
    ------
    ConfigurationError
        If the shape is none, or the prior is none of single numbers.
    """
    return Parameter(_shape(shape), prior=prior)


def positive(shape: Shape = (), *, prior: Any = None) -> Parameter:
    """Declare numbers above 0; see :func:`real`."""
    return Parameter(_shape(shape), lower=0.0, prior=prior)


def interval(lower: float, upper: float, shape: Shape = (), *, prior: Any = None) -> Parameter:
    """Declare numbers between two bounds; see :func:`real`."""
    return Parameter(_shape(shape), lower=lower, upper=upper, prior=prior)


def simplex(size: int) -> Parameter:
    """Declare ``size`` positive numbers that sum to 1."""
    return _tied(Simplex(_at_least(2, size, "a simplex")))


def ordered(size: int) -> Parameter:
    """Declare ``size`` numbers in increasing order."""
    return _tied(Ordered(_at_least(1, size, "an ordered vector")))


def unit_vector(size: int) -> Parameter:
    """Declare a vector of ``size`` numbers and length 1."""
    return _tied(UnitVector(_at_least(2, size, "a unit vector")))


def circular(shape: Shape = ()) -> Parameter:
    """Declare angles in (-pi, pi], whose ends are one; the shape is as for :func:`real`."""
    return _tied(Circular(_shape(shape)))


def correlation(size: int) -> Parameter:
    """Declare a correlation matrix of ``size`` rows."""
    return _tied(Correlation(_at_least(2, size, "a correlation matrix")))


def _tied(constraint: Constraint) -> Parameter:
    return Parameter(constraint.shape, constraint=constraint)


def _shape(shape: Shape) -> tuple[int, ...]:
    return (int(shape),) if is_whole(shape, 1) else shape  # type: ignore[arg-type,return-value]


def _at_least(least: int, size: int, what: str) -> int:
    if not is_whole(size, least):
        raise ConfigurationError(
            f"the size of {what} must be a whole number of at least {least}, got {size!r}"
        )
    return int(size)


@attrs.frozen(eq=False)
class Plausible:
    """A box in the user's coordinates, from which starting positions are drawn.

    It says where to look first. The density is what it is without it. ``lower`` and ``upper`` are
    its corners, shape (dim,).
    """

    lower: FloatArray
    upper: FloatArray

    @classmethod
    def declare(cls, ranges: Mapping[str, Any] | None, parameters: Parameters) -> Plausible | None:
        """Read a range (low, high) for each parameter, by name; None where none are given.

        ConfigurationError is raised if a range is missing, belongs to no parameter, is no pair of
        finite numbers with low below high, or reaches beyond the parameter's bounds.
        """
        if ranges is None:
            return None
        for name, spec in parameters.specs.items():
            if spec.constraint is not None:
                raise ConfigurationError(
                    f"{name!r} is {spec.constraint.meaning}, which has no range; leave "
                    "plausible out, and give initial positions instead"
                )
        if not isinstance(ranges, Mapping) or set(ranges) != set(parameters.specs):
            given = ", ".join(map(str, ranges)) if isinstance(ranges, Mapping) else repr(ranges)
            raise ConfigurationError(
                "plausible must give a range (low, high) for each of the parameters "
                f"{', '.join(parameters.specs)}, got {given or 'none'}"
            )
        sides = [_read_range(name, spec, ranges[name]) for name, spec in parameters.specs.items()]
        lower, upper = (np.concatenate(side) for side in zip(*sides, strict=True))
        return cls(lower, upper)

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return positions that are uniform in the box, shape (n, dim)."""
        return rng.uniform(self.lower, self.upper, size=(n, len(self.lower)))


def _read_range(name: str, spec: Parameter, pair: Any) -> list[FloatArray]:
    """Return the lower and upper ends of a parameter's numbers, each of shape (size,)."""
    what = f"the plausible range of {name!r}"
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ConfigurationError(f"{what} must be a pair (low, high), got {pair!r}")
    try:
        ends = [np.broadcast_to(numbers(what, side), spec.shape).reshape(-1) for side in pair]
    except (ValueError, ShapeError) as error:
        raise ConfigurationError(
            f"the ends of {what} must be numbers, or arrays of shape {spec.shape}, got {pair!r}"
        ) from error
    if not (np.isfinite(ends).all() and (ends[0] < ends[1]).all()):
        raise ConfigurationError(
            f"{what} must be finite numbers with low < high, got ({pair[0]}, {pair[1]})"
        )
    least, most = spec.bounds
    if (ends[0] < least).any() or (ends[1] > most).any():
        raise ConfigurationError(
            f"{what} is ({pair[0]}, {pair[1]}), which reaches beyond its "
            f"bounds ({least:g}, {most:g}); leave out what the bounds leave out"
        )
    return ends
