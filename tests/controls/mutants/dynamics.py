"""Broken integrators and metrics."""

from __future__ import annotations

from typing import Any, Self

import attrs
import numpy as np

from mutants.passing import Passing
from surrokit.interfaces import Hamiltonian, Phase, Status
from surrokit.kernel.hamiltonian import position_metric
from surrokit.potentials import Potential, with_gradient
from surrokit.testing.wrappers import Wrapped
from surrokit.types import Cache, FloatArray, IntArray


class LastHalfStepMissing(Passing):
    """A leapfrog without its last half kick: volume is kept, reversibility is not."""

    def advance(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> tuple[Phase, IntArray]:
        """Follow the path, and take the last half kick back."""
        end, status = self.inner.advance(hamiltonian, phase, step_size, n_steps)
        potential = with_gradient(hamiltonian.potential)
        _, gradient = potential.value_and_gradient(end.positions)
        kick = 0.5 * step_size[:, None] * gradient
        return attrs.evolve(end, momenta=end.momenta + kick), status


class RefittedInsidePath(Passing):
    """The potential becomes another one half way along every path."""

    def advance(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> tuple[Phase, IntArray]:
        """Follow the first half on the potential, the second on the one refitted."""
        first = n_steps // 2
        going = np.flatnonzero(first > 0)
        middle, status = phase, np.zeros(len(n_steps), dtype=np.int64)
        if going.size == len(n_steps):
            middle, status = self.inner.advance(hamiltonian, phase, step_size, first)
        else:
            first = np.zeros_like(first)
        refitted = Hamiltonian(
            potential=_Refitted(hamiltonian.potential), metric=hamiltonian.metric
        )
        middle = attrs.evolve(middle, cache=self.inner.cache(refitted, middle.positions))
        end, last = self.inner.advance(refitted, middle, step_size, n_steps - first)
        cache = self.inner.cache(hamiltonian, end.positions)
        return attrs.evolve(end, cache=cache), np.where(status == Status.OK, last, status)


class _Refitted(Wrapped):
    """V(q) of a fit that is a fifth steeper."""

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,)."""
        return 1.2 * self.inner.value(positions)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient, shape (n, dim)."""
        value, gradient = with_gradient(self.inner).value_and_gradient(positions)
        return 1.2 * value, 1.2 * gradient

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of V, shape (n, dim)."""
        return self.value_and_gradient(positions)[1]


class VolumeChanged(Passing):
    """Reversible to the last digit, but not volume-preserving.

    Momenta are scaled by a function of position at the start, and back by it at the end: as an
    exact metric with a surrogate's derivative does. No test of reversal sees it.
    """

    def advance(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> tuple[Phase, IntArray]:
        """Follow the path of scaled momenta."""
        scaled = attrs.evolve(phase, momenta=phase.momenta * _scale(phase.positions))
        end, status = self.inner.advance(hamiltonian, scaled, step_size, n_steps)
        return attrs.evolve(end, momenta=end.momenta / _scale(end.positions)), status


def _scale(positions: FloatArray) -> FloatArray:
    return 1.0 + 0.05 * np.tanh(positions[:, :1])


class MismatchedMetric(Passing):
    """Draws momenta with one metric and scores them with another."""

    def adapt(self, covariance: FloatArray) -> MismatchedMetric:
        """Return the metric with its scoring one adapted."""
        return MismatchedMetric(self.inner.adapt(covariance))

    def draw(self, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
        """Draw momenta that are too large, shape (n, dim)."""
        return 1.1 * self.inner.draw(rng, n, dim)


class AcceptedTooEarly(Passing):
    """Takes for the solution of an implicit equation what is only near it, and does not look back.

    As with a fixed number of passes, which is what most published code makes.
    """

    def advance(self, *start: Any) -> tuple[Phase, IntArray]:
        """Follow the path with loose solutions."""
        hasty = attrs.evolve(self.inner, tolerance=0.01, check_reversal=False)
        return hasty.advance(*start)


class ForeignSlope(Passing):
    """Follows G of one place and dG of another, as of an exact metric and a surrogate's derivative.

    Every path comes back to the last digit; volume is not preserved.
    """

    def cache(self, hamiltonian: Hamiltonian, positions: FloatArray) -> Cache:
        """Return what the sound one keeps."""
        return self.inner.cache(_torn(hamiltonian), positions)

    def advance(self, hamiltonian: Hamiltonian, *start: Any) -> tuple[Phase, IntArray]:
        """Follow the path of the Hamiltonian with the foreign derivative."""
        return self.inner.advance(_torn(hamiltonian), *start)


class _Metric(Passing):
    def adapt(self, covariance: FloatArray) -> Self:
        """Return the metric around the sound one adapted."""
        return type(self)(self.inner.adapt(covariance))

    def log_determinant_gradient(self, *given: Any) -> FloatArray:
        """Return the sound one's; by it a metric that changes with position is known."""
        return self.inner.log_determinant_gradient(*given)


class _Torn(_Metric):
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


class MismatchedPositionMetric(_Metric):
    """Draws momenta with one metric and scores them with another."""

    def draw(self, rng: np.random.Generator, cache: Cache) -> FloatArray:
        """Draw momenta that are too large, shape (n, dim)."""
        return 1.1 * self.inner.draw(rng, cache)


class DeterminantLeftOut(_Metric):
    """The energy forgets log det G, as that of a constant mass matrix may."""

    def energy(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return p^T G^-1 p / 2 alone, shape (n,)."""
        return 0.5 * np.asarray((momenta * self.inner.velocity(cache, momenta)).sum(axis=1))
