"""The benchmark of Aristoff and Bangerth (2023): 64 coefficients of a diffusion, from 169 data.

u solves -div(theta grad u) = load on the unit square, with u = 0 on its boundary, by bilinear
elements on ``cells`` x ``cells`` squares. theta is constant on each of ``blocks`` x ``blocks``
blocks. With K the stiffness matrix and K_k the part of block k, K is the sum of theta_k K_k, and in
x = log theta

    d_k u = -theta_k K^-1 K_k u.

Functions on the nodes are arrays (..., cells + 1, cells + 1), by x1 and then x2. Blocks are
numbered with x1 running fastest.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import ClassVar

import attrs
import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from surrokit import capabilities as can
from surrokit.errors import NumericalError
from surrokit.model.model import Model, ModelPotential
from surrokit.settings import one_of
from surrokit.shapes import check_positions
from surrokit.targets.gaussian import GaussianEnergy, GaussianPrior
from surrokit.targets.outputs import PotentialOfOutputs
from surrokit.types import Capabilities, FloatArray, IntArray
from surrokit_problems.elliptic_pde import interpolation

_PRIOR = GaussianPrior(mean=4.0, sd=2.0)
_NOISE_SD = 0.05
_CORNERS = ((0, 0), (1, 0), (0, 1), (1, 1))
_STIFFNESS: FloatArray = (
    np.array([[4, -1, -1, -2], [-1, 4, -2, -1], [-1, -2, 4, -1], [-2, -1, -1, 4]]) / 6.0
)
"""Stiffness matrix of one square, by corner; its size cancels in two dimensions."""


@attrs.frozen(kw_only=True, eq=False)
class AristoffBangerth(PotentialOfOutputs, ModelPotential):
    """U of the logarithms of 64 coefficients, in nats.

    u solves -div(theta grad u) = 10 on the unit square with u = 0 on its boundary. theta is
    constant on each of 8 x 8 blocks, and a position is x = log theta, with the block's place
    along x1 running fastest. The forward map gives u at the points (k / 14, l / 14) with k and l
    from 1 to 13, by k and then l. The 169 measurements have normal errors of standard deviation
    0.05. The authors' prior density of theta is proportional to exp(-sum x_k^2 / 8), so that
    x_k ~ N(4, 2^2).

    Methods raise :class:`~surrokit.errors.ShapeError` unless positions are rows of 64 numbers, and
    :class:`~surrokit.errors.EvaluationError` at positions, far outside the prior, where the
    linear system is not positive definite to rounding.

    Parameters
    ----------
    jacobian
        Whether the Jacobian of the forward map is offered, beside gradients by the adjoint.

    Notes
    -----
    A value takes one banded Cholesky factorisation; with it the gradient takes one more solve, by
    the adjoint, and the Jacobian 64.

    Raises
    ------
    ConfigurationError
        If a setting makes no sense.
    """

    dim: ClassVar[int] = 64
    """Numbers in a position."""

    jacobian: bool = attrs.field(default=True, validator=one_of(True, False))
    diffusion: BlockDiffusion = attrs.field(init=False, repr=False)
    energy: GaussianEnergy = attrs.field(init=False, repr=False)
    model: Model = attrs.field(init=False, repr=False)

    @diffusion.default
    def _diffusion(self) -> BlockDiffusion:
        return BlockDiffusion(cells=32, blocks=8, load=10.0, observed=np.arange(1, 14) / 14)

    @energy.default
    def _energy(self) -> GaussianEnergy:
        return GaussianEnergy(data=read_measurements(), noise_sd=_NOISE_SD, prior=_PRIOR)

    @model.default
    def _model(self) -> Model:
        solutions = _Solutions(self.diffusion, self.energy)
        return Model(solutions, self.dim, outputs=[len(self.energy.data)])

    @property
    def capabilities(self) -> Capabilities:
        """Adjoint and ``initial``, and with ``jacobian`` the Jacobian and Gauss-Newton matrix."""
        offered = {can.INITIAL, can.FORWARD, can.GRADIENT, can.VJP}
        return frozenset(offered | ({can.JACOBIAN, can.METRIC} if self.jacobian else set()))

    def forward_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the solutions where observed, and the gradient of U, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        outputs, gradients = self.model.evaluate("forward_and_gradient", q)
        return outputs, gradients

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the solutions where observed, shape (n, 169)."""
        return self.model.evaluate("forward", check_positions(positions, self.dim))[0]

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the solutions where observed, and their derivatives, shape (n, 169, dim)."""
        q = check_positions(positions, self.dim)
        outputs, jacobians = self.model.evaluate("forward_and_jacobian", q)
        return outputs, jacobians

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return draws from the prior, shape (n, dim)."""
        return _PRIOR.mean + _PRIOR.sd * rng.standard_normal((n, self.dim))


