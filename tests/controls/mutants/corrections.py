"""Broken corrections."""

from __future__ import annotations

from typing import Any, Self

import attrs
import numpy as np

from surrokit.interfaces import ChainState, Correction, Decider, Proposal, StepInfo
from surrokit.potentials import Potential, RowExpansion, move_bounds, with_rows
from surrokit.testing.wrappers import Wrapped
from surrokit.types import Cache, Capabilities, FloatArray, IntArray


@attrs.frozen(eq=False)
class _BrokenCorrection:
    """Passes everything on to a sound correction; subclasses spoil it."""

    inner: Correction

    @property
    def needs(self) -> Capabilities:
        """What the sound one needs."""
        return self.inner.needs

    def bind(self, potential: Potential) -> Decider:
        """Return what decides by an exact potential."""
        return _BrokenDecider(self.inner.bind(self.spoilt(potential)), self)

    def decide(
        self, decider: Decider, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Decide as the sound one does, which is bound."""
        return decider.decide(state, proposal, rng)

    def spoilt(self, potential: Potential) -> Potential:
        """Return what the sound one decides by."""
        return potential


@attrs.frozen(eq=False)
class _BrokenDecider:
    """A sound correction that is bound, and what spoils it."""

    inner: Decider
    mutant: _BrokenCorrection

    def prepare(self, near: FloatArray) -> Self:
        """Prepare the sound one."""
        return attrs.evolve(self, inner=self.inner.prepare(near))

    def start(self, positions: FloatArray, cache: Cache, source: Potential | None) -> ChainState:
        """Start as the sound one does."""
        return self.inner.start(positions, cache, source)

    def decide(
        self, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Decide as the mutant does."""
        return self.mutant.decide(self.inner, state, proposal, rng)


class SurrogateDecides(_BrokenCorrection):
    """A correction that has the surrogate's energy in the acceptance ratio."""

    def decide(
        self, decider: Decider, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Decide by the potential that the sampler moved on."""
        if proposal.source is None:
            return decider.decide(state, proposal, rng)
        judged = attrs.evolve(state, values=state.cache["value"])
        return self.inner.bind(proposal.source).decide(judged, proposal, rng)


class StayingCountsAsAccepted(_BrokenCorrection):
    """A correction that calls a proposal to stay accepted, so that a stuck chain looks its best."""

    def decide(
        self, decider: Decider, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Decide as the sound one does, and count what needed no decision."""
        after, info = decider.decide(state, proposal, rng)
        stays = np.isnan(info.acceptance)
        acceptance = np.where(stays, 1.0, info.acceptance)
        return after, attrs.evolve(info, accepted=info.accepted | stays, acceptance=acceptance)


class FirstFactorLeftOut(_BrokenCorrection):
    """Tests the product over rows only, and forgets min(1, exp(V(q) - V(q') + c))."""

    def decide(
        self, decider: Decider, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Decide with a c that makes the first factor 1."""
        certain = np.full(len(state.positions), np.inf)
        return decider.decide(state, attrs.evolve(proposal, log_correction=certain), rng)


class LinearTermsDropped(_BrokenCorrection):
    """Expands the terms without g_i . h, as if the centre were a mode of each of them."""

    def spoilt(self, potential: Potential) -> Potential:
        """Return a sum whose expansions lack their linear terms."""
        return _OtherExpansion(potential, _WithoutLinearTerms)


class BoundsHalved(_BrokenCorrection):
    """Believes in bounds half as large as they are, so that rates of rejection are cut off there.

    A correction that looks sees changes beyond the bounds; these are hidden from it.
    """

    def spoilt(self, potential: Potential) -> Potential:
        """Return a sum whose rows never change by more than half their bounds."""
        return _OtherExpansion(potential, _CutOff)


class _Expansion:
    """Passes everything on to a sound expansion; has the last bounds that were asked for."""

    def __init__(self, inner: RowExpansion, factor: FloatArray, bounds: FloatArray) -> None:
        self.inner, self.factor, self.bounds = inner, factor, bounds

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)


class _WithoutLinearTerms(_Expansion):
    def value(self, positions: FloatArray) -> FloatArray:
        return self.inner.value(positions) - (positions - self.inner.centre) @ self.inner.gradient


class _CutOff(_Expansion):
    def changes(
        self, before: FloatArray, after: FloatArray, rows: IntArray, owners: IntArray
    ) -> FloatArray:
        changes = self.inner.changes(before, after, rows, owners)
        return np.minimum(changes, 0.5 * self.bounds[rows] * self._spread(before, after)[owners])

    def _spread(self, before: FloatArray, after: FloatArray) -> FloatArray:
        z, w = (np.linalg.solve(self.factor, (q - self.inner.centre).T).T for q in (before, after))
        return move_bounds(np.asarray(z, dtype=np.float64), np.asarray(w, dtype=np.float64))


class _OtherExpansion(Wrapped):
    """A summed potential with other expansions, each made of a sound one, a factor and bounds."""

    def __init__(self, inner: Potential, kind: type[_Expansion]) -> None:
        super().__init__(inner)
        self.kind = kind
        self._asked: dict[str, FloatArray] = {}

    def row_bounds(self, factor: FloatArray) -> FloatArray:
        """Return the sound bounds, and remember them."""
        bounds = with_rows(self.inner).row_bounds(factor)
        self._asked = {"factor": factor, "bounds": bounds}
        return bounds

    def expand(self, centre: FloatArray) -> Any:
        """Return the broken expansion; bounds are to be asked for first."""
        return self.kind(with_rows(self.inner).expand(centre), **self._asked)
