"""Sums over rows of terms that users write, with derivatives of theirs or from JAX."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from surrokit import capabilities as can
from surrokit.arguments import check_positions, matched_rows, unmasked
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import Ball, check_ball
from surrokit.shown.target import ShownTarget
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import Capabilities, FloatArray, IntArray
from surrokit_problems.rows import check_centre
from surrokit_problems.terms import Expansion, NormalPrior

Rows: TypeAlias = Any
"""Some rows of the data, in the form that the data were given in."""

RowFunction: TypeAlias = Callable[[FloatArray, Rows], Any]
"""Of a position (dim,) and m rows."""

BoundFunction: TypeAlias = Callable[[Rows, FloatArray, FloatArray, float], Any]
"""Of m rows, a factor, a centre and a radius: bounds in that ball, shape (m,)."""

_BLOCK = 65_536  # rows that a function is given at once
_EXPANDED = 8192  # rows whose Hessians are held at once


class OwnRows(ShownTarget):
    """U(q) = -sum_i l_i(q) - log prior(q) for log-likelihood terms l_i that a user wrote.

    :func:`own_rows` makes it.
    """

    def __init__(
        self,
        functions: _RowFunctions,
        data: _RowData,
        prior: NormalPrior,
        bound: FloatArray | BoundFunction | None,
    ) -> None:
        self._functions, self._data = functions, data
        self._prior, self._bound = prior, bound

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self._functions.dim

    @property
    def n_rows(self) -> int:
        """Number of terms."""
        return len(self._data)

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What may lack its normalising constant: the terms, and a flat prior."""
        return ("terms", *self._prior.unnormalized)

    @property
    def observed_data(self) -> dict[str, Any]:
        """The arrays: by the user's names, else ``data``, with a number where there are several."""
        return self._data.by_name

    @property
    def capabilities(self) -> Capabilities:
        """Gradient and Hessian if these were given; ``rows`` with a bound beside."""
        offered: set[str] = set()
        if self._functions.gradient is not None:
            offered |= {can.GRADIENT, can.GRADIENT_ALONE}
            offered |= {can.HESSIAN} if self._has_hessian else set()
        if self._has_hessian and self._bound is not None:
            offered |= {can.ROWS, can.ROWS_IN_BALLS} if callable(self._bound) else {can.ROWS}
        return frozenset(offered)

    @property
    def missing(self) -> Mapping[str, str]:
        """Why it has no ``rows``, if it has none."""
        if can.ROWS in self.capabilities:
            return {}
        lacking = [
            *(["gradient= and hessian= (or derivatives='jax')"] * (not self._has_hessian)),
            *(["bound=, of third derivatives"] * (self._bound is None)),
        ]
        return {
            can.ROWS: "its rows cannot stand for all of them, as rows_potential was given no "
            + ", and no ".join(lacking)
        }

    @property
    def _has_hessian(self) -> bool:
        return self._functions.gradient is not None and self._functions.hessian is not None

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        b = check_positions(positions, self.dim)
        return self._sum(self._prior.value(b), 0, b)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        return self.value(positions), self.gradient(positions)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U alone, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        return self._sum(self._prior.gradient(b), 1, b)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim)."""
        b = check_positions(positions, self.dim)
        return self._sum(np.tile(np.diag(self._prior.precision), (len(b), 1, 1)), 2, b)

    def _sum(self, total: FloatArray, order: int, b: FloatArray) -> FloatArray:
        """Add a derivative of all terms, shape (n, ...), at positions b."""
        for rows in self._data.blocks(_BLOCK if order < 2 else max(1, _BLOCK // self.dim)):
            for k, q in enumerate(b):
                total[k] += self._functions.at(order, q, rows).sum(axis=0)
        return total

    def column_moments(self, rows: IntArray | None = None) -> FloatArray | None:
        """Return the mean Hessian of terms at the origin and of the prior, shape (dim, dim).

        None where there are no Hessians, or it is not positive semidefinite.

        Parameters
        ----------
        rows : ndarray of int, shape (m,), optional
            Rows that it is the mean over; None for all.
        """
        if not self._has_hessian:
            return None
        alone = self.select(np.arange(self.n_rows) if rows is None else rows)
        with np.errstate(all="ignore"):
            total = alone.hessian(np.zeros((1, self.dim)))[0] / alone.n_rows
        found = total + np.diag(self._prior.precision) / self.n_rows
        if not np.isfinite(found).all() or (np.linalg.eigvalsh(found) < 0.0).any():
            return None
        return np.asarray(found)

    def expand(self, centre: FloatArray) -> _OwnExpansion:
        """Return the expansions of all terms at ``centre (dim,)``, to second order.

        Raises
        ------
        ShapeError
            If the centre is not one position.
        """
        at = check_centre(centre, self.dim)[None]
        return _OwnExpansion(
            functions=self._functions,
            data=self._data,
            prior=self._prior,
            centre=at[0],
            gradient=self._sum(np.zeros((1, self.dim)), 1, at)[0],
            hessian=self._sum(np.zeros((1, self.dim, self.dim)), 2, at)[0],
            level=float(self.value(at)[0]),
        )

    def row_bounds(self, factor: FloatArray, ball: Ball | None = None) -> FloatArray:
        """Return psi_i, shape (n_rows,), from the bound that was given.

        Raises
        ------
        ConfigurationError
            If the bound holds in balls, and none is given; or if a function of bounds returns what
            is none.
        ShapeError
            If it does not return one for each row.
        """
        assert self._bound is not None
        if not callable(self._bound):  # along directions of length 1
            stretch = float(np.linalg.norm(factor, 2))
            return np.asarray(self._bound / 6.0 * stretch**3)
        ball = check_ball(ball, "terms whose bound is a function")
        found = self._bound(self._data.given, factor.copy(), ball.centre.copy(), ball.radius)
        numbers = np.asarray(unmasked(found), dtype=np.float64)
        if numbers.shape != (self.n_rows,):
            raise ShapeError(
                f"bound must return shape ({self.n_rows},), one number for each row, got "
                f"{numbers.shape}"
            )
        if not (numbers >= 0.0).all():
            raise ConfigurationError(
                "bound must return numbers that are not negative, got "
                f"{numbers[~(numbers >= 0.0)][0]}; give the largest absolute third derivative"
            )
        return numbers / 6.0

    def select(self, rows: IntArray) -> Self:
        """Return the sum of some rows' terms alone, without the prior."""
        chosen, numbers = copy.copy(self), np.asarray(rows, dtype=np.int64)
        chosen._data = _RowData(self._data.take(numbers))
        chosen._prior = NormalPrior.of(None, self.dim)
        bound = self._bound
        chosen._bound = bound if bound is None or callable(bound) else bound[numbers]
        return chosen


