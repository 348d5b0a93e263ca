"""Coordinates of like scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.coordinates.distributions import quantiles
from surrokit.coordinates.models import ModelMap
from surrokit.coordinates.parameters import Parameters, Plausible
from surrokit.coordinates.transforms import Scaled, Scaling, from_line_of
from surrokit.potentials import (
    USUAL_ORDER,
    Ball,
    Potential,
    RowDraws,
    RowExpansion,
    WrappedExpansion,
    find_within,
    of_order,
    with_forward,
    with_rows,
)
from surrokit.targets.bounds import LiftedPotential, parameters_of, transform_of
from surrokit.targets.differences import Differences
from surrokit.targets.forward import ModelledPotential
from surrokit.targets.gaussian import GaussianPrior, Priors
from surrokit.types import Capabilities, FloatArray, IntArray, Pair

REACH = 2.0
"""How far from zero on the line chains start where nothing is declared, as in Stan."""

_FAR = 100.0
"""Largest declared scale: beyond it, or below its inverse, the usual place is left."""


def expected(target: Potential) -> Pair:
    """Return the centre and spread of each number in a target's sampling coordinates, (dim,) each.

    They are 0 and 1 where nothing is declared, where starts about zero reach what is, and where the
    coordinates are of like scale already.
    """
    of, parameters = transform_of(target), parameters_of(target)
    if isinstance(of, Scaled | ModelMap) or of.n_user != parameters.dim:
        return np.zeros(target.dim), np.ones(target.dim)
    low, high = _declared(target, parameters)
    centre, spread = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    away = np.abs(centre)
    with np.errstate(invalid="ignore"):  # NaN where nothing is declared
        far = (spread > _FAR) | (spread < 1.0 / _FAR) | (away > _FAR * spread)
        # a prior as wide as half its distance from zero says only that a number is not large
        far |= (away > REACH) & (2.0 * away > spread)
    return np.where(far, centre, 0.0), np.where(far, spread, 1.0)


def is_undeclared(target: Potential) -> bool:
    """Return whether no prior, no plausible range and no starts say where any number lies."""
    of, parameters = transform_of(target), parameters_of(target)
    starts = can.INITIAL in target.capabilities
    if starts or isinstance(of, ModelMap) or of.n_user != parameters.dim:
        return False
    return bool(np.isnan(_declared(target, parameters)[0]).all())


def _declared(target: Potential, parameters: Parameters) -> Pair:
    """Return ends of the range of each number on the line, NaN where nothing is declared."""
    plausible = find_within(target, "plausible", Plausible)
    if plausible is not None:
        return _on_line(target, np.stack([plausible.lower, plausible.upper]))
    ends, bounds = np.full((2, parameters.dim), np.nan), parameters.bounds()
    priors: list[tuple[slice, Any]] = [
        (where, parameters.specs[name].prior) for name, where in parameters.slices().items()
    ]
    if can.FORWARD in target.capabilities:
        from scipy import stats  # late: importing the package stays fast

        given = find_within(with_forward(target).energy, "prior", Priors) or Priors()
        for where, prior in given.parts:
            if isinstance(prior, GaussianPrior):
                priors.append((where, stats.norm(prior.mean, prior.sd)))
    for where, prior in priors:
        own = bounds[0][where], bounds[1][where]
        # between these quantiles lies a standard deviation both ways
        found = quantiles(prior, (0.16, 0.84), own, len(own[0]))
        if found is not None:
            ends[:, where] = found
    low, high = _on_line(target, ends)
    with np.errstate(invalid="ignore"):  # one that is wide about 0 is vague, and says no scale
        vague = (high - low >= 2.0 * _FAR) & (low <= 0.0) & (high >= 0.0)
    return np.where(vague, np.nan, low), np.where(vague, np.nan, high)


def _on_line(target: Potential, ends: FloatArray) -> Pair:
    """Return ends on the line, shape (free,) each, of ends (2, dim) in the user's coordinates."""
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = np.sort(transform_of(target).to_unbounded(ends), axis=0)
        known = np.isfinite(low) & np.isfinite(high) & (high > low)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


