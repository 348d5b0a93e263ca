"""Hamiltonian dynamics: metrics, integrators, and the phase that they move.

:class:`Phase` is on the hot path, and takes its arrays as they come.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol, Self, TypeGuard, cast

import attrs
import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.types import Cache, Capabilities, FloatArray, IntArray


class Status(IntEnum):
    """How a chain's trajectory ended; anything but ``OK`` is a rejection."""

    OK = 0
    """The path was followed to its end."""
    NOT_FINITE = 1
    """A position, momentum or gradient on the path was not finite."""
    NOT_CONVERGED = 2
    """An implicit equation was not solved to its tolerance."""
    NOT_REVERSIBLE = 3
    """The reverse path does not come back to the start."""


@attrs.frozen(kw_only=True, eq=False)
class Phase:
    """Positions and momenta of all chains, with what is known at the positions.

    Parameters
    ----------
    positions, momenta : ndarray of shape (n, dim)
        One row for each chain.
    cache
        Arrays that the integrator keeps for the positions; at least ``"value"`` and
        ``"gradient"`` for integrators that follow a gradient.
    """

    positions: FloatArray
    momenta: FloatArray
    cache: Cache


class Metric(Protocol):
    """The kinetic energy of momenta.

    This is the constant kind: K(p) = p^T M^-1 p / 2 with one mass matrix M for all positions.
    """

    @property
    def tunable(self) -> bool:
        """Whether the mass matrix is left to be tuned."""

    def adapt(self, covariance: FloatArray) -> Metric:
        """Return the metric whose M^-1 is a covariance (dim, dim), in the form of this kind."""

    def draw(self, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
        """Draw momenta from N(0, M), shape (n, dim)."""

    def velocity(self, momenta: FloatArray) -> FloatArray:
        """Return M^-1 p, shape (n, dim)."""

    def energy(self, momenta: FloatArray) -> FloatArray:
        """Return K(p) = p^T M^-1 p / 2, shape (n,)."""

    def longest_scale(self, covariance: FloatArray) -> float:
        """Return the largest standard deviation of a covariance in this metric's units."""


class Integrator(Protocol):
    """A reversible, volume-preserving map of positions and momenta.

    One chain's failure is a status, never an exception for the batch. An integrator for metrics
    that change with position (:class:`~surrokit.contracts.dynamics.PositionMetric`) has a true
    attribute ``by_position``.
    """

    @property
    def needs(self) -> Capabilities:
        """What the Hamiltonian's potential must offer."""

    def cache(self, hamiltonian: Hamiltonian, positions: FloatArray) -> Cache:
        """Evaluate what a path needs at its start, at positions (n, dim)."""

    def advance(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> tuple[Phase, IntArray]:
        """Follow each chain's path for its number of steps.

        Parameters
        ----------
        hamiltonian
            Energy that the path conserves.
        phase
            The start, with its cache; left unchanged.
        step_size : ndarray of shape (n,)
            Step of each chain; a negative one goes backwards.
        n_steps : ndarray of shape (n,)
            Steps of each chain, at least 1.

        Returns
        -------
        phase
            The end of each path; momenta are not negated.
        status : ndarray of shape (n,)
            :class:`~surrokit.contracts.dynamics.Status` of each path. Unless it is ``OK``, the end
            has no meaning.
        """


class PositionMetric(Protocol):
    """The kinetic energy of momenta, with a mass matrix G(q) that changes with position.

    K(q, p) = log det G / 2 + p^T G^-1 p / 2, equation (5) of Zhang, Shahbaba and Zhao (2017). Its
    results at positions form a cache, a dictionary of arrays with one row for each position. G and
    the derivative of G come from one potential: an integrator that took them from different
    places would not preserve volume.

    A row where G is not finite becomes NaN throughout, without effect on the other rows.
    """

    @property
    def needs(self) -> Capabilities:
        """What the potential must offer."""

    @property
    def tunable(self) -> bool:
        """Whether its units are left to be tuned."""

    def adapt(self, covariance: FloatArray) -> Self:
        """Return the metric in units in which a covariance (dim, dim) is the identity."""

    def factor(self, potential: Potential, positions: FloatArray) -> Cache:
        """Evaluate and factorise G at positions (n, dim): the only costly method.

        Raises
        ------
        IndefiniteMetricError
            If G is finite but not positive definite, and the metric does not regularise it.
        """

    def log_determinant_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache
    ) -> FloatArray:
        """Return tr(G^-1 d_k G) for each k, shape (n, dim)."""

    def form_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache, velocities: FloatArray
    ) -> FloatArray:
        """Return u^T d_k G u for each k, shape (n, dim), with u in ``velocities (n, dim)``."""

    def draw(self, rng: np.random.Generator, cache: Cache) -> FloatArray:
        """Draw momenta from N(0, G), shape (n, dim)."""

    def velocity(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return G^-1 p, shape (n, dim)."""

    def momentum(self, cache: Cache, velocities: FloatArray) -> FloatArray:
        """Return G u, shape (n, dim)."""

    def energy(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return K, shape (n,)."""

    def approximate_product(
        self, potential: Potential, positions: FloatArray, vectors: FloatArray
    ) -> FloatArray | None:
        """Return about G u, shape (n, dim), or None if that is not much cheaper than ``factor``.

        The product may be wrong where the metric is regularised: integrators approach a solution
        with it, and verify the solution with G itself.
        """


@attrs.frozen(kw_only=True, eq=False)
class Hamiltonian:
    """H(q, p) = U(q) + K(p), section 2.1 of Zhang, Shahbaba and Zhao (2017).

    With a metric that changes with position it is H(q, p) = U(q) + K(q, p), equation (5).

    Parameters
    ----------
    potential
        U, the exact potential or a fitted surrogate; the two are treated alike.
    metric
        K, the kinetic energy.
    """

    potential: Potential
    metric: Metric | PositionMetric

    def energy(self, phase: Phase) -> FloatArray:
        """Return H of each chain, shape (n,), from a phase whose cache holds the values."""
        if changes_with_position(self.metric):
            return phase.cache["value"] + self.metric.energy(phase.cache, phase.momenta)
        return phase.cache["value"] + cast("Metric", self.metric).energy(phase.momenta)


def changes_with_position(metric: object) -> TypeGuard[PositionMetric]:
    """Return whether a metric is a :class:`~surrokit.contracts.dynamics.PositionMetric`."""
    # a name that no constant metric has; ``factor`` would not do
    return hasattr(metric, "log_determinant_gradient")
