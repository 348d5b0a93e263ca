"""The Laplace approximation of a regression's posterior, and the parts of a run that follow."""

from __future__ import annotations

from typing import Any, Self

import attrs
import numpy as np

from surrokit.compose import make
from surrokit.errors import NumericalError
from surrokit.mode.search import find_mode
from surrokit.potentials import Potential, with_gradient_alone, with_hessian, with_rows
from surrokit.targets.bounds import transform_of
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import FloatArray

MANY = 20_000
"""Rows from which on a few of them decide on a move."""


@attrs.frozen(kw_only=True, eq=False)
class Laplace:
    """A normal distribution at a mode, with the Hessian of U there as precision.

    ``factor (dim, dim)`` is L, lower triangular, with L L^T the ``covariance``. U and its
    derivatives are known at the ``centre (dim,)``, from which the mean is a short step of Newton's
    method; ``least`` is U at the mean.
    """

    mean: FloatArray
    centre: FloatArray
    least: float
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
        return cls._near(mode.position, mode.value, np.zeros(target.dim), precision)

    @classmethod
    def by_few(
        cls, target: Potential, few: Potential, prior: GaussianPrior, start: FloatArray
    ) -> Self | None:
        """Return that of a posterior by ``few``, the same with some rows in place of all.

        Newton steps go from the mode of few, with its Hessian and the gradient of all rows, whose
        second derivatives are evaluated once, at the end. None where such steps do not lead there.
        """
        found = find_mode(few, start)
        if not found.converged or found.hessian is None:
            return None
        at = found.position
        for _ in range(6):
            gradient = with_gradient_alone(target).gradient(at[None])[0]
            step = np.linalg.solve(found.hessian, gradient)
            at = at - step
            if gradient @ step < 5.0:  # of which the next step leaves little
                break
        else:
            return None
        expansion = with_rows(target).expand(at)
        gradient = expansion.gradient + prior.value_and_gradient(at[None])[1][0]
        precision = expansion.hessian + np.diag(np.square(1.0 / prior.sd))
        return cls._near(at, float(expansion.value(at[None])[0]), gradient, precision)

    @classmethod
    def _near(
        cls, centre: FloatArray, value: float, gradient: FloatArray, precision: FloatArray
    ) -> Self | None:
        try:
            inverse = np.linalg.inv(np.linalg.cholesky(precision))
            covariance = np.asarray(inverse.T @ inverse)
            factor = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        except np.linalg.LinAlgError:
            return None
        step = covariance @ gradient
        return cls(
            mean=centre - step,
            centre=centre,
            least=value - 0.5 * float(gradient @ step),
            precision=precision,
            covariance=covariance,
            factor=factor,
        )

    def misfit(self, target: Potential, n: int, rng: np.random.Generator) -> float:
        """Return the root mean square of U - V over n draws, in nats; inf where U is."""
        z = rng.standard_normal((n, len(self.mean)))
        try:
            values = target.value(self.mean + z @ self.factor.T)
        except NumericalError:
            return np.inf
        apart = values - self.least - 0.5 * np.square(z).sum(axis=1)
        return float(np.sqrt(np.square(apart).mean())) if np.isfinite(apart).all() else np.inf


def parts_near(
    normal: Laplace | None, target: Potential, n_rows: int, chains: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Return arguments of :func:`surrokit.sample` that suit a regression's posterior.

    With :data:`MANY` rows or more, where the posterior is near its Laplace approximation, moves are
    independent draws of that, decided by a few rows, exactly. Elsewhere the chains move by
    Hamiltonian dynamics with its covariance as inverse mass matrix. Starts have the mode as mean.
    """
    if normal is None:
        return {"sampler": "hmc"}
    steps = rng.standard_normal((chains, len(normal.mean))) @ normal.factor.T
    starts = transform_of(target).to_bounded(normal.mean + steps - steps.mean(axis=0))
    # nearer than 0.6 nats, independent moves are accepted often
    if n_rows < MANY or normal.misfit(target, 4, rng) > 0.6:
        metric = ("dense", {"inverse_mass": normal.covariance})
        return {"initial": starts, "sampler": ("hmc", {"metric": metric})}
    return {
        "initial": starts,
        "sampler": "gaussian",
        "surrogate": make("potential", "gaussian", mean=normal.mean, covariance=normal.covariance),
        "correction": ("subsampled", {"centre": normal.centre, "hessian": normal.precision}),
        "warmup": 20,
    }
