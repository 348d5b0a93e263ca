"""Checks of whole kernels: a sampler with a correction keeps the target, on any surrogate.

Chains start from exact draws, so there is no burn-in, and after any number of transitions they must
still be exact draws. Rates of false alarms are those of
:mod:`surrokit.testing.measures.statistics`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit.interfaces import Decider, Tuning, changes_with_position
from surrokit.potentials import Potential
from surrokit.testing.checks.kernels.sampler import ready, usable
from surrokit.testing.measures.demands import demand
from surrokit.testing.measures.statistics import Verdict, check_balance, normality
from surrokit.testing.parts.reference import ReferenceCorrection, transitions
from surrokit.testing.results import Check, Factory
from surrokit.testing.targets.densities import ALL, Banana, Gaussian, Mixture
from surrokit.testing.targets.target import Target

N_CHAINS = 12_000
"""Chains started from exact draws."""

FLUX_CHAINS = 3
"""Factor by which there are more of them where each makes one transition."""

N_TRANSITIONS = 12
"""Transitions after which chains are compared with exact draws."""

N_CHAINS_BY_POSITION, N_TRANSITIONS_BY_POSITION = 3000, 6
"""The same for samplers whose metric changes with position: their implicit steps cost a hundred
times as much. The long check takes the same numbers for all samplers."""

MANY = 5
"""Factor by which the long check takes more chains and transitions."""

NARROW = Gaussian(mean=(0.3, 0.2), covariance=((0.5, 0.1), (0.1, 0.4)))
"""A surrogate too sure of itself: chains stick in the tails."""

WIDE = Gaussian(mean=(-0.6, 0.5), covariance=((2.0, -0.5), (-0.5, 1.8)))
"""A surrogate that is shifted, too wide, and correlated the wrong way."""

SURROGATES: tuple[tuple[str, Target], ...] = (
    ("narrow", NARROW),
    ("wide", WIDE),
    ("bent", Banana(sd=1.2)),
)
"""Wrong surrogates by name."""

LEAST_ACCEPTANCE = 0.02
"""Mean acceptance below which a kernel moves too little to be tested."""


def affordable(kernel: Any) -> tuple[int, int]:
    """Return how many chains of a sampler, or of its kernel, go how many transitions."""
    if changes_with_position(getattr(kernel, "metric", None)):
        return N_CHAINS_BY_POSITION, N_TRANSITIONS_BY_POSITION
    return N_CHAINS, N_TRANSITIONS


def invariance(
    kernel: Any,
    decider: Decider,
    target: Target,
    label: str,
    *,
    seed: int = 0,
    n_chains: int | None = None,
    n_transitions: int | None = None,
) -> Verdict:
    """Test whether chains from exact draws are exact draws some transitions later.

    Parameters
    ----------
    kernel, decider
        Sampler and correction, bound to the potentials to test them with.
    target
        The distribution that must stay invariant.
    label
        Goes into the names of the comparisons.
    seed, n_chains, n_transitions
        Of the experiment; as many as are :func:`affordable` unless a number is given.

    Raises
    ------
    AssertionError
        If the chains hardly move, so that nothing would be tested.
    """
    rng = np.random.default_rng([1601, seed])
    most = affordable(kernel)
    start = target.sample(rng, n_chains or most[0])
    end, acceptance = transitions(kernel, decider, start, n_transitions or most[1], rng)
    demand(
        acceptance >= LEAST_ACCEPTANCE,
        f"{label}mean acceptance is {acceptance:.3g} from exact draws; a kernel that hardly moves "
        "cannot be tested, and is of no use: check log_correction and the step size",
    )
    demand(
        np.isfinite(end).all(),
        f"{label}chains reached positions that are not finite; NaN and inf never accept",
    )
    with np.errstate(all="ignore"):
        return normality(target.to_normals(end), label)


def flux(
    kernel: Any,
    decider: Decider,
    target: Target,
    label: str,
    *,
    seed: int = 0,
    n_chains: int | None = None,
) -> Verdict:
    """Test whether moves between regions balance, over one transition from exact draws."""
    rng = np.random.default_rng([1602, seed])
    start = target.sample(rng, n_chains or FLUX_CHAINS * affordable(kernel)[0])
    end, _ = transitions(kernel, decider, start, 1, rng)
    return check_balance(target.to_normals(start), target.to_normals(end), label)


def _targets() -> tuple[Target, ...]:
    return tuple(target() for target in ALL)


def _on_itself(make: Factory, target: Target, **sizes: int) -> Verdict:
    correction = ReferenceCorrection(potential=target)
    return invariance(
        ready(make, target), correction, target, f"{type(target).__name__}: ", **sizes
    )


def check_invariant(make: Factory) -> None:
    """Exact draws stay exact draws when the sampler moves on the target itself."""
    verdicts = [_on_itself(make, target) for target in usable(make, _targets())]
    Verdict.join(verdicts).require("exact draws must stay exact draws under the kernel")


def _on_wrong(make: Factory, surrogate: tuple[str, Potential], **sizes: int) -> list[Verdict]:
    name, potential = surrogate
    return [
        invariance(
            ready(make, potential),
            ReferenceCorrection(potential=target),
            target,
            f"{name} surrogate, {type(target).__name__}: ",
            **sizes,
        )
        for target in (Gaussian(), Mixture())
    ]


def check_invariant_on_wrong_surrogate(make: Factory) -> None:
    """Exact draws stay exact draws when the sampler moves on a wrong surrogate."""
    needs = make().needs
    verdicts = [
        verdict
        for surrogate in SURROGATES
        if needs <= surrogate[1].capabilities
        for verdict in _on_wrong(make, surrogate)
    ]
    Verdict.join(verdicts).require(
        "a wrong surrogate must cost mixing only: exact draws must stay exact draws"
    )


def check_flux(make: Factory) -> None:
    """As many moves go from each region to each other one as back: detailed balance."""
    verdicts = []
    for target in usable(make, (Banana(), Mixture(), Gaussian())):
        correction = ReferenceCorrection(potential=target)
        name = type(target).__name__
        verdicts.append(flux(ready(make, target), correction, target, f"{name}: "))
        if make().needs <= WIDE.capabilities:
            sampler = ready(make, WIDE)
            verdicts.append(flux(sampler, correction, target, f"wide surrogate, {name}: "))
    Verdict.join(verdicts).require(
        "a reversible kernel moves as often from one region to another as back (a sampler that is "
        "not reversible says so by reversible = False)"
    )


def check_invariant_when_coarse(make: Factory) -> None:
    """Exact draws stay exact draws with steps so long that many proposals are rejected."""
    coarse = Tuning(step_size=1.1, covariance=np.array([[1.0, 0.3], [0.3, 0.6]]), n_steps=3)
    verdicts = []
    for target in usable(make, (Banana(), Mixture())):
        sampler = make().bind(target, coarse)
        correction = ReferenceCorrection(potential=target)
        verdicts.append(invariance(sampler, correction, target, f"{type(target).__name__}: "))
    Verdict.join(verdicts).require("exact draws must stay exact draws under a coarse kernel")


def check_invariant_at_length(make: Factory) -> None:
    """Exact draws stay exact draws, with more chains and more transitions."""
    sizes = {"n_chains": MANY * N_CHAINS, "n_transitions": MANY * N_TRANSITIONS, "seed": 1}
    verdicts = [_on_itself(make, target, **sizes) for target in usable(make, _targets())]
    if make().needs <= WIDE.capabilities:
        verdicts += _on_wrong(make, ("narrow", NARROW), **sizes)
        verdicts += _on_wrong(make, ("wide", WIDE), **sizes)
    Verdict.join(verdicts).require("exact draws must stay exact draws under the kernel")


CHECKS: tuple[Check, ...] = (
    Check(check_invariant, level="statistical"),
    Check(check_invariant_on_wrong_surrogate, level="statistical"),
    Check(
        check_flux,
        level="statistical",
        applies=lambda sampler: getattr(sampler, "reversible", True),
    ),
    Check(
        check_invariant_when_coarse,
        level="statistical",
        applies=lambda sampler: "step_size" in sampler.tunes,
    ),
    Check(check_invariant_at_length, level="long"),
)
"""For every sampler, with a correction that is known to be right."""
