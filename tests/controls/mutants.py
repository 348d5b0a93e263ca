"""Parts broken on purpose, each made from a sound one that it passes everything else on to."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import attrs
import numpy as np

from surrokit.capabilities import HESSIAN
from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Decision, Hamiltonian, Status
from surrokit.kernel.hamiltonian import metropolis
from surrokit.testing.parts import SubChain, moved_on
from surrokit.testing.wrappers import Wrapped


class Passing:
    """Has all that a sound part has."""

    def __init__(self, inner: Any, **settings: Any) -> None:
        self.inner = inner
        vars(self).update(settings)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def again(self, inner):
        return type(self)(inner, **{k: v for k, v in vars(self).items() if k != "inner"})


def changed(inner: Any, **methods: Any) -> Passing:
    """Return a part with methods by functions of the sound part and their arguments."""
    return Passing(inner, **{name: partial(method, inner) for name, method in methods.items()})


# --- corrections ---


class _BrokenCorrection(Passing):
    def bind(self, potential):
        return _BrokenDecider(self.inner.bind(self.spoilt(potential)), mutant=self)

    def decide(self, decider, state, proposal, rng):
        return decider.decide(state, proposal, rng)

    def spoilt(self, potential):
        return potential


class _BrokenDecider(Passing):
    def prepare(self, near):
        return self.again(self.inner.prepare(near))

    def decide(self, state, proposal, rng):
        return self.mutant.decide(self.inner, state, proposal, rng)


class SurrogateDecides(_BrokenCorrection):
    """A correction that has the surrogate's energy in the acceptance ratio."""

    def decide(self, decider, state, proposal, rng):
        if proposal.source is None:
            return decider.decide(state, proposal, rng)
        judged = attrs.evolve(state, values=state.cache["value"])
        return self.inner.bind(proposal.source).decide(judged, proposal, rng)


class StayingCountsAsAccepted(_BrokenCorrection):
    """A correction that calls a proposal to stay accepted, so that a stuck chain looks its best.

    ``method`` is where it says so: ``accepted`` or ``acceptance``.
    """

    def decide(self, decider, state, proposal, rng):
        after, info = decider.decide(state, proposal, rng)
        before = getattr(info, self.method)
        said = np.where(np.isnan(info.acceptance), True, before).astype(before.dtype)
        return after, attrs.evolve(info, **{self.method: said})


class Mistold(_BrokenCorrection):
    """A correction that is told proposals which say something else in some fields."""

    def decide(self, decider, state, proposal, rng):
        return decider.decide(state, attrs.evolve(proposal, **self.says(proposal)), rng)


class OldCacheKept(_BrokenCorrection):
    """A chain that moves keeps what the sampler knew where it was."""

    def decide(self, decider, state, proposal, rng):
        after, info = decider.decide(state, proposal, rng)
        return attrs.evolve(after, cache=state.cache), info


class AllAccepted(_BrokenCorrection):
    """Accepts whatever is proposed."""

    def decide(self, decider, state, proposal, rng):
        certain = np.full(len(state.positions), np.inf)
        return decider.decide(state, attrs.evolve(proposal, log_correction=certain), rng)


class LinearTermsDropped(_BrokenCorrection):
    """Expands the terms without g_i . h, as if the centre were a mode of each of them."""

    def spoilt(self, potential):
        return _OtherExpansion(potential, WithoutLinearTerms)


class BoundsHalved(_BrokenCorrection):
    """Believes in bounds half as large as they are, so that rates of rejection are cut off there.

    A correction that looks sees changes beyond the bounds; these are hidden from it.
    """

    def spoilt(self, potential):
        return _OtherExpansion(potential, _CutOff)


class WithoutLinearTerms(Passing):
    def value(self, positions):
        return self.inner.value(positions) - (positions - self.inner.centre) @ self.inner.gradient


class _CutOff(Passing):
    def remainders(self, positions, rows, owners):
        z = np.linalg.solve(self.factor, (positions - self.inner.centre).T).T
        most = 0.5 * self.bounds[rows] * np.linalg.norm(z, axis=1)[owners] ** 3
        return np.clip(self.inner.remainders(positions, rows, owners), -most, most)


