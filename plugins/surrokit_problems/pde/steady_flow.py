"""Steady flow through a random medium: from mode weights to the pressure at the observations.

The pressure u solves div(c grad u) = 0 (equation (13) of the paper), with u = x1 at x2 = 0,
u = 1 - x1 at x2 = 1, and no flux through the other two sides. log c is a sum of Karhunen-Loeve
modes weighted by a position q. With K the stiffness matrix, which is linear in c, K_k its
derivative in q_k,

    d_k u = -K^-1 K_k u,      d_i d_k u = -K^-1 (K_ik u + K_i d_k u + K_k d_i u),

so that one factorisation serves for all derivatives: products with K_k and K_ik are integrals of
c times modes.
"""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np
from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded

from surrokit.errors import NumericalError
from surrokit.types import FloatArray
from surrokit_problems.pde.karhunen_loeve import SquareModes
from surrokit_problems.pde.square_mesh import SquareMesh


@attrs.frozen(kw_only=True, eq=False)
class SteadyFlow:
    """A mesh, the modes of log c on it, and where the pressure is observed.

    Parameters
    ----------
    mesh
        The finite elements.
    modes : ndarray of shape (dim, 4 * cells^2)
        Scaled by the roots of their eigenvalues, at the quadrature points.
    lift : ndarray of shape (cells + 1, cells + 1)
        Any function on the nodes with the Dirichlet values.
    observation : ndarray of shape (k, cells + 1)
        From nodes to places of observation along either axis.
    """

    mesh: SquareMesh
    modes: FloatArray
    lift: FloatArray
    observation: FloatArray
    lift_slopes: FloatArray = attrs.field(init=False, repr=False)

    @lift_slopes.default
    def _slopes_of_lift(self) -> FloatArray:
        return self.mesh.slopes(self.lift)

    @classmethod
    def of(cls, *, cells: int, n_modes: int, observed: int, length: float) -> SteadyFlow:
        """Return the flow on ``cells`` x ``cells`` squares.

        Parameters
        ----------
        cells
            At least 2.
        n_modes
            Of log c, those with the greatest eigenvalues.
        observed
            Places of observation along either axis, from boundary to boundary.
        length
            Of the covariance of log c, whose variance is 1.

        Raises
        ------
        ConfigurationError
            If there are not so many modes to be told apart.
        """
        mesh = SquareMesh(cells)
        modes = SquareModes.leading(n_modes, length)
        on_grid = np.sqrt(modes.eigenvalues)[:, None, None] * modes.on_grid(
            mesh.points, mesh.points
        )
        x1, x2 = mesh.nodes[:, None], mesh.nodes[None, :]
        return cls(
            mesh=mesh,
            modes=mesh.at_points(on_grid).reshape(n_modes, -1),
            lift=x1 * (1.0 - x2) + (1.0 - x1) * x2,
            observation=mesh.interpolation(np.linspace(0.0, 1.0, observed)),
        )

    def solve(self, position: FloatArray) -> SolvedFlow:
        """Solve at one position (dim,).

        Raises
        ------
        NumericalError
            If the coefficient varies by more than double precision can solve with.
        """
        log_coefficient = position @ self.modes
        # the pressure depends on ratios of c alone; so c does not overflow
        coefficient = np.exp(log_coefficient - log_coefficient.max()).reshape(4, -1)
        bands = self.mesh.stiffness(coefficient)
        try:
            factor = cholesky_banded(bands, overwrite_ab=True, check_finite=False)
        except LinAlgError as error:
            extent = np.ptp(log_coefficient)
            raise NumericalError(
                "the pressure cannot be solved for where the logarithm of the coefficient varies "
                f"by {extent:.3g} over the square; start nearer to 0"
            ) from error
        loads = self.mesh.loads(coefficient * self.lift_slopes)
        pressure = self.lift - _inside(factor, loads)
        return SolvedFlow(flow=self, coefficient=coefficient, factor=factor, pressure=pressure)

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


