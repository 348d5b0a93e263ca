"""Checks of potentials that are sums over rows of data (capability ``rows``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit import capabilities as can
from surrokit.potentials import Ball, move_bounds, of_order
from surrokit.testing.measures.demands import demand, demand_close, demand_equal, demand_shape
from surrokit.testing.measures.evaluating import finite_positions, has, place
from surrokit.testing.results import Check, Factory
from surrokit.types import FloatArray, IntArray

_FEW = 60
"""Largest number of rows that are checked one by one."""


def _centre(positions: FloatArray) -> FloatArray:
    return np.array(0.5 * positions[0])


def _some(potential: Any) -> IntArray:
    """Return rows in random order, some of them twice."""
    rng = np.random.default_rng(20190501)
    n_rows = int(potential.n_rows)
    return np.asarray(rng.integers(0, n_rows, min(n_rows, _FEW)), dtype=np.int64)


def _pairs(rows: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Return each row with each of n positions."""
    return np.tile(rows, n), np.repeat(np.arange(n), len(rows))


def _orders(potential: Any) -> tuple[int, ...]:
    return (2, 3) if can.ROWS_THIRD_ORDER in potential.capabilities else (2,)


def check_selected(make: Factory) -> None:
    """Terms of single rows add up, count as often as they are given, and have derivatives."""
    potential, positions = place(make)
    demand(
        isinstance(potential.n_rows, int) and potential.n_rows >= 1,
        f"n_rows must be a whole number of at least 1, got {potential.n_rows!r}",
    )
    rows = _some(potential)
    chosen = potential.select(rows)
    missing = {can.GRADIENT, can.GRADIENT_ALONE, can.HESSIAN} - chosen.capabilities
    demand(not missing, f"selected rows must offer gradients and Hessians, but lack {missing}")
    value, gradient = chosen.value_and_gradient(positions)
    demand_shape(value, (len(positions),), "value of selected rows")
    single = [potential.select(rows[i : i + 1]) for i in range(len(rows))]
    total = sum(one.value(positions) for one in single)
    scale = 1.0 + sum(np.abs(one.value(positions)) for one in single)
    demand_close(value, total, "the sum of rows against single rows", atol=1e-10 * scale)
    slopes = sum(one.gradient(positions) for one in single)
    demand_close(gradient, slopes, "gradient of rows against single rows", atol=1e-9)
    bends = sum(one.hessian(positions) for one in single)
    demand_close(chosen.hessian(positions), bends, "Hessian of rows against single rows", atol=1e-9)


def check_expansion(make: Factory) -> None:
    """The expansion has the sums of the terms' derivatives, and V plus all remainders is U."""
    potential = make()
    for order in _orders(potential):
        _expansion_is_right(potential, order)


def _expansion_is_right(potential: Any, order: int) -> None:
    positions = finite_positions(potential)
    centre = _centre(positions)
    expansion = potential.expand(centre, **of_order(order))
    demand_equal(expansion.centre, centre, "centre of an expansion")
    everything = potential.select(np.arange(potential.n_rows))
    gradient = everything.gradient(centre[None])[0]
    size = 1e-9 * (1.0 + np.abs(gradient).max() + potential.n_rows)
    demand_close(expansion.gradient, gradient, "gradient of all terms at the centre", atol=size)
    hessian = everything.hessian(centre[None])[0]
    demand_close(expansion.hessian, hessian, "Hessian of all terms at the centre", atol=size)
    rows, owners = _pairs(np.arange(potential.n_rows), len(positions))
    remainders = expansion.remainders(positions, rows, owners)
    demand_shape(remainders, (len(rows),), "remainders")
    left_out = np.bincount(owners, remainders)
    value = potential.value(positions)
    demand_close(
        expansion.value(positions) + left_out,
        value,
        "V plus all remainders against U",
        atol=1e-9 * (1.0 + np.abs(value) + potential.n_rows),
    )


def check_remainders(make: Factory) -> None:
    """The remainder of a row is its term less its expansion, for any pair of row and position."""
    potential = make()
    for order in _orders(potential):
        _remainders_are_right(potential, order)


def _remainders_are_right(potential: Any, order: int) -> None:
    positions = finite_positions(potential)
    expansion = potential.expand(_centre(positions), **of_order(order))
    rows, owners = _pairs(_some(potential), len(positions))
    remainders = expansion.remainders(positions, rows, owners)
    h = positions - expansion.centre
    for i in range(min(5, len(rows))):
        one = potential.select(rows[i : i + 1])
        base = expansion.centre[None]
        quadratic = one.value(base) + h @ one.gradient(base)[0]
        quadratic += 0.5 * np.einsum("ni,ij,nj->n", h, one.hessian(base)[0], h)
        ours = rows == rows[i]
        expected = one.value(positions) - quadratic - (_cubic(one, base, h) if order == 3 else 0.0)
        found = remainders[ours]
        atol = 1e-8 if order == 2 else 1e-5  # with third-order terms made by differences
        demand_close(found, expected[owners[ours]], "remainders of a row", atol=atol)
    after = positions[::-1].copy()
    changes = expansion.changes(positions, after, rows, owners)
    expected = expansion.remainders(after, rows, owners) - remainders
    demand_close(changes, expected, "changes against differences of remainders", atol=1e-9)
    turned = np.random.default_rng(5).permutation(len(rows))
    shuffled = expansion.changes(positions, after, rows[turned], owners[turned])
    demand_close(shuffled, changes[turned], "changes of the same pairs in another order", atol=1e-9)
    everything, movers = _pairs(np.arange(potential.n_rows), len(positions))
    each = expansion.changes(positions, after, everything, movers)
    total = np.asarray(np.bincount(movers, np.maximum(each, 0.0)), dtype=np.float64)
    demand_close(
        expansion.increases(positions, after),
        total,
        "increases against all changes that are positive",
        atol=1e-9 * (1.0 + potential.n_rows),
    )


