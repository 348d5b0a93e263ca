"""Diffusion with a coefficient that is constant on blocks: from log coefficients to the solution.

u solves -div(theta grad u) = load on the unit square, with u = 0 on its boundary, by bilinear
elements on ``cells`` x ``cells`` squares. theta is constant on each of ``blocks`` x ``blocks``
blocks. With K the stiffness matrix and K_k the part of block k, K is the sum of theta_k K_k, and in
x = log theta

    d_k u = -theta_k K^-1 K_k u.

Functions on the nodes are arrays (..., cells + 1, cells + 1), by x1 and then x2. Blocks are
numbered with x1 running fastest.
"""

from __future__ import annotations

import attrs
import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from surrokit.errors import NumericalError
from surrokit.types import FloatArray, IntArray
from surrokit_problems.pde.square_mesh import SquareMesh

_CORNERS = ((0, 0), (1, 0), (0, 1), (1, 1))
_STIFFNESS: FloatArray = (
    np.array([[4, -1, -1, -2], [-1, 4, -2, -1], [-1, -2, 4, -1], [-2, -1, -1, 4]]) / 6.0
)
"""Stiffness matrix of one square, by corner; its size cancels in two dimensions."""


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
        return SquareMesh(self.cells).interpolation(self.observed)[:, 1:-1]

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
