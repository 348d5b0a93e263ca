"""What forward potentials keep to: U(q) = energy(forward(q), q)."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit import capabilities as can
from surrokit.curvatures import offers_curvatures
from surrokit.testing.checks.potential import finite_positions
from surrokit.testing.demands import demand, demand_close, demand_equal, demand_shape
from surrokit.testing.differences import difference
from surrokit.testing.results import Check, Factory
from surrokit.types import FloatArray


def check_forward_value(make: Factory) -> None:
    """The value is the energy of the outputs."""
    potential = make()
    positions = finite_positions(potential)
    outputs = potential.forward(positions)
    expected = potential.energy.value(outputs, positions)
    demand_shape(expected, (len(positions),), "energy.value")
    demand_close(potential.value(positions), expected, "value against the energy of the outputs")


def check_jacobian(make: Factory) -> None:
    """The Jacobian is the derivative of the outputs, and comes with the same outputs."""
    potential = make()
    positions = finite_positions(potential)
    outputs, jacobian = potential.forward_and_jacobian(positions)
    demand_close(outputs, potential.forward(positions), "outputs that come with the Jacobian")
    expected, error = difference(potential.forward, positions)
    demand_close(
        jacobian,
        expected,
        "Jacobian against differences of the outputs",
        rtol=1e-6,
        atol=3.0 * error + 1e-8 * (1.0 + np.abs(expected).max()),
    )


def check_energy_gradients(make: Factory) -> None:
    """The energy's gradients, in outputs and in positions, are those of its value."""
    potential = make()
    positions = finite_positions(potential)
    outputs, energy = potential.forward(positions), potential.energy
    value, by_outputs, by_positions = energy.value_and_gradients(outputs, positions)
    demand_close(value, energy.value(outputs, positions), "value that comes with the gradients")
    for name, found, expected_and_error in (
        ("outputs", by_outputs, difference(lambda x: energy.value(x, positions), outputs)),
        ("positions", by_positions, difference(lambda q: energy.value(outputs, q), positions)),
    ):
        expected, error = expected_and_error
        demand_shape(found, expected.shape, f"gradient of the energy in the {name}")
        demand_close(
            found,
            expected,
            f"gradient of the energy in the {name} against differences",
            rtol=1e-6,
            atol=3.0 * error + 1e-8 * (1.0 + np.abs(expected).max()),
        )


def check_energy_curvatures(make: Factory) -> None:
    """The energy's curvatures, in outputs and in positions, have no negative eigenvalue."""
    potential = make()
    positions = finite_positions(potential)
    outputs = potential.forward(positions)
    kept = outputs.copy(), positions.copy()
    by_outputs, by_positions = potential.energy.curvatures(outputs, positions)
    for array, before, name in zip(
        (outputs, positions), kept, ("outputs", "positions"), strict=True
    ):
        demand_equal(array, before, f"{name} before and after the energy's curvatures")
    (n, m), dim = outputs.shape, positions.shape[1]
    shape = (n, m) if by_outputs.ndim == 2 else (n, m, m)
    _demand_semi_definite(by_outputs, shape, "curvature of the energy in the outputs")
    _demand_semi_definite(by_positions, (n, dim, dim), "curvature of the energy in the positions")


def _demand_semi_definite(matrices: FloatArray, shape: tuple[int, ...], what: str) -> None:
    demand_shape(matrices, shape, what)
    least = matrices
    if matrices.ndim == 3:
        room = 1e-9 * np.abs(matrices).max(axis=(1, 2), keepdims=True)
        turned = matrices.transpose(0, 2, 1)
        demand_close(matrices, turned, f"{what} against its transpose", atol=room)
        least = np.linalg.eigvalsh(matrices) + room[:, 0]
    demand(
        (least >= 0).all(),
        f"{what} must have no negative eigenvalue, but the least is {least.min():.3g}; where "
        "second derivatives are negative, give the Fisher information instead",
    )


def _has(name: str) -> Any:
    return lambda potential: name in potential.capabilities


def _is_curved(potential: Any) -> bool:
    return can.FORWARD in potential.capabilities and offers_curvatures(potential.energy)


CHECKS: tuple[Check, ...] = (
    Check(check_forward_value, applies=_has(can.FORWARD)),
    Check(check_jacobian, applies=_has(can.JACOBIAN)),
    Check(check_energy_gradients, applies=_has(can.FORWARD)),
    Check(check_energy_curvatures, applies=_is_curved),
)
"""For potentials with capability ``forward``."""
