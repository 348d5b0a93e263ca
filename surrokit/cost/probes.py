"""Probes of the exact potential beside the chains: failures, exchanges, endless mass."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import cast

import attrs
import numpy as np

from surrokit.capabilities import COVARIANCE, CallKind
from surrokit.coordinates.exchanges import exchanges
from surrokit.coordinates.models import ModelMap
from surrokit.coordinates.transforms import from_line_of
from surrokit.cost.recording import RecordingPotential
from surrokit.diagnostics import r_hat
from surrokit.errors import BudgetSpent
from surrokit.exploring import noise_at
from surrokit.failures import different_near
from surrokit.mode.search import MANY, name_of, simplified
from surrokit.model.model import calls_per_gradient
from surrokit.potentials import CovariancePotential, Potential
from surrokit.targets.bounds import labels_on_line, parameters_of, transform_of
from surrokit.targets.estimates import RETURNED
from surrokit.types import FloatArray, IntArray

FEWEST = 100
"""Iterations of each chain that tell at least."""

APART = 1.1
"""R-hat above which chains may be on their way for ever."""

FAR = (1e3, 1e6)
"""Times the range of the draws that is looked away from them, or as far as there are logarithms."""

HIGH = 50.0
"""Nats above a draw from which on it does not matter what a density does far away."""

_MOST = 3  # numbers that are looked along at most
_LOGARITHMS = (100.0, 600.0)
_LEVEL = 0.01  # nats, as rounding


def endless_along(target: RecordingPotential, positions: FloatArray) -> tuple[str, ...]:
    """Return the directions in which a density does not fall, or no faster than 1 / distance.

    They are single numbers, or the one in which the draws spread most. Only where chains disagree
    is anything evaluated: five values for a direction. They are counted.

    Parameters
    ----------
    positions : ndarray of shape (chains, n, dim)
        Of the chains, on the line.
    """
    if positions.shape[1] < FEWEST or len(positions) < 2:
        return ()
    some = positions[:, :: positions.shape[1] // FEWEST]  # so large an R-hat shows in few draws
    apart = np.nan_to_num(r_hat(some), nan=np.inf)
    worst = np.argsort(-apart, kind="stable")[:_MOST]
    labels, axes = labels_on_line(target.target), np.eye(positions.shape[2])
    worst = worst[apart[worst] > APART]
    try:
        found = [labels[i] for i in worst if _goes_on(target, positions, axes[i])]
        if not found and len(worst) > 1 and len(axes) <= MANY:
            direction = simplified(target.target, _widest(positions)[:, None], 0.02)[0]
            if _goes_on(target, positions, direction):
                found = [name_of(target.target, direction)]
    except BudgetSpent:
        return ()
    return tuple(found)


def _widest(positions: FloatArray) -> FloatArray:
    """Return the direction (dim,) in which draws (chains, n, dim) spread most."""
    places = positions.reshape(-1, positions.shape[2])
    return np.asarray(np.linalg.svd(places - places.mean(axis=0), full_matrices=False)[2][0])


def _goes_on(target: RecordingPotential, positions: FloatArray, along: FloatArray) -> bool:
    """Return whether the density in a direction falls too slowly towards one of its ends."""
    places = positions.reshape(-1, positions.shape[2])
    column = places @ along
    middle = places[int(np.argsort(column)[len(column) // 2])]
    away = np.array(FAR) * max(float(np.ptp(column)), 1.0)
    to_bounded = transform_of(target.target).to_bounded
    with np.errstate(all="ignore"):
        if not np.isfinite(to_bounded(middle + np.outer([-away[1], away[1]], along))).all():
            away = np.array(_LOGARITHMS)
        ends = middle + np.outer([away, -away], along)
        with target.rejections.excluded():
            here, *there = target.fork(keep=False).value(np.vstack([middle, ends]))
    if not np.isfinite(here):  # it failed at a draw
        return False
    near, far = np.reshape(there, (2, 2)).T
    high = near <= here + HIGH
    rises = far[high] - near[high]
    return bool((rises <= np.log(away[1] / away[0]) + _LEVEL).any())


PART_EXCHANGED = 0.01
"""Part of a run's calls that values at exchanges may cost."""

