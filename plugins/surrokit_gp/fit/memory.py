"""The memory of searches for hyperparameters, kept from fit to fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit_gp.fit.search import Found
from surrokit_gp.kernel.hyperparameters import Hyperparameters

_GROWTH = 1.5
"""Factor by which the number of points may change before hyperparameters are found again."""


@attrs.frozen(kw_only=True, eq=False)
class Memory:
    """What searches found, and for what.

    Parameters
    ----------
    stages
        One search, or two where a quadratic had to be made convex.
    n_points
        Points there were.
    n_coefficients
        Coefficients of the mean function.
    n_gradients
        Gradients used.
    """

    stages: tuple[Found, ...]
    n_points: int
    n_coefficients: int
    n_gradients: int

    def holds_for(self, n_points: int, n_coefficients: int, n_gradients: int) -> bool:
        """Return whether the numbers are close enough to those of the search."""
        return (
            self.n_points <= n_points * _GROWTH
            and n_points < self.n_points * _GROWTH
            and self.n_coefficients == n_coefficients
            and (self.n_gradients > 0) == (n_gradients > 0)
        )

    def state(self) -> dict[str, Any]:
        """Return everything as arrays and numbers."""
        found: dict[str, Any] = {
            "n_points": self.n_points,
            "n_coefficients": self.n_coefficients,
            "n_gradients": self.n_gradients,
        }
        for i, stage in enumerate(self.stages):
            values = stage.hyperparameters
            found[f"length_scales_{i}"] = np.array(values.length_scales)
            found[f"sds_{i}"] = np.array([values.signal_sd, values.noise_sd])
            if stage.inducing is not None:
                found[f"inducing_{i}"] = stage.inducing
        return found

    @classmethod
    def restore(cls, found: Mapping[str, Any]) -> Memory:
        """Return what ``state`` wrote down."""
        n_stages = sum(name.startswith("sds_") for name in found)
        return cls(
            stages=tuple(_stage(found, i) for i in range(n_stages)),
            n_points=int(found["n_points"]),
            n_coefficients=int(found["n_coefficients"]),
            n_gradients=int(found["n_gradients"]),
        )


def _stage(found: Mapping[str, Any], i: int) -> Found:
    signal, noise = found[f"sds_{i}"]
    moved = found.get(f"inducing_{i}")
    return Found(
        hyperparameters=Hyperparameters(
            length_scales=np.asarray(found[f"length_scales_{i}"]),
            signal_sd=float(signal),
            noise_sd=float(noise),
        ),
        inducing=None if moved is None else np.asarray(moved, dtype=np.float64),
    )
