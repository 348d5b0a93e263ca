"""Broken integrators and metrics."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.dynamics import Hamiltonian, Integrator, Metric, Phase, Status
from surrokit.contracts.potential import with_gradient
from surrokit.testing.wrappers import Wrapped
from surrokit.types import Cache, Capabilities, FloatArray, IntArray


@attrs.frozen(eq=False)
class _BrokenIntegrator:
    """Passes on what a sound integrator needs.

    Parameters
    ----------
    inner
        The sound integrator.
    """

    inner: Integrator

    @property
    def needs(self) -> Capabilities:
        """What the sound one needs."""
        return self.inner.needs

    def cache(self, hamiltonian: Hamiltonian, positions: FloatArray) -> Cache:
        """Return what the sound one keeps."""
        return self.inner.cache(hamiltonian, positions)


class LastHalfStepMissing(_BrokenIntegrator):
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


class RefittedInsidePath(_BrokenIntegrator):
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


class VolumeChanged(_BrokenIntegrator):
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


@attrs.frozen(eq=False)
class MismatchedMetric:
    """Draws momenta with one metric and scores them with another.

    Parameters
    ----------
    scoring
        Gives energy and velocity.
    scale
        Momenta are drawn larger by this factor.
    """

    scoring: Metric
    scale: float = 1.1

    @property
    def tunable(self) -> bool:
        """Whether the scoring metric is."""
        return self.scoring.tunable

    def adapt(self, covariance: FloatArray) -> MismatchedMetric:
        """Return the metric with its scoring one adapted."""
        return attrs.evolve(self, scoring=self.scoring.adapt(covariance))

    def draw(self, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
        """Draw momenta that are too large, shape (n, dim)."""
        return self.scale * self.scoring.draw(rng, n, dim)

    def velocity(self, momenta: FloatArray) -> FloatArray:
        """Return the scoring metric's velocity."""
        return self.scoring.velocity(momenta)

    def energy(self, momenta: FloatArray) -> FloatArray:
        """Return the scoring metric's energy."""
        return self.scoring.energy(momenta)

    def longest_scale(self, covariance: FloatArray) -> float:
        """Return the scoring metric's longest scale."""
        return self.scoring.longest_scale(covariance)
