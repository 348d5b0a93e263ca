"""What a run returns that a limit ended before its first draw: draws that are not exact."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import attrs
import numpy as np

from surrokit.capabilities import CALL_KINDS
from surrokit.coordinates.constraints import CoordinateMap
from surrokit.errors import BudgetSpent, SurrogateFitError
from surrokit.history import History
from surrokit.interfaces import ChainState, Correction, Evaluations, Sampler, Status, StepInfo
from surrokit.kernel.kernel import Binding, follow, warm_up
from surrokit.limits import one_thread
from surrokit.potentials import Potential, straight_of
from surrokit.surrogate.training import near_least
from surrokit.types import FloatArray

TRANSITIONS = 250
"""Transitions of chains on a surrogate while they are tuned, and draws thereafter."""

FEWEST = 20
"""Iterations of a warm-up by exact transitions whose second half is returned at least."""

MANY = 1000
"""Dimensions from which on no surrogate is fitted any more, as a single factorisation of matrices
takes longer than the time that is held back."""

_NEAR = 10.0  # nats, and one for each dimension, above the least in which there may be mass

_PAIRS = 40  # differences of gradients that tell of the curvature, from the lowest positions on
_BENT = 1e-10  # of the product of both lengths, above which a difference tells of a curvature


@attrs.frozen(kw_only=True, eq=False)
class Approximation:
    """Draws that the target has not checked."""

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
    rows
        Evaluations; chains begin at the lowest ones.
    covariance : ndarray of shape (dim, dim), optional
        With which tuning begins.
    """
    moves, straight = sampler.kernel, straight_of(surrogate)
    if not (moves.needs | correction.needs) <= surrogate.capabilities or not len(rows):
        return None
    lowest = np.argsort(rows.values, kind="stable")[:chains]
    surrogate = straight.potential
    if straight.covariance is not None:
        covariance = straight.covariance
    binding = Binding(moves, surrogate, chains)
    binding.tune(TRANSITIONS, covariance=covariance, step_size=None)
    starts = straight.apply(rows.positions[np.resize(lowest, chains)])
    decider = correction.bind(surrogate)
    tuned_on, drawn = History(chains, surrogate.dim), History(chains, surrogate.dim)
    try:
        with one_thread(), np.errstate(all="ignore"):
            for state, _ in warm_up(binding, decider, starts, TRANSITIONS, rng):
                _add(tuned_on, straight.undo(state.positions))
            binding.freeze()
            tuned, state = binding.tuning, binding.renew(state)
            for each in islice(follow(moves, surrogate, tuned, decider, state, rng), TRANSITIONS):
                _add(drawn, straight.undo(each.positions))
    except BudgetSpent:
        pass  # the draws so far are what there is
    history = drawn if len(drawn) >= FEWEST else tuned_on.split(len(tuned_on) // 2)[1]
    if not len(history):
        return None
    what = f"draws of a surrogate that has learnt from {len(rows)} evaluations"
    return Approximation(kept=history, what=what)


def of_evaluations(
    rows: Evaluations, chains: int, transform: CoordinateMap, rng: np.random.Generator
) -> Approximation | None:
    """Return what evaluations tell without a surrogate; None where none of them is finite.

    With gradients at two positions or more, these are draws of a normal distribution, and else the
    lowest positions themselves, as many of them as may hold any mass.

    Parameters
    ----------
    transform
        The map to the user's coordinates, in which draws have to be finite.
    """
    rows = rows.take(np.isfinite(rows.values))
    if not len(rows):
        return None
    rows = rows.take(np.argsort(rows.values, kind="stable"))
    places = _normal_draws(rows, TRANSITIONS * chains, rng)
    if places is not None and np.isfinite(transform.to_bounded(places)).all():
        what = (
            "draws of a normal approximation at the best position that was evaluated, which may be "
            "far too narrow"
        )
    else:
        _, first = np.unique(rows.positions, axis=0, return_index=True)
        places = rows.positions[np.sort(first)]
        near = int(np.sum(rows.values <= rows.values[0] + places.shape[1] + _NEAR))
        n = max(min(near, len(places)) // chains, 1)
        places = np.resize(places, (n * chains, places.shape[1]))
        what = "the best positions that were evaluated, and no draws of any distribution"
    history = History(chains, places.shape[1])
    for at in places.reshape(-1, chains, places.shape[1]):
        _add(history, at)
    return Approximation(kept=history, what=what)


def _normal_draws(rows: Evaluations, n: int, rng: np.random.Generator) -> FloatArray | None:
    """Return draws (n, dim) of a normal approximation at the first of rows in order of U.

    Its covariance is the inverse of a curvature that BFGS updates learn from differences of
    gradients, as in Pathfinder (Zhang, Carpenter, Gelman and Vehtari 2022). No matrix is made. None
    where gradients tell of no curvature.
    """
    if rows.gradients is None:
        return None
    known = np.flatnonzero(np.isfinite(rows.gradients).all(axis=1))[: _PAIRS + 1]
    if len(known) < 2:
        return None
    steps = rows.positions[known[:-1]] - rows.positions[known[1:]]
    changes = rows.gradients[known[:-1]] - rows.gradients[known[1:]]
    products = np.sum(steps * changes, axis=1)
    lengths = np.linalg.norm(steps, axis=1) * np.linalg.norm(changes, axis=1)
    used = np.flatnonzero(products > _BENT * lengths)[::-1]  # the lowest last
    if not len(used):
        return None
    dim = rows.positions.shape[1]
    variances = np.full(dim, np.median(np.sum(steps[used] ** 2, axis=1) / products[used]))
    for i in used:
        variances = _diagonal_update(variances, steps[i], changes[i])
    best, gradient = rows.positions[known[0]], rows.gradients[known[0]]
    draws = np.sqrt(variances) * rng.standard_normal((n, dim))
    pairs = [(steps[i], changes[i], products[i]) for i in used]
    for step, change, product in pairs:  # of covariance W' H W + s s' / s'y, W = 1 - y s' / s'y
        along = rng.standard_normal(n) / np.sqrt(product) - draws @ change / product
        draws += np.outer(along, step)
    downhill = -_times_inverse(pairs, variances, gradient)
    decrement = np.sqrt(max(float(-downhill @ gradient), 0.0))
    return np.asarray(best + draws + downhill * min(1.0, np.sqrt(dim) / max(decrement, 1e-300)))


def _diagonal_update(variances: FloatArray, step: FloatArray, change: FloatArray) -> FloatArray:
    """Return the diagonal of an inverse curvature after a pair (Gilbert and Lemarechal 1989)."""
    a, b = float(change @ (variances * change)), float(change @ step)
    c = float(step @ (step / variances))
    updated = b / (a / variances + change**2 - a * (step / variances) ** 2 / c)
    right = np.isfinite(updated) & (updated > 0.0)
    return np.asarray(updated) if right.all() else variances


def _times_inverse(
    pairs: list[tuple[FloatArray, FloatArray, float]], variances: FloatArray, gradient: FloatArray
) -> FloatArray:
    """Return the inverse curvature times a gradient, by the two loops of L-BFGS."""
    vector, parts = gradient.copy(), []
    for step, change, product in reversed(pairs):
        parts.append(float(step @ vector) / product)
        vector -= parts[-1] * change
    vector = variances * vector
    for (step, change, product), part in zip(pairs, reversed(parts), strict=True):
        vector += (part - float(change @ vector) / product) * step
    return np.asarray(vector)


def fit_near(
    fit: Callable[[Evaluations], Potential], rows: Evaluations
) -> tuple[Potential | None, Evaluations]:
    """Return a surrogate of the evaluations near the least, if one can be fitted, and them."""
    near = near_least(rows)
    if not np.isfinite(near.values).any() or near.positions.shape[1] > MANY:
        return None, near
    try:
        return fit(near), near
    except (SurrogateFitError, BudgetSpent):
        return None, near


def _add(history: History, positions: FloatArray) -> None:
    """Add draws (n, dim) where the exact potential is not known."""
    n = len(positions)
    missing = np.full(n, np.nan)
    history.add(
        ChainState(positions=positions, values=missing, cache={}),
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
        beside={},
    )