class _OtherExpansion(Wrapped):
    """A sum with other expansions, each of which has the last bounds that were asked for."""

    def __init__(self, inner, kind):
        super().__init__(inner)
        self.kind = kind
        self._asked = {}

    def row_bounds(self, factor):
        self._asked = {"factor": factor, "bounds": self.inner.row_bounds(factor)}
        return self._asked["bounds"]

    def expand(self, centre):
        return self.kind(self.inner.expand(centre), **self._asked)


# --- integrators and metrics ---


class LastHalfStepMissing(Passing):
    """A leapfrog without its last half kick: volume is kept, reversibility is not."""

    def advance(self, hamiltonian, phase, step_size, n_steps):
        end, status = self.inner.advance(hamiltonian, phase, step_size, n_steps)
        _, gradient = hamiltonian.potential.value_and_gradient(end.positions)
        kick = 0.5 * step_size[:, None] * gradient
        return attrs.evolve(end, momenta=end.momenta + kick), status


class RefittedInsidePath(Passing):
    """The potential becomes another one half way along every path."""

    def advance(self, hamiltonian, phase, step_size, n_steps):
        first = n_steps // 2
        middle, status = phase, np.zeros(len(n_steps), dtype=np.int64)
        if (first > 0).all():
            middle, status = self.inner.advance(hamiltonian, phase, step_size, first)
        else:
            first = np.zeros_like(first)
        refitted = attrs.evolve(hamiltonian, potential=_Refitted(hamiltonian.potential))
        middle = attrs.evolve(middle, cache=self.inner.cache(refitted, middle.positions))
        end, last = self.inner.advance(refitted, middle, step_size, n_steps - first)
        cache = self.inner.cache(hamiltonian, end.positions)
        return attrs.evolve(end, cache=cache), np.where(status == Status.OK, last, status)


class _Refitted(Wrapped):
    """V(q) of a fit that is a fifth steeper."""

    def evaluate(self, method, function, positions):
        found = function(positions)
        return tuple(1.2 * each for each in found) if isinstance(found, tuple) else 1.2 * found


class OneLengthForAll(Passing):
    """Every path has as many steps as the longest."""

    def advance(self, hamiltonian, phase, step_size, n_steps):
        longest = np.full_like(n_steps, n_steps.max())
        return self.inner.advance(hamiltonian, phase, step_size, longest)


class VolumeChanged(Passing):
    """Reversible to the last digit, but not volume-preserving.

    Momenta are scaled by a function of position at the start, and back by it at the end: as an
    exact metric with a surrogate's derivative does. No test of reversal sees it.
    """

    def advance(self, hamiltonian, phase, step_size, n_steps):
        def scale(positions):
            return 1.0 + 0.05 * np.tanh(positions[:, :1])

        scaled = attrs.evolve(phase, momenta=phase.momenta * scale(phase.positions))
        end, status = self.inner.advance(hamiltonian, scaled, step_size, n_steps)
        return attrs.evolve(end, momenta=end.momenta / scale(end.positions)), status


class AcceptedTooEarly(Passing):
    """Takes for the solution of an implicit equation what is only near it, and does not look back.

    As with a fixed number of passes, which is what most published code makes.
    """

    def advance(self, *start):
        return attrs.evolve(self.inner, tolerance=0.01, check_reversal=False).advance(*start)


class ForeignSlope(Passing):
    """Follows G of one place and dG of another, as of an exact metric and a surrogate's derivative.

    Every path comes back to the last digit; volume is not preserved.
    """

    def cache(self, hamiltonian, positions):
        return self.inner.cache(self._torn(hamiltonian), positions)

    def advance(self, hamiltonian, *start):
        return self.inner.advance(self._torn(hamiltonian), *start)

    def _torn(self, hamiltonian):
        return Hamiltonian(potential=hamiltonian.potential, metric=Torn(hamiltonian.metric))


class _Metric(Passing):
    def adapt(self, covariance):
        return self.again(self.inner.adapt(covariance))

    def log_determinant_gradient(self, *given):  # by which a metric by position is known
        return self.inner.log_determinant_gradient(*given)


class Torn(_Metric):
    """The derivative is that of another place."""

    def log_determinant_gradient(self, potential, positions, cache):
        return self.inner.log_determinant_gradient(potential, positions + 0.3, cache)

    def form_gradient(self, potential, positions, cache, velocities):
        return self.inner.form_gradient(potential, positions + 0.3, cache, velocities)


