"""The frame of implicit integrators: settings, evaluations along a path, and batches of chains."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeAlias

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.contracts.dynamics import Hamiltonian, Phase, PositionMetric, Status
from surrokit.contracts.potential import Potential, with_gradient
from surrokit.kernel.hamiltonian import position_metric
from surrokit.limits.deadline import check_deadline
from surrokit.settings import positive, positive_integer
from surrokit.types import BoolArray, Cache, Capabilities, FloatArray, IntArray


@attrs.frozen(kw_only=True)
class ImplicitIntegrator:
    """An integrator of implicit steps in a metric that changes with position.

    Parameters
    ----------
    tolerance
        Of the implicit equations: norm of the residual relative to that of the momentum.
    max_iterations
        Passes in each of them at most.
    check_reversal
        Whether to try each step back.
    reversal_tolerance
        How far from its start, relative to the momentum, the step back may end.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    name: ClassVar[str]
    """As it is registered, for messages."""

    tolerance: float = attrs.field(default=1e-10, validator=positive)
    max_iterations: int = attrs.field(default=20, validator=positive_integer)
    check_reversal: bool = True
    reversal_tolerance: float = attrs.field(default=1e-8, validator=positive)

    by_position: ClassVar[bool] = True
    """Always: it follows metrics that change with position."""

    needs: ClassVar[Capabilities] = frozenset({GRADIENT})
    """Gradients; the metric has needs of its own."""

    def cache(self, hamiltonian: Hamiltonian, positions: FloatArray) -> Cache:
        """Return value, gradient, the metric and the gradient of its log determinant.

        Raises
        ------
        ConfigurationError
            If the metric does not change with position.
        """
        metric = position_metric(hamiltonian.metric, self.name)
        return evaluate(hamiltonian.potential, metric, positions)


def evaluate(potential: Potential, metric: PositionMetric, positions: FloatArray) -> Cache:
    """Return all that a kick needs to know of positions (n, dim); see :func:`complete`."""
    return complete(potential, metric, positions, metric.factor(potential, positions))


def complete(
    potential: Potential, metric: PositionMetric, positions: FloatArray, factored: Cache
) -> Cache:
    """Return what the metric keeps of positions (n, dim), and with it what else a kick needs.

    That is ``value`` (n,), ``gradient`` (n, dim), and ``log_determinant_gradient`` (n, dim),
    tr(G^-1 d_k G).
    """
    value, gradient = with_gradient(potential).value_and_gradient(positions)
    traces = metric.log_determinant_gradient(potential, positions, factored)
    return {"value": value, "gradient": gradient, **factored, "log_determinant_gradient": traces}


def force(cache: Cache) -> FloatArray:
    """Return grad U + tr(G^-1 dG) / 2, the part of dH/dq that does not know the momenta."""
    return cache["gradient"] + 0.5 * cache["log_determinant_gradient"]


# --- batches of chains ---

Step: TypeAlias = Callable[[Phase, FloatArray], tuple[Phase, IntArray]]
"""From the phase of some chains, and their steps (n, 1), to the status (n,) of each after one step,
and to the phase of those whose status is ``OK``."""


def follow(
    step: Step, phase: Phase, step_size: FloatArray, n_steps: IntArray
) -> tuple[Phase, IntArray]:
    """Follow each chain's path for its number of steps; chains that fail or arrive drop out.

    Parameters
    ----------
    step
        One step.
    phase
        The start; left as it is.
    step_size, n_steps : ndarray of shape (n,)
        Of each chain.
    """
    n = len(step_size)
    status = np.full(n, int(Status.OK))
    for done in range(int(n_steps.max())):
        check_deadline()
        rows = np.flatnonzero((n_steps > done) & (status == Status.OK))
        if not rows.size:
            break
        start = phase if rows.size == n else phase_taken(phase, rows)
        after, status[rows] = step(start, step_size[rows, None])
        good = rows[status[rows] == Status.OK]
        if good.size:
            phase = phase_placed(phase, good, after)
    return phase, status


def take(cache: Cache, rows: IntArray | BoolArray) -> dict[str, FloatArray]:
    """Return some rows of every array."""
    return {name: array[rows] for name, array in cache.items()}


def place(cache: dict[str, FloatArray], rows: IntArray, part: Cache) -> None:
    """Write ``part`` into some rows of every array of a cache, in place."""
    for name, array in part.items():
        cache[name][rows] = array


def phase_taken(phase: Phase, rows: IntArray | BoolArray) -> Phase:
    """Return the phase of some chains."""
    return Phase(
        positions=phase.positions[rows], momenta=phase.momenta[rows], cache=take(phase.cache, rows)
    )


def phase_placed(phase: Phase, rows: IntArray, part: Phase) -> Phase:
    """Return a phase in which ``part`` has taken the place of some rows."""
    if len(rows) == len(phase.positions):
        return part
    cache = {name: phase.cache[name].copy() for name in part.cache}
    place(cache, rows, part.cache)
    positions, momenta = phase.positions.copy(), phase.momenta.copy()
    positions[rows], momenta[rows] = part.positions, part.momenta
    return Phase(positions=positions, momenta=momenta, cache=cache)


class Part:
    """The rows of a cache that are still under way, taken anew only when they have changed.

    Parameters
    ----------
    cache
        Arrays of all rows.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._rows: IntArray | None = None
        self._part: Cache = cache

    def of(self, rows: IntArray) -> Cache:
        """Return the arrays at increasing row numbers."""
        if rows is not self._rows:
            n = len(next(iter(self._cache.values())))
            self._part = self._cache if len(rows) == n else take(self._cache, rows)
            self._rows = rows
        return self._part
