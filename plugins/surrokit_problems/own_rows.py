"""Sums over rows of terms that users write, with derivatives of theirs or from JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, ClassVar, Literal, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from surrokit import capabilities as can
from surrokit.arguments import check_positions, matched_rows, unmasked
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import Ball, check_ball
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import Capabilities, FloatArray, IntArray
from surrokit_problems.rows import Expansion, check_shape, normal_prior, precision_of

Rows: TypeAlias = Any
"""Some rows of the data, in the form that the data were given in."""

RowFunction: TypeAlias = Callable[[FloatArray, Rows], Any]
"""Of a position (dim,) and m rows."""

BoundFunction: TypeAlias = Callable[[Rows, FloatArray, FloatArray, float], Any]
"""Of m rows, a factor, a centre and a radius: bounds in that ball, shape (m,)."""


@attrs.frozen(eq=False)
class OwnRows:
    """U(q) = -sum_i l_i(q) - log prior(q) for log-likelihood terms l_i that a user wrote.

    :func:`own_rows` makes it, of ``functions`` that return the terms and their derivatives.
    """

    dim: int
    _functions: tuple[RowFunction | None, ...]
    _arrays: dict[str, Any]
    _form: Callable[[dict[str, Any]], Rows]
    _prior: GaussianPrior
    _bound: FloatArray | BoundFunction | None

    @property
    def n_rows(self) -> int:
        """Number of terms."""
        return len(next(iter(self._arrays.values())))

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What may lack its normalising constant: the terms, and a flat prior."""
        return ("terms", *self._prior.unnormalized)

    @property
    def observed_data(self) -> dict[str, Any]:
        """The arrays: by the user's names, else ``data``, with a number where there are several."""
        return self._arrays

    @property
    def _order(self) -> int:
        """Of the highest derivative."""
        return [*[each is not None for each in self._functions], False].index(False) - 1

    @property
    def capabilities(self) -> Capabilities:
        """Gradient and Hessian if these were given; ``rows`` with a bound beside."""
        offered = {can.GRADIENT, can.GRADIENT_ALONE} if self._order > 0 else set()
        if self._order > 1:
            offered |= {can.HESSIAN}
            offered |= set() if self._bound is None else {can.ROWS}
            offered |= {can.ROWS_IN_BALLS} if callable(self._bound) else set()
        return frozenset(offered)

    @property
    def missing(self) -> Mapping[str, str]:
        """Why it has no ``rows``, if it has none."""
        if can.ROWS in self.capabilities:
            return {}
        lacking = ["gradient= and hessian= (or derivatives='jax')"] if self._order < 2 else []
        lacking += ["bound=, of third derivatives"] if self._bound is None else []
        why = "its rows cannot stand for all of them, as rows_potential was given no "
        return {can.ROWS: why + ", and no ".join(lacking)}

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        b = check_positions(positions, self.dim)
        return self._sum(self._prior.value_and_gradient(b)[0], 0, b)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        return self.value(positions), self.gradient(positions)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U alone, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        return self._sum(self._prior.value_and_gradient(b)[1], 1, b)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim)."""
        b = check_positions(positions, self.dim)
        return self._sum(self._prior.metric(b), 2, b)

    def _sum(self, total: FloatArray, order: int, b: FloatArray) -> FloatArray:
        """Add a derivative of all terms, shape (n, ...), at positions b."""
        size = 65_536 if order < 2 else max(1, 65_536 // self.dim)  # rows at once
        for start in range(0, self.n_rows, size):
            found = self.at(order, slice(start, start + size))
            for k, q in enumerate(b):
                total[k] += found(q).sum(axis=0)
        return total

    def at(self, order: int, rows: slice | IntArray) -> Callable[[FloatArray], FloatArray]:
        """Return minus a derivative of n rows' terms, shape (n, ...), as a function of q."""
        arrays = {name: array[rows] for name, array in self._arrays.items()}
        function, some, n = self._functions[order], self._form(arrays), _length(arrays)
        shape, name = (n, *[self.dim] * order), ("terms", "gradient", "hessian")[order]
        assert function is not None

        def evaluate(q: FloatArray) -> FloatArray:
            found = np.asarray(unmasked(function(q.copy(), some)), dtype=np.float64)
            if found.shape != shape:
                raise ShapeError(
                    f"{name} must return shape {shape} for {n} rows, got {found.shape}; return one "
                    "result for each row"
                )
            return -found

        return evaluate

    def column_moments(self, rows: IntArray | None = None) -> FloatArray | None:
        """Return the mean Hessian of terms at the origin and of the prior, shape (dim, dim).

        It is over some ``rows (m,)`` or all; None where there are no Hessians, or it is not
        positive semidefinite.
        """
        if self._order < 2:
            return None
        alone = self.select(np.arange(self.n_rows) if rows is None else rows)
        with np.errstate(all="ignore"):
            total = alone.hessian(np.zeros((1, self.dim)))[0] / alone.n_rows
        found = total + np.diag(precision_of(self._prior)) / self.n_rows
        if not np.isfinite(found).all() or (np.linalg.eigvalsh(found) < 0.0).any():
            return None
        return np.asarray(found)

    def expand(self, centre: FloatArray) -> Expansion:
        """Return the expansions of all terms at ``centre (dim,)``, to second order.

        Raises
        ------
        ShapeError
            If the centre is not one position.
        """
        at = check_shape("centre", centre, (self.dim,))[None]
        return _OwnExpansion(
            target=self,
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
        ball, rows = check_ball(ball, "terms whose bound is a function"), self._form(self._arrays)
        found = self._bound(rows, factor.copy(), ball.centre.copy(), ball.radius)
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

    def select(self, rows: IntArray) -> OwnRows:
        """Return the sum of some rows' terms alone, without the prior."""
        numbers, bound = np.asarray(rows, dtype=np.int64), self._bound
        return attrs.evolve(
            self,
            arrays={name: _protected(array[numbers]) for name, array in self._arrays.items()},
            prior=normal_prior(None, self.dim),
            bound=bound if bound is None or callable(bound) else bound[numbers],
        )


@attrs.frozen(kw_only=True, eq=False, slots=False)
class _OwnExpansion(Expansion):
    """Second-order expansions of a user's terms.

    Nothing is kept of single rows: the derivatives of those that are drawn are computed again, for
    so many at once as Hessians have room.
    """

    target: OwnRows
    at_once: ClassVar[int] = 8192

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        found, by_owner = np.empty(len(rows)), np.argsort(owners, kind="stable")
        for start in range(0, len(rows), self.at_once):
            part = by_owner[start : start + self.at_once]
            expand, owner = self._expanded(rows[part]), owners[part]
            for each in np.unique(owner):
                ours = np.flatnonzero(owner == each)
                found[part[ours]] = expand(positions[each], ours)
        return found

    def _expanded(self, rows: IntArray) -> Callable[[FloatArray, IntArray], FloatArray]:
        """Return what gives remainders at one position, shape (m,), of m among these rows."""
        values, slopes, bends = (self.target.at(k, rows)(self.centre) for k in range(3))

        def remainders(q: FloatArray, ours: IntArray) -> FloatArray:
            h = q - self.centre
            expansion = values[ours] + (slopes[ours] + 0.5 * (bends[ours] @ h)) @ h
            return np.asarray(self.target.at(0, rows[ours])(q) - expansion)

        return remainders


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
    functions: tuple[RowFunction | None, ...] = (terms, gradient, hessian)
    if derivatives == "jax":
        try:
            import jax  # noqa: F401
        except ImportError as error:
            raise ConfigurationError(
                "derivatives='jax' needs JAX, which is not installed; pip install jax, or give "
                "gradient and hessian"
            ) from error
        functions = tuple(_JaxFunction(terms, order) for order in range(3))
    arrays, form = _read(data)
    bounds = _bound_from(bound, _length(arrays))
    return OwnRows(dim, functions, arrays, form, normal_prior(prior, dim), bounds)


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


def _read(given: Any) -> tuple[dict[str, Any], Callable[[dict[str, Any]], Rows]]:
    """Return arrays with one row for each term by name, and what gives them their form again."""
    form: Callable[[dict[str, Any]], Rows] = itemgetter("data")
    named: dict[str, Any] = {"data": given}
    if isinstance(given, Mapping):
        form, named = dict, {str(name): array for name, array in given.items()}
    elif isinstance(given, tuple):
        named = {f"data_{place}": array for place, array in enumerate(given)}
        form = itemgetter(*named) if len(named) > 1 else _alone
    arrays = {name: _protected(array) for name, array in matched_rows(named).items()}
    shapes = [array.shape for array in arrays.values()]
    lengths = {shape[:1] for shape in shapes}
    if len(lengths) != 1 or lengths & {(), (0,)}:
        raise ShapeError(
            "data must be arrays with one row for each term, at least one row, got "
            f"{shapes}; give them the same first dimension"
        )
    return arrays, form


def _alone(arrays: dict[str, Any]) -> tuple[Any]:
    return (arrays["data_0"],)


def _length(arrays: Mapping[str, Any]) -> int:
    return len(next(iter(arrays.values())))


def _protected(array: Any) -> Any:
    """Return a view that no function can write to, since all calls share the data."""
    view = np.asarray(unmasked(array)).view()
    view.setflags(write=False)
    return view


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
            n = len(jax.tree_util.tree_leaves(rows)[0])
            more = (1 << (n - 1).bit_length()) - n  # copies of the last

            def fill(array: Any) -> Any:
                array = np.asarray(array)
                return np.concatenate([array, np.repeat(array[-1:], more, axis=0)])

            found = self._compiled(q, jax.tree_util.tree_map(fill, rows))
            return np.asarray(found, dtype=np.float64)[:n]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.terms, self.order)
