"""What forward potentials keep to: U(q) = energy(forward(q), q)."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit import capabilities as can
from surrokit.testing.checks.potential import finite_positions
from surrokit.testing.demands import demand_close, demand_shape
from surrokit.testing.differences import difference
from surrokit.testing.results import Check, Factory


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


def _has(name: str) -> Any:
    return lambda potential: name in potential.capabilities


CHECKS: tuple[Check, ...] = (
    Check(check_forward_value, applies=_has(can.FORWARD)),
    Check(check_jacobian, applies=_has(can.JACOBIAN)),
    Check(check_energy_gradients, applies=_has(can.FORWARD)),
)
"""For potentials with capability ``forward``."""