@attrs.frozen(eq=False)
class _Solutions:
    """What one solution of the equation gives at one position."""

    diffusion: BlockDiffusion
    energy: GaussianEnergy

    def at(self, what: str, row: FloatArray) -> tuple[FloatArray, ...]:
        solved = self.diffusion.solve(row)
        if what == "forward":
            return (solved.outputs,)
        if what == "forward_and_jacobian":
            return solved.outputs, solved.jacobian()
        _, by_outputs, prior = self.energy.value_and_gradients(solved.outputs[None], row[None])
        return solved.outputs, solved.pull_back(by_outputs[0]) + prior[0]


@cache
def read_measurements() -> FloatArray:
    """Return the 169 measurements, in the order of the forward map."""
    data = resources.files("surrokit_problems").joinpath("aristoff-bangerth.txt")
    with data.open(encoding="utf-8") as lines:
        measurements: FloatArray = np.loadtxt(lines)
    measurements.setflags(write=False)
    return measurements


@attrs.frozen(kw_only=True, eq=False)
class BlockDiffusion:
    """A mesh, its blocks, and where the solution is observed.

    Parameters
    ----------
    cells
        Squares along either side.
    blocks
        Blocks along either side; they divide ``cells``.
    load
        The right-hand side.
    observed : ndarray of shape (k,)
        Coordinates along either axis where the solution is observed: at k^2 places.
    """

    cells: int
    blocks: int
    load: float
    observed: FloatArray
    observation: FloatArray = attrs.field(init=False, repr=False)
    block_of: IntArray = attrs.field(init=False, repr=False)
    rows: IntArray = attrs.field(init=False, repr=False)
    assembly: sparse.csr_matrix = attrs.field(init=False, repr=False)

    @observation.default
    def _interpolation_between_nodes(self) -> FloatArray:
        return interpolation(self.cells, self.observed)[:, 1:-1]

    @block_of.default
    def _number_of_each_cell(self) -> IntArray:
        along = np.arange(self.cells) // (self.cells // self.blocks)
        return np.asarray(along[:, None] + self.blocks * along[None, :])

    @rows.default
    def _unknown_of_each_corner(self) -> IntArray:
        """Return unknowns at the corners of cells, shape (4, cells^2); -1 on the boundary."""
        nodes = np.full((self.cells + 1, self.cells + 1), -1)
        nodes[1:-1, 1:-1] = np.arange((self.cells - 1) ** 2).reshape(self.cells - 1, -1)
        corners = [nodes[a : a + self.cells, b : b + self.cells].ravel() for a, b in _CORNERS]
        return np.array(corners)

    @assembly.default
    def _bands_of_each_block(self) -> sparse.csr_matrix:
        """Return the map from coefficients to lower bands, (bands * unknowns, blocks^2)."""
        row, column = self.rows[:, None], self.rows[None, :]
        below = (column >= 0) & (row >= column)
        places = (row - column) + self.n_bands * column
        parts = np.broadcast_to(_STIFFNESS[:, :, None], below.shape)
        blocks = np.broadcast_to(self.block_of.ravel(), below.shape)
        shape = (self.n_bands * (self.cells - 1) ** 2, self.blocks**2)
        return sparse.csr_matrix((parts[below], (places[below], blocks[below])), shape=shape)

    @property
    def n_bands(self) -> int:
        """Bands of the stiffness matrix, the diagonal and those below it."""
        return self.cells + 1

    def solve(self, position: FloatArray) -> SolvedDiffusion:
        """Solve at one position, the logarithms of the coefficients, shape (blocks^2,).

        Raises
        ------
        NumericalError
            If the coefficient varies by more than double precision can solve with, or is so small
            that the solution overflows.
        """
        # the solution is that for theta over its maximum, over the maximum; theta may overflow
        largest = position.max()
        relative = np.exp(position - largest)
        bands = (self.assembly @ relative).reshape(-1, self.n_bands).T
        factor, status = lapack.dpbtrf(bands, lower=1, overwrite_ab=1)
        loads = np.full((len(factor.T), 1), self.load / self.cells**2)
        with np.errstate(over="ignore"):  # the next lines ask for that
            solution = lapack.dpbtrs(factor, loads, lower=1)[0][:, 0] * np.exp(-largest)
        if status != 0 or not np.isfinite(solution).all():
            raise NumericalError(
                "the solution cannot be found where the logarithm of the coefficient goes from "
                f"{position.min():.3g} to {largest:.3g}; start nearer to the prior's mean"
            )
        return SolvedDiffusion(diffusion=self, relative=relative, factor=factor, solution=solution)

    def observe(self, functions: FloatArray) -> FloatArray:
        """Return functions of the unknowns (..., unknowns) where observed, shape (..., k^2)."""
        inside = functions.reshape(*functions.shape[:-1], self.cells - 1, self.cells - 1)
        seen = self.observation @ inside @ self.observation.T
        return np.asarray(seen.reshape(*functions.shape[:-1], -1))

    def spread(self, by_outputs: FloatArray) -> FloatArray:
        """Return the transpose of :meth:`observe` for one vector (k^2,), shape (unknowns,)."""
        k = len(self.observed)
        weights = by_outputs.reshape(k, k)
        return np.asarray((self.observation.T @ weights @ self.observation).ravel())

    def at_corners(self, function: FloatArray) -> FloatArray:
        """Return a function of the unknowns at the corners of all cells, shape (4, cells^2)."""
        return np.append(function, 0.0)[self.rows]


