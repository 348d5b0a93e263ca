"""Diffusion on the unit square: from the logarithm of its coefficient to the solution observed.

u solves -div(c grad u) = f by bilinear elements on a uniform mesh of squares. log c is a sum of
modes, functions on the square, weighted by a position q. With K the stiffness matrix, which is
linear in c, K_k its derivative in q_k,

    d_k u = -K^-1 K_k u,      d_i d_k u = -K^-1 (K_ik u + K_i d_k u + K_k d_i u),

so that one factorisation serves for all derivatives: products with K_k and K_ik are integrals of
c times modes.

A function on the nodes is an array (..., cells + 1, cells + 1), by x1 and then x2. A field at the
quadrature points, four in each cell (2 x 2 Gauss), is an array (..., 4, cells^2). The boundaries
x2 = 0 and x2 = 1 carry Dirichlet conditions, of a closed mesh the other two as well, which
otherwise have no flux. The nodes between are free, with x2 running fastest.
"""

from __future__ import annotations

from functools import cached_property
from itertools import combinations_with_replacement

import attrs
import numpy as np
from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded

from surrokit.errors import NumericalError
from surrokit.types import FloatArray

_CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))
_PAIRS = tuple(combinations_with_replacement(range(4), 2))
_GAUSS = 0.5 + np.array([-0.5, 0.5]) / np.sqrt(3.0)


def _slopes_of_corners() -> FloatArray:
    """Return slopes of the four bilinear functions of a cell: (2 directions * 4 points, 4)."""
    slopes = np.empty((2, 2, 2, 4))
    for number, (one, two) in enumerate(_CORNERS):
        along_one = _GAUSS if one else 1.0 - _GAUSS
        along_two = _GAUSS if two else 1.0 - _GAUSS
        slopes[0, :, :, number] = (2 * one - 1) * along_two[None, :]
        slopes[1, :, :, number] = (2 * two - 1) * along_one[:, None]
    return slopes.reshape(8, 4)


_SLOPES = _slopes_of_corners()
_BY_POINT = _SLOPES.reshape(2, 4, 4)
_STIFFNESS = 0.25 * np.array(
    [(_BY_POINT[:, :, a] * _BY_POINT[:, :, b]).sum(axis=0) for a, b in _PAIRS]
)


@attrs.frozen(kw_only=True, eq=False)
class Diffusion:
    """A mesh, the modes of log c on it, and where the solution is observed.

    ``modes (dim, 4 * cells^2)`` are given at the quadrature points; ``lift (cells + 1, cells + 1)``
    is any function on the nodes with the Dirichlet values, ``observation (k, cells + 1)`` leads
    from nodes to places of observation along either axis, and ``source`` is f, which is constant,
    times the area of a cell.
    """

    mesh: SquareMesh
    modes: FloatArray
    lift: FloatArray
    observation: FloatArray
    source: float = 0.0
    lift_slopes: FloatArray = attrs.field(init=False, repr=False)

    @lift_slopes.default
    def _slopes_of_lift(self) -> FloatArray:
        return self.mesh.slopes(self.lift)

    def solve(self, position: FloatArray) -> SolvedDiffusion:
        """Solve at one position (dim,).

        Raises
        ------
        NumericalError
            If the coefficient varies by more than double precision can solve with, or is so small
            that the solution overflows.
        """
        log_coefficient = position @ self.modes
        # the solution is that for c over its maximum and f over it; c itself may overflow
        largest = log_coefficient.max()
        coefficient = np.exp(log_coefficient - largest).reshape(4, -1)
        loads = self.mesh.loads(coefficient * self.lift_slopes)
        try:
            bands = self.mesh.stiffness(coefficient)
            factor = cholesky_banded(bands, overwrite_ab=True, check_finite=False)
            if self.source:
                with np.errstate(over="raise"):
                    loads -= self.source * np.exp(-largest)
            solution = self.lift - self.mesh.solve(factor, loads)
            if not np.isfinite(solution).all():
                raise LinAlgError("not finite")
        except (LinAlgError, FloatingPointError) as error:
            raise NumericalError(
                "the solution cannot be found where the logarithm of the coefficient goes from "
                f"{log_coefficient.min():.3g} to {largest:.3g}; start nearer to the prior's mean"
            ) from error
        return SolvedDiffusion(self, coefficient, factor, solution)

    def observe(self, functions: FloatArray) -> FloatArray:
        """Return functions on the nodes (..., cells + 1, cells + 1) where observed: (..., k^2)."""
        seen = self.observation @ functions @ self.observation.T
        return np.asarray(seen.reshape(*functions.shape[:-2], -1))

    def spread(self, by_outputs: FloatArray) -> FloatArray:
        """Return the transpose of :meth:`observe` for one vector (k^2,)."""
        k = len(self.observation)
        return np.asarray(self.observation.T @ by_outputs.reshape(k, k) @ self.observation)

    def by_modes(self, field: FloatArray) -> FloatArray:
        """Return the sums over quadrature points of a field (4, cells^2) times modes: (dim,)."""
        return np.asarray(self.modes @ field.ravel())


