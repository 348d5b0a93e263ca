"""The Laplace approximation of a regression's posterior, and the parts of a run that follow."""

from __future__ import annotations

from typing import Any, Self

import attrs
import numpy as np

from surrokit.capabilities import HESSIAN_DERIVATIVE
from surrokit.compose import make
from surrokit.errors import NumericalError
from surrokit.mode.search import find_mode
from surrokit.potentials import Potential, with_gradient_alone, with_hessian, with_rows
from surrokit.targets.bounds import transform_of
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import FloatArray

MANY = 20_000
"""Rows from which on a few of them decide on a move."""


ROUGH = 0.5
"""Nats to which the mode of some rows is found: that of all is farther away."""


@attrs.frozen(kw_only=True, eq=False)
class Laplace:
    """A normal distribution at a mode, with the Hessian of U there as precision.

    ``factor (dim, dim)`` is L, lower triangular, with L L^T the ``covariance``. U and its
    derivatives are known at the ``centre (dim,)``, from which the mode is a short step of Newton's
    method; the mean is that, unless it is that of :meth:`at_mean`.
    """

    mean: FloatArray
    mode: FloatArray
    centre: FloatArray
    precision: FloatArray
    covariance: FloatArray
    factor: FloatArray

    @classmethod
    def of(cls, target: Potential, start: FloatArray) -> Self | None:
        """Return that of a posterior, whose mode is searched for from ``start (dim,)``.

        None where the Hessian is not positive definite.
        """
        mode = find_mode(target, start, tolerance=1e-5)
        precision = mode.hessian
        if precision is None:
            precision = with_hessian(target).hessian(mode.position[None])[0]
        return cls._near(mode.position, np.zeros(target.dim), precision)

    @classmethod
    def by_few(
        cls, target: Potential, few: Potential, prior: GaussianPrior, start: FloatArray
    ) -> Self | None:
        """Return that of a posterior by ``few``, the same with some rows in place of all.

        Newton steps go from the mode of few, with its Hessian and the gradient of all rows, whose
        second derivatives are evaluated once, at the end. None where such steps do not lead there.
        """
        found = find_mode(few, start, tolerance=ROUGH)
        if not found.converged or found.hessian is None:
            return None
        at, before = found.position, None
        for _ in range(8):
            gradient = with_gradient_alone(target).gradient(at[None])[0]
            step = np.linalg.solve(found.hessian, gradient)
            at, size = at - step, float(gradient @ step)
            # of what is left: steps become smaller at a constant rate
            if size * (1.0 if before is None else size / before) < 0.5:
                break
            before = size
        else:
            return None
        expansion = with_rows(target).expand(at)
        gradient = expansion.gradient + prior.value_and_gradient(at[None])[1][0]
        precision = expansion.hessian + np.diag(np.square(1.0 / prior.sd))
        return cls._near(at, gradient, precision)

    @classmethod
    def _near(cls, centre: FloatArray, gradient: FloatArray, precision: FloatArray) -> Self | None:
        try:
            inverse = np.linalg.inv(np.linalg.cholesky(precision))
            covariance = np.asarray(inverse.T @ inverse)
            factor = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        except np.linalg.LinAlgError:
            return None
        mode = centre - covariance @ gradient
        return cls(
            mean=mode,
            mode=mode,
            centre=centre,
            precision=precision,
            covariance=covariance,
            factor=factor,
        )

    def at_mean(self, terms: Potential) -> Self:
        """Return that with the posterior's mean in place of the mode, to the next order.

        Most of what U differs from its expansion is linear: third derivatives along all directions
        in which draws spread, tr(H^-1 d_k H) / 2. They are those of ``terms``, the posterior or one
        like it of fewer rows, and 0 where it does not have them.
        """
        if HESSIAN_DERIVATIVE not in terms.capabilities:
            return self
        curved: Any = terms
        slopes = curved.hessian_trace_gradient(self.centre[None], self.covariance[None])[0]
        return attrs.evolve(self, mean=self.mode - 0.5 * self.covariance @ slopes)

    def misfit(self, terms: Potential, n: int, rng: np.random.Generator) -> float:
        """Return the standard deviation of U - V over n draws, in nats; inf where U is.

        What U differs from its expansion at the centre is that of ``terms``, the posterior or one
        like it of fewer rows.
        """
        moves = rng.standard_normal((n, len(self.mean))) @ self.factor.T
        draws = self.mean + moves
        try:
            apart = terms.value(draws) - with_rows(terms).expand(self.centre).value(draws)
        except NumericalError:
            return np.inf
        apart += moves @ self.precision @ (self.mean - self.mode)
        return float(apart.std()) if np.isfinite(apart).all() else np.inf


def parts_near(
    normal: Laplace | None,
    target: Potential,
    few: Potential,
    n_rows: int,
    chains: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return arguments of :func:`surrokit.sample` that suit a regression's posterior.

    With :data:`MANY` rows or more, where the posterior is near its Laplace approximation, moves are
    independent draws of that, decided by a few rows, exactly. Elsewhere the chains move by
    Hamiltonian dynamics with its covariance as inverse mass matrix. Starts have its mean.
    ``few`` is the target or one like it of fewer rows, which shows how near that is.
    """
    if normal is None:
        return {"sampler": "hmc"}
    if n_rows >= MANY:
        normal = normal.at_mean(few)
    steps = rng.standard_normal((chains, len(normal.mean))) @ normal.factor.T
    starts = transform_of(target).to_bounded(normal.mean + steps - steps.mean(axis=0))
    # nearer than 0.6 nats, independent moves are accepted often
    if n_rows < MANY or normal.misfit(few, 8, rng) > 0.6:
        metric = ("dense", {"inverse_mass": normal.covariance})
        return {"initial": starts, "sampler": ("hmc", {"metric": metric})}
    return {
        "initial": starts,
        "sampler": ("gaussian", {"step_size": 1.0}),
        "surrogate": make("potential", "gaussian", mean=normal.mean, covariance=normal.covariance),
        "correction": ("subsampled", {"centre": normal.centre, "hessian": normal.precision}),
        "warmup": 10,
    }
