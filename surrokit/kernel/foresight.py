"""Proposals made before it is known whether those before them are accepted (prefetching)."""

from __future__ import annotations

import copy
import heapq
import itertools
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import attrs
import numpy as np

from surrokit.interfaces import ChainState, Decider, Kernel, Proposal, Status
from surrokit.types import FloatArray

LEAST = 0.05
"""Probability of being wanted, below which a position is not evaluated ahead."""

_FIRST_GUESS = (9, 10)  # moves accepted, of so many


class Ahead(Protocol):
    """Evaluates positions that may be wanted soon, while workers have nothing else to do."""

    @property
    def most(self) -> int:
        """Most positions at a time."""
        ...

    def room(self) -> int:
        """Return how many more positions may be begun."""
        ...

    def begin(self, positions: FloatArray) -> int:
        """Begin to evaluate ``positions (n, dim)``; return how many were not begun before."""
        ...

    def keep(self, wanted: set[bytes]) -> None:
        """Give up all positions but some, which are told by their bytes."""
        ...


class Foreseeing(Protocol):
    """A decider that can tell what follows from a decision before it can make it."""

    def suppose(
        self, state: ChainState, proposal: Proposal, rng: np.random.Generator, *, accepted: bool
    ) -> ChainState:
        """Return the state if all proposals were accepted, or none.

        What :meth:`~surrokit.interfaces.Decider.decide` would draw from ``rng`` is drawn.
        The state has no exact values.
        """
        ...


def can_foresee(decider: Decider) -> bool:
    """Return whether a decider supposes."""
    return hasattr(decider, "suppose")


@attrs.frozen(eq=False)
class _Node:
    """A proposal, the generator after it, and the positions that it wants exact values at.

    The proposal depends on its state by positions and cache alone, as those do that keep the
    density of a surrogate. So the node of a state whose values are not known yet will do.
    """

    kernel: Kernel
    state: ChainState
    before: Mapping[str, Any]
    proposal: Proposal
    after: np.random.Generator
    wanted: FloatArray
    children: dict[bool, _Node] = attrs.field(factory=dict)

    def fits(self, kernel: Kernel, state: ChainState, rng: np.random.Generator) -> bool:
        """Return whether this is what the kernel would propose, to the bit."""
        return (
            self.kernel is kernel
            and self.state.positions.tobytes() == state.positions.tobytes()
            and _same(self.before, rng.bit_generator.state)
        )


_Leaf: TypeAlias = tuple[float, int, _Node, bool]
"""Minus its probability, a number that is unlike others, and the way on from a node."""


class Foresight:
    """Makes proposals ahead, and has exact values at them evaluated by idle workers.

    Brockwell 2006 (doi:10.1198/106186006X100579). Proposals on a surrogate need no exact value, so
    the next ones can be made for either outcome of a decision. Those that are likeliest to be
    wanted are evaluated. Draws stay the same: the generator goes the same way, and what was
    evaluated for nothing is never looked at.

    Parameters
    ----------
    decider
        Of the chains; it supposes.
    ahead
        Evaluates positions.
    left
        Tells how many iterations are left after the one that begins.
    """

    def __init__(self, decider: Any, ahead: Ahead, left: Callable[[], int]) -> None:
        self._decider: Foreseeing = decider
        self._ahead, self._left = ahead, left
        self._root: _Node | None = None
        self._accepted, self._seen = _FIRST_GUESS
        self._works = True

    def propose(self, kernel: Kernel, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Return what the kernel proposes, and have values evaluated that may be wanted soon."""
        root = self._next(kernel, state, rng)
        self._root = root
        rng.bit_generator.state = root.after.bit_generator.state
        if self._works and root.proposal.keeps_source:
            self._look_ahead(root)
        return root.proposal

    def _next(self, kernel: Kernel, state: ChainState, rng: np.random.Generator) -> _Node:
        last, known = self._root, None
        if last is not None and last.children:
            for outcome, child in last.children.items():
                if child.fits(kernel, state, rng):
                    known = child
                    self._accepted += outcome
            self._seen += 1
            there = [child.state.positions.tobytes() for child in last.children.values()]
            if known is None and state.positions.tobytes() in there:
                self._works = False  # others draw from the generator in between
        return known or _propose(kernel, state, copy.deepcopy(rng))

    def _look_ahead(self, root: _Node) -> None:
        ahead, left = self._ahead, self._left()
        ahead.keep(_positions(root))
        room = ahead.room()
        if room > 0:
            room -= ahead.begin(root.wanted)
        numbers, leaves, depths = itertools.count(), list[_Leaf](), {id(root): 0}
        self._grow(leaves, root, 1.0, numbers)
        while leaves and room > 0:
            minus, _, node, outcome = heapq.heappop(leaves)
            depth = depths[id(node)] + 1
            if depth > min(left, 2 * ahead.most):
                continue
            child = node.children.get(outcome) or self._suppose(node, outcome)
            depths[id(child)] = depth
            room -= ahead.begin(child.wanted)
            self._grow(leaves, child, -minus, numbers)

    def _grow(
        self, leaves: list[_Leaf], node: _Node, probability: float, numbers: itertools.count[int]
    ) -> None:
        share = self._accepted / self._seen
        odds = {True: share}
        if len(node.state.positions) == 1:  # of several chains, some are accepted and some are not
            odds[False] = 1.0 - share
        for outcome, part in odds.items():
            if probability * part >= LEAST:
                heapq.heappush(leaves, (-probability * part, next(numbers), node, outcome))

    def _suppose(self, node: _Node, outcome: bool) -> _Node:
        rng = copy.deepcopy(node.after)
        state = self._decider.suppose(node.state, node.proposal, rng, accepted=outcome)
        child = node.children[outcome] = _propose(node.kernel, state, rng)
        return child


def _propose(kernel: Kernel, state: ChainState, rng: np.random.Generator) -> _Node:
    before, proposal = rng.bit_generator.state, kernel.propose(state, rng)
    rows = np.flatnonzero(proposal.moved & (proposal.status == Status.OK))
    return _Node(kernel, state, before, proposal, rng, proposal.positions[rows])


def _positions(root: _Node) -> set[bytes]:
    """Return all positions in a tree, by their bytes."""
    found, nodes = set[bytes](), [root]
    while nodes:
        node = nodes.pop()
        found |= {row.tobytes() for row in node.wanted}
        nodes += node.children.values()
    return found


def _same(one: Any, other: Any) -> bool:
    """Return whether two states of a generator are the same; some hold arrays."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    return bool(np.array_equal(one, other))
