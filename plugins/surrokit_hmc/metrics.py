"""Constant mass matrices: identity, diagonal and dense.

Each holds the inverse mass matrix M^-1, whose best choice is the covariance of the target.
"""

from __future__ import annotations

from contextlib import suppress

import attrs
import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from surrokit.arguments import HIDDEN
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray


def _optional_array(value: npt.ArrayLike | None) -> FloatArray | None:
    if value is None:
        return None
    array = np.array(value, dtype=np.float64)
    array.setflags(write=False)
    return array


def _largest_scale(covariance: FloatArray) -> float:
    return float(np.sqrt(max(np.linalg.eigvalsh(covariance)[-1], 0.0)))


@attrs.frozen
class IdentityMetric:
    """M = I, as in all of the paper's experiments with HMC."""

    @property
    def tunable(self) -> bool:
        """Never."""
        return False

    def adapt(self, covariance: FloatArray) -> IdentityMetric:  # noqa: ARG002
        """Return itself."""
        return self

    def draw(self, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
        """Draw momenta from N(0, I), shape (n, dim)."""
        return rng.standard_normal((n, dim))

    def velocity(self, momenta: FloatArray) -> FloatArray:
        """Return the momenta."""
        return momenta

    def energy(self, momenta: FloatArray) -> FloatArray:
        """Return |p|^2 / 2, shape (n,)."""
        return 0.5 * np.asarray(np.einsum("ij,ij->i", momenta, momenta))

    def longest_scale(self, covariance: FloatArray) -> float:
        """Return the largest standard deviation of a covariance (dim, dim)."""
        return _largest_scale(covariance)


@attrs.frozen(eq=False)
class _Mass:
    """An inverse mass matrix that was given or is learnt, and is the identity until then."""

    inverse_mass: FloatArray | None = attrs.field(default=None, converter=_optional_array)
    learnt: FloatArray | None = attrs.field(default=None, kw_only=True, metadata=HIDDEN)

    @property
    def tunable(self) -> bool:
        """Whether no mass was given."""
        return self.inverse_mass is None

    @property
    def known(self) -> FloatArray | None:
        """M^-1, or its diagonal; None for the identity."""
        return self.learnt if self.inverse_mass is None else self.inverse_mass

    def white(self, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
        """Return normal draws (n, dim), if the mass given is for so many parameters."""
        if self.inverse_mass is not None and len(self.inverse_mass) != dim:
            raise ShapeError(
                f"inverse_mass is for {len(self.inverse_mass)} parameters, but the target has "
                f"{dim}; give one for each"
            )
        return rng.standard_normal((n, dim))


@attrs.frozen(eq=False)
class DiagonalMetric(_Mass):
    """A diagonal mass matrix.

    Parameters
    ----------
    inverse_mass : array_like of shape (dim,), optional
        Diagonal of M^-1; None leaves it to be tuned, and is the identity until then.

    Raises
    ------
    ConfigurationError
        If an element is not positive.
    """

    def __attrs_post_init__(self) -> None:
        variance = self.inverse_mass
        if variance is not None and not (
            variance.ndim == 1 and (variance > 0).all() and np.isfinite(variance).all()
        ):
            raise ConfigurationError(
                f"inverse_mass of a diagonal metric must be a vector of positive finite numbers, "
                f"got {variance}"
            )

    def adapt(self, covariance: FloatArray) -> DiagonalMetric:
        """Return the metric whose M^-1 is the diagonal of a covariance (dim, dim)."""
        return attrs.evolve(self, learnt=np.diag(covariance).copy())

    @property
    def _variance(self) -> FloatArray | float:
        return 1.0 if self.known is None else self.known

    def draw(self, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
        """Draw momenta from N(0, M), shape (n, dim)."""
        return self.white(rng, n, dim) / np.sqrt(self._variance)

    def velocity(self, momenta: FloatArray) -> FloatArray:
        """Return M^-1 p, shape (n, dim)."""
        return momenta * self._variance

    def energy(self, momenta: FloatArray) -> FloatArray:
        """Return p^T M^-1 p / 2, shape (n,)."""
        return np.asarray(0.5 * (np.square(momenta) * self._variance).sum(axis=1))

    def longest_scale(self, covariance: FloatArray) -> float:
        """Return the largest standard deviation of a covariance in units of this metric."""
        scale = np.sqrt(self._variance * np.ones(len(covariance)))
        return _largest_scale(covariance / scale[:, None] / scale)


@attrs.frozen(eq=False)
class DenseMetric(_Mass):
    """A full mass matrix.

    Parameters
    ----------
    inverse_mass : array_like of shape (dim, dim), optional
        M^-1, positive definite; None leaves it to be tuned, and is the identity until then.

    Raises
    ------
    ConfigurationError
        If it is not symmetric and positive definite.
    """

    # L and L^-1 with M^-1 = L L^T, made once, so that a draw is one small product. A triangular
    # solve for each draw goes through threads of the BLAS, which on a busy machine cost a thousand
    # times the work.
    _factors: tuple[FloatArray, FloatArray] | None = attrs.field(init=False)

    @_factors.default
    def _make_factors(self) -> tuple[FloatArray, FloatArray] | None:
        covariance = self.known
        if covariance is None:
            return None
        square = covariance.ndim == 2 and covariance.shape[0] == covariance.shape[1]
        if square and np.isfinite(covariance).all() and np.allclose(covariance, covariance.T):
            with suppress(np.linalg.LinAlgError):
                factor = np.asarray(np.linalg.cholesky(covariance))
                return factor, solve_triangular(factor, np.eye(len(factor)), lower=True)
        raise ConfigurationError(
            "inverse_mass of a dense metric must be a symmetric positive definite matrix of finite "
            f"numbers, got {covariance.tolist()}"
        )

    def adapt(self, covariance: FloatArray) -> DenseMetric:
        """Return the metric whose M^-1 is a covariance (dim, dim)."""
        return attrs.evolve(self, learnt=covariance)

    def draw(self, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
        """Draw momenta from N(0, M), shape (n, dim)."""
        white = self.white(rng, n, dim)
        # p = L^-T x has covariance M; here p and x are rows
        return white if self._factors is None else white @ self._factors[1]

    def velocity(self, momenta: FloatArray) -> FloatArray:
        """Return M^-1 p, shape (n, dim)."""
        return momenta if self.known is None else momenta @ self.known

    def energy(self, momenta: FloatArray) -> FloatArray:
        """Return p^T M^-1 p / 2, shape (n,)."""
        white = momenta if self._factors is None else momenta @ self._factors[0]
        return 0.5 * np.asarray(np.einsum("ij,ij->i", white, white))

    def longest_scale(self, covariance: FloatArray) -> float:
        """Return the largest standard deviation of a covariance in units of this metric."""
        if self._factors is None:
            return _largest_scale(covariance)
        if covariance is self.known:
            return 1.0
        inverse = self._factors[1]
        return _largest_scale(inverse @ covariance @ inverse.T)
