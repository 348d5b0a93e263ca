"""Sums over rows of data: a target whose bounds are attained, and checks of all such potentials."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.potentials import Ball, of_order
from surrokit.testing import must
from surrokit.testing.potentials import placed
from surrokit.testing.targets import BananaSum, Derived, Gaussian
from surrokit.types import Capabilities, FloatArray, IntArray


@attrs.frozen(eq=False)
class _CubicRows(Derived):
    """The sum of w_i (x_i . q - m_i)^3 / 6 over some rows, which has no lower bound."""

    directions: FloatArray  # x_i, shape (m, 2)
    offsets: FloatArray  # m_i
    weights: FloatArray  # w_i

    capabilities: ClassVar[Capabilities] = BananaSum.capabilities

    def derivative(self, order: int, q: FloatArray) -> FloatArray:
        x, t = self.directions, q @ self.directions.T - self.offsets
        if order == 0:
            return np.asarray((t * t * t) @ (self.weights / 6.0))
        if order == 1:
            return np.asarray((0.5 * self.weights * t**2) @ x)
        return np.asarray(np.einsum("nm,mi,mj->nij", self.weights * t, x, x))


def _cubic_rows() -> _CubicRows:
    """Return directions in a fan, so that remainders add up to something skewed, with offsets."""
    n = 40
    angles = 0.7 + 0.5 * np.linspace(-1.0, 1.0, n)
    weights = np.geomspace(1.0, 10.0, n)
    weights *= 6.0 * 0.3 / weights.sum()  # how far the sum is from its expansion: psi add up to 0.3
    offsets = 1.0 + 0.5 * np.cos(3.0 * np.arange(n))
    return _CubicRows(np.column_stack([np.cos(angles), np.sin(angles)]), offsets, weights)


@attrs.frozen(kw_only=True, eq=False)
class Summed(Gaussian):
    """A normal distribution as a sum over rows plus a rest that cancels the rows.

    U_i(q) = w_i (x_i . q - m_i)^3 / 6 has the third derivative w_i x_i^3 everywhere, so the bounds
    are attained. The rest is the normal potential less the sum. So the remainders of the expansions
    are as skewed as possible, and the distribution is known.
    """

    rows: _CubicRows = attrs.field(factory=_cubic_rows, init=False)

    @property
    def capabilities(self) -> Capabilities:
        """Also ``rows``."""
        return super().capabilities | {can.ROWS}

    @property
    def n_rows(self) -> int:
        """Number of terms."""
        return len(self.rows.weights)

    def expand(self, centre: FloatArray) -> CubicExpansion:
        """Return the expansions of all terms at ``centre (2,)``."""
        here = self._open(np.array(centre)[None])
        gradient, hessian = self.rows.gradient(here)[0], self.rows.hessian(here)[0]
        return CubicExpansion(target=self, centre=here[0], gradient=gradient, hessian=hessian)

    def row_bounds(self, factor: FloatArray) -> FloatArray:
        """Return w_i |L^T x_i|^3 / 6, shape (n_rows,), with L the ``factor (2, 2)``."""
        norms = np.linalg.norm(self.rows.directions @ factor, axis=1)
        return np.asarray(self.rows.weights / 6.0 * norms**3)

    def select(self, rows: IntArray) -> _CubicRows:
        """Return the sum of some rows' terms alone, which may be evaluated in any case."""
        of = self.rows
        return _CubicRows(of.directions[rows], of.offsets[rows], of.weights[rows])


@attrs.frozen(kw_only=True, eq=False)
class CubicExpansion:
    """Second-order expansions of the rows of :class:`Summed`."""

    target: Summed
    centre: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    third: FloatArray | None = None

    def _all(self, positions: FloatArray) -> FloatArray:
        """Return D_i(q) = w_i (x_i . h)^3 / 6 of all rows, shape (n, n_rows)."""
        along = (positions - self.centre) @ self.target.rows.directions.T
        return np.asarray(self.target.rows.weights / 6.0 * along * along * along)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, 2): U less all remainders."""
        return np.asarray(self.target.value(positions) - self._all(positions).sum(axis=1))

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return D_i(q) of pairs of row and position, shape (m,)."""
        h = (positions - self.centre)[owners]
        along = np.einsum("ij,ij->i", self.target.rows.directions[rows], h)
        return np.asarray(self.target.rows.weights[rows] / 6.0 * along * along * along)