def own_rows(
    terms: RowFunction,
    data: Any,
    *,
    dim: int,
    gradient: RowFunction | None = None,
    hessian: RowFunction | None = None,
    derivatives: Literal["jax"] | None = None,
    bound: npt.ArrayLike | BoundFunction | None = None,
    prior: GaussianPrior | float | None = None,
) -> OwnRows:
    """Return a target that sums a user's log-likelihood terms over rows of data.

    Parameters
    ----------
    terms
        ``terms(q, rows)``: the log likelihood of each of m rows at one position, shape (m,). The
        rows come in the form that ``data`` have, and cannot be written to.
    data
        An array with a row for each term, or several arrays in a tuple or a dictionary.
    dim
        Numbers in a position, at least 1.
    gradient, hessian
        ``gradient(q, rows)`` and ``hessian(q, rows)``: derivatives of the terms in q, shapes
        (m, dim) and (m, dim, dim).
    derivatives
        ``"jax"`` instead of these, for terms written in JAX.
    bound
        Of third derivatives, without which no few rows can stand for all: a number, or one for each
        row, that at every q is at least the absolute third derivative of a term along any direction
        of length 1. Or a function ``bound(rows, factor, centre, radius)``, which returns for each
        of m rows the same along all directions L w with |w| = 1, at all positions
        q = centre + L z with |z| <= radius; L is the factor, shape (dim, dim). Draws are biased,
        without any sign of it, if bounds are too small.
    prior
        Normal; a number is the standard deviation of all of q, about 0; None is flat.

    Raises
    ------
    ConfigurationError
        If settings make no sense together, or JAX is needed and not there.
    ShapeError
        If data do not have one row for each term, or bounds or the prior do not fit.
    """
    if derivatives not in (None, "jax"):
        raise ConfigurationError(f"derivatives must be 'jax' or None, got {derivatives!r}")
    if derivatives == "jax" and (gradient is not None or hessian is not None):
        raise ConfigurationError(
            "derivatives='jax' makes gradient and hessian, got one of these as well; give one or "
            "the other"
        )
    if hessian is not None and gradient is None:
        raise ConfigurationError("hessian goes with gradient, got it alone; give gradient as well")
    functions = _RowFunctions(dim, terms, gradient, hessian)
    if derivatives == "jax":
        _check_jax()
        functions = _RowFunctions(dim, *(_JaxFunction(terms, order) for order in range(3)))
    rows = _RowData(data)
    return OwnRows(functions, rows, NormalPrior.of(prior, dim), _bound_from(bound, len(rows)))


