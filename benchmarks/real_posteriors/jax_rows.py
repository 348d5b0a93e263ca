"""Functions of one position in JAX, as compiled functions of rows of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from surrokit.types import FloatArray

SIZES = (4, 16, 64)
"""Rows are filled up to one of these, for JAX compiles a function for every shape anew."""


def in_rows(
    log_density: Callable[[jax.Array], jax.Array],
) -> tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]:
    """Return U and its gradient, functions of rows (n, dim), from a log density of one position."""

    def potential(q: jax.Array) -> jax.Array:
        return -log_density(q)

    return _rowwise(potential, ()), _rowwise(jax.grad(potential), (-1,))


def _rowwise(function: Any, tail: tuple[int, ...]) -> Callable[[FloatArray], FloatArray]:
    compiled = jax.jit(jax.vmap(function))

    def evaluate(rows: FloatArray) -> FloatArray:
        parts = [_filled(compiled, part) for part in _pieces(rows)]
        shape = (0, *(rows.shape[k] for k in tail))
        return np.concatenate(parts) if parts else np.empty(shape)

    return evaluate


def _pieces(rows: FloatArray) -> list[FloatArray]:
    return [rows[i : i + SIZES[-1]] for i in range(0, len(rows), SIZES[-1])]


def _filled(compiled: Any, rows: FloatArray) -> FloatArray:
    size = next(size for size in SIZES if size >= len(rows))
    full = np.concatenate([rows, np.repeat(rows[-1:], size - len(rows), axis=0)])
    found = np.asarray(compiled(full))
    assert found.dtype == np.float64, f"{found.dtype} is not double precision"
    return found[: len(rows)]