def _cubic(one: Any, centre: FloatArray, h: FloatArray) -> FloatArray:
    """Return third-order terms of a row, by differences of its Hessian."""
    short = 1e-3
    near, far = (
        one.hessian(centre + step * h) - one.hessian(centre - step * h)
        for step in (short, 2.0 * short)
    )
    change = (8.0 * near - far) / (12.0 * short)
    return np.asarray(np.einsum("ni,nij,nj->n", h, change, h) / 6.0)


def check_row_bounds(make: Factory) -> None:
    """No remainder changes by more than its row's bound, near or far, from any centre."""
    potential = make()
    for order in _orders(potential):
        _bounds_hold(potential, order)


def _bounds_hold(potential: Any, order: int) -> None:
    positions = finite_positions(potential)
    dim = potential.dim
    rng = np.random.default_rng(20190502)
    factor = np.tril(rng.standard_normal((dim, dim)))
    factor[np.arange(dim), np.arange(dim)] = 1.0 + rng.random(dim)
    rows = _some(potential)
    tightest = 0.0
    for centre in (_centre(positions), positions[-1] + 1.0):
        expansion = potential.expand(np.array(centre), **of_order(order))
        for scale in (0.1, 1.0, 3.0, 10.0):
            moves = _moves(rng, dim, scale)
            bounds = _bounds_for(potential, factor, expansion.centre, moves, order)
            share = _largest_share(expansion, bounds, rows, factor, moves, order)
            tightest = max(tightest, share)
    demand(
        tightest <= 1.0 + 1e-6,
        f"a row changes by {tightest:.4g} times its bound beyond its expansion to order {order}; "
        "row_bounds must hold at every position (or in the whole ball it is given), or the "
        "subsampled correction is biased",
    )


def _bounds_for(
    potential: Any,
    factor: FloatArray,
    centre: FloatArray,
    moves: tuple[FloatArray, FloatArray],
    order: int,
) -> FloatArray:
    """Return the bounds of all rows for some moves from whitened positions about a centre."""
    radius = float(np.linalg.norm(np.concatenate(moves), axis=1).max())
    local = can.ROWS_IN_BALLS in potential.capabilities
    ball = Ball(centre=centre, radius=radius) if local else None
    bounds = np.asarray(potential.row_bounds(factor, **of_order(order, ball)))
    demand_shape(bounds, (potential.n_rows,), "row_bounds")
    demand((bounds >= 0.0).all(), "row_bounds must not be negative")
    return bounds


def _moves(rng: np.random.Generator, dim: int, scale: float) -> tuple[FloatArray, FloatArray]:
    """Return whitened ends of moves of about one size: across the centre, from it, and short."""
    one = rng.standard_normal((24, dim))
    one = scale * np.concatenate([one / np.linalg.norm(one, axis=1)[:, None], np.eye(dim)])
    other = scale * rng.standard_normal(one.shape)
    start = np.concatenate([one, -one, 0.0 * one, other, one])
    end = np.concatenate([-one, one, one, other[::-1], 1.2 * one])
    return start, end


def _largest_share(
    expansion: Any,
    bounds: FloatArray,
    rows: IntArray,
    factor: FloatArray,
    moves: tuple[FloatArray, FloatArray],
    order: int,
) -> float:
    """Return the largest change of a row, as a share of what its bound allows."""
    start, end = moves
    pairs, owners = _pairs(rows, len(start))
    before = expansion.centre + start @ factor.T
    after = expansion.centre + end @ factor.T
    changes = np.abs(expansion.changes(before, after, pairs, owners))
    allowed = bounds[pairs] * move_bounds(start, end, order)[owners]
    counts = changes > 1e-9  # smaller ones are rounding
    return float((changes[counts] / allowed[counts]).max()) if counts.any() else 0.0


def check_row_draws(make: Factory) -> None:
    """Rows that are drawn come with the bounds they have, and the total is that of all bounds."""
    potential = make()
    factor, centre = np.eye(potential.dim), _centre(finite_positions(potential))
    local = can.ROWS_IN_BALLS in potential.capabilities
    asked = of_order(2, Ball(centre=centre, radius=1.5) if local else None)
    bounds, draws = potential.row_bounds(factor, **asked), potential.row_draws(factor, **asked)
    demand_close(np.array(draws.total), np.array(bounds.sum()), "total of bounds", rtol=1e-9)
    rng = np.random.default_rng(3)
    for n in (1, 500) if draws.total > 0.0 else ():
        rows, found = draws.draw(n, rng)
        demand(rows.shape == (n,), f"row_draws must return {n} rows, got shape {rows.shape}")
        demand_close(found, bounds[rows], "bounds of rows drawn", rtol=1e-9)


_ROWS = has(can.ROWS)

CHECKS: tuple[Check, ...] = (
    Check(check_selected, applies=_ROWS),
    Check(check_expansion, applies=_ROWS),
    Check(check_remainders, applies=_ROWS),
    Check(check_row_bounds, applies=_ROWS),
    Check(check_row_draws, applies=has(can.ROWS_DRAWN)),
)
"""For every potential with capability ``rows``."""
