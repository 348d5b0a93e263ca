"""Exchanges of parameters that leave a density unchanged, such as those of two equal components."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

import attrs
import numpy as np

from surrokit.coordinates.parameters import Parameters
from surrokit.cost.budget import BudgetSpent
from surrokit.cost.recording import RecordingPotential
from surrokit.targets.bounds import parameters_of, transform_of
from surrokit.types import FloatArray, IntArray

MOST, PART = 10, 0.01
"""Exchanges that are looked at, and the part of a run's calls that values at them may cost."""

FEW = 0.1
"""Part of the draws on the other side up to which chains have not gone there: it holds half."""

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
    target
        The exact potential.
    positions : ndarray of shape (n, dim)
        Draws, on the line.
    """
    if not len(positions):
        return None
    draws = transform_of(target.target).to_bounded(positions[:: -(-len(positions) // _ROWS)])
    parameters = parameters_of(target.target)
    ways = {frozenset(map(tuple, pairs.tolist())): pairs for pairs in _exchanges(parameters)}
    moved = [(pairs, part) for pairs in ways.values() if (part := _beyond(draws, pairs)) <= FEW]
    if not moved or 1 + len(moved) > PART * target.paid:
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
    with np.errstate(all="ignore"), target.exact.off_the_record():
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


def _exchanges(parameters: Parameters) -> Iterator[IntArray]:
    """Return exchanges as pairs of numbers, each of shape (k, 2).

    Entries of arrays of one length go together, and so do names that end in the same two numbers.
    Single numbers of one declaration are also exchanged in all ways, if these are few.
    """
    slices = parameters.slices()
    by_length: dict[int, list[IntArray]] = defaultdict(list)
    alike: list[list[str]] = []
    for name, spec in parameters.specs.items():
        if spec.shape:
            rows = np.arange(slices[name].start, slices[name].stop).reshape(spec.shape[0], -1)
            by_length[len(rows)].append(rows[:2].T)
            continue
        group = next((each for each in alike if parameters.specs[each[0]] == spec), None)
        if group is None:
            alike.append(group := [])
        group.append(name)
    yield from (np.vstack(pairs) for length, pairs in by_length.items() if length > 1)
    for names in _named_alike(alike):
        yield np.array([[slices[name].start for name in pair] for pair in names])
    for group in alike:
        ways = list(_pairings([slices[name].start for name in group[:5]]))[1:]
        yield from (np.array(pairs) for pairs in ways if len(ways) <= MOST)


def _named_alike(alike: list[list[str]]) -> Iterator[list[tuple[str, str]]]:
    """Return pairs of names that end in two numbers, such as a1 with a2 and b1 with b2."""
    together: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for group in alike:
        stems: dict[str, dict[str, str]] = defaultdict(dict)
        for name in group:
            if (found := re.fullmatch(r"(.*?)(\d+)", name)) is not None:
                stems[found[1]][found[2]] = name
        for names in stems.values():
            if len(names) > 1:
                first, second = sorted(names)[:2]
                together[first, second].append((names[first], names[second]))
    yield from together.values()


def _pairings(numbers: list[int]) -> Iterator[list[list[int]]]:
    """Return all ways to exchange numbers in pairs; the first one exchanges none."""
    yield []
    for i, j in combinations(range(len(numbers)), 2):
        rest = [n for n in numbers[i + 1 :] if n != numbers[j]]
        yield from ([[numbers[i], numbers[j]], *pairs] for pairs in _pairings(rest))