def _bound_from(given: Any, n_rows: int) -> FloatArray | BoundFunction | None:
    if given is None or callable(given):
        found: BoundFunction | None = given
        return found
    numbers = np.asarray(given, dtype=np.float64)
    if numbers.shape not in ((), (n_rows,)):
        raise ShapeError(
            f"bound must be one number, {n_rows} of them, or a function, got shape {numbers.shape}"
        )
    if not ((numbers >= 0.0) & (numbers < np.inf)).all():
        raise ConfigurationError(
            "bound must not be negative, and be finite, got others; give the largest absolute "
            "third derivative, or leave bound out"
        )
    return np.broadcast_to(numbers, (n_rows,)).copy()


def _arrays_from(given: Any) -> Any:
    if isinstance(given, Mapping):
        given = matched_rows(given)
    elif isinstance(given, tuple):
        given = tuple(matched_rows({f"data[{k}]": each for k, each in enumerate(given)}).values())
    return _each(_protected, given)


def _protected(array: Any) -> Any:
    """Return a view that no function can write to, since all calls share the data."""
    view = np.asarray(unmasked(array)).view()
    view.setflags(write=False)
    return view


def _arrays_in(given: Any) -> list[Any]:
    if isinstance(given, Mapping):
        return list(given.values())
    return list(given) if isinstance(given, tuple) else [given]


def _each(function: Any, given: Any) -> Any:
    """Return what a function makes of each array, in the same form."""
    if isinstance(given, Mapping):
        return {name: function(array) for name, array in given.items()}
    if isinstance(given, tuple):
        return tuple(function(array) for array in given)
    return function(given)


@attrs.frozen(eq=False)
class _RowData:
    """Arrays with one row for each term: one, or several in a tuple or a dictionary."""

    given: Any = attrs.field(converter=_arrays_from)

    def __attrs_post_init__(self) -> None:
        shapes = [array.shape for array in _arrays_in(self.given)]
        lengths = {shape[:1] for shape in shapes}
        if len(lengths) != 1 or lengths & {(), (0,)}:
            raise ShapeError(
                "data must be arrays with one row for each term, at least one row, got "
                f"{shapes}; give them the same first dimension"
            )

    def __len__(self) -> int:
        return len(_arrays_in(self.given)[0])

    def take(self, rows: slice | IntArray) -> Rows:
        return _each(lambda array: array[rows], self.given)

    def blocks(self, size: int) -> Iterator[Rows]:
        for start in range(0, len(self), size):
            yield self.take(slice(start, start + size))

    @property
    def by_name(self) -> dict[str, Any]:
        """The arrays: by the user's names, else ``data``, with a number where there are several."""
        if isinstance(self.given, Mapping):
            return {str(name): array for name, array in self.given.items()}
        if isinstance(self.given, tuple):
            return {f"data_{place}": array for place, array in enumerate(self.given)}
        return {"data": self.given}


