"""A plugin for surrokit: a sampler, a surrogate and a target."""

import attrs
import numpy as np

import surrokit as sk
from surrokit.arguments import positive
from surrokit.plugin import Proposal

ridge = sk.potential(lambda q: 0.5 * ((q[0] - 1) ** 2 + (q[1] - q[0] ** 2) ** 2), dim=2)


@attrs.frozen(kw_only=True)
class HeavyWalk:
    """A random walk whose moves have the tails of Student's t.

    Parameters
    ----------
    scale
        Of a move in each direction.
    """

    scale: float = attrs.field(default=1.0, validator=positive)
    needs, tunes, target_acceptance, uses_potential = frozenset(), frozenset(), 0.3, False
    potential, step = None, None

    def bind(self, potential, tuning):  # noqa: ARG002
        return self

    def cache(self, _):
        return {}

    def propose(self, state, rng):
        moves = self.scale * rng.standard_t(3, state.positions.shape)
        return Proposal(positions=state.positions + moves)


@sk.batch_surrogate
def bowl(rows, _):
    near = rows.values < rows.values.min() + 100.0
    q, u = rows.positions[near], rows.values[near]
    design = np.column_stack([np.ones(len(q)), q, 0.5 * q**2])
    level, slope, bend = np.split(np.linalg.lstsq(design, u, rcond=None)[0], [1, 1 + q.shape[1]])

    def value_and_gradient(q):
        gradient = slope + np.maximum(bend, 1e-3) * q
        return level + 0.5 * np.sum(q * (slope + gradient), axis=1), gradient

    return sk.potential(value_and_gradient=value_and_gradient, dim=len(slope), batched=True)


@sk.hookimpl
def surrokit_components():
    parts = [
        ("sampler", "toy-walk", "surrokit_toy:HeavyWalk", "Random walk with heavy tails"),
        ("surrogate", "toy-bowl", "surrokit_toy:bowl", "Parabola in each coordinate"),
        ("potential", "toy-ridge", "surrokit_toy:ridge", "Curved ridge in two dimensions"),
    ]
    return [sk.Component(*part, references=("surrokit's guide to plugins",)) for part in parts]
