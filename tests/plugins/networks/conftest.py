"""Nodes and equations to try the regression engine on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from surrokit_networks.activations import TANH
from surrokit_networks.equations import Equations
from surrokit_networks.nodes import Nodes


def nodes_of(kind: str | None, dim: int, size: int, seed: int = 0):
    """Nodes of different widths or steepness; None for no nodes at all."""
    rng = np.random.default_rng([seed, 17])
    if kind is None:
        return Nodes.none(dim)
    rows, numbers = rng.standard_normal((size, dim)), rng.uniform(0.5, 4.0, size)
    if kind == "rbf":
        return Nodes.radial(rows, numbers)
    return Nodes.additive(rows, numbers - 2.0, TANH)


def equations_of(
    n: int,
    dim: int,
    *,
    n_outputs: int = 1,
    gradients: str = "none",
    values: bool = True,
    level: bool = True,
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
    weights, known = (
        rng.uniform(0.2, 1.0, n),
        rng.random(n) < {"none": 0, "some": 0.5, "all": 1}[gradients],
    )
    slopes[~known] = 0.0
    return Equations(
        whitened=whitened,
        targets=targets,
        gradients=slopes if known.any() else None,
        value_weights=weights * values,
        gradient_weights=0.7 * weights * known,
        count=float(n * values + dim * known.sum()),
        trains_level=level and values,
    )


@pytest.fixture(scope="session")
def make_nodes() -> Callable:
    return nodes_of


@pytest.fixture(scope="session")
def make_equations() -> Callable:
    return equations_of