@attrs.frozen(eq=False, slots=False)
class SolvedDiffusion:
    """The solution at one position, and its derivatives with the factor that gave it.

    Keeps to :class:`surrokit.potentials.ForwardDerivatives` with one row. ``coefficient
    (4, cells^2)`` is c over its maximum at the quadrature points, ``factor`` that of the stiffness
    matrix in bands, and ``solution (cells + 1, cells + 1)`` u on the nodes.
    """

    diffusion: Diffusion
    coefficient: FloatArray
    factor: FloatArray
    solution: FloatArray

    @property
    def outputs(self) -> FloatArray:
        """The solution where observed, shape (1, m)."""
        return self.diffusion.observe(self.solution)[None]

    @cached_property
    def fluxes(self) -> FloatArray:
        """The flux c grad u, shape (2, 4, cells^2)."""
        return np.asarray(self.coefficient * self.diffusion.mesh.slopes(self.solution))

    def push(self, vectors: FloatArray) -> FloatArray:
        """Return J v for the one row v of ``vectors (1, dim)``, shape (1, m)."""
        return self.diffusion.observe(self._change(self._along(vectors[0])))[None]

    def pull_back(self, by_outputs: FloatArray) -> FloatArray:
        """Return J^T b for the one row b of ``by_outputs (1, m)``, shape (1, dim): one solve."""
        adjoint = self._solve(self.diffusion.spread(by_outputs[0]))
        return -self._contract(self.diffusion.mesh.slopes(adjoint), self.fluxes)[None]

    def jacobian(self) -> FloatArray:
        """Return J, shape (1, m, dim): one solve for each parameter, together."""
        return np.ascontiguousarray(self.diffusion.observe(self._sensitivities).T)[None]

    def hessian_product(self, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m, shape (1, dim), for W (1, m, dim)."""
        mesh = self.diffusion.mesh
        fields = self.diffusion.modes.reshape(-1, *self.coefficient.shape)
        spread = np.array([self.diffusion.spread(column) for column in weights[0].T])
        slopes = mesh.slopes(self._solve(spread))
        bent = (fields[:, None] * slopes).sum(axis=0)
        total = self._contract(bent, self.fluxes)
        changes = mesh.slopes(self._sensitivities)
        total += 0.25 * self.diffusion.by_modes(
            self.coefficient * (slopes * changes).sum(axis=(0, 1))
        )
        # what is left is the derivative of u along the load of all bent adjoints together
        adjoint = self._solve(mesh.loads(self.coefficient * bent))
        total -= self._contract(mesh.slopes(adjoint), self.fluxes)
        return -total[None]

    def hessian_form(self, by_outputs: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the same for W = b v^T, with rows b (1, m) and v (1, dim): three solves."""
        mesh, along = self.diffusion.mesh, self._along(vectors[0])
        slopes = mesh.slopes(self._solve(self.diffusion.spread(by_outputs[0])))
        change = mesh.slopes(self._change(along))
        bent = along * slopes
        adjoint = mesh.slopes(self._solve(mesh.loads(self.coefficient * bent)))
        total = self._contract(bent - adjoint, self.fluxes)
        total += self._contract(slopes, self.coefficient * change)
        return -total[None]

    @cached_property
    def _sensitivities(self) -> FloatArray:
        """d_k u on the nodes, shape (dim, cells + 1, cells + 1)."""
        fields = self.diffusion.modes.reshape(-1, 1, *self.coefficient.shape)
        return self._change(fields)

    def _along(self, vector: FloatArray) -> FloatArray:
        """Return the derivative of log c along a direction (dim,), shape (4, cells^2)."""
        return np.asarray((vector @ self.diffusion.modes).reshape(self.coefficient.shape))

    def _change(self, fields: FloatArray) -> FloatArray:
        """Return the derivative of u on the nodes along changes of log c, (..., 4, cells^2)."""
        return -self._solve(self.diffusion.mesh.loads(fields * self.fluxes))

    def _solve(self, loads: FloatArray) -> FloatArray:
        return self.diffusion.mesh.solve(self.factor, loads)

    def _contract(self, slopes: FloatArray, fluxes: FloatArray) -> FloatArray:
        """Return the integral of each mode times the product of slopes and fluxes, shape (dim,)."""
        return 0.25 * self.diffusion.by_modes((slopes * fluxes).sum(axis=0))


@attrs.frozen
class SquareMesh:
    """A mesh of ``cells`` x ``cells`` squares; the module says how arrays are laid out.

    Lengths are in cells: in two dimensions those of slopes and of area cancel in a stiffness
    matrix.
    """

    cells: int
    closed: bool = False

    @property
    def _free(self) -> tuple[slice, slice]:
        """Free nodes by x1 and x2."""
        return slice(1, -1) if self.closed else slice(None), slice(1, -1)

    @property
    def nodes(self) -> FloatArray:
        """Coordinates of the nodes along either axis, shape (cells + 1,)."""
        return np.linspace(0.0, 1.0, self.cells + 1)

    @property
    def points(self) -> FloatArray:
        """Coordinates of the quadrature points along either axis, shape (2 * cells,).

        Those of the first kind of all cells, then those of the second.
        """
        return np.asarray((np.arange(self.cells) + _GAUSS[:, None]).ravel() / self.cells)

    def at_points(self, on_grid: FloatArray) -> FloatArray:
        """Return values on the grid ``points`` x ``points`` as a field (..., 4, cells^2)."""
        n = self.cells
        split = on_grid.reshape(*on_grid.shape[:-2], 2, n, 2, n)
        return np.ascontiguousarray(split.swapaxes(-3, -2)).reshape(*on_grid.shape[:-2], 4, n * n)

    def slopes(self, function: FloatArray) -> FloatArray:
        """Return the gradient of functions on the nodes, times the length of a cell.

        Its shape is (..., 2, 4, cells^2), by direction.
        """
        n, batch = self.cells, function.shape[:-2]
        corners = np.empty((*batch, 4, n, n))
        for number, (one, two) in enumerate(_CORNERS):
            corners[..., number, :, :] = function[..., one : one + n, two : two + n]
        return (_SLOPES @ corners.reshape(*batch, 4, n * n)).reshape(*batch, 2, 4, n * n)

    def loads(self, fluxes: FloatArray) -> FloatArray:
        """Return integrals of fluxes times the gradient of each node's function.

        This is the transpose of :meth:`slopes`, with the weights of the quadrature: of vector
        fields (..., 2, 4, cells^2), times the length of a cell, it makes (..., cells + 1,
        cells + 1).
        """
        n, batch = self.cells, fluxes.shape[:-3]
        by_corner = (0.25 * _SLOPES.T) @ fluxes.reshape(*batch, 8, n * n)
        by_corner = by_corner.reshape(*batch, 4, n, n)
        loads = np.zeros((*batch, n + 1, n + 1))
        for number, (one, two) in enumerate(_CORNERS):
            loads[..., one : one + n, two : two + n] += by_corner[..., number, :, :]
        return loads

    def stiffness(self, coefficient: FloatArray) -> FloatArray:
        """Return the stiffness matrix of the free nodes as LAPACK's upper bands.

        It is linear in the coefficient at the quadrature points, shape (4, cells^2). The bands,
        shape (cells + 1, number of free nodes), are in Fortran order: row ``cells - k`` holds the
        k-th superdiagonal.
        """
        n = self.cells
        bands = np.zeros((n + 1, n - 1, n + 1))
        blocks = (_STIFFNESS @ coefficient).reshape(-1, n, n)
        for (a, b), block in zip(_PAIRS, blocks, strict=True):
            (one, two), (later, beside) = _CORNERS[a], _CORNERS[b]
            row = n - (later - one) * (n - 1) - (beside - two)
            # of the cells whose two nodes are both free by x2
            cells = slice(1 - min(two, beside), n - max(two, beside))
            nodes = slice(cells.start + beside - 1, cells.stop + beside - 1)
            bands[later : later + n, nodes, row] += block[:, cells]
        return bands[self._free[0]].reshape(-1, n + 1).T

    def solve(self, factor: FloatArray, loads: FloatArray) -> FloatArray:
        """Solve for functions on the nodes that are 0 on the Dirichlet sides.

        ``factor`` is the Cholesky factor of a stiffness matrix in bands; loads and functions have
        shape (..., cells + 1, cells + 1).
        """
        inside = loads[..., *self._free]
        right = inside.reshape(-1, factor.shape[1]).T
        solved = cho_solve_banded((factor, False), right, overwrite_b=False, check_finite=False)
        functions = np.zeros_like(loads)
        functions[..., *self._free] = solved.T.reshape(inside.shape)
        return functions


def interpolation(cells: int, where: FloatArray) -> FloatArray:
    """Return the matrix from values at nodes of [0, 1] to those at ``where (k,)``, by rows."""
    hats, nodes = np.eye(cells + 1), np.linspace(0.0, 1.0, cells + 1)
    return np.array([np.interp(where, nodes, hat) for hat in hats]).T
