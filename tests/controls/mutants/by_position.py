"""Broken integrators and metrics of dynamics in a metric that changes with position."""

from __future__ import annotations

from typing import Any, Self

import attrs
import numpy as np

from surrokit.interfaces import Hamiltonian, Phase, PositionMetric
from surrokit.kernel.hamiltonian import position_metric
from surrokit.potentials import Potential
from surrokit.types import Cache, Capabilities, FloatArray, IntArray


@attrs.frozen(eq=False)
class AcceptedTooEarly:
    """Takes for the solution of an implicit equation what is only near it, and does not look back.

    As with a fixed number of passes, which is what most published code makes.

    Parameters
    ----------
    inner
        A sound integrator, with settings ``tolerance`` and ``check_reversal``.
    tolerance
        How near.
    """

    inner: Any
    tolerance: float = 0.01

    @property
    def by_position(self) -> bool:
        """Always."""
        return True

    @property
    def needs(self) -> Capabilities:
        """What the sound one needs."""
        return frozenset(self.inner.needs)

    def cache(self, hamiltonian: Hamiltonian, positions: FloatArray) -> Cache:
        """Return what the sound one keeps."""
        cache: Cache = self.inner.cache(hamiltonian, positions)
        return cache

    def advance(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> tuple[Phase, IntArray]:
        """Follow the path with loose solutions."""
        hasty = attrs.evolve(self.inner, tolerance=self.tolerance, check_reversal=False)
        end: tuple[Phase, IntArray] = hasty.advance(hamiltonian, phase, step_size, n_steps)
        return end


@attrs.frozen(eq=False)
class ForeignSlope:
    """Follows G of one place and dG of another, as of an exact metric and a surrogate's derivative.

    Every path comes back to the last digit; volume is not preserved.

    Parameters
    ----------
    inner
        A sound integrator.
    """

    inner: Any

    @property
    def by_position(self) -> bool:
        """Always."""
        return True

    @property
    def needs(self) -> Capabilities:
        """What the sound one needs."""
        return frozenset(self.inner.needs)

    def cache(self, hamiltonian: Hamiltonian, positions: FloatArray) -> Cache:
        """Return what the sound one keeps."""
        cache: Cache = self.inner.cache(_torn(hamiltonian), positions)
        return cache

    def advance(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> tuple[Phase, IntArray]:
        """Follow the path of the Hamiltonian with the foreign derivative."""
        end: tuple[Phase, IntArray] = self.inner.advance(
            _torn(hamiltonian), phase, step_size, n_steps
        )
        return end


@attrs.frozen(eq=False)
class _Wrapped:
    """Passes everything on to a sound metric.

    Parameters
    ----------
    inner
        The sound metric.
    """

    inner: PositionMetric

    @property
    def needs(self) -> Capabilities:
        """What the sound one needs."""
        return self.inner.needs

    @property
    def tunable(self) -> bool:
        """Whether the sound one is."""
        return self.inner.tunable

    def adapt(self, covariance: FloatArray) -> Self:
        """Return the metric around the sound one adapted."""
        return attrs.evolve(self, inner=self.inner.adapt(covariance))

    def factor(self, potential: Potential, positions: FloatArray) -> Cache:
        """Return what the sound one keeps."""
        return self.inner.factor(potential, positions)

    def log_determinant_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache
    ) -> FloatArray:
        """Return the sound one's."""
        return self.inner.log_determinant_gradient(potential, positions, cache)

    def form_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache, velocities: FloatArray
    ) -> FloatArray:
        """Return the sound one's."""
        return self.inner.form_gradient(potential, positions, cache, velocities)

    def draw(self, rng: np.random.Generator, cache: Cache) -> FloatArray:
        """Draw as the sound one does."""
        return self.inner.draw(rng, cache)

    def velocity(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return the sound one's."""
        return self.inner.velocity(cache, momenta)

    def momentum(self, cache: Cache, velocities: FloatArray) -> FloatArray:
        """Return the sound one's."""
        return self.inner.momentum(cache, velocities)

    def energy(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return the sound one's."""
        return self.inner.energy(cache, momenta)

    def approximate_product(
        self, potential: Potential, positions: FloatArray, vectors: FloatArray
    ) -> FloatArray | None:
        """Return the sound one's."""
        return self.inner.approximate_product(potential, positions, vectors)


class _Torn(_Wrapped):
    """The derivative is that of another place."""

    def log_determinant_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache
    ) -> FloatArray:
        """Return tr(G(q)^-1 dG) with dG from elsewhere."""
        return self.inner.log_determinant_gradient(potential, positions + _ELSEWHERE, cache)

    def form_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache, velocities: FloatArray
    ) -> FloatArray:
        """Return u^T dG u with dG from elsewhere."""
        return self.inner.form_gradient(potential, positions + _ELSEWHERE, cache, velocities)


_ELSEWHERE = 0.3


def _torn(hamiltonian: Hamiltonian) -> Hamiltonian:
    metric = position_metric(hamiltonian.metric, "this mutant")
    return attrs.evolve(hamiltonian, metric=_Torn(metric))


@attrs.frozen(eq=False)
class MismatchedPositionMetric(_Wrapped):
    """Draws momenta with one metric and scores them with another.

    Parameters
    ----------
    scale
        Momenta are drawn larger by this factor.
    """

    scale: float = 1.1

    def draw(self, rng: np.random.Generator, cache: Cache) -> FloatArray:
        """Draw momenta that are too large, shape (n, dim)."""
        return self.scale * self.inner.draw(rng, cache)


@attrs.frozen(eq=False)
class DeterminantLeftOut(_Wrapped):
    """The energy forgets log det G, as that of a constant mass matrix may."""

    def energy(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return p^T G^-1 p / 2 alone, shape (n,)."""
        return 0.5 * np.asarray((momenta * self.inner.velocity(cache, momenta)).sum(axis=1))