@attrs.frozen(eq=False)
class _RowFunctions:
    """Log-likelihood terms of m rows, (m,), and derivatives, (m, dim) and (m, dim, dim)."""

    dim: int
    terms: RowFunction
    gradient: RowFunction | None
    hessian: RowFunction | None

    def at(self, order: int, q: FloatArray, rows: Rows) -> FloatArray:
        """Return minus a derivative of log likelihoods of n rows, shape (n, ...)."""
        name = ("terms", "gradient", "hessian")[order]
        function = (self.terms, self.gradient, self.hessian)[order]
        assert function is not None
        n = len(_arrays_in(rows)[0])
        found = np.asarray(unmasked(function(q.copy(), rows)), dtype=np.float64)
        if found.shape != (n, *[self.dim] * order):
            raise ShapeError(
                f"{name} must return shape {(n, *[self.dim] * order)} for {n} rows, got "
                f"{found.shape}; return one result for each row"
            )
        return -found


def _check_jax() -> None:
    try:
        import jax  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            "derivatives='jax' needs JAX, which is not installed; pip install jax, or give "
            "gradient and hessian"
        ) from error


@attrs.define(eq=False)
class _JaxFunction:
    """A derivative of terms written in JAX, in double precision.

    It is compiled in each process on first use. Rows are filled up to a power of two, so that it is
    compiled for few shapes.
    """

    terms: RowFunction
    order: int
    _compiled: Any = attrs.field(default=None, init=False)

    def __call__(self, q: FloatArray, rows: Rows) -> FloatArray:
        import jax

        with jax.enable_x64(True):
            if self._compiled is None:
                function = self.terms
                for _ in range(self.order):
                    function = jax.jacfwd(function)
                self._compiled = jax.jit(function)
            leaves, form = jax.tree_util.tree_flatten(rows)
            n = len(leaves[0])
            filled = [_fill(np.asarray(leaf), 1 << (n - 1).bit_length()) for leaf in leaves]
            found = self._compiled(q, jax.tree_util.tree_unflatten(form, filled))
            return np.asarray(found, dtype=np.float64)[:n]

    def __getstate__(self) -> tuple[RowFunction, int]:
        return self.terms, self.order

    def __setstate__(self, state: tuple[RowFunction, int]) -> None:
        self.terms, self.order = state
        self._compiled = None


def _fill(array: Any, n: int) -> Any:
    """Return an array of n rows: those given, then copies of the last."""
    return np.concatenate([array, np.repeat(array[-1:], n - len(array), axis=0)])


@attrs.frozen(kw_only=True, eq=False)
class _OwnExpansion(Expansion):
    """Second-order expansions of a user's terms.

    Nothing is kept of single rows: the derivatives of those that are drawn are computed again.
    Remainders are differences of values, with the rounding errors of these.
    """

    functions: _RowFunctions
    data: _RowData

    def _of_pairs(
        self, ends: Sequence[FloatArray], rows: IntArray, owners: IntArray
    ) -> Sequence[FloatArray]:
        found = np.empty((len(ends), len(rows)))
        for start in range(0, len(rows), _EXPANDED):
            part = slice(start, start + _EXPANDED)
            expand = self._expanded(rows[part])
            for left, positions in zip(found[:, part], ends, strict=True):
                for owner in np.unique(owners[part]):
                    ours = np.flatnonzero(owners[part] == owner)
                    left[ours] = expand(positions[owner], ours)
        return list(found)

    def _of_all(self, positions: FloatArray) -> Iterator[FloatArray]:
        for start in range(0, len(self.data), _EXPANDED):
            rows = np.arange(start, min(start + _EXPANDED, len(self.data)))
            expand, all_rows = self._expanded(rows), np.arange(len(rows))
            yield np.array([expand(q, all_rows) for q in positions])

    def _expanded(self, rows: IntArray) -> Callable[[FloatArray, IntArray], FloatArray]:
        """Return what gives remainders at one position, shape (m,), of m among these rows."""
        chosen = self.data.take(rows)
        values, slopes, bends = (self.functions.at(k, self.centre, chosen) for k in range(3))

        def remainders(q: FloatArray, ours: IntArray) -> FloatArray:
            h = q - self.centre
            expansion = values[ours] + (slopes[ours] + 0.5 * (bends[ours] @ h)) @ h
            there = self.functions.at(0, q, self.data.take(rows[ours]))
            return np.asarray(there - expansion)

        return remainders
