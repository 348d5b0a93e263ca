"""Leapfrog steps that are halved where the energy errs."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.arguments import positive, positive_integer
from surrokit.capabilities import GRADIENT
from surrokit.interfaces import Hamiltonian, Phase, Status
from surrokit.kernel.hamiltonian import copy_phase, put_rows, take_rows
from surrokit.types import BoolArray, Cache, Capabilities, FloatArray, IntArray
from surrokit_hmc.leapfrog import Leapfrog

_LEAPFROG = Leapfrog()

SURE = 4
"""Parts of a step that keep the energy, after which one without density crosses a bound: shorter
parts would cross it too, and are not tried."""


@attrs.frozen(kw_only=True)
class AdaptiveLeapfrog:
    """Steps of 1, 2, 4, ... leapfrog steps: as few as keep the energy, seen from either end.

    Bou-Rabee, Carpenter, Kleppe and Liu (2025, arXiv:2506.18746). A step of size h is cut into the
    least number of parts, a power of two, at which all energies along it lie within ``max_error``.
    That number depends on where the step starts, so it must be found from the end as well: where
    fewer parts would do on the way back, or would cross a bound, the step is ``NOT_REVERSIBLE``.
    What is left is one-to-one and undone by the same rule, and keeps volume, as the number of parts
    is constant almost everywhere nearby.

    Parameters
    ----------
    max_error
        Largest range of the energy on a step, in nats.
    max_halvings
        A step has at most 2 to this power parts; one that needs more, or whose parts keep the
        energy until the density ends, ends as ``NOT_FINITE``.
    """

    max_error: float = attrs.field(default=1.0, validator=positive)
    max_halvings: int = attrs.field(default=10, validator=positive_integer)

    @property
    def needs(self) -> Capabilities:
        """Gradients."""
        return frozenset({GRADIENT})

    def cache(self, hamiltonian: Hamiltonian, positions: FloatArray) -> Cache:
        """Return value, shape (n,), and gradient, shape (n, dim), at positions (n, dim)."""
        return _LEAPFROG.cache(hamiltonian, positions)

    def advance(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> tuple[Phase, IntArray]:
        """Follow each chain's path for its number of steps; see the protocol."""
        n, dim = phase.positions.shape
        none = {"momentum": np.zeros((n, dim)), "whole": np.zeros(n)}
        end = attrs.evolve(copy_phase(phase), last_step=none)
        status = np.zeros(n, dtype=np.int64)
        for done in range(int(n_steps.max())):
            rows = np.flatnonzero((n_steps > done) & (status == Status.OK))
            if rows.size:
                there, status[rows] = self._step(hamiltonian, take_rows(end, rows), step_size[rows])
                put_rows(end, rows, there)
        return end, status

    def _step(
        self, hamiltonian: Hamiltonian, start: Phase, step: FloatArray
    ) -> tuple[Phase, IntArray]:
        end = take_rows(start, np.arange(len(step)))
        halved, rows = np.full(len(step), -1), np.arange(len(step))
        for halvings in range(self.max_halvings + 1):
            begin = take_rows(start, rows)
            there, sound, beyond = self._cut(hamiltonian, begin, step[rows], halvings)
            put_rows(end, rows[sound], there)
            halved[rows[sound]] = halvings
            rows = rows[~(sound | beyond)]
            if not rows.size:
                break
        status = np.where(halved < 0, int(Status.NOT_FINITE), int(Status.OK))
        status[~self._leads_back(hamiltonian, end, step, halved)] = Status.NOT_REVERSIBLE
        return end, status

    def _leads_back(
        self, hamiltonian: Hamiltonian, end: Phase, step: FloatArray, halved: IntArray
    ) -> BoolArray:
        """Return which steps (n,) would be halved as often from their end, and not less."""
        leads: BoolArray = np.ones(len(step), dtype=bool)
        for halvings in range(int(halved.max())):
            rows = np.flatnonzero((halved > halvings) & leads)
            begin = take_rows(end, rows)
            _, sound, beyond = self._cut(hamiltonian, begin, -step[rows], halvings)
            leads[rows] = ~(sound | beyond)
        return leads

    def _cut(
        self, hamiltonian: Hamiltonian, start: Phase, step: FloatArray, halvings: int
    ) -> tuple[Phase, BoolArray, BoolArray]:
        """Take steps (n,) in 2^halvings parts.

        Return the phase of those that keep the energy, which do, and which cross a bound.
        """
        point, size, one = start, step / 2**halvings, np.ones(len(step), dtype=np.int64)
        sound, beyond = np.ones(len(step), dtype=bool), np.zeros(len(step), dtype=bool)
        lowest = highest = hamiltonian.energy(start)
        momentum = np.zeros_like(start.momenta)
        for part in range(2**halvings):
            momentum += point.momenta - 0.5 * size[:, None] * point.cache["gradient"]
            point, status = _LEAPFROG.advance(hamiltonian, point, size, one)
            energy = hamiltonian.energy(point)
            lowest, highest = np.minimum(lowest, energy), np.maximum(highest, energy)
            kept = (status == Status.OK) & (highest - lowest <= self.max_error)
            if not kept.all():
                beyond[np.flatnonzero(sound)[status != Status.OK]] = part >= SURE
                sound[sound] = kept
                point = take_rows(point, np.flatnonzero(kept))
                lowest, highest, size, one = (row[kept] for row in (lowest, highest, size, one))
                momentum = momentum[kept]
            if not len(size):
                break
        ends = 0.5 * (point.momenta - start.momenta[sound])
        known = {
            "momentum": momentum / 2**halvings + ends,
            "whole": np.full(len(size), float(halvings == 0)),
        }
        return attrs.evolve(point, last_step=known), sound, beyond