@attrs.frozen(kw_only=True, eq=False, slots=False)
class SolvedFlow:
    """The pressure at one position, and its derivatives with the factor that gave it.

    Keeps to :class:`surrokit.potentials.ForwardDerivatives` with one row.

    Parameters
    ----------
    flow
        What was solved.
    coefficient : ndarray of shape (4, cells^2)
        c over its maximum, at the quadrature points.
    factor : ndarray of shape (cells + 1, number of free nodes)
        Cholesky factor of the stiffness matrix, in bands.
    pressure : ndarray of shape (cells + 1, cells + 1)
        u on the nodes.
    """

    flow: SteadyFlow
    coefficient: FloatArray
    factor: FloatArray
    pressure: FloatArray

    @property
    def outputs(self) -> FloatArray:
        """The pressure where observed, shape (1, m)."""
        return self.flow.observe(self.pressure)[None]

    @cached_property
    def fluxes(self) -> FloatArray:
        """The flux c grad u, shape (2, 4, cells^2)."""
        return np.asarray(self.coefficient * self.flow.mesh.slopes(self.pressure))

    def push(self, vectors: FloatArray) -> FloatArray:
        """Return J v for the one row v of ``vectors (1, dim)``, shape (1, m)."""
        return self.flow.observe(self._change(self._along(vectors[0])))[None]

    def pull_back(self, by_outputs: FloatArray) -> FloatArray:
        """Return J^T b for the one row b of ``by_outputs (1, m)``, shape (1, dim): one solve."""
        adjoint = self._solve(self.flow.spread(by_outputs[0]))
        return -self._contract(self.flow.mesh.slopes(adjoint), self.fluxes)[None]

    def jacobian(self) -> FloatArray:
        """Return J, shape (1, m, dim): one solve for each parameter, together."""
        return np.ascontiguousarray(self.flow.observe(self._sensitivities).T)[None]

    def hessian_product(self, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m, shape (1, dim), for W (1, m, dim)."""
        mesh = self.flow.mesh
        fields = self.flow.modes.reshape(-1, *self.coefficient.shape)
        spread = np.array([self.flow.spread(column) for column in weights[0].T])
        slopes = mesh.slopes(self._solve(spread))
        bent = (fields[:, None] * slopes).sum(axis=0)
        total = self._contract(bent, self.fluxes)
        changes = mesh.slopes(self._sensitivities)
        total += 0.25 * self.flow.by_modes(self.coefficient * (slopes * changes).sum(axis=(0, 1)))
        # what is left is the derivative of u along the load of all bent adjoints together
        adjoint = self._solve(mesh.loads(self.coefficient * bent))
        total -= self._contract(mesh.slopes(adjoint), self.fluxes)
        return -total[None]

    def hessian_form(self, by_outputs: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the same for W = b v^T, with rows b (1, m) and v (1, dim): three solves."""
        mesh, along = self.flow.mesh, self._along(vectors[0])
        slopes = mesh.slopes(self._solve(self.flow.spread(by_outputs[0])))
        change = mesh.slopes(self._change(along))
        bent = along * slopes
        adjoint = mesh.slopes(self._solve(mesh.loads(self.coefficient * bent)))
        total = self._contract(bent - adjoint, self.fluxes)
        total += self._contract(slopes, self.coefficient * change)
        return -total[None]

    @cached_property
    def _sensitivities(self) -> FloatArray:
        """d_k u on the nodes, shape (dim, cells + 1, cells + 1)."""
        fields = self.flow.modes.reshape(-1, 1, *self.coefficient.shape)
        return self._change(fields)

    def _along(self, vector: FloatArray) -> FloatArray:
        """Return the derivative of log c along a direction (dim,), shape (4, cells^2)."""
        return np.asarray((vector @ self.flow.modes).reshape(self.coefficient.shape))

    def _change(self, fields: FloatArray) -> FloatArray:
        """Return the derivative of u on the nodes along changes of log c, (..., 4, cells^2)."""
        return -self._solve(self.flow.mesh.loads(fields * self.fluxes))

    def _solve(self, loads: FloatArray) -> FloatArray:
        return _inside(self.factor, loads)

    def _contract(self, slopes: FloatArray, fluxes: FloatArray) -> FloatArray:
        """Return the integral of each mode times the product of slopes and fluxes, shape (dim,)."""
        return 0.25 * self.flow.by_modes((slopes * fluxes).sum(axis=0))


def _inside(factor: FloatArray, loads: FloatArray) -> FloatArray:
    """Solve for functions on the nodes that are 0 on the Dirichlet sides."""
    batch, n = loads.shape[:-2], loads.shape[-1]
    right = loads[..., 1:-1].reshape(-1, n * (n - 2)).T
    solved = cho_solve_banded((factor, False), right, overwrite_b=False, check_finite=False)
    functions = np.zeros_like(loads)
    functions[..., 1:-1] = solved.T.reshape(*batch, n, n - 2)
    return functions
