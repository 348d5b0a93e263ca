"""The cost of HMC as the authors count it, with two gradients for each leapfrog step.

Algorithm 1 taken literally has two half kicks in each of n steps, a gradient for each, and then one
value for the decision. This project merges half kicks, keeps the gradient between iterations, and
gets the value with the last gradient: n gradients an iteration and no value. A baseline that pays
what the authors' does is then

    seconds as run + (2 n - gradients paid) t_gradient + values not paid x t_value,

with t the seconds of one call, measured in the same row at draws of the posterior.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def charged_seconds(row: Mapping[str, Any]) -> float:
    """Return seconds of sampling of HMC with the gradients and values that merging saved.

    Parameters
    ----------
    row
        Result of a row: ``seconds``, ``steps`` (leapfrog steps of kept iterations), ``draws``,
        ``sampling_calls`` and ``call_seconds``.
    """
    calls, cost = row["sampling_calls"], row["call_seconds"]
    gradients = 2 * row["steps"] - calls["gradient"]
    values = row["draws"] - calls["value"]
    saved = gradients * cost["gradient"] + values * cost["value"]
    return float(row["seconds"]["sampling"] + saved)


def ceilings(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return the largest speed-ups that a surrogate which costs nothing can have over this HMC.

    One value an iteration is left, and acceptance and mixing are HMC's.

    Parameters
    ----------
    row
        As for :func:`charged_seconds`.

    Returns
    -------
    tuple of float
        Against HMC as it ran here, and as the authors count.
    """
    cost = row["call_seconds"]
    gradient, steps = cost["gradient"] / cost["value"], row["steps"] / row["draws"]
    paid = row["sampling_calls"]["gradient"] / row["draws"]
    return paid * gradient, 2 * steps * gradient + 1


def seconds_by_sensitivities(row: Mapping[str, Any], dim: int, value: float, *, hmc: bool) -> float:
    """Return seconds of sampling if each call solved for the sensitivity to each parameter.

    The authors' code of the elliptic problem has no adjoint equation, and keeps no factorisation:
    a value and a gradient both take 1 + dim assemblies and solves, each as dear as a value here.

    Parameters
    ----------
    row
        As for :func:`charged_seconds`.
    dim
        Parameters.
    value
        Seconds of a value, the same for all rows that are compared.
    hmc
        Whether it is HMC, which has no other cost; else what was paid on top of the row's own
        seconds is dim solves for each exact value.
    """
    if hmc:
        return float((2 * row["steps"] + row["draws"]) * (1 + dim) * value)
    return float(row["seconds"]["sampling"] + row["sampling_calls"]["value"] * dim * value)
