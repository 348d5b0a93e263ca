"""The evidence of a posterior, from the draws of a run and fresh evaluations of its target."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.cost.recording import RecordingPotential
from surrokit.errors import ConfigurationError
from surrokit.history import Trace
from surrokit.potentials import Potential, check_target
from surrokit.weighted.normalizer import FEWEST, bridge
from surrokit.weighted.round import Estimate

_SAME = 1e-6  # of U, as rounding of single precision


def evidence_by_calls(
    target: Potential, kept: Trace, rng: np.random.Generator, calls: int
) -> Estimate:
    """Return the logarithm of the integral of exp(-U) from draws and fresh evaluations of U.

    U is evaluated at draws of a multivariate t, and at those of the chains where it is not known.
    Where it fails, its density counts as zero, as in a run.

    Parameters
    ----------
    calls
        Evaluations at most.

    Returns
    -------
    Estimate
        With the calls that were made.

    Raises
    ------
    ConfigurationError
        If the target is another one, or calls are too few.
    ShapeError, NumericalError
        If chains are too short, or stand.
    """
    chains, n, width = kept.draws.shape
    recording = RecordingPotential(check_target(target), keep=False)
    is_known = bool(np.isfinite(kept.values).all())
    least = chains * FEWEST // 2
    needed = least + 1 if is_known else 2 * least
    if calls < needed:
        raise ConfigurationError(
            f"calls must be at least {needed} for {chains} chains, got {calls}; allow for more"
        )
    if recording.transform.n_user != width:
        raise ConfigurationError(
            f"the target has {recording.transform.n_user} numbers, but the draws have {width}; "
            "pass the target of this run"
        )
    places = recording.transform.to_unbounded(kept.draws.reshape(-1, width))
    values = None
    if is_known:  # U on the line of the target, whose scales may be others
        lines = kept.positions.reshape(chains * n, -1)
        values = kept.values.ravel() + kept.transform.log_jacobian(lines)
        values = values - recording.transform.log_jacobian(places)
        here = float(recording.value(places[-1:])[0])
        if not abs(here - values[-1]) <= _SAME * max(1.0, abs(values[-1])):
            raise ConfigurationError(
                f"U of the target is {here:.8g} at a draw where it was {values[-1]:.8g}; pass the "
                "target of this run"
            )
        values = values.reshape(chains, n)
    draws = places.reshape(chains, n, -1)
    most = calls - 1 if is_known else calls // 2
    found = bridge(recording.value, draws, rng, values=values, most=most)
    return attrs.evolve(found, calls=recording.n_calls)
