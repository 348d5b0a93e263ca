"""A curved ridge in two dimensions."""

from __future__ import annotations

import numpy as np

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit.protocols import Potential


def rosenbrock(stiffness: float) -> Potential:
    """Return U(x, y) = (x - 1)^2 / 2 + stiffness (y - x^2)^2 / 2.

    So x ~ N(1, 1) and y | x ~ N(x^2, 1 / stiffness): E x = 1 and E y = 2, exactly.

    Parameters
    ----------
    stiffness
        How narrow the ridge is; positive.

    Raises
    ------
    ConfigurationError
        If it is not positive.
    """
    if not stiffness > 0:
        raise ConfigurationError(f"stiffness must be positive, got {stiffness}")

    def value_and_gradient(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        along, across = q[:, 0] - 1.0, q[:, 1] - q[:, 0] ** 2
        value = 0.5 * along**2 + 0.5 * stiffness * across**2
        slope = along - 2.0 * stiffness * across * q[:, 0]
        return value, np.column_stack([slope, stiffness * across])

    return sk.potential(
        value_and_gradient=value_and_gradient, parameters={"x": None, "y": None}, batched=True
    )
