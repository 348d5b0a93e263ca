"""Derivatives by differences, and curvature from them.

G = J^T C J + R is the Gauss-Newton matrix of U(q) = energy(forward(q), q). C and R are the energy's
curvatures in the outputs and in the positions, and J is the Jacobian of the outputs.
"""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.arguments import check_positions
from surrokit.capabilities import FORWARD, GRADIENT, ROWS
from surrokit.errors import ConfigurationError
from surrokit.interfaces import Evaluations
from surrokit.limits import without_cliffs
from surrokit.model.model import PassingWrapper
from surrokit.potentials import (
    Energy,
    ForwardDerivatives,
    Potential,
    with_curvatures,
)
from surrokit.targets.estimates import noise_of
from surrokit.types import Capabilities, FloatArray, Pair


def gauss_newton(
    energy: Energy, outputs: FloatArray, jacobian: FloatArray, positions: FloatArray
) -> FloatArray:
    """Return G, shape (n, dim, dim), symmetric and without negative eigenvalues.

    The ``jacobian`` has shape (n, m, dim). CapabilityError is raised if the energy offers no
    curvatures.
    """
    by_outputs, by_positions = with_curvatures(energy).curvatures(outputs, positions)
    matrices = np.asarray(jacobian.transpose(0, 2, 1) @ _weigh(by_outputs, jacobian))
    # symmetric up to rounding only; a Cholesky factor reads one half, a product both
    return 0.5 * (matrices + matrices.transpose(0, 2, 1)) + by_positions


def curve(
    energy: Energy, outputs: FloatArray, positions: FloatArray, along: FloatArray
) -> FloatArray:
    """Return C times ``along (n, m, k)``, for the derivative of G.

    CapabilityError is raised unless the energy's curvatures are constant; so it is by the other
    functions here.
    """
    return _weigh(with_curvatures(energy, constant=True).curvatures(outputs, positions)[0], along)


def gauss_newton_trace_gradient(
    energy: Energy, at: ForwardDerivatives, positions: FloatArray, matrices: FloatArray
) -> FloatArray:
    """Return tr(A d_k G), shape (n, dim), for symmetric A in ``matrices (n, dim, dim)``."""
    along = at.jacobian() @ matrices
    return 2.0 * at.hessian_product(curve(energy, at.outputs, positions, along))


def gauss_newton_form_gradient(
    energy: Energy, at: ForwardDerivatives, positions: FloatArray, vectors: FloatArray
) -> FloatArray:
    """Return u^T d_k G u, shape (n, dim), for u in ``vectors``: the trace with A = u u^T."""
    along = at.push(vectors)[:, :, None]
    return 2.0 * at.hessian_form(curve(energy, at.outputs, positions, along)[:, :, 0], vectors)


def _weigh(by_outputs: FloatArray, jacobian: FloatArray) -> FloatArray:
    """Return C J, with C by its diagonals or in full."""
    return by_outputs[:, :, None] * jacobian if by_outputs.ndim == 2 else by_outputs @ jacobian


MOST_DIM = 30
"""Numbers in a position up to which differences are taken where nobody asks for them.

With 20 correlated numbers, a random walk by values alone does not arrive, where differences of
twice as many values lead to a surrogate of acceptance 1."""

LEAST_GRADIENTS = 100
"""Gradients that a run's calls must allow if differences are to be taken: half of them find the
mode and a surrogate."""

STEP = 1e-4
"""Step to either side, and part of the number that is added. It is longer than is best for values
that are exact to the last digit: those of a solver are not, and central differences of what is
nearly quadratic hardly depend on it."""

RISE = 1e-5
"""Nats by which curvature alone should change U over a step, where curvature is known: a step of
0.0045 conditional standard deviations, over which higher orders do not count."""

LONGEST = 10.0
"""Usual steps that a difference to one side takes at most: the curvature may be another one."""


