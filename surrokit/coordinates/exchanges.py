"""Exchanges of equally declared parameters, such as labels of components."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from surrokit.coordinates.parameters import Parameters
from surrokit.types import IntArray

MOST = 10
"""Ways at most to exchange numbers of one declaration."""


def exchanges(parameters: Parameters) -> list[IntArray]:
    """Return exchanges as pairs of numbers, each of shape (k, 2).

    Entries of arrays of one length go together, and so do names that end in the same two numbers.
    Single numbers of one declaration are also exchanged in all ways, if these are few, and so are
    those of an array that is declared alone.
    """
    return list({frozenset(map(tuple, ways.tolist())): ways for ways in _ways(parameters)}.values())


def _ways(parameters: Parameters) -> Iterator[IntArray]:
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
    groups = [[slices[name].start for name in group] for group in alike]
    if len(parameters.specs) == 1:
        groups.append(list(range(parameters.dim)))
    for numbers in groups:
        ways = list(_pairings(numbers[:5]))[1:]
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
