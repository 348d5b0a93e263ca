"""A target in coordinates of like scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.contracts.forward import Energy
from surrokit.contracts.potential import Potential
from surrokit.contracts.rows import (
    USUAL_ORDER,
    Ball,
    RowDraws,
    RowExpansion,
    WrappedExpansion,
    of_order,
    with_rows,
)
from surrokit.coordinates.blocks import Blocks, Scaled, Scaling
from surrokit.coordinates.models import ModelMap
from surrokit.coordinates.transforms import Transform
from surrokit.model.model import calls_per_gradient
from surrokit.shapes import check_matrices, check_positions, check_vectors, check_weights
from surrokit.targets.bounded.energy import ScaledEnergy
from surrokit.targets.bounded.lifted import LiftedPotential
from surrokit.types import Capabilities, FloatArray, IntArray


@attrs.frozen(eq=False)
class ScaledPotential(LiftedPotential):
    """U(z) = U(shift + A z) - log |det A|, for a potential of x = shift + A z on the line.

    The change of coordinates is exact, and all that the inner potential offers it offers too but
    for ``gaussian``; ``hessian-diagonal`` needs the whole Hessian and its derivative. No data are
    copied or changed.

    Parameters
    ----------
    inner
        Potential on the line.
    parameters
        Its names, shapes and bounds.
    from_line
        The map from the line to the user's coordinates.
    scaling
        The map to the line.
    """

    from_line: Transform | Blocks | ModelMap = attrs.field(kw_only=True)
    scaling: Scaling = attrs.field(kw_only=True)
    transform: Scaled = attrs.field(init=False)

    @transform.default
    def _transform(self) -> Scaled:
        return Scaled(self.scaling, self.from_line)

    def __attrs_post_init__(self) -> None:
        """Check nothing: what the inner potential takes is checked already."""

    @property
    def own_map(self) -> Scaling:
        """The map to the line."""
        return self.scaling

    @property
    def capabilities(self) -> Capabilities:
        """What the inner potential offers (see above)."""
        offered = self.inner.capabilities - {can.GAUSSIAN}
        whole = {can.HESSIAN, can.HESSIAN_DERIVATIVE} <= offered
        return offered if whole else offered - {can.HESSIAN_DIAGONAL}

    @property
    def calls_per_gradient(self) -> int:
        """Calls that a gradient pays for."""
        return calls_per_gradient(self.inner)

    @property
    def missing(self) -> Any:
        """Why the inner potential lacks capabilities, as far as it says so."""
        return getattr(self.inner, "missing", {})

    @property
    def energy(self) -> Energy:
        """The inner potential's energy, of outputs and positions z."""
        return ScaledEnergy(self._whole.energy, self.scaling)

    @property
    def _whole(self) -> Any:
        """The inner potential, with whatever its capabilities promise."""
        return self.inner

    # --- second derivatives ---

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives in z, shape (n, dim, dim)."""
        return self._form(self._whole.hessian, positions)

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Hessian in z times u, shape (n, dim)."""
        return self._of_vectors(self._whole.hessian_product, positions, vectors)

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(B d_k G) for each k, G the Hessian in z, shape (n, dim)."""
        return self._of_matrices(self._whole.hessian_trace_gradient, positions, matrices)

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, G the Hessian in z, shape (n, dim)."""
        return self._of_vectors(self._whole.hessian_form_gradient, positions, vectors)

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the metric in z, shape (n, dim, dim)."""
        return self._form(self._whole.metric, positions)

    def metric_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the metric in z times u, shape (n, dim)."""
        return self._of_vectors(self._whole.metric_product, positions, vectors)

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(B d_k G) for each k, G the metric in z, shape (n, dim)."""
        return self._of_matrices(self._whole.metric_trace_gradient, positions, matrices)

    def metric_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, G the metric in z, shape (n, dim)."""
        return self._of_vectors(self._whole.metric_form_gradient, positions, vectors)

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian in z, shape (n, dim)."""
        return np.asarray(np.einsum("nii->ni", self.hessian(positions)).copy())

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj for each k, G the Hessian in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        c = check_vectors(weights, z)
        return self.hessian_trace_gradient(z, c[:, :, None] * np.eye(self.dim))

    def forward_hessian_product(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m for each k, in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        pushed = self.scaling.push(check_weights(weights, z))
        return self._pulled(lambda x: self._whole.forward_hessian_product(x, pushed), z)

    def _form(self, method: Callable[[FloatArray], FloatArray], z: FloatArray) -> FloatArray:
        return self.scaling.pull_form(method(self.scaling.to_bounded(check_positions(z, self.dim))))

    def _of_vectors(self, method: Callable[..., Any], z: FloatArray, u: FloatArray) -> FloatArray:
        pushed = self.scaling.push(check_vectors(u, check_positions(z, self.dim)))
        return self._pulled(lambda x: method(x, pushed), z)

    def _of_matrices(self, method: Callable[..., Any], z: FloatArray, b: FloatArray) -> FloatArray:
        pushed = self.scaling.push_form(check_matrices(b, check_positions(z, self.dim)))
        return self._pulled(lambda x: method(x, pushed), z)

    def _pulled(self, method: Callable[[FloatArray], FloatArray], z: FloatArray) -> FloatArray:
        return self.scaling.pull(method(self.scaling.to_bounded(z)))

    # --- sums over rows ---

    @property
    def n_rows(self) -> int:
        """Number of terms."""
        return with_rows(self.inner).n_rows

    def expand(self, centre: FloatArray, order: int = USUAL_ORDER) -> ScaledExpansion:
        """Return the expansions of all terms at ``centre (dim,)``."""
        at = np.array(centre, dtype=np.float64)
        line = self.scaling.to_bounded(at)
        return ScaledExpansion(
            with_rows(self.inner).expand(line, **of_order(order)), self.scaling, at
        )

    def row_bounds(
        self, factor: FloatArray, order: int = USUAL_ORDER, ball: Ball | None = None
    ) -> FloatArray:
        """Return the bounds of all terms, shape (n_rows,): a direction u in z is A u in x."""
        return with_rows(self.inner).row_bounds(
            self.scaling.matrix @ factor, **of_order(order, self._ball(ball))
        )

    def row_draws(
        self, factor: FloatArray, order: int = USUAL_ORDER, ball: Ball | None = None
    ) -> RowDraws:
        """Return draws of rows by their bounds."""
        return with_rows(self.inner).row_draws(
            self.scaling.matrix @ factor, **of_order(order, self._ball(ball))
        )

    def select(self, rows: IntArray) -> Potential:
        """Return the sum of some terms alone, without the rest, of which log |det A| is a part."""
        terms = with_rows(self.inner).select(rows)
        return attrs.evolve(self, inner=terms, scaling=attrs.evolve(self.scaling, log_volume=0.0))

    def _ball(self, ball: Ball | None) -> Ball | None:
        if ball is None:
            return None
        return Ball(centre=self.scaling.to_bounded(ball.centre), radius=ball.radius)


@attrs.frozen(eq=False)
class ScaledExpansion(WrappedExpansion):
    """Expansions of all terms at one point, in coordinates of like scale.

    Parameters
    ----------
    inner
        The expansions on the line.
    scaling
        The map to the line.
    middle : ndarray of shape (dim,)
        Where the terms were expanded.
    """

    inner: RowExpansion
    scaling: Scaling
    middle: FloatArray

    @property
    def centre(self) -> FloatArray:
        """Where the terms were expanded, shape (dim,)."""
        return self.middle

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

    def changes(
        self, before: FloatArray, after: FloatArray, rows: IntArray, owners: IntArray
    ) -> FloatArray:
        """Return D_i(z') - D_i(z), shape (m,), for pairs of a row and a move."""
        ends = self.scaling.to_bounded(before), self.scaling.to_bounded(after)
        return self.inner.changes(*ends, rows, owners)

    def increases(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return sum_i max(0, D_i(z') - D_i(z)) over all rows, shape (n,)."""
        return self.inner.increases(self.scaling.to_bounded(before), self.scaling.to_bounded(after))
