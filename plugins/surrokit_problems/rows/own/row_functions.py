"""A user's functions of one position and some rows: terms, gradients and Hessians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import unmasked
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray
from surrokit_problems.rows.own.row_data import Rows

RowFunction: TypeAlias = Callable[[FloatArray, Rows], Any]
"""Of a position (dim,) and m rows."""


@attrs.frozen(kw_only=True, eq=False)
class RowFunctions:
    """Log-likelihood terms of rows, and their derivatives in the position.

    Parameters
    ----------
    dim
        Numbers in a position.
    terms
        Log likelihood of each row, shape (m,).
    gradient
        Its gradient, shape (m, dim); None if there is none.
    hessian
        Its Hessian, shape (m, dim, dim); None if there is none.
    """

    dim: int
    terms: RowFunction
    gradient: RowFunction | None = None
    hessian: RowFunction | None = None

    def values_at(self, q: FloatArray, rows: Rows, n: int) -> FloatArray:
        """Return minus the log likelihoods of n rows, shape (n,)."""
        return self._minus("terms", self.terms, q, rows, (n,))

    def gradients_at(self, q: FloatArray, rows: Rows, n: int) -> FloatArray:
        """Return the gradients of these, shape (n, dim)."""
        assert self.gradient is not None
        return self._minus("gradient", self.gradient, q, rows, (n, self.dim))

    def hessians_at(self, q: FloatArray, rows: Rows, n: int) -> FloatArray:
        """Return the Hessians of these, shape (n, dim, dim)."""
        assert self.hessian is not None
        return self._minus("hessian", self.hessian, q, rows, (n, self.dim, self.dim))

    def _minus(
        self, name: str, function: RowFunction, q: FloatArray, rows: Rows, shape: tuple[int, ...]
    ) -> FloatArray:
        found = np.asarray(unmasked(function(q.copy(), rows)), dtype=np.float64)
        if found.shape != shape:
            raise ShapeError(
                f"{name} must return shape {shape} for {shape[0]} rows, got {found.shape}; return "
                "one result for each row"
            )
        return -found


def from_jax(terms: RowFunction, dim: int) -> RowFunctions:
    """Return terms written in JAX, with the derivatives that JAX makes of them.

    All is computed in double precision. Rows are filled up to a power of two, so that functions
    are compiled for few shapes.

    Raises
    ------
    ConfigurationError
        If JAX is not installed.
    """
    try:
        import jax  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            "derivatives='jax' needs JAX, which is not installed; pip install jax, or give "
            "gradient and hessian"
        ) from error
    return RowFunctions(
        dim=dim,
        terms=JaxFunction(terms, 0),
        gradient=JaxFunction(terms, 1),
        hessian=JaxFunction(terms, 2),
    )


@attrs.define(eq=False)
class JaxFunction:
    """A derivative of terms written in JAX.

    It is compiled in each process on first use.

    Parameters
    ----------
    terms
        Of a position and rows.
    order
        Of the derivative: 0, 1 or 2.
    """

    terms: RowFunction
    order: int
    _compiled: Any = attrs.field(default=None, init=False)

    def __call__(self, q: FloatArray, rows: Rows) -> FloatArray:
        """Return the derivative for each row, shape (m, ...)."""
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
    """Return an array of n rows, the first of which are given and the others copies of the last."""
    return np.concatenate([array, np.repeat(array[-1:], n - len(array), axis=0)])
