"""Rates a_t at which a surrogate is deployed again: they vanish, but not too fast."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

from surrokit.arguments import is_number
from surrokit.errors import ConfigurationError

Rate: TypeAlias = Callable[[float], float]
"""From iterations since the exploration ended, at least 1, to a probability."""

DEFAULT_KAPPA = 0.6
"""Power of the default rate.

After t iterations the surrogate in use is about t^kappa iterations old, a part t^(kappa - 1) of
what has been learnt, and some T^(1 - kappa) / (1 - kappa) have been deployed in T iterations. At
0.6 that is 6 % at t = 1000 after 38 deployments; at 0.5, 3 % after 61; at 1, all of it after 7.
"""

_PROBES = (30, 60), (200, 400)  # the square of 2^400 is still inside double precision
_FALLEN = 0.95  # log2 of the arguments doubles between probes: even 1 / log log t falls by more
_LEAST = 0.45  # 1 / (t log t) gives 0.5; 1 / (t log^2 t), whose sum is finite, 0.25


def logarithmic(t: float) -> float:
    """Return 1 / (1 + log(1 + t)), the slowest to vanish of the named rates."""
    return 1.0 / (1.0 + math.log1p(t))


def check_rate(rate: object, kappa: float) -> Rate:
    """Return the function a_t that a setting names, or that it is.

    Parameters
    ----------
    rate
        ``"power"``: (1 + t)^-kappa; ``"logarithmic"``: 1 / (1 + log(1 + t)); or a function.
    kappa
        The power, above 0 and at most 1.

    Raises
    ------
    ConfigurationError
        If it is neither, does not fall to zero, or falls so fast that its sum is finite.
    """
    if rate == "power":
        return lambda t: (1.0 + t) ** -kappa
    if rate == "logarithmic":
        return logarithmic
    if not callable(rate):
        raise ConfigurationError(
            f"rate must be 'power', 'logarithmic' or a function of the iterations t since the "
            f"exploration ended, got {rate!r}"
        )
    _check_vanishes(rate)
    return lambda t: _probability(rate, t)


def check_kappa(kappa: float) -> float:
    """Return a power for which (1 + t)^-kappa vanishes and its sum is infinite.

    Raises
    ------
    ConfigurationError
        If it is not above 0 and at most 1.
    """
    if not is_number(kappa) or not 0 < kappa <= 1:
        raise ConfigurationError(
            f"kappa must be a number above 0 and at most 1, so that (1 + t)^-kappa vanishes and "
            f"its sum is infinite, got {kappa!r}"
        )
    return float(kappa)


def mean_rate(rate: Rate, n_iterations: int) -> float:
    """Return the mean of a_1, ..., a_n: deployments expected per iteration."""
    return sum(rate(float(t)) for t in range(1, n_iterations + 1)) / max(n_iterations, 1)


def _check_vanishes(rate: Rate) -> None:
    """Check that a_t falls to zero, and by Cauchy condensation that its sum is infinite.

    For a falling a_t the sum of a_t is infinite exactly if that of c_k = 2^k a(2^k) is. Where c_k
    behaves as k^-p, doubling k multiplies it by 2^-p, and the sum is infinite for p <= 1.
    """
    points = [0, *range(60), *(k for pair in _PROBES for k in pair)]
    values = [_probability(rate, 2.0**k) for k in sorted(points)]
    if any(later > earlier for earlier, later in pairwise(values)):
        raise ConfigurationError(
            "rate rises somewhere; give a function that falls to zero, such as "
            "lambda t: (1 + t) ** -0.6"
        )
    for near, far in _PROBES:
        first, second = _probability(rate, 2.0**near), _probability(rate, 2.0**far)
        if second > _FALLEN * first:
            raise ConfigurationError(
                f"rate does not vanish: it is {first:.3g} at t = 2^{near} and {second:.3g} at "
                f"t = 2^{far}; draws would be kept under an adaptation that never ends. Give one "
                "that falls to zero, such as lambda t: (1 + t) ** -0.6"
            )
        fallen = far - near + math.log2(second / first) if second > 0 else -math.inf
        if fallen < math.log2(_LEAST):  # by more than the terms of a sum that is infinite
            raise ConfigurationError(
                f"rate vanishes too fast for its sum to be infinite: a_t is {first:.3g} at "
                f"t = 2^{near} and {second:.3g} at t = 2^{far}, so learning would end while there "
                "is still something to learn. Give a slower one, at least 1 / t, such as "
                "lambda t: (1 + t) ** -0.6; or say freeze_after=..."
            )


def _probability(rate: Rate, t: float) -> float:
    try:
        value = rate(t)
    except ZeroDivisionError:  # 1 / (t log t) at t = 1
        return 1.0
    except Exception as error:
        raise ConfigurationError(
            f"rate could not be evaluated at t = {t:g} ({type(error).__name__}: {error}); it must "
            "be a function of one number, a float of at least 1"
        ) from error
    if not is_number(value) or math.isnan(value) or value < 0:
        raise ConfigurationError(
            f"rate must return a number of at least 0 for every t of at least 1, got {value!r} at "
            f"t = {t:g}"
        )
    return min(float(value), 1.0)
