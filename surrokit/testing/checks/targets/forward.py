"""Checks of forward potentials: U(q) = energy(forward(q), q)."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit import capabilities as can
from surrokit.potentials import offers_curvature_derivatives, offers_curvatures
from surrokit.testing.measures.demands import demand, demand_close, demand_equal, demand_shape
from surrokit.testing.measures.evaluating import arguments, demand_derivative, has, place
from surrokit.testing.results import Check, Factory
from surrokit.types import FloatArray


def check_forward_value(make: Factory) -> None:
    """The value is the energy of the outputs."""
    potential, positions = place(make)
    outputs = potential.forward(positions)
    expected = potential.energy.value(outputs, positions)
    demand_shape(expected, (len(positions),), "energy.value")
    demand_close(potential.value(positions), expected, "value against the energy of the outputs")


def check_jacobian(make: Factory) -> None:
    """The Jacobian is the derivative of the outputs, and comes with the same outputs."""
    potential, positions = place(make)
    outputs, jacobian = potential.forward_and_jacobian(positions)
    demand_close(outputs, potential.forward(positions), "outputs that come with the Jacobian")
    demand_derivative(
        jacobian, potential.forward, positions, "Jacobian against differences of the outputs"
    )


def check_vjp(make: Factory) -> None:
    """The adjoint gives the gradient of U, and comes with the outputs."""
    potential, positions = place(make)
    demand(
        can.GRADIENT in potential.capabilities,
        "capability 'vjp' is declared without 'gradient', which the adjoint gives",
    )
    outputs, gradients = potential.forward_and_gradient(positions)
    demand_close(outputs, potential.forward(positions), "outputs that come with the gradient")
    demand_derivative(
        gradients, potential.value, positions, "gradient by the adjoint against differences of U"
    )


def check_energy_gradients(make: Factory) -> None:
    """The energy's gradients, in outputs and in positions, are those of its value."""
    potential, positions = place(make)
    outputs, energy = potential.forward(positions), potential.energy
    value, by_outputs, by_positions = energy.value_and_gradients(outputs, positions)
    demand_close(value, energy.value(outputs, positions), "value that comes with the gradients")
    for name, found, function, where in (
        ("outputs", by_outputs, lambda x: energy.value(x, positions), outputs),
        ("positions", by_positions, lambda q: energy.value(outputs, q), positions),
    ):
        demand_shape(found, where.shape, f"gradient of the energy in the {name}")
        what = f"gradient of the energy in the {name} against differences"
        demand_derivative(found, function, where, what)


def check_energy_curvatures(make: Factory) -> None:
    """The energy's curvatures, in outputs and in positions, have no negative eigenvalue."""
    potential, positions = place(make)
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


def check_forward_hessian(make: Factory) -> None:
    """A contraction of the outputs' second derivatives agrees with differences of the Jacobian."""
    potential, positions = place(make)
    _, weights = arguments(potential, "forward_hessian_product", positions)

    def weigh(q: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("nmi,nmi->n", weights, potential.forward_and_jacobian(q)[1]))

    demand_derivative(
        potential.forward_hessian_product(positions, weights),
        weigh,
        positions,
        "sum of W_mi d_i d_k F_m against differences of the Jacobian",
    )


def check_energy_curvature_gradients(make: Factory) -> None:
    """Gradients of the energy's curvatures, in outputs and positions, agree with differences."""
    potential, positions = place(make)
    outputs, energy = potential.forward(positions), potential.energy
    by_outputs, by_positions = energy.curvatures(outputs, positions)
    rng = np.random.default_rng(7)
    first, second = rng.standard_normal(by_outputs.shape), rng.standard_normal(by_positions.shape)
    first = first if first.ndim == 2 else first + first.transpose(0, 2, 1)
    second = second + second.transpose(0, 2, 1)

    def weigh(x: FloatArray, q: FloatArray) -> FloatArray:
        c, r = energy.curvatures(x, q)
        total = (first * c).reshape(len(x), -1).sum(axis=1)
        return np.asarray(total + (second * r).sum(axis=(1, 2)))

    found = energy.curvature_gradients(outputs, positions, first, second)
    for array, function, where, name in (
        (found[0], lambda x: weigh(x, positions), outputs, "outputs"),
        (found[1], lambda q: weigh(outputs, q), positions, "positions"),
    ):
        what = f"gradient of the energy's curvatures in the {name}"
        demand_shape(array, where.shape, what)
        demand_derivative(array, function, where, f"{what} against differences")


def _is_curved(potential: Any) -> bool:
    return can.FORWARD in potential.capabilities and offers_curvatures(potential.energy)


def _has_curvature_derivatives(potential: Any) -> bool:
    return can.FORWARD in potential.capabilities and offers_curvature_derivatives(potential.energy)


CHECKS: tuple[Check, ...] = (
    Check(check_forward_value, applies=has(can.FORWARD)),
    Check(check_jacobian, applies=has(can.JACOBIAN)),
    Check(check_vjp, applies=has(can.VJP)),
    Check(check_energy_gradients, applies=has(can.FORWARD)),
    Check(check_energy_curvatures, applies=_is_curved),
    Check(check_forward_hessian, applies=has(can.FORWARD_HESSIAN, can.JACOBIAN)),
    Check(check_energy_curvature_gradients, applies=_has_curvature_derivatives),
)
"""For potentials with capability ``forward``."""