@attrs.frozen(eq=False)
class Differences(PassingWrapper):
    """A potential whose gradient is made of differences of its values.

    A gradient by central differences takes 2 dim + 1 values, one to one side dim + 1. Draws
    stay exact, since acceptance goes by values alone.

    Parameters
    ----------
    inner
        The potential without a gradient, in the sampling coordinates.
    to_one_side
        Whether differences are to one side.
    curvatures : ndarray of shape (dim,), optional
        About the second derivatives along each coordinate. Differences to one side are corrected by
        them, and their steps are chosen by them.
    """

    inner: Potential
    to_one_side: bool = False
    curvatures: FloatArray | None = None

    def __attrs_post_init__(self) -> None:
        if noise_of(self.inner) is not None:
            raise ConfigurationError(
                "differences of values with noise show nothing of the gradient; leave "
                "gradient='differences' out"
            )
        if GRADIENT in self.inner.capabilities:
            raise ConfigurationError(
                "the target has a gradient, so there is nothing to make of differences; leave "
                "gradient='differences' out"
            )

    @property
    def capabilities(self) -> Capabilities:
        """Those of the inner potential, and a gradient."""
        return self.inner.capabilities | {GRADIENT}

    @property
    def calls_per_gradient(self) -> int:
        """Values that a gradient takes."""
        return (1 if self.to_one_side else 2) * self.dim + 1

    def one_sided(self, curvatures: FloatArray | None) -> Differences:
        """Return a copy with differences to one side; see the parameter ``curvatures``."""
        return attrs.evolve(self, to_one_side=True, curvatures=curvatures)

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return U, shape (n,), and differences, shape (n, dim).

        Where one of the two neighbours is not finite, the difference is that to the other one; it
        is NaN where neither is.
        """
        q = check_positions(positions, self.dim)
        steps = usual = STEP * (1.0 + np.abs(q))
        if self.to_one_side:
            steps = np.minimum(steps_by(self.curvatures, q), LONGEST * usual)
        ahead = steps[:, None, :] * np.eye(self.dim)
        moves = [np.zeros((len(q), 1, self.dim)), ahead]
        moves += [] if self.to_one_side else [-ahead]
        rows = q[:, None, :] + np.concatenate(moves, axis=1)
        values = self._values(rows)
        if not self.to_one_side:
            return values[:, 0], _slopes(rows, values)
        failed = np.isfinite(values[:, :1]) & ~np.isfinite(values[:, 1:])
        which, along = np.nonzero(failed)
        if len(which):  # there, a step to the other side
            rows[which, 1 + along] = 2.0 * rows[which, 0] - rows[which, 1 + along]
            values[which, 1 + along] = self._values(rows[which, 1 + along][:, None, :])[:, 0]
        slopes = _slopes(rows, values)
        if self.curvatures is not None:
            slopes -= 0.5 * (np.einsum("nii->ni", rows[:, 1:]) - rows[:, 0]) * self.curvatures
        return values[:, 0], slopes

    def _values(self, rows: FloatArray) -> FloatArray:
        """Return U (n, k) at ``rows (n, k, dim)``."""
        n, k = rows.shape[:2]
        values = self.inner.value(rows.reshape(n * k, -1).copy())
        return without_cliffs(values.reshape(n, k))


def steps_by(
    curvatures: FloatArray | None, positions: FloatArray, size: FloatArray | float = 0.0
) -> FloatArray:
    """Return steps of differences along each coordinate, shape (n, dim), at positions (n, dim).

    ``curvatures (dim,)`` are about the second derivatives; ``size`` is |U|, and a part of it may be
    rounding.
    """
    usual = STEP * (1.0 + np.abs(positions))
    if curvatures is None:
        return np.asarray(usual * 0.1)
    steepness = np.maximum(np.abs(curvatures), np.finfo(np.float64).tiny)
    with np.errstate(over="ignore"):  # the longest step is all the same
        # 1e-8 of U is safely above rounding and small errors of solvers
        steps = np.sqrt(2.0 * (RISE + 1e-8 * np.abs(size)) / steepness)
    return np.asarray(np.clip(steps, 1e-3 * usual, 1e4 * usual))


def _slopes(rows: FloatArray, values: FloatArray) -> FloatArray:
    """Return differences (n, dim) of values (n, k) at a position and k - 1 neighbours.

    They are between what is finite: neighbours ahead, and those behind, or the position itself.
    """
    at, value, dim = rows[:, 0], values[:, :1], rows.shape[2]
    ends, heights = [], []
    for first in (1, 1 + dim):
        known = values[:, first : first + dim]
        if not known.size:  # differences to one side
            ends.append(at)
            heights.append(value)
            continue
        places = np.einsum("nii->ni", rows[:, first : first + dim])  # as numbers round
        ends.append(np.where(np.isfinite(known), places, at))
        heights.append(np.where(np.isfinite(known), known, value))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((heights[0] - heights[1]) / (ends[0] - ends[1]))


def with_slopes(rows: Evaluations) -> Evaluations:
    """Return positions whose neighbours are in a batch of values, with gradients of these.

    A batch that was evaluated for something else is returned as it is.
    """
    n, dim = rows.positions.shape
    for k in (2 * dim + 1, dim + 1):
        if not n or n % k:
            continue
        blocks, values = rows.positions.reshape(-1, k, dim), rows.values.reshape(-1, k)
        moves = np.abs(blocks[:, 1:] - blocks[:, :1]).reshape(len(blocks), -1, dim, dim)
        along = np.einsum("nsii->nsi", moves)
        longest = 2.0 * LONGEST * STEP * (1.0 + np.abs(blocks[:, 0]))
        one_by_one = moves.sum(axis=3) - along <= 1e-3 * along
        if one_by_one.all() and (along > 0.0).all() and (along <= longest[:, None]).all():
            slopes = _slopes(blocks, values)
            return Evaluations(positions=blocks[:, 0], values=values[:, 0], gradients=slopes)
    return rows


def suits_differences(potential: Potential, max_calls: float | None = None) -> bool:
    """Return whether differences are worth their values.

    They are for exact values alone, in few dimensions, where ``max_calls`` allow enough gradients.
    """
    if potential.capabilities & {GRADIENT, FORWARD, ROWS} or potential.dim > MOST_DIM:
        return False
    if noise_of(potential) is not None:
        return False
    return max_calls is None or max_calls >= LEAST_GRADIENTS * (2 * potential.dim + 1)
