"""Checks of samplers: single proposals, and whole kernels that keep the target on any surrogate.

Chains of kernels start from exact draws, so there is no burn-in, and after any number of
transitions they must still be exact draws. Rates of false alarms are those of
:mod:`surrokit.testing.statistics`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import attrs
import numpy as np

from surrokit.interfaces import ChainState, Decider, Proposal, Status, Tuning, changes_with_position
from surrokit.potentials import Potential
from surrokit.testing import must
from surrokit.testing.checks import Factory, check
from surrokit.testing.parts import ReferenceCorrection, transitions
from surrokit.testing.statistics import Verdict, normality
from surrokit.testing.targets import ALL, Banana, Gaussian, Mixture, Student, Target, usable
from surrokit.testing.wrappers import Fenced, Forbidden
from surrokit.types import FloatArray

TUNABLE = frozenset({"step_size", "n_steps", "metric", "length", "warp", "heavy_warp"})
"""Settings that a sampler may leave to tuning."""

TUNING = Tuning(step_size=0.5, covariance=np.array([[1.0, 0.3], [0.3, 0.6]]), n_steps=4)
"""Tuned values of the settings that samplers leave free."""

N_CHAINS, N_TRANSITIONS = 12_000, 12
"""Chains started from exact draws, and transitions after which they are compared with those."""

NARROW = Gaussian(mean=(0.3, 0.2), covariance=((0.5, 0.1), (0.1, 0.4)))
"""A surrogate too sure of itself: chains stick in the tails."""

WIDE = Gaussian(mean=(-0.6, 0.5), covariance=((2.0, -0.5), (-0.5, 1.8)))
"""A surrogate that is shifted, too wide, and correlated the wrong way."""

SURROGATES = (("narrow", NARROW), ("wide", WIDE), ("bent", Banana(sd=1.2)))
"""Wrong surrogates by name."""

LEAST_ACCEPTANCE = 0.02
"""Mean acceptance below which a kernel moves too little to be tested."""


def ready(make: Factory, potential: Potential, tuning: Tuning = TUNING) -> Any:
    """Return a sampler's kernel on a potential, with tuned values for its free settings."""
    return make().bind(potential, tuning)


def start(kernel: Any, target: Potential, at: FloatArray) -> ChainState:
    """Return chains of a target at positions (n, 2)."""
    return ChainState(positions=at, values=target.value(at), cache=kernel.cache(at))


def _draws(target: Target, n: int = 8) -> FloatArray:
    return target.sample(np.random.default_rng(1953), n)


def _propose(kernel: Any, state: ChainState, seed: int) -> Proposal:
    proposal: Proposal = kernel.propose(state, np.random.default_rng(seed))
    return proposal


def _on(*targets: Target) -> Callable[[Factory], Iterator[tuple[Any, ...]]]:
    """Return cases of a check: makers of samplers with a target that they can move on."""
    return lambda make: ((make, target) for target in usable(make(), *targets))


on_banana = partial(check, "sampler", cases=_on(Banana()))
"""Declares a check of a sampler on one curved target."""


def _demand_same(first: Proposal, second: Proposal, what: str) -> None:
    """Demand that two proposals are equal bit for bit."""
    for name in ("positions", "log_correction", "moved", "status", "n_steps"):
        must.equal(getattr(first, name), getattr(second, name), f"{name} of {what}")
    must.hold(set(first.cache) == set(second.cache), f"caches of {what} hold different names")
    for name in first.cache:
        must.equal(first.cache[name], second.cache[name], f"{name} in the cache of {what}")


@check("sampler", cases=_on(Banana(), Mixture()))
def check_proposal(make: Factory, target: Target) -> None:
    """Every field of a proposal has its shape, and is finite where the path ended well.

    ``tunes`` are known names, and the target acceptance is a probability.
    """
    sampler, kernel = make(), ready(make, target)
    known = isinstance(sampler.tunes, frozenset) and sampler.tunes <= TUNABLE
    must.hold(known, f"tunes must be a frozenset of {sorted(TUNABLE)}, got {sampler.tunes!r}")
    aim = sampler.target_acceptance
    must.hold(0 < aim < 1, f"target_acceptance must lie between 0 and 1, got {aim!r}")
    state = start(kernel, target, _draws(target))
    proposal, n = _propose(kernel, state, 2), len(state.positions)
    must.shape(proposal.positions, (n, 2), "positions of a proposal")
    for name, kind in (("log_correction", "f"), ("moved", "b"), ("status", "i"), ("n_steps", "i")):
        must.shape(getattr(proposal, name), (n,), name, kind)
    ok, c = proposal.status == Status.OK, proposal.log_correction
    must.hold(ok.any(), "no path of a short proposal on a smooth target ended with status OK")
    must.between(c[ok], -np.inf, np.inf, "log_correction where status is OK")
    must.between(proposal.n_steps, 1, np.inf, "n_steps")
    still = ~proposal.moved & ok
    what = "positions of chains not moved"
    must.equal(proposal.positions[still], state.positions[still], what)
    for name, array in proposal.cache.items():
        must.hold(len(array) == n, f"{name} in the cache must have one row a chain")


