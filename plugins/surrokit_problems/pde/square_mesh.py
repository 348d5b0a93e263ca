"""Bilinear finite elements on a uniform mesh of squares over the unit square.

A function on the nodes is an array (..., cells + 1, cells + 1), by x1 and then x2. A field at the
quadrature points, four in each cell (2 x 2 Gauss), is an array (..., 4, cells^2). The boundaries
x2 = 0 and x2 = 1 carry Dirichlet conditions and the others natural ones, so the nodes between are
free: (cells + 1) x (cells - 1), with x2 running fastest.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import attrs
import numpy as np

from surrokit.types import FloatArray

_CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))
_PAIRS = tuple(combinations_with_replacement(range(4), 2))
_GAUSS = 0.5 + np.array([-0.5, 0.5]) / np.sqrt(3.0)


def _slopes_of_corners() -> FloatArray:
    """Return the slopes of the four bilinear functions on the unit cell, shape (2 * 4, 4).

    By direction and quadrature point, and by corner.
    """
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


@attrs.frozen
class SquareMesh:
    """A mesh of ``cells`` x ``cells`` squares; see the module for how arrays are laid out.

    Lengths are in cells: in two dimensions those of slopes and of area cancel in a stiffness
    matrix.
    """

    cells: int

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

        Returns
        -------
        ndarray of shape (..., 2, 4, cells^2)
            By direction.
        """
        n, batch = self.cells, function.shape[:-2]
        corners = np.empty((*batch, 4, n, n))
        for number, (one, two) in enumerate(_CORNERS):
            corners[..., number, :, :] = function[..., one : one + n, two : two + n]
        return (_SLOPES @ corners.reshape(*batch, 4, n * n)).reshape(*batch, 2, 4, n * n)

    def loads(self, fluxes: FloatArray) -> FloatArray:
        """Return integrals of fluxes times the gradient of each node's function.

        Parameters
        ----------
        fluxes : ndarray of shape (..., 2, 4, cells^2)
            Vector fields, times the length of a cell.

        Returns
        -------
        ndarray of shape (..., cells + 1, cells + 1)
            The transpose of :meth:`slopes`, with the weights of the quadrature.
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

        It is linear in the coefficient.

        Parameters
        ----------
        coefficient : ndarray of shape (4, cells^2)
            At the quadrature points.

        Returns
        -------
        ndarray of shape (cells + 1, number of free nodes)
            In Fortran order: row ``cells - k`` holds the k-th superdiagonal.
        """
        n = self.cells
        pairs = dict(zip(_PAIRS, (_STIFFNESS @ coefficient).reshape(-1, n, n), strict=True))
        diagonal = np.zeros((n + 1, n + 1))
        for number, (one, two) in enumerate(_CORNERS):
            diagonal[one : one + n, two : two + n] += pairs[number, number]
        # between nodes one apart in x2, and in x1; each edge has a cell on either side
        upwards = np.zeros((n + 1, n))
        upwards[:n] = pairs[0, 1]
        upwards[1:] += pairs[2, 3]
        onwards = np.zeros((n, n + 1))
        onwards[:, :n] = pairs[0, 2]
        onwards[:, 1:] += pairs[1, 3]
        bands = np.zeros((n + 1, n - 1, n + 1))
        bands[:, :, n] = diagonal[:, 1:-1]
        bands[:, 1:, n - 1] = upwards[:, 1:-1]
        bands[1:, :-1, 2] = pairs[1, 2][:, 1:-1]
        bands[1:, :, 1] = onwards[:, 1:-1]
        bands[1:, 1:, 0] = pairs[0, 3][:, 1:-1]
        return bands.reshape(-1, n + 1).T

    def interpolation(self, where: FloatArray) -> FloatArray:
        """Return the matrix from values at ``nodes`` to those at ``where (k,)``: (k, cells + 1)."""
        hats: FloatArray = np.eye(self.cells + 1)
        return np.array([np.interp(where, self.nodes, hat) for hat in hats]).T