class MismatchedMetric(Passing):
    """Draws momenta that are too large, with one metric, and scores them with another."""

    def adapt(self, covariance):
        return self.again(self.inner.adapt(covariance))

    def draw(self, *given):
        return 1.1 * self.inner.draw(*given)


class MismatchedPositionMetric(_Metric, MismatchedMetric):
    """The same, of a metric that changes with position."""


class DeterminantLeftOut(_Metric):
    """The energy forgets log det G, as that of a constant mass matrix may."""

    def energy(self, cache, momenta):
        return 0.5 * np.asarray((momenta * self.inner.velocity(cache, momenta)).sum(axis=1))


# --- learners and schedules ---


class _BrokenLearner(Passing):
    def restore(self, state):
        return self.again(self.inner.restore(state))


class _BrokenSurrogate(Passing):
    def learner(self, problem, rng):
        return self.broken(self.inner.learner(problem, rng))


class LiveSnapshot(_BrokenSurrogate):
    """Fitted potentials go on learning with their learner."""

    def broken(self, learner):
        return _LiveLearner(learner)


class _LiveLearner(_BrokenLearner):
    def fit(self):
        self.inner.fit()  # raises where there is nothing to fit
        return _Live(self.inner)


class _Live(Passing):
    def __getattr__(self, name):
        return getattr(super().__getattr__("fit")(), name)


class OnlyFirstRows(_BrokenSurrogate):
    """Learners take in only the first half of each block, as if rows came in order of worth."""

    def broken(self, learner):
        return _HalfLearner(learner)


