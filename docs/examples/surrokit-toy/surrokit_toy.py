"""A plugin for surrokit: one part of each of six kinds."""

import attrs
import numpy as np

from surrokit import plugin as sp

ridge = sp.potential(lambda q: 0.5 * ((q[0] - 1) ** 2 + (q[1] - q[0] ** 2) ** 2), dim=2)


@sp.batch_surrogate
def bowl(rows, _):
    rows = rows.take(rows.values < rows.values.min() + 100.0)
    q, dim = rows.positions, rows.positions.shape[1]
    terms = np.linalg.lstsq(np.c_[np.ones(len(q)), q, 0.5 * q**2], rows.values)[0]
    level, slope, bend = terms[0], terms[1 : 1 + dim], np.maximum(terms[1 + dim :], 1e-3)

    def both(q):
        return level + q @ slope + 0.5 * q**2 @ bend, slope + bend * q

    return sp.potential(value_and_gradient=both, dim=dim, batched=True)


class Walk(sp.Sampler, sp.Kernel):  # a sampler that moves without a potential is its own kernel
    needs, tunes, target_acceptance, uses_potential = frozenset(), frozenset(), 0.3, False

    def bind(self, potential, tuning):  # noqa: ARG002
        return self

    def propose(self, state, rng):
        return sp.Proposal(positions=state.positions + rng.standard_t(3, state.positions.shape))


@attrs.frozen
class Masses:  # M^-1 is diagonal
    _variances: object = 1.0
    tunable = True

    def adapt(self, covariance):
        return Masses(np.diag(covariance))

    def draw(self, rng, n, dim):
        return rng.standard_normal((n, dim)) / np.sqrt(self._variances)

    def velocity(self, momenta):
        return self._variances * momenta

    def energy(self, momenta):
        return 0.5 * np.sum(self._variances * momenta**2, axis=1)

    def longest_scale(self, covariance):
        return float(np.sqrt(np.max(np.linalg.eigvals(covariance / self._variances).real)))


@attrs.frozen
class Barker(sp.Decider):  # accepts with probability r / (1 + r), Metropolis with min(1, r)
    _exact: object = None
    needs = frozenset()

    def bind(self, potential):
        return Barker(potential)

    def start(self, positions, cache, source):
        return sp.state_at(self._exact, positions, cache, source)

    def decide(self, state, proposal, rng):
        values = sp.proposed_values(self._exact, state, proposal)
        log_odds = state.values - values + proposal.log_correction
        log_odds[(proposal.status != sp.Status.OK) | np.isnan(log_odds)] = -np.inf
        chance = np.exp(-np.logaddexp(0.0, -log_odds))
        return sp.carry_out(state, proposal, values, rng.random(len(chance)) < chance, chance)


class Cloud(sp.Explorer):  # evaluates a normal cloud about the starts
    def explore(self, start, rng):
        found = sp.Findings(chains=sp.state_at(start.potential, start.positions, {}, None))
        yield sp.Explored(findings=found)
        for left in reversed(range(20)):
            start.potential.value(start.positions + rng.standard_normal(start.positions.shape))
            yield sp.Explored(findings=found, rows=start.evaluated(), done=not left)


@sp.hookimpl
def surrokit_components():
    kinds = {"potential": "ridge", "surrogate": "bowl", "sampler": "Walk", "metric": "Masses"}
    return [
        sp.Component(kind, f"toy-{of.lower()}", f"surrokit_toy:{of}", of, references=("a toy",))
        for kind, of in (kinds | {"correction": "Barker", "explorer": "Cloud"}).items()
    ]
