"""Evaluations of potentials, by what they declare."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit import capabilities as can
from surrokit.testing.measures.demands import demand, demand_close
from surrokit.testing.measures.differences import Function, difference
from surrokit.testing.results import Factory
from surrokit.testing.targets.counting import WITH_FACTORS, methods_of
from surrokit.types import FloatArray

N_POSITIONS = 7
"""Positions at which potentials are evaluated."""


def positions_for(potential: Any) -> FloatArray:
    """Return positions at which a potential can be evaluated, shape (n, dim).

    They are its own starting positions if it has any, and otherwise draws from N(0, 0.7^2 I).
    """
    rng = np.random.default_rng(20170401)
    if can.INITIAL in potential.capabilities:
        return np.array(potential.initial(rng, N_POSITIONS), dtype=np.float64)
    return 0.7 * rng.standard_normal((N_POSITIONS, potential.dim))


def finite_positions(potential: Any) -> FloatArray:
    """Return those of :func:`positions_for` where U is finite, at least one."""
    positions = positions_for(potential)
    finite = np.isfinite(potential.value(positions))
    demand(
        finite.any(),
        f"U is finite at none of {len(positions)} positions around the origin; give the "
        "potential the capability 'initial', so that chains and checks know where to start",
    )
    return np.asarray(positions[finite])


def place(make: Factory) -> tuple[Any, FloatArray]:
    """Make a potential, and return it with its :func:`finite_positions`."""
    potential = make()
    return potential, finite_positions(potential)


def answers(potential: Any, positions: FloatArray) -> dict[str, FloatArray]:
    """Return the results of all evaluations that a potential declares, by name."""
    found = {"value": potential.value(positions)}
    for name in evaluations_of(potential) - {"value"}:
        results = getattr(potential, name)(*arguments(potential, name, positions))
        several = results if isinstance(results, tuple) else (results,)
        found.update({f"{name}[{i}]": array for i, array in enumerate(several)})
    return found


def evaluations_of(potential: Any) -> frozenset[str]:
    """Return the names of all methods that evaluate a potential, as it declares them."""
    declared = potential.capabilities - {can.INITIAL, *can.OF_ROWS}
    return frozenset({"value"}.union(*(methods_of(name) for name in declared)))


def arguments(potential: Any, method: str, positions: FloatArray) -> tuple[FloatArray, ...]:
    """Return the arguments of an evaluation.

    They are the positions and, if the method takes factors, a read-only matrix or vector for each
    position that depends on its row alone.
    """
    if method not in WITH_FACTORS:
        return (positions,)
    dim = positions.shape[1]
    factors = np.cos(3.0 * positions + np.arange(dim))
    if method.endswith("trace_gradient"):
        factors = -0.5 * factors[:, :, None] * factors[:, None, :]
        factors[:, np.arange(dim), np.arange(dim)] += 1.0 + np.sin(positions)
    if method == "forward_hessian_product":
        m = potential.forward(positions_for(potential)[:1]).shape[1]
        factors = np.cos(factors[:, None, :] + np.arange(m)[:, None])
    factors.setflags(write=False)
    return positions, factors


def room(error: FloatArray, derivative: FloatArray) -> FloatArray:
    """Return the tolerance of a derivative against differences.

    It is wide where the differences disagree with each other.

    Parameters
    ----------
    error, derivative
        Results of :func:`~surrokit.testing.measures.differences.difference`.
    """
    return np.asarray(3.0 * error + 1e-8 * (1.0 + np.abs(derivative).max()))


def demand_derivative(
    found: FloatArray, function: Function, positions: FloatArray, what: str
) -> None:
    """Demand that an array is the derivative of a function of rows, by differences."""
    expected, error = difference(function, positions)
    demand_close(found, expected, what, rtol=1e-6, atol=room(error, expected))


def has(*names: str) -> Any:
    """Return a function that tells whether a potential has all these capabilities."""
    return lambda potential: potential.capabilities.issuperset(names)
