"""The choice of a network's size, and of its scale and trend by small networks that go ahead.

Fits to the same rows in the same coordinates are comparable by their generalised cross-validation
errors. Measured on targets with two modes, heavy tails, curved ridges and none of these: the choice
comes within a factor of two of the best scale and trend, where a fixed one can be a thousand times
worse; it beats one held-out fifth. Six networks of 300 nodes take some tenths of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.surrogate.quality import expected_acceptance
from surrokit.types import FloatArray
from surrokit_networks.nodes import Nodes
from surrokit_networks.training_rows import TrainingRows
from surrokit_networks.trend import Trend

Draw = Callable[[FloatArray, int, np.random.Generator], Nodes | None]
"""From whitened training positions (n, dim), a number of nodes, and a generator."""

N_NODES = 300
"""Nodes of a small network."""

FINE_SIZES = (400, 3000)
"""Nodes that learn outputs at least and at most, where accuracy is worth more than speed."""

_FLAT = 2.0
"""Handicap of a linear trend."""

_EQUATIONS = 10_000
"""Equations that a small network is fitted to, at most."""

_GAIN = 0.02
"""Acceptance that nodes have to bring where outputs are learnt: a fiftieth."""

_GOOD = 0.9
"""Acceptance of a trend alone from which on it is under all nodes that are tried."""


def default_size(dim: int, n_values: int, n_gradients: int) -> int:
    """Return how many nodes a network gets, by default.

    Measured at fixed points on logistic, quartic and banana targets. On values alone, with the
    ridge chosen from the data, more nodes than points are always better, by a factor of two in the
    gradient's error from s = 2 n / 3 to s = 4 n / 3. With gradients the trend takes most of the
    work, and from 400 nodes on the error hardly falls; what nodes cost is the leapfrog's time.
    """
    if n_gradients:
        return int(np.clip(100 * dim, 400, 1000))
    return min(200 * dim, int(np.clip(2 * n_values, 1000, 2000)))


def fine_size(n_equations: int) -> int:
    """Return how many nodes learn outputs where accuracy is worth more than speed.

    Measured on the elliptic equation with 20 parameters: from 295 points with Jacobians the sd of
    V - U is 0.096 nats by a trend alone, and 0.072, 0.046 and 0.032 with 1,000, 2,000 and 3,000
    nodes. A gradient for 32 positions then takes 0.1, 0.4, 0.7 and 1.1 milliseconds. Equations are
    those of each output: points, and their derivatives.
    """
    return int(np.clip(n_equations // 2, *FINE_SIZES))


@attrs.frozen(kw_only=True, eq=False)
class Candidate:
    """A way to draw nodes, and a trend under them.

    A trend that does not grow in every direction lets paths run off, and must be better by its
    handicap, a factor on its error.
    """

    draw: Draw
    trend: Trend
    handicap: float = 1.0


def candidates(draws: Sequence[Draw], trend: Trend) -> list[Candidate]:
    """Return every pair of a way to draw nodes and a trend; ``"auto"`` gives two trends."""
    if trend != "auto":
        return [Candidate(draw=draw, trend=trend) for draw in draws]
    flat = [Candidate(draw=draw, trend="linear", handicap=_FLAT) for draw in draws]
    return [Candidate(draw=draw, trend="auto") for draw in draws] + flat


def pilot_rows(rows: TrainingRows, n_equations: int, rng: np.random.Generator) -> TrainingRows:
    """Return rows for small networks: all, or a random part where they make many equations."""
    share = _EQUATIONS / n_equations
    if share >= 1.0:
        return rows
    chosen = np.zeros(len(rows), dtype=bool)
    chosen[rng.permutation(len(rows))[: max(2, int(share * len(rows)))]] = True
    return rows.take(chosen)


def best_of(ways: Sequence[Candidate], error: Callable[[Candidate], float]) -> Candidate:
    """Return the way with the least error; the first of them where none can be fitted.

    The error is the generalised cross-validation error of a small network; it may raise
    :class:`~surrokit.errors.SurrogateFitError`.
    """
    return ways[0] if len(ways) == 1 else _best_of(ways, error)[0]


def simplest_of(
    ways: Sequence[Candidate], trend: Trend, variance: Callable[[Candidate], float]
) -> Candidate:
    """Return the trend alone where nodes hardly raise the acceptance, else the best of the ways.

    A trend alone is fitted in a hundredth of the time, and its gradients take a third. The variance
    is that of V - U which a small network leads to expect, in nats squared; it may raise
    :class:`~surrokit.errors.SurrogateFitError`.
    """
    alone = Candidate(draw=no_nodes, trend=trend)
    accepted = expected_acceptance(_or_infinite(alone, variance))
    if accepted >= 1.0 - _GAIN:
        return alone
    if accepted >= _GOOD:  # then nodes need not do without that trend
        ways = [way for way in ways if way.trend == trend] or ways
    best, error = _best_of(ways, variance)
    return best if expected_acceptance(error) >= accepted + _GAIN else alone


def no_nodes(whitened: FloatArray, size: int, rng: np.random.Generator) -> Nodes | None:
    """Return None: a way to draw nodes that leaves the trend alone."""
    del whitened, size, rng
    return None


def _best_of(
    ways: Sequence[Candidate], error: Callable[[Candidate], float]
) -> tuple[Candidate, float]:
    errors = [way.handicap * _or_infinite(way, error) for way in ways]
    best = int(np.argmin(errors))
    return ways[best], errors[best] / ways[best].handicap


def _or_infinite(way: Candidate, error: Callable[[Candidate], float]) -> float:
    try:
        return error(way)
    except SurrogateFitError:
        return float("inf")