@attrs.frozen(kw_only=True, eq=False)
class SolvedDiffusion:
    """The solution at one position, and its derivatives with the factor that gave it.

    Parameters
    ----------
    diffusion
        What was solved.
    relative : ndarray of shape (blocks^2,)
        Coefficients over their maximum.
    factor : ndarray of shape (bands, unknowns)
        Cholesky factor of the stiffness matrix for ``relative``, in bands.
    solution : ndarray of shape (unknowns,)
        u between the boundaries.
    """

    diffusion: BlockDiffusion
    relative: FloatArray
    factor: FloatArray
    solution: FloatArray

    @property
    def outputs(self) -> FloatArray:
        """The solution where observed, shape (m,)."""
        return self.diffusion.observe(self.solution)

    def pull_back(self, by_outputs: FloatArray) -> FloatArray:
        """Return J^T b for b in ``by_outputs (m,)``, shape (dim,): one solve."""
        adjoint = self._solve(self.diffusion.spread(by_outputs)[:, None])[:, 0]
        by_cell = (self.diffusion.at_corners(adjoint) * self._forces()).sum(axis=0)
        cells = self.diffusion.block_of.ravel()
        return -self.relative * np.bincount(cells, by_cell, len(self.relative))

    def jacobian(self) -> FloatArray:
        """Return J, shape (m, dim): one solve for each parameter, together."""
        rows, n_blocks = self.diffusion.rows, len(self.relative)
        inside = rows >= 0
        places = rows + len(self.solution) * self.diffusion.block_of.ravel()
        forces = (self._forces() * self.relative[self.diffusion.block_of.ravel()])[inside]
        n_loads = len(self.solution) * n_blocks
        loads = np.asarray(np.bincount(places[inside], forces, n_loads), dtype=np.float64)
        changes = -self._solve(loads.reshape(n_blocks, -1).T)
        return np.ascontiguousarray(self.diffusion.observe(changes.T).T)

    def _forces(self) -> FloatArray:
        """Return each cell's part of K_k u, by corner, shape (4, cells^2)."""
        return np.asarray(_STIFFNESS @ self.diffusion.at_corners(self.solution))

    def _solve(self, loads: FloatArray) -> FloatArray:
        """Solve for several loads, shape (unknowns, k)."""
        return np.asarray(lapack.dpbtrs(self.factor, loads, lower=1)[0])
