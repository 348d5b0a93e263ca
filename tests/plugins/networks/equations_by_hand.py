"""Nodes and equations to try the regression on, and their rows written out by hand."""

from __future__ import annotations

import numpy as np

from surrokit_networks.least_squares import Equations
from surrokit_networks.nodes import ACTIVATIONS, Activation, Nodes

ACTIVATIONS["tanh"] = Activation(
    both=lambda x: (np.tanh(x), np.cosh(x) ** -2.0),
    second=lambda x: -2.0 * np.tanh(x) * np.cosh(x) ** -2.0,
    third=lambda x: (4.0 * np.tanh(x) ** 2 - 2.0 * np.cosh(x) ** -2.0) * np.cosh(x) ** -2.0,
)


def nodes_of(kind: str | None, dim: int, size: int, seed: int = 0) -> Nodes:
    """Nodes of different widths or steepness; None for no nodes at all."""
    rng = np.random.default_rng([seed, 17])
    if kind is None:
        return Nodes.none(dim)
    rows, numbers = rng.standard_normal((size, dim)), rng.uniform(0.5, 4.0, size)
    if kind == "rbf":
        return Nodes.radial(rows, numbers)
    return Nodes.additive(rows, numbers - 2.0, "tanh")


def equations_of(
    n: int,
    dim: int,
    *,
    n_outputs: int = 1,
    gradients: str = "none",
    noise: float = 0.1,
    seed: int = 0,
) -> Equations:
    """Random equations with weights; gradients in ``"none"``, ``"some"`` or ``"all"`` rows."""
    rng = np.random.default_rng(seed)
    whitened = rng.standard_normal((n, dim))
    phases = np.arange(n_outputs)
    targets = np.sin(whitened[:, :, None] + phases).sum(axis=1)
    slopes = np.cos(whitened[:, None, :] + phases[:, None])
    targets += noise * rng.standard_normal(targets.shape)
    slopes += noise * rng.standard_normal(slopes.shape)
    weights = rng.uniform(0.2, 1.0, n)
    known = rng.random(n) < {"none": 0, "some": 0.5, "all": 1}[gradients]
    slopes[~known] = 0.0
    return Equations(
        whitened=whitened,
        targets=targets,
        gradients=slopes,
        value_weights=weights,
        gradient_weights=0.7 * weights * known,
        count=float(n + dim * known.sum()),
    )


def rows_of(basis, equations):
    """sqrt(w) columns and sqrt(w) targets of values, then of components of gradients."""
    roots = np.sqrt(equations.value_weights)[:, None]
    left, right = [roots * basis.features(equations.whitened)], [roots * equations.targets]
    jacobian, roots = basis.jacobian(equations.whitened), np.sqrt(equations.gradient_weights)
    for k in range(equations.whitened.shape[1]):
        left.append(roots[:, None] * jacobian[:, k])
        right.append(roots[:, None] * equations.gradients[:, :, k])
    return np.vstack(left), np.vstack(right)
