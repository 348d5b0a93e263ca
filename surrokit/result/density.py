"""The surrogate of a run as a normalised density: a prior of other data, or a proposal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import check_positions, load_library
from surrokit.capabilities import GRADIENT
from surrokit.coordinates.constraints import CoordinateMap
from surrokit.errors import CapabilityError, ConfigurationError
from surrokit.kernel.jumps import StudentT
from surrokit.limits import one_thread
from surrokit.potentials import Potential, with_gradient
from surrokit.types import BoolArray, FloatArray, Pair
from surrokit.weighted.round import RESAMPLING_SEED

MOST = 20_000
"""Draws by which the constant is estimated, without an exact call."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SurrogateDensity:
    """The density exp(-V) / Z of a surrogate V, in the user's coordinates.

    It is an approximation of the posterior, and a prior for :func:`surrokit.forward_potential`.

    Parameters
    ----------
    surrogate
        V, in the sampling coordinates, volume included.
    transform
        The map to the user's coordinates.
    log_constant
        log Z.
    """

    surrogate: Potential
    transform: CoordinateMap
    log_constant: float
    unnormalized: ClassVar[tuple[str, ...]] = ()

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.transform.n_user

    def logpdf(self, positions: npt.ArrayLike) -> FloatArray:
        """Return the log density at positions (..., dim), shape (...); -inf outside the support."""
        places = np.atleast_1d(np.asarray(positions, dtype=np.float64))
        flat = check_positions(places.reshape(-1, places.shape[-1]), self.dim)
        found = np.full(len(flat), -np.inf)
        line, inside = self._on_line(flat)
        with one_thread():
            values = self.surrogate.value(line)
        found[inside] = -values - self.transform.log_jacobian(line) - self.log_constant
        return found.reshape(places.shape[:-1])

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return minus the log density at positions (n, dim), and its gradient.

        Raises
        ------
        CapabilityError
            If the surrogate has no gradient.
        """
        if GRADIENT not in self.surrogate.capabilities:
            raise CapabilityError(
                "the surrogate has no gradient; learn one that has, such as 'additive'"
            )
        flat = check_positions(positions, self.dim)
        values, gradients = np.full(len(flat), np.inf), np.full(flat.shape, np.nan)
        line, inside = self._on_line(flat)
        with one_thread():
            on_line, slopes = with_gradient(self.surrogate).value_and_gradient(line)
        volume, of_volume = self.transform.volume(line)
        values[inside] = on_line + volume + self.log_constant
        jacobians = self.transform.pull_outputs(
            line, np.broadcast_to(np.eye(self.dim), (len(line), self.dim, self.dim))
        )
        across = np.swapaxes(jacobians, 1, 2)
        gradients[inside] = np.linalg.solve(across, (slopes + of_volume)[..., None])[..., 0]
        return values, gradients

    def to_jax(self) -> Callable[[Any], Any]:
        """Return the log density of one position (dim,) as a function for JAX, with its gradient.

        It calls back into this process, and is differentiated once, in reverse.

        Raises
        ------
        MissingDependencyError
            If JAX is not installed.
        """
        jax: Any = load_library("jax", "jax")

        def both(position: Any) -> Pair:
            values, gradients = self.value_and_gradient(np.atleast_2d(np.asarray(position)))
            shape = np.shape(position)
            return -values.reshape(shape[:-1]), -gradients.reshape(shape)

        def call(position: Any) -> Any:
            shapes = (
                jax.ShapeDtypeStruct(position.shape[:-1], position.dtype),
                jax.ShapeDtypeStruct(position.shape, position.dtype),
            )
            return jax.pure_callback(both, shapes, position, vmap_method="expand_dims")

        @jax.custom_vjp  # type: ignore[untyped-decorator]
        def logpdf(position: Any) -> Any:
            return call(position)[0]

        logpdf.defvjp(call, lambda gradient, weight: (weight * gradient,))
        found: Callable[[Any], Any] = logpdf
        return found

    def _on_line(self, flat: FloatArray) -> tuple[FloatArray, BoolArray]:
        with np.errstate(all="ignore"):
            line = self.transform.to_unbounded(flat)
        inside = np.asarray(np.isfinite(line).all(axis=1))
        return line[inside], inside

    def __repr__(self) -> str:
        return f"<SurrogateDensity of {self.dim} numbers>"


def density_of(
    surrogate: Potential | None, transform: CoordinateMap, positions: FloatArray
) -> SurrogateDensity:
    """Return the density of a surrogate, whose constant is estimated by importance sampling.

    Draws are those of a multivariate t that fits the positions.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        Draws of the posterior in the sampling coordinates.

    Raises
    ------
    ConfigurationError
        If there is no surrogate, or constraints tie numbers together.
    """
    if surrogate is None:
        raise ConfigurationError(
            "the run has no surrogate whose density there could be; name one in surrogate="
        )
    if positions.shape[1] != transform.n_user:
        raise ConfigurationError(
            "constraints tie numbers together, so that a density of all of them is not defined; "
            "use parameters that are free"
        )
    law = StudentT.fit(positions[:: max(len(positions) // 4000, 1)])
    places = law.draw(MOST, np.random.default_rng(RESAMPLING_SEED))
    with one_thread():
        logs = -surrogate.value(places) - law.log_density(places)
    highest = logs.max()
    constant = highest + np.log(np.exp(logs - highest).mean())
    return SurrogateDensity(surrogate=surrogate, transform=transform, log_constant=float(constant))