FEWEST_EXCHANGED = 0.1
"""Part of the draws on the other side up to which chains have not gone there: it holds half."""

_FEWEST = 100
"""Draws, of all chains, from which on they tell on which side the mass is."""

_SAME = 1e-8  # of U, as rounding
_ROWS = 2000  # draws that tell on which side chains are


@attrs.frozen(kw_only=True)
class Exchange:
    """An exchange that leaves the density unchanged, though draws are on one side of it.

    Parameters
    ----------
    one, other
        Numbers that are exchanged, each with that at its place.
    part
        Part of the draws on the other side, which holds half of the mass.
    """

    one: tuple[str, ...]
    other: tuple[str, ...]
    part: float


def find_exchange(target: RecordingPotential, positions: FloatArray) -> Exchange | None:
    """Return an exchange of equally declared parameters that the draws leave out, if there is one.

    Only exchanges that lead where hardly any draw is are evaluated, by one value each and one at a
    draw, if that is a hundredth of the run's calls at most. They are counted.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        Draws, on the line.
    """
    if len(positions) < _FEWEST:
        return None
    transform = transform_of(target.target)
    if isinstance(from_line_of(transform), ModelMap):  # another library's numbers have no densities
        return None
    draws = transform.to_bounded(positions[:: -(-len(positions) // _ROWS)])
    parameters = parameters_of(target.target)
    moved = [
        (pairs, part)
        for pairs in exchanges(parameters)
        if (part := _beyond(draws, pairs)) <= FEWEST_EXCHANGED
    ]
    if not moved or 1 + len(moved) > PART_EXCHANGED * target.n_calls:
        return None
    draw = draws[len(draws) // 2]
    places = np.tile(draw, (1 + len(moved), 1))
    for place, (pairs, _) in zip(places[1:], moved, strict=True):
        place[pairs] = place[pairs[:, ::-1]]
    try:
        here, *there = _densities(target, places)
    except BudgetSpent:
        return None
    for value, (pairs, part) in zip(there, moved, strict=True):
        if abs(value - here) <= _SAME * max(1.0, abs(here)):
            one, other = (tuple(parameters.labels[i] for i in column) for column in pairs.T)
            return Exchange(one=one, other=other, part=part)
    return None


def _densities(target: RecordingPotential, places: FloatArray) -> FloatArray:
    """Return minus the log density at places (n, dim) in the user's coordinates."""
    transform = transform_of(target.target)
    with np.errstate(all="ignore"), target.rejections.excluded():
        line = transform.to_unbounded(places)
        values = target.fork(keep=False).value(line)
        return np.asarray(values + transform.log_jacobian(line))


def _beyond(draws: FloatArray, pairs: IntArray) -> float:
    """Return the part of draws (n, dim) that is nearer to where an exchange leads than to others.

    The exchange maps the two sides onto one another, so that each holds half of the mass of a
    density that it leaves unchanged.
    """
    order = np.arange(draws.shape[1])
    order[pairs] = pairs[:, ::-1]
    middle, variances = draws.mean(axis=0), draws.var(axis=0)
    scales = variances + variances[order]
    across = (middle - middle[order]) / np.where(scales > 0.0, scales, 1.0)
    sides = (draws - 0.5 * (middle + middle[order])) @ across
    return float(np.mean(sides <= 0.0))


MOST = 50
"""Failed positions that a run evaluates once more at most: where nine of ten calls fail by chance,
all of them fail again in one of 200 runs."""

ENOUGH = 5
"""Positions that work when evaluated once more, after which no others are tried."""

FEW, PART = 5, 0.25
"""Positions that are tried in any case, and the part of a run's calls that others may cost."""

PART_OF_INFINITE = 0.01
"""Like :data:`PART`, of positions where U was infinite, as long as it is so at all of them once
more: nearly always that is the support's end."""

TIMES = 3
"""Gradients made of differences at such a position, at most."""


def evaluate_again(target: RecordingPotential, places: FloatArray) -> None:
    """Evaluate some positions once more at which the target failed, and note what came of it.

    If there are such positions, the latest one that did not fail is evaluated once more, too.
    Calls are counted, failures are not. With ``on_error="retry"`` these are positions at which all
    retries failed. Some positions of infinite U are evaluated once more as well: a model may
    return it by chance. No more is done than the budget allows.

    Parameters
    ----------
    places : ndarray of shape (n, dim)
        Where chains have been. Failures far from there may be mere overflow, and do not count.
    """
    account, before = target.rejections.account, target.n_calls
    is_first = not account.recheck.tried
    try:
        for call, position in account.take_near(places):
            seen = account.recheck
            costs = seen.tried >= FEW and target.n_calls - before > PART * before
            if seen.tried == MOST or seen.worked == ENOUGH or costs:
                break
            worked = _works(target, call, position)
            account.recheck = attrs.evolve(seen, tried=seen.tried + 1, worked=seen.worked + worked)
        if is_first and account.recheck.tried:
            _compare(target)
        _look_at_infinite(target, places)
    except BudgetSpent:
        return
    finally:
        account.infinite.clear()


NOISY = 10
"""Values at one position by which the noise of values is known, where nothing else shows it."""


def look_at_noise(target: RecordingPotential, surrogate: Potential | None) -> None:
    """Note how large the noise of values is: as declared or returned, by a process, or by calls.

    Where nothing else shows it, the latest position is evaluated some times more.
    """
    noise, account = target.noise, target.rejections.account
    if noise is None:
        return
    sd, last = math.nan, target.rejections.last
    if isinstance(noise.sd, float):
        sd = noise.sd
    elif COVARIANCE in getattr(surrogate, "capabilities", ()) and noise.sd != RETURNED:
        sd = cast(CovariancePotential, surrogate).noise_sd
    elif last is not None:
        position = last[0][None]
        with suppress(BudgetSpent), target.rejections.excluded(afresh=True):
            if noise.sd == RETURNED:
                sd = float(np.median(noise_at(target, position)))
            else:
                values = target.fork(keep=False).value(np.repeat(position, NOISY, axis=0))
                sd = float(np.std(values[np.isfinite(values)], ddof=1))
    account.recheck = attrs.evolve(account.recheck, noise_sd=sd, unbiased=noise.is_unbiased)


def _look_at_infinite(target: RecordingPotential, places: FloatArray) -> None:
    """Evaluate U once more at some positions where it was infinite, and note where it is not."""
    account, before = target.rejections.account, target.n_calls
    found: list[tuple[CallKind, FloatArray]] = [("value", row) for row in account.infinite]
    for _, position in different_near(found, places):
        seen = account.recheck
        part = PART if seen.finite else PART_OF_INFINITE
        if seen.infinite >= min(max(FEW, part * before), MOST) or seen.finite == ENOUGH:
            return
        with target.rejections.excluded(afresh=True) as excluded:
            value = target.fork(keep=False).value(position[None])[0]
        if not excluded.total:  # a failure is another matter
            account.recheck = attrs.evolve(
                seen, infinite=seen.infinite + 1, finite=seen.finite + bool(np.isfinite(value))
            )


def _works(target: RecordingPotential, call: CallKind, position: FloatArray) -> bool:
    """Return whether a call works that has failed, though nothing has changed.

    A gradient that is made of differences may have failed by its neighbours, and now has others. So
    it is made up to :data:`TIMES` times, and one of them must differ from the first.
    """

    def fails() -> bool:
        return _fails(target.fork(keep=False, jacobians=call == "jacobian"), call, position)

    if call == "gradient" and calls_per_gradient(target) > 1:
        first = fails()
        return any(fails() != first for _ in range(TIMES - 1))
    return not fails()


def _fails(target: RecordingPotential, call: CallKind, position: FloatArray) -> bool:
    with target.rejections.excluded(afresh=True) as excluded:
        if call in ("value", "forward"):
            target.value(position[None])
        else:
            target.value_and_gradient(position[None])
    return excluded.total > 0


def _compare(target: RecordingPotential) -> None:
    """Evaluate the latest position with a finite U once more, and note what comes of it."""
    if target.rejections.last is None:
        return
    position, value = target.rejections.last
    with target.rejections.excluded(afresh=True):
        again = target.fork(keep=False).value(position[None])
    if np.isfinite(again[0]):
        target.rejections.account.note_values(value, float(again[0]))
