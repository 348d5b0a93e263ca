"""The leapfrog integrator of Algorithm 1, with merged half steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import all_finite
from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.interfaces import NO_DENSITY, NOT_FINITE, OK, Hamiltonian, Metric, Phase
from surrokit.kernel.hamiltonian import DIVERGENCE, copy_phase, demand_kind, put_rows, take_rows
from surrokit.limits import check_deadline
from surrokit.potentials import Potential, with_gradient, with_gradient_alone
from surrokit.types import BoolArray, Cache, Capabilities, FloatArray, IntArray


@attrs.frozen
class Leapfrog:
    """Half a kick, then drift and kick in turn, then half a kick; all chains as one batch.

    The two half kicks between drifts are merged, and the gradient at the start comes from the
    cache, so a path of L steps costs L gradients. (Written as in Algorithm 1 of Zhang, Shahbaba
    and Zhao (2017) it would cost 2 L.) Values are evaluated only where a path ends, if the
    potential can give gradients by themselves.

    A chain whose position or gradient stops being finite drops out with ``NOT_FINITE``, or with
    ``NO_DENSITY`` if it has not diverged; its reverse path would meet the same point.
    """

    @property
    def needs(self) -> Capabilities:
        """Gradients."""
        return frozenset({GRADIENT})

    def cache(self, hamiltonian: Hamiltonian, positions: FloatArray) -> Cache:
        """Return value, shape (n,), and gradient, shape (n, dim), at positions (n, dim)."""
        value, gradient = with_gradient(hamiltonian.potential).value_and_gradient(positions)
        return {"value": value, "gradient": gradient}

    def advance(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> tuple[Phase, IntArray]:
        """Follow each chain's path for its number of steps; see the protocol.

        Raises
        ------
        ConfigurationError
            If the metric changes with position.
        """
        value_and_gradient = with_gradient(hamiltonian.potential).value_and_gradient
        gradient_of = _gradient_of(hamiltonian.potential)
        demand_kind("leapfrog", hamiltonian.metric)
        velocity = cast("Metric", hamiltonian.metric).velocity
        rows: IntArray = np.arange(len(n_steps))
        lengths, steps, positions = n_steps, step_size[:, None], phase.positions
        # momenta are kept times the step size, which saves a product in every drift
        squares = steps * steps
        momenta = last = phase.momenta * steps - 0.5 * squares * phase.cache["gradient"]
        arrivals: list[tuple[IntArray, Phase]] = []
        lost: list[tuple[IntArray, FloatArray, FloatArray]] = []  # with the last finite momenta
        done, shortest = 0, lengths.min() if len(rows) else 0
        while len(rows):
            check_deadline()
            done += 1
            positions = positions + velocity(momenta)
            if not all_finite(positions):
                going = np.asarray(np.isfinite(positions).all(axis=1))
                lost.append((rows[~going], last[~going], steps[~going]))
                rows, lengths, steps, squares, positions, momenta = _only(
                    going, *(rows, lengths, steps, squares, positions, momenta)
                )
                if not len(rows):
                    break
            if done < shortest:
                last, momenta = momenta, momenta - squares * gradient_of(positions)
                continue
            value, gradient = value_and_gradient(positions)
            arrived = lengths <= done
            ends = Phase(
                positions=positions,
                momenta=(momenta - 0.5 * squares * gradient) / steps,
                cache={"value": value, "gradient": gradient},
            )
            if arrived.all():
                arrivals.append((rows, ends))
                break
            arrivals.append((rows[arrived], take_rows(ends, np.flatnonzero(arrived))))
            last, momenta = momenta, momenta - squares * gradient
            rows, lengths, steps, squares, positions, momenta, last = _only(
                ~arrived, *(rows, lengths, steps, squares, positions, momenta, last)
            )
            shortest = lengths.min()
        lost.append((rows, momenta, steps))  # after half a kick, before a gradient that may be NaN
        end = _joined(phase, arrivals)
        return end, _status_of(hamiltonian, phase, end, lost)


def _status_of(
    hamiltonian: Hamiltonian,
    start: Phase,
    end: Phase,
    lost: list[tuple[IntArray, FloatArray, FloatArray]],
) -> IntArray:
    """Return the status of each path (n,), by rows, the last momenta times steps, and steps.

    A path that is lost without having gained more speed than energy allows came to a bound.
    """
    finite = np.isfinite(end.cache["value"]) & np.isfinite(end.momenta).all(axis=1)
    if finite.all():
        return np.zeros(len(finite), dtype=np.int64)
    momenta = end.momenta.copy()
    for rows, known, steps in lost:
        momenta[rows] = known / steps
    gain = hamiltonian.kinetic(attrs.evolve(start, momenta=momenta)) - hamiltonian.kinetic(start)
    return np.where(finite, OK, np.where(gain <= DIVERGENCE, NO_DENSITY, NOT_FINITE))


def _gradient_of(potential: Potential) -> Callable[[FloatArray], FloatArray]:
    if GRADIENT_ALONE in potential.capabilities:
        return with_gradient_alone(potential).gradient
    return lambda positions: with_gradient(potential).value_and_gradient(positions)[1]


def _only(kept: BoolArray, *arrays: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
    """Return the rows of arrays that a mask keeps."""
    return tuple(array[kept] for array in arrays)


def _joined(start: Phase, arrivals: list[tuple[IntArray, Phase]]) -> Phase:
    """Return where all chains came to; those that are lost stay, at an infinite value."""
    n = len(start.positions)
    if arrivals and len(arrivals[0][0]) == n:
        return arrivals[0][1]
    nowhere = {"value": np.full(n, np.inf), "gradient": np.full_like(start.positions, np.nan)}
    end = copy_phase(attrs.evolve(start, cache=nowhere))
    for rows, part in arrivals:
        put_rows(end, rows, part)
    return end