@attrs.frozen(eq=False)
class ScaledPotential(LiftedPotential):
    """U(z) = U(shift + A z) - log |det A|, for a potential of x = shift + A z on the line.

    The change of coordinates is exact, and all that the inner potential offers it offers too but
    for ``gaussian``, ``hessian-diagonal`` and ``metric-product``. No data are copied or changed: a
    direction u in z is A u in x, also in the bounds of terms.
    """

    inner: Potential
    transform: Scaled

    @property
    def parameters(self) -> Parameters:  # type: ignore[override]
        """Names, shapes and bounds."""
        return parameters_of(self.inner)

    @property
    def inner_map(self) -> Scaling:
        """The map to the line."""
        return self.transform.scaling

    @property
    def capabilities(self) -> Capabilities:
        """What the inner potential offers (see above)."""
        return self.inner.capabilities - {can.GAUSSIAN, can.HESSIAN_DIAGONAL, can.METRIC_PRODUCT}

    @property
    def n_rows(self) -> int:
        """Number of terms."""
        return with_rows(self.inner).n_rows

    def expand(self, centre: FloatArray, order: int = USUAL_ORDER) -> ScaledExpansion:
        """Return the expansions of all terms at ``centre (dim,)``."""
        at = np.array(centre, dtype=np.float64)
        line = self.inner_map.to_bounded(at)
        inner = with_rows(self.inner).expand(line, **of_order(order))
        return ScaledExpansion(inner, self.inner_map, at)

    def row_bounds(
        self, factor: FloatArray, order: int = USUAL_ORDER, ball: Ball | None = None
    ) -> FloatArray:
        """Return the bounds of all terms, shape (n_rows,)."""
        within = of_order(order, self._ball(ball))
        return with_rows(self.inner).row_bounds(self.inner_map.matrix @ factor, **within)

    def row_draws(
        self, factor: FloatArray, order: int = USUAL_ORDER, ball: Ball | None = None
    ) -> RowDraws:
        """Return draws of rows by their bounds."""
        within = of_order(order, self._ball(ball))
        return with_rows(self.inner).row_draws(self.inner_map.matrix @ factor, **within)

    def select(self, rows: IntArray) -> Potential:
        """Return the sum of some terms alone, without the rest, which log |det A| belongs to."""
        alone = attrs.evolve(self.transform, scaling=attrs.evolve(self.inner_map, log_volume=0.0))
        return ScaledPotential(with_rows(self.inner).select(rows), alone)

    def _ball(self, ball: Ball | None) -> Ball | None:
        if ball is None:
            return None
        return Ball(centre=self.inner_map.to_bounded(ball.centre), radius=ball.radius)


@attrs.frozen(eq=False)
class ScaledExpansion(WrappedExpansion):
    """Expansions of all terms at one point ``centre (dim,)``, in coordinates of like scale."""

    inner: RowExpansion
    scaling: Scaling
    centre: FloatArray

    @property
    def gradient(self) -> FloatArray:
        """Sum of the terms' gradients at the centre, shape (dim,)."""
        return self.scaling.pull(self.inner.gradient)

    @property
    def hessian(self) -> FloatArray:
        """Sum of the terms' Hessians at the centre, shape (dim, dim)."""
        return self.scaling.pull_form(self.inner.hessian)

    @property
    def third(self) -> FloatArray | None:
        """Sum of third derivatives at the centre, (dim, dim, dim); None if to second order."""
        if (third := self.inner.third) is None:
            return None
        a = self.scaling.matrix
        return np.asarray(np.einsum("ijk,ia,jb,kc->abc", third, a, a, a, optimize=True))

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return self.inner.value(self.scaling.to_bounded(positions)) - self.scaling.log_volume

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return D_i(z), shape (m,), for pairs of a row and a position."""
        return self.inner.remainders(self.scaling.to_bounded(positions), rows, owners)


def scaled(target: Potential, scaling: Scaling | None = None) -> Potential:
    """Return a target in coordinates of like scale; the target itself where they are so already.

    The coordinates are those given, or those that suit the target.
    """
    if isinstance(target, ScaledPotential):
        return target
    if isinstance(target, Differences):
        return attrs.evolve(target, inner=scaled(target.inner, scaling))
    scaling = scaling or scaling_of(target)
    if scaling is None:
        return target
    if isinstance(target, ModelledPotential):
        target = attrs.evolve(target, starts=None)  # in the units of the columns, far from the mass
    return ScaledPotential(target, Scaled(scaling, from_line_of(transform_of(target))))


def scaling_of(target: Potential) -> Scaling | None:
    """Return the coordinates of like scale; None where those of the line are so already.

    A sum over rows may have a method ``column_moments(rows)``: the mean of x_i x_i^T over some of
    its rows, or all for None, shape (dim, dim), with x_i the slope of row i's predictor, and with
    the curvature of its prior in the same unit. Other targets are judged by where
    plausible ranges and priors expect their mass.
    """
    moments = getattr(target, "column_moments", None)
    if moments is not None:
        return _by_columns(moments, target)
    centre, spread = expected(target)
    if not centre.any() and (spread == 1.0).all():
        return None
    return Scaling(centre, np.diag(spread))


def _by_columns(
    moments: Callable[[IntArray | None], FloatArray | None], target: Any
) -> Scaling | None:
    """Return coordinates in which columns are of like size and little correlated."""
    # a table is first judged by so many rows, which costs nothing beside one evaluation
    wanted, rng = max(4096, 10 * target.dim), np.random.default_rng(20190601)
    some = None
    if wanted < target.n_rows:
        some = np.sort(rng.choice(target.n_rows, wanted, replace=False))
    for rows in (some, None):
        found = moments(rows)
        if found is None or not np.isfinite(found).all():
            return None
        squares = np.diag(found)
        sizes = np.sqrt(np.where(squares > 0.0, squares, 1.0))
        # products of the columns' cosines; an eigenvalue may be zero but for rounding
        values, vectors = np.linalg.eigh(found / np.outer(sizes, sizes))
        values = np.where(values > 1e-12 * values.max(), values, 1.0)
        near = (values < 1e-3).any()  # as with a mean of about 20 sds
        if not near and sizes.max() <= 1e2 and sizes.min() >= 3e-4:
            return None
    # A^T M A is the identity, and z_k is as near as can be to coefficient k by itself
    whitening = (vectors / np.sqrt(values)) @ vectors.T / sizes[:, None]
    return Scaling(np.zeros(target.dim), np.asarray(whitening))
