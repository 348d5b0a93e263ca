"""Processor seconds of single calls of a target."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from surrokit.contracts.potential import GradientPotential
from surrokit.types import FloatArray

_CALLS = 64


def seconds_of_calls(target: GradientPotential, positions: FloatArray) -> dict[str, float]:
    """Return processor seconds of a value, and of a value with its gradient, at one position.

    Parameters
    ----------
    target
        With a gradient.
    positions : ndarray of shape (n, dim)
        Where, such as draws of the posterior; 64 of them, far apart in the list, are used.

    Returns
    -------
    dict
        ``value`` and ``gradient``, medians over the positions.
    """
    chosen = positions[np.linspace(0, len(positions) - 1, _CALLS).astype(int)]
    return {
        "value": _median_seconds(target.value, chosen),
        "gradient": _median_seconds(target.value_and_gradient, chosen),
    }


def _median_seconds(function: Callable[[FloatArray], Any], positions: FloatArray) -> float:
    function(positions[:1])  # the first call may set something up
    seconds = []
    for position in positions:
        began = time.process_time()
        function(position[None])
        seconds.append(time.process_time() - began)
    return float(np.median(seconds))
