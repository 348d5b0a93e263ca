"""What a run returns that a limit ended before its first draw: draws that are not exact."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import attrs
import numpy as np

from surrokit.contracts.dynamics import Status
from surrokit.contracts.learner import Evaluations
from surrokit.contracts.methods import CALL_KINDS
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Correction, Sampler, StepInfo
from surrokit.cost.budget import BudgetSpent
from surrokit.errors import SurrogateFitError
from surrokit.history.history import History
from surrokit.kernel.binding import Binding
from surrokit.kernel.transitions import follow, mover, warm_up
from surrokit.surrogate.threads import one_thread
from surrokit.types import FloatArray

TRANSITIONS = 250
"""Transitions of chains on a surrogate while they are tuned, and draws thereafter."""

FEWEST = 20
"""Iterations of a warm-up by exact transitions whose second half is returned at least."""

MANY = 1000
"""Dimensions from which on no surrogate is fitted any more, as a single factorisation of matrices
takes longer than the time that is held back."""

_NEAR = (10.0, 20.0)  # times, of as many nats and one for each dimension above the least, is near


@attrs.frozen(kw_only=True, eq=False)
class Approximation:
    """Draws that the target has not checked.

    Parameters
    ----------
    kept
        The draws.
    what
        What they are, in words.
    """

    kept: History
    what: str


def of_warmup(warmup: History) -> Approximation | None:
    """Return the second half of a warm-up; None where it is too short."""
    if len(warmup) < FEWEST:
        return None
    _, kept = warmup.split(len(warmup) // 2)
    what = f"the last {len(kept)} iterations of each chain's warm-up, which still tuned the sampler"
    return Approximation(kept=kept, what=what)


def of_surrogate(
    surrogate: Potential,
    sampler: Sampler,
    correction: Correction,
    *,
    rows: Evaluations,
    covariance: FloatArray | None,
    chains: int,
    rng: np.random.Generator,
) -> Approximation | None:
    """Return draws of chains on a surrogate; None where the sampler cannot move on it.

    Parameters
    ----------
    surrogate
        V.
    sampler, correction
        The kernel, not bound yet.
    rows
        Evaluations; chains begin at the lowest ones.
    covariance : ndarray of shape (dim, dim), optional
        With which tuning begins.
    chains
        Number of chains.
    rng
        Generator.
    """
    moves = mover(sampler)
    if not (moves.needs | correction.needs) <= surrogate.capabilities or not len(rows):
        return None
    lowest = np.argsort(rows.values, kind="stable")[:chains]
    binding = Binding(moves, surrogate, chains)
    binding.tune(TRANSITIONS, covariance=covariance, step_size=None)
    starts, decider = rows.positions[np.resize(lowest, chains)], correction.bind(surrogate)
    tuned_on, drawn = History(chains, surrogate.dim), History(chains, surrogate.dim)
    try:
        with one_thread(), np.errstate(all="ignore"):
            for state, _ in warm_up(binding, decider, starts, TRANSITIONS, rng):
                _add(tuned_on, state)
            binding.freeze()
            tuned, state = binding.tuning, binding.renew(state)
            for each in islice(follow(moves, surrogate, tuned, decider, state, rng), TRANSITIONS):
                _add(drawn, each)
    except BudgetSpent:
        pass  # the draws so far are what there is
    history = drawn if len(drawn) >= FEWEST else tuned_on.split(len(tuned_on) // 2)[1]
    if not len(history):
        return None
    what = f"draws of a surrogate that has learnt from {len(rows)} evaluations"
    return Approximation(kept=history, what=what)


def fit_near(
    fit: Callable[[Evaluations], Potential], rows: Evaluations
) -> tuple[Potential | None, Evaluations]:
    """Return a surrogate of the evaluations near the least, if one can be fitted, and them.

    Parameters
    ----------
    fit
        Fits it.
    rows
        All evaluations.
    """
    times, more = _NEAR
    least = np.min(rows.values, initial=np.inf)
    near = rows.take(np.asarray(rows.values <= least + times * (rows.positions.shape[1] + more)))
    if not np.isfinite(least) or near.positions.shape[1] > MANY:
        return None, near
    try:
        return fit(near), near
    except (SurrogateFitError, BudgetSpent):
        return None, near


def _add(history: History, state: ChainState) -> None:
    """Take in draws of which the exact potential is not known."""
    n = len(state.values)
    missing = np.full(n, np.nan)
    history.add(
        attrs.evolve(state, values=missing, cache={}),
        StepInfo(
            accepted=np.ones(n, dtype=bool),
            acceptance=missing,
            path_acceptance=missing,
            status=np.full(n, int(Status.OK)),
            divergent=np.zeros(n, dtype=bool),
            n_steps=np.zeros(n, dtype=np.int64),
        ),
        step_size=np.nan,
        seconds=np.nan,
        failures=0,
        calls=dict.fromkeys(CALL_KINDS, 0),
        outputs=None,
    )
