"""Trying a kernel on a target from exact draws, and what is compared afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
from scipy.special import bdtr, chdtri, ndtri

from exact_starts.kernels import EXACT, POTENTIALS, Kernel, fitted, tuning
from exact_starts.targets import Case
from surrokit.compose import make
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import EvaluationWarning
from surrokit.interfaces import Decider
from surrokit.potentials import Potential
from surrokit.testing.parts import transitions
from surrokit.testing.samplers import LEAST_ACCEPTANCE
from surrokit.testing.statistics import Comparison, Verdict, normality
from surrokit.types import FloatArray

SHARES = (0.01, 0.1, 0.5, 0.9, 0.99)
"""Probabilities of the regions that chains enter and leave."""

LARGEST = 38.0
"""The z-score of the least probability that is a number."""


def compared(start: FloatArray, end: FloatArray, label: str) -> Verdict:
    """Compare exact draws, some transitions later, with what they must be still.

    Parameters
    ----------
    start, end : ndarray of shape (n, 2)
        Before and after, as standard normals of the target.
    label
        Goes into the names of the comparisons.
    """
    with np.errstate(all="ignore"):
        return Verdict.join([normality(end, label), crossings(start, end, label)])


def crossings(start: FloatArray, end: FloatArray, label: str) -> Verdict:
    """Test whether as many chains entered each of some regions as left it.

    Of the chains that crossed an edge each is as likely to have come as to have gone, whatever
    the kernel, if it leaves the target as it is. So the number of those that came is binomial,
    and a small bias shows even where few chains have moved far.
    """
    found = []
    for (name, inside), (_, still) in zip(_regions(start), _regions(end), strict=True):
        came, went = int((still & ~inside).sum()), int((inside & ~still).sum())
        p_value = min(1.0, 2.0 * float(bdtr(min(came, went), came + went, 0.5)))
        found.append(Comparison(f"{label}{name}, came less went", came - went, p_value))
    return Verdict(tuple(found))


def _regions(normals: FloatArray) -> Iterator[tuple[str, np.ndarray]]:
    squared = np.square(normals).sum(axis=1)
    for share in SHARES:
        for k in range(normals.shape[1]):
            yield f"coordinate {k + 1} in the lowest {share:g}", normals[:, k] < ndtri(share)
        yield f"radius in the least {share:g}", squared < chdtri(normals.shape[1], 1.0 - share)


def z_score(comparison: Comparison) -> float:
    """Return the size of a standard normal that is as improbable as what was seen."""
    with np.errstate(divide="ignore"):
        return min(float(-ndtri(0.5 * comparison.p_value)), LARGEST)


@attrs.frozen(kw_only=True)
class Size:
    """How much is tried.

    Parameters
    ----------
    n_chains, n_by_position
        Chains of most samplers, and of those with implicit steps.
    n_transitions
        Of each chain.
    seed
        Of starts and moves.
    """

    n_chains: int
    n_by_position: int
    n_transitions: int
    seed: int

    def chains(self, kernel: Kernel) -> int:
        """Return how many chains of a kernel are started."""
        return self.n_by_position if kernel.by_position else self.n_chains


SHORT = Size(n_chains=1000, n_by_position=100, n_transitions=3, seed=0)
"""What every run of the tests tries."""

LONG = Size(n_chains=10_000, n_by_position=500, n_transitions=5, seed=1)
"""What takes minutes."""


@attrs.frozen(kw_only=True)
class Outcome:
    """What came of one kernel on one target.

    Parameters
    ----------
    potential
        What it moved on.
    acceptance
        Mean probability.
    verdict
        What was compared.
    """

    potential: str
    acceptance: float
    verdict: Verdict

    @property
    def tells(self) -> bool:
        """Whether chains moved enough for anything to be tested."""
        return self.acceptance >= LEAST_ACCEPTANCE

    @property
    def z_scores(self) -> list[float]:
        """Of all comparisons."""
        return [z_score(one) for one in self.verdict.comparisons]


def tried(case: Case, kernel: Kernel, size: Size) -> list[Outcome]:
    """Try a kernel on a target, on every potential that it can move on."""
    told = tuning(kernel, case)
    return [
        tried_once(
            case,
            name,
            sampler.bind(potential, told),
            metropolis(exact),
            size.chains(kernel),
            size,
        )
        for name, sampler, potential, exact in settings(case, kernel)
    ]


def settings(case: Case, kernel: Kernel) -> Iterator[tuple[str, Any, Potential, Potential]]:
    """Yield the name of every potential, a sampler for it, itself, and the exact one."""
    sampler = kernel.make()
    for name in POTENTIALS:
        needs = sampler.needs if name == EXACT else frozenset()
        exact = RecordingPotential(case.exact(needs), keep=False)
        potential = exact if name == EXACT else fitted(case, name)
        if sampler.needs <= potential.capabilities:
            yield name, sampler, potential, exact
            if not getattr(sampler, "uses_potential", True):  # it moves the same on any
                return


def metropolis(exact: Potential) -> Decider:
    """Return the correction that decides by an exact potential."""
    return make("correction", "metropolis").bind(exact)


def tried_once(
    case: Case, potential: str, kernel: Any, decider: Decider, n_chains: int, size: Size
) -> Outcome:
    """Start chains from exact draws, let them go, and compare."""
    rng = np.random.default_rng([1302, size.seed])
    start = case.sample(rng, n_chains)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)  # one target is NaN in places
        end, acceptance = transitions(kernel, decider, start, size.n_transitions, rng)
    label = f"{case.name}, on {potential}: "
    return Outcome(
        potential=potential,
        acceptance=acceptance,
        verdict=compared(case.to_normals(start), case.to_normals(end), label),
    )