class _HalfLearner(_BrokenLearner):
    def observe(self, evaluations):
        self.inner.observe(evaluations.take(slice(0, (len(evaluations) + 1) // 2)))


class EndsWhenRestored(_BrokenSurrogate):
    """Learners that are restored learn no more."""

    def broken(self, learner):
        def restore(state):
            return Passing(learner.restore(state), observe=lambda evaluations: None)

        return Passing(learner, restore=restore)


class FitsToNothing(_BrokenSurrogate):
    """Learners without rows fit a potential all the same."""

    def broken(self, learner):
        return _FitsToNothing(learner)


class _FitsToNothing(_BrokenLearner):
    def fit(self):
        with suppress(SurrogateFitError):
            return self.inner.fit()


class _BrokenSchedule(Passing):
    """Learns as a sound schedule does."""

    learns = True


class NeverFreezes(_BrokenSchedule):
    """Deploys every tenth iteration, kept draws included, for ever."""

    def decide(self, moment, rng):
        sound = self.inner.decide(moment, rng)
        again = moment.iteration % 10 == 0
        return Decision(observe=True, deploy=sound.deploy or again, frozen=False)


class NeverVanishes(_BrokenSchedule):
    """Deploys at random, at a rate that falls at first and then stays at 1 / 50."""

    def decide(self, moment, rng):
        sound = self.inner.decide(moment, rng)
        rate = 0.02 + 1.0 / (1.0 + max(moment.since_explored, 0))
        again = moment.since_explored > 0 and bool(rng.random() < rate)
        return Decision(observe=True, deploy=sound.deploy or again, frozen=False)


class RefitsNowAndThen(_BrokenSchedule):
    """Says that it is frozen, and deploys once more every ten thousand iterations."""

    def decide(self, moment, rng):
        sound = self.inner.decide(moment, rng)
        return attrs.evolve(sound, deploy=sound.deploy or moment.iteration % 10_000 == 0)


# --- potentials ---


class Shifted(Wrapped):
    """Answers as a function close by does, to one method: one shifted by 0.01."""

    def __init__(self, inner, method):
        super().__init__(inner)
        self.method = method

    def evaluate(self, method, function, positions):
        return function(positions + 0.01 if method == self.method else positions)


class Answers(Wrapped):
    """Answers by a change of a function of rows and the rows."""

    def __init__(self, inner, change):
        super().__init__(inner)
        self.change = change

    def evaluate(self, method, function, positions):
        return self.change(function, positions)


# --- samplers ---


class _BrokenSampler(Passing):
    def bind(self, potential, tuning):
        return _BrokenKernel(self.inner.bind(potential, tuning), mutant=self)

    def propose(self, kernel, state, rng):
        return self.spoilt(kernel.propose(state, rng))


class _BrokenKernel(Passing):
    def propose(self, state, rng):
        return self.mutant.propose(self.inner, state, rng)


class KineticEnergyLeftOut(_BrokenSampler):
    """The acceptance ratio forgets K(p) - K(p')."""

    def spoilt(self, proposal):
        return attrs.evolve(proposal, log_correction=np.zeros(len(proposal.positions)))


class Misproposed(_BrokenSampler):
    """A sampler whose proposals say something else in some fields."""

    def spoilt(self, proposal):
        return attrs.evolve(proposal, **self.says(proposal))


class SignTurned(_BrokenSampler):
    """K(p') - K(p) where K(p) - K(p') is due."""

    def spoilt(self, proposal):
        return attrs.evolve(proposal, log_correction=-proposal.log_correction)


def _refused(proposal, kept, status):
    refused = np.where(kept, proposal.status, int(status))
    return attrs.evolve(proposal, status=refused, moved=proposal.moved & kept)


class RejectsIndefinite(_BrokenSampler):
    """Rejects proposals where the Hessian is not positive definite, which truncates the target."""

    @property
    def needs(self):
        return self.inner.needs | {HESSIAN}

    def spoilt(self, proposal):
        ok = proposal.status == Status.OK
        hessian = np.broadcast_to(np.eye(2), (len(ok), 2, 2)).copy()
        hessian[ok] = proposal.source.hessian(proposal.positions[ok])
        definite = np.linalg.eigvalsh(hessian)[:, 0] > 0
        return _refused(proposal, definite, Status.NOT_CONVERGED)


class RefusesFarPoints(_BrokenSampler):
    """Rejects proposals that are far from the origin, which empties the tails."""

    radius = 2.5  # where "far" begins, in each coordinate

    def spoilt(self, proposal):
        near = (np.abs(proposal.positions) < self.radius).all(axis=1)
        return _refused(proposal, near, Status.NOT_FINITE)


class NetForStuckChains(_BrokenSampler):
    """A safety net: a chain that stood still five times makes a random-walk move instead.

    Each of the two moves is sound. When to take which depends on the path's past, and that biases.
    """

    patience = 5  # how often a chain may stand still
    last, times = None, None

    def propose(self, kernel, state, rng):
        proposal = kernel.propose(state, rng)
        net = state.positions + rng.standard_normal(state.positions.shape)
        stuck = self._times_still(state.positions) >= self.patience
        if not stuck.any():
            return proposal
        positions = np.where(stuck[:, None], net, proposal.positions)
        return attrs.evolve(
            proposal,
            positions=positions,
            log_correction=np.where(stuck, 0.0, proposal.log_correction),
            moved=proposal.moved | stuck,
            status=np.where(stuck, int(Status.OK), proposal.status),
            cache=kernel.cache(positions),
        )

    def _times_still(self, positions):
        times = np.zeros(len(positions))
        if self.last is not None and self.last.shape == positions.shape:
            times = np.where((self.last == positions).all(axis=1), self.times + 1, 0)
        self.last, self.times = positions.copy(), times
        return times


class StopsAtFirstMove(SubChain):
    """A sub-chain that ends at its first accepted move, and so has a path-dependent length.

    With short moves E q^2 comes out too small (0.955 for 1), with long ones too large (1.24).
    """

    def goes_on(self, moved):
        return ~moved


class NotPalindromic(SubChain):
    """A sub-chain of two different kernels, always in the same order.

    Each leaves exp(-V) as it is and is reversible; one after the other they are not reversible, so
    that c = V(q') - V(q) does not hold.
    """

    def propose(self, state, rng):
        positions, values = state.positions, state.cache["value"]
        for direction in (np.array([1.0, 0.0]), np.array([1.0, 1.0])):
            length = 2.0 * rng.standard_normal((len(values), 1))
            new = positions + length * direction
            new_values = self.potential.value(new)
            with np.errstate(invalid="ignore"):
                accepted, _ = metropolis(values - new_values, rng)
            positions = np.where(accepted[:, None], new, positions)
            values = np.where(accepted, new_values, values)
        everyone = np.ones(len(values), dtype=bool)
        return moved_on(self.potential, state, positions, values, everyone)