@check("sampler", cases=_on(Banana(), Student()))
def check_path_quantities(make: Factory, target: Target) -> None:
    """A proposal's source, cache and ``log_path_ratio`` agree with its kernel's potential."""
    kernel = ready(make, target)
    state = start(kernel, target, _draws(target))
    proposal = _propose(kernel, state, 4)
    ok = proposal.status == Status.OK
    for name, array in kernel.cache(proposal.positions[ok]).items():
        what = f"{name} in a proposal's cache against the same evaluated there"
        must.close(proposal.cache[name][ok], array, what, rtol=1e-7, atol=1e-8)
    uses, ratio = make().uses_potential, proposal.log_path_ratio
    must.hold(
        (kernel.potential is not None) == (proposal.source is not None) == uses,
        "a sampler that moves without any potential has a false uses_potential, its kernel no "
        "potential and its proposals no source; others have all three",
    )
    if proposal.source is None:
        must.hold(ratio is None, "a proposal that names no source must have no log_path_ratio")
        return
    what = "source of a proposal, and potential of its kernel, must be the object given to bind"
    must.hold(proposal.source is target and kernel.potential is target, what)
    expected = state.cache["value"] - proposal.cache["value"] + proposal.log_correction
    if np.abs(expected[ok]).max() <= 1e-8:
        right = ratio is None or (ratio[ok] <= 0.0).all()
        what = "with c = V(q') - V(q), log_path_ratio is None, or the log of the mean acceptance"
        must.hold(right, f"{what} inside, which is at most 0; got {ratio}")
        return
    what = "log_path_ratio against V(q) - V(q') + c"
    must.hold(ratio is not None, f"a proposal with a source must have one: {what}")
    must.close(np.asarray(ratio)[ok], expected[ok], what, rtol=1e-7, atol=1e-8)


@on_banana()
def check_failures_flagged(make: Factory, target: Target) -> None:
    """Where the potential fails, paths get a status; nothing is raised and nothing warns."""
    kernel = ready(make, fenced := Fenced(target, 1.0))
    positions = 0.3 * np.random.default_rng(14).standard_normal((40, 2))
    positions *= np.minimum(1.0, 0.9 / np.linalg.norm(positions, axis=1))[:, None]
    state, rng = start(kernel, fenced, positions), np.random.default_rng(15)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(10):
            proposal = kernel.propose(state, rng)
            ok = proposal.status == Status.OK
            ends, correction = proposal.positions[ok], proposal.log_correction[ok]
            numbers = np.isfinite(ends).all() and not np.isnan(correction).any()
            must.hold(numbers, "a path with status OK must end at numbers, with a log_correction")
            outside = int((~np.isfinite(fenced.value(ends))).sum())
            what = f"{outside} of {len(ends)} paths ended with status OK where the potential is inf"
            must.hold(proposal.source is None or not outside, f"{what}; give them another status")


@on_banana()
def check_same_proposal(make: Factory, target: Target) -> None:
    """The same state and generator give the same proposal bit for bit, whatever came before.

    It does not change the state, which may be read-only, nor look at the exact values there, nor
    draw from NumPy's global random state.
    """
    kernel, rng_state = ready(make, target), np.random.get_state()  # noqa: NPY002
    state = start(kernel, target, _draws(target))
    arrays = {"positions": state.positions, "values": state.values, **state.cache}
    must.untouched(lambda: _propose(kernel, state, 6), arrays)
    first = _propose(ready(make, target), state, 6)
    for i in range(12):
        np.random.seed(i)  # noqa: NPY002
        what = f"proposal {i + 1} from one state and one generator"
        _demand_same(_propose(kernel, state, 6), first, what)
    np.random.set_state(rng_state)  # noqa: NPY002
    _propose(kernel, start(kernel, target, _draws(target, 3)), 7)
    _demand_same(_propose(kernel, state, 6), first, "a proposal before and after other chains' one")
    unknown = attrs.evolve(state, values=np.full(len(state.positions), np.nan))
    what = "proposals that differ only in the exact values"
    _demand_same(_propose(kernel, unknown, 6), first, what)


@on_banana()
def check_binding(make: Factory, target: Target) -> None:
    """``bind`` reaches every part inside, and changes neither the sampler nor earlier kernels.

    Caches do not depend on the tuning, unless ``caches_metric`` is true.
    """
    sampler = make()
    tunes, kernel = sampler.tunes, sampler.bind(target, TUNING)
    state = start(kernel, target, _draws(target))
    expected = _propose(kernel, state, 10)
    sampler.bind(Forbidden(Gaussian()), TUNING)
    for one, when in (
        (sampler.bind(target, TUNING), "after its sampler was bound to another potential and back"),
        (kernel, "before and after its sampler was bound to another potential"),
    ):
        _demand_same(_propose(one, state, 10), expected, f"a proposal {when}")
    retuned = Tuning(step_size=0.2, covariance=np.array([[3.0, 0.0], [0.0, 0.5]]), n_steps=2)
    found = sampler.bind(target, retuned).cache(state.positions)
    for name, array in found.items() if not sampler.caches_metric else ():
        what = f"{name} in a cache under two tunings, without a true caches_metric,"
        must.equal(array, state.cache[name], what)
    what = f"tunes was {sorted(tunes)} and is {sorted(sampler.tunes)} after bind"
    must.hold(sampler.tunes == tunes, f"{what}; it says what the user left free")