@attrs.frozen(kw_only=True)
class BananaRows:
    """A :class:`~surrokit.testing.targets.Banana` as a sum, for surrogates that copy rows.

    Row 0 is q1^2 / 2, and row 1 is (q2 - q1^2)^2 / (2 sd^2).
    """

    sd: float
    n_rows: ClassVar[int] = 2

    def select(self, rows: IntArray) -> BananaSum:
        """Return the sum of the terms of some rows, shape (m,)."""
        first, second = np.bincount(rows, minlength=2)
        return BananaSum(float(first), second / self.sd**2)

    def row_bounds(self, factor: FloatArray) -> FloatArray:
        """Return 0 and |L|^3, shape (2,), which rank the rows: the second one has no bound."""
        return np.array([0.0, float(np.linalg.norm(factor)) ** 3])


def _centre(positions: FloatArray) -> FloatArray:
    return np.array(0.5 * positions[0])


def _some(potential: Any) -> IntArray:
    """Return at most sixty rows in random order, some of them twice."""
    rng, n_rows = np.random.default_rng(20190501), int(potential.n_rows)
    return np.asarray(rng.integers(0, n_rows, min(n_rows, 60)), dtype=np.int64)


def _pairs(rows: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Return each row with each of n positions."""
    return np.tile(rows, n), np.repeat(np.arange(n), len(rows))


def _orders(potential: Any) -> tuple[int, ...]:
    return (2, 3) if can.ROWS_THIRD_ORDER in potential.capabilities else (2,)


@placed(can.ROWS)
def check_selected(potential: Any, positions: FloatArray) -> None:
    """Terms of single rows add up, count as often as they are given, and have derivatives."""
    whole = isinstance(potential.n_rows, int) and potential.n_rows >= 1
    must.hold(whole, f"n_rows must be a whole number of at least 1, got {potential.n_rows!r}")
    rows = _some(potential)
    chosen = potential.select(rows)
    missing = BananaSum.capabilities - chosen.capabilities
    must.hold(not missing, f"selected rows must offer gradients and Hessians, but lack {missing}")
    must.shape(chosen.value(positions), (len(positions),), "value of selected rows")
    single = [potential.select(rows[i : i + 1]) for i in range(len(rows))]
    values = np.array([one.value(positions) for one in single])
    for found, total, what in (
        (chosen.value_and_gradient(positions)[0], values.sum(axis=0), "sum"),
        (chosen.gradient(positions), sum(one.gradient(positions) for one in single), "gradient"),
        (chosen.hessian(positions), sum(one.hessian(positions) for one in single), "Hessian"),
    ):
        atol = 1e-9 + 1e-10 * np.abs(values).sum(axis=0).max()
        must.close(found, total, f"{what} of rows against single rows", atol=atol)


@placed(can.ROWS)
def check_expansion(potential: Any, positions: FloatArray) -> None:
    """The expansion has the sums of the terms' derivatives, and V plus all remainders is U."""
    n_rows, centre = potential.n_rows, _centre(positions)
    everything = potential.select(np.arange(n_rows))
    gradient, hessian = everything.gradient(centre[None])[0], everything.hessian(centre[None])[0]
    size = 1e-9 * (1.0 + np.abs(gradient).max() + n_rows)
    rows, owners = _pairs(np.arange(n_rows), len(positions))
    value = potential.value(positions)
    for order in _orders(potential):
        expansion = potential.expand(centre, **of_order(order))
        must.equal(expansion.centre, centre, "centre of an expansion")
        must.close(expansion.gradient, gradient, "gradient of all terms at the centre", atol=size)
        must.close(expansion.hessian, hessian, "Hessian of all terms at the centre", atol=size)
        remainders = expansion.remainders(positions, rows, owners)
        must.shape(remainders, (len(rows),), "remainders")
        total = expansion.value(positions) + np.bincount(owners, remainders)
        atol = 1e-9 * (1.0 + np.abs(value) + n_rows)
        must.close(total, value, "V plus all remainders against U", atol=atol)


@placed(can.ROWS)
def check_remainders(potential: Any, positions: FloatArray) -> None:
    """The remainder of a row is its term less its expansion, for any pair of row and position."""
    rows, owners = _pairs(_some(potential), len(positions))
    for order in _orders(potential):
        expansion = potential.expand(_centre(positions), **of_order(order))
        remainders = expansion.remainders(positions, rows, owners)
        for row in rows[:5]:
            ours = rows == row
            expected = _remainders(potential.select(np.array([row])), positions, expansion, order)
            atol = 1e-8 if order == 2 else 1e-5  # with third-order terms made by differences
            found, wanted = remainders[ours], expected[owners[ours]]
            must.close(found, wanted, "remainders of a row", atol=atol)
        turned = np.random.default_rng(5).permutation(len(rows))
        shuffled = expansion.remainders(positions, rows[turned], owners[turned])
        must.close(shuffled, remainders[turned], "remainders of pairs in another order", atol=1e-9)


def _remainders(one: Any, positions: FloatArray, expansion: Any, order: int) -> FloatArray:
    """Return the term of a row less its expansion; third-order terms by differences."""
    centre, h = expansion.centre[None], positions - expansion.centre
    left_out = one.value(positions) - one.value(centre) - h @ one.gradient(centre)[0]
    left_out -= 0.5 * np.einsum("ni,ij,nj->n", h, one.hessian(centre)[0], h)
    if order == 3:
        near, far = (
            one.hessian(centre + step * h) - one.hessian(centre - step * h) for step in (1e-3, 2e-3)
        )
        left_out -= np.einsum("ni,nij,nj->n", h, (8.0 * near - far) / 12e-3, h) / 6.0
    return np.asarray(left_out)


def _in_ball(potential: Any, centre: FloatArray, radius: float) -> Ball | None:
    """Return the ball that bounds are to be asked for, of potentials without bounds everywhere."""
    local = can.ROWS_IN_BALLS in potential.capabilities
    return Ball(centre=centre, radius=radius) if local else None


@placed(can.ROWS)
def check_row_bounds(potential: Any, positions: FloatArray) -> None:
    """No remainder is beyond its row's bound, near or far, from any centre."""
    dim, some = potential.dim, _some(potential)
    for order in _orders(potential):
        rng = np.random.default_rng(20190502)
        factor = np.tril(rng.standard_normal((dim, dim)))
        factor[np.arange(dim), np.arange(dim)] = 1.0 + rng.random(dim)
        tightest = 0.0
        for centre in (_centre(positions), positions[-1] + 1.0):
            expansion = potential.expand(np.array(centre), **of_order(order))
            for scale in (0.1, 1.0, 3.0, 10.0):
                one = rng.standard_normal((24, dim))
                one /= np.linalg.norm(one, axis=1)[:, None]
                one = np.concatenate([one, np.eye(dim)])
                z = scale * np.concatenate([one, -one, rng.standard_normal(one.shape)])
                distances = np.linalg.norm(z, axis=1)
                radius = float(distances.max())
                asked = of_order(order, _in_ball(potential, expansion.centre, radius))
                bounds = np.asarray(potential.row_bounds(factor, **asked))
                must.shape(bounds, (potential.n_rows,), "row_bounds")
                must.hold((bounds >= 0.0).all(), "row_bounds must not be negative")
                rows, owners = _pairs(some, len(z))
                places = expansion.centre + z @ factor.T
                left = np.abs(expansion.remainders(places, rows, owners))
                allowed = bounds[rows] * distances[owners] ** (order + 1)
                counts = left > 1e-9  # smaller ones are rounding
                shares = left[counts] / allowed[counts]
                tightest = max(tightest, float(shares.max(initial=0.0)))
        what = f"a row is {tightest:.4g} times its bound from its expansion"
        advice = "row_bounds must hold everywhere, or in the whole ball, or draws are biased"
        must.hold(tightest <= 1.0 + 1e-6, f"{what} to order {order}; {advice}")


@placed(can.ROWS_DRAWN)
def check_row_draws(potential: Any, positions: FloatArray) -> None:
    """Rows that are drawn come with the bounds they have, and the total is that of all bounds."""
    factor = np.eye(potential.dim)
    asked = of_order(2, _in_ball(potential, _centre(positions), 1.5))
    bounds, draws = potential.row_bounds(factor, **asked), potential.row_draws(factor, **asked)
    must.close(draws.total, bounds.sum(), "total of bounds", rtol=1e-9)
    rng = np.random.default_rng(3)
    for n in (1, 500) if draws.total > 0.0 else ():
        rows, found = draws.draw(n, rng)
        must.shape(rows, (n,), f"{n} rows of row_draws", "i")
        must.close(found, bounds[rows], "bounds of rows drawn", rtol=1e-9)