@on_banana(claimed=lambda s: not s.tunes or "step_size" in s.tunes)
def check_tuning(make: Factory, target: Target) -> None:
    """``bind`` sets what ``tunes`` names and nothing else.

    If the metric is left free, the covariance given to it shapes the moves.
    """
    sampler = make()
    small, large = Tuning(step_size=0.01, n_steps=1), Tuning(step_size=0.3, n_steps=3)
    state = start(sampler.bind(target, small), target, _draws(target))
    first, second = (_propose(sampler.bind(target, each), state, 16) for each in (small, large))
    if not sampler.tunes:
        _demand_same(second, first, "a sampler that tunes nothing, bound with two tunings")
        return
    near, far = (
        float(np.abs((each.positions - state.positions)[each.status == Status.OK]).mean())
        for each in (first, second)
    )
    what = f"moves at step sizes 0.01 and 0.3 are {near:.3g} and {far:.3g} long"
    must.hold(near < 0.5 * far, f"step_size is left free, but {what}")
    # a metric by position takes only units from a covariance
    if "metric" in sampler.tunes and not changes_with_position(sampler.metric):
        shape = Tuning(step_size=0.1, covariance=np.diag([9.0, 0.01]), n_steps=1)
        kernel = sampler.bind(Gaussian(), shape)
        many = start(kernel, Gaussian(), _draws(Gaussian(), 400))
        size = np.abs(_propose(kernel, many, 18).positions - many.positions).mean(axis=0)
        what = f"with standard deviations 3 and 0.1 moves have sizes {size}"
        must.hold(size[0] > 3.0 * size[1], f"the metric is left free, but {what}")


# --- kernels ---


def affordable(kernel: Any) -> tuple[int, int]:
    """Return how many chains of a sampler, or of its kernel, go how many transitions.

    Implicit steps of a metric that changes with position cost a hundred times as much as others.
    """
    costly = changes_with_position(getattr(kernel, "metric", None))
    return (3000, 6) if costly else (N_CHAINS, N_TRANSITIONS)


def invariance(
    kernel: Any,
    decider: Decider,
    target: Target,
    label: str,
    *,
    n_chains: int | None = None,
    n_transitions: int | None = None,
) -> Verdict:
    """Test whether chains from exact draws are exact draws some transitions later.

    Sampler and correction are bound to the potentials to test them with. Chains and transitions
    are as many as are :func:`affordable` unless a number is given.

    Raises
    ------
    AssertionError
        If the chains hardly move, so that nothing would be tested.
    """
    rng = np.random.default_rng([1601, 0])
    most = affordable(kernel)
    begin = target.sample(rng, n_chains or most[0])
    end, acceptance = transitions(kernel, decider, begin, n_transitions or most[1], rng)
    what = f"{label}mean acceptance is {acceptance:.3g} from exact draws, and nothing can be tested"
    must.hold(acceptance >= LEAST_ACCEPTANCE, f"{what}; check log_correction and the step size")
    finite = np.isfinite(end).all()
    must.hold(finite, f"{label}chains reached positions that are not finite; these never accept")
    with np.errstate(all="ignore"):
        return normality(target.to_normals(end), label)


def _compared(
    make: Factory, on: Iterable[tuple[Target, Potential, str]], tuning: Tuning = TUNING
) -> Iterator[Verdict]:
    """Test the sampler, as each target corrects it, on a potential with a name."""
    for target, potential, name in on:
        if make().needs <= potential.capabilities:
            kernel, correction = (
                ready(make, potential, tuning),
                ReferenceCorrection(potential=target),
            )
            yield invariance(kernel, correction, target, f"{name}{type(target).__name__}: ")


KEPT = "exact draws must stay exact draws under the kernel"


@check("sampler", level="statistical")
def check_invariant(make: Factory) -> None:
    """Exact draws stay exact draws when the sampler moves on the target itself.

    They do so with steps so long that many proposals are rejected, too.
    """
    everywhere = usable(make(), *(target() for target in ALL))
    verdicts = [*_compared(make, ((each, each, "") for each in everywhere))]
    if "step_size" in make().tunes:
        coarse = attrs.evolve(TUNING, step_size=1.1, n_steps=3)
        curved = usable(make(), Banana(), Mixture())
        verdicts += _compared(make, ((each, each, "") for each in curved), coarse)
    Verdict.join(verdicts).require(KEPT)


@check("sampler", level="statistical")
def check_invariant_on_wrong_surrogate(make: Factory) -> None:
    """Exact draws stay exact draws when the sampler moves on a wrong surrogate."""
    targets = (Gaussian(), Mixture())
    pairs = ((of, v, f"{name} surrogate, ") for of in targets for name, v in SURROGATES)
    Verdict.join(_compared(make, pairs)).require(f"a wrong surrogate must cost mixing only: {KEPT}")
