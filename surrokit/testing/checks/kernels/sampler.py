"""Checks of single proposals of samplers; ``kernel`` has those of distributions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from surrokit.interfaces import ChainState, Proposal, Status, Tuning
from surrokit.potentials import Potential
from surrokit.testing.measures.demands import demand, demand_close, demand_equal, demand_shape
from surrokit.testing.measures.plain import write_and_read
from surrokit.testing.parts.reference import ReferenceCorrection
from surrokit.testing.results import Check, Factory
from surrokit.testing.targets.counting import Fenced, Forbidden
from surrokit.testing.targets.densities import Banana, Gaussian, Mixture, Student
from surrokit.testing.targets.target import Target

N_CHAINS = 8
"""Chains of a single proposal."""

TUNABLE = frozenset({"step_size", "n_steps", "metric", "length", "warp", "heavy_warp"})
"""Settings that a sampler may leave to tuning."""

TUNING = Tuning(step_size=0.5, covariance=np.array([[1.0, 0.3], [0.3, 0.6]]), n_steps=4)
"""Tuned values of the settings that samplers leave free."""


def ready(make: Factory, potential: Potential) -> Any:
    """Return a sampler's kernel on a potential, with :data:`TUNING` for its free settings."""
    return make().bind(potential, TUNING)


def usable(make: Factory, targets: tuple[Target, ...]) -> list[Target]:
    """Return the targets, at least one, that offer what a sampler needs.

    If none of those given does, that is the normal target, which offers more than any other.
    """
    needs = make().needs
    found = [target for target in (*targets, Gaussian()) if needs <= target.capabilities]
    found = found[:-1] if len(found) > 1 else found
    demand(
        found,
        f"the sampler needs {sorted(needs)}, which no target of the suite offers; names are in "
        "surrokit.capabilities",
    )
    return found


def start(sampler: Any, target: Target, n: int = N_CHAINS) -> ChainState:
    """Return chains at exact draws of a target."""
    positions = target.sample(np.random.default_rng(1953), n)
    return ChainState(
        positions=positions, values=target.value(positions), cache=sampler.cache(positions)
    )


def _cases(make: Factory, *targets: Target) -> Iterator[tuple[Target, Any, ChainState]]:
    """Yield the :func:`usable` targets, each with the kernel and chains on it."""
    for target in usable(make, targets):
        sampler = ready(make, target)
        yield target, sampler, start(sampler, target)


def demand_same(first: Proposal, second: Proposal, what: str) -> None:
    """Demand that two proposals are equal bit for bit."""
    for name in ("positions", "log_correction", "moved", "status", "n_steps"):
        demand_equal(getattr(first, name), getattr(second, name), f"{name} of {what}")
    demand(set(first.cache) == set(second.cache), f"caches of {what} hold different names")
    for name in first.cache:
        demand_equal(first.cache[name], second.cache[name], f"{name} in the cache of {what}")


def check_declarations(make: Factory) -> None:
    """Needs are capability names, ``tunes`` known names, the target acceptance a probability."""
    sampler = make()
    usable(make, (Banana(),))
    demand(
        isinstance(sampler.tunes, frozenset) and sampler.tunes <= TUNABLE,
        f"tunes must be a frozenset of {sorted(TUNABLE)}, got {sampler.tunes!r}",
    )
    demand(
        0 < sampler.target_acceptance < 1,
        f"target_acceptance must lie between 0 and 1, got {sampler.target_acceptance!r}",
    )


def check_proposal(make: Factory) -> None:
    """Every field of a proposal has its shape, and is finite where the path ended well."""
    for _, sampler, state in _cases(make, Banana(), Mixture()):
        proposal = sampler.propose(state, np.random.default_rng(2))
        n = N_CHAINS
        demand_shape(proposal.positions, (n, 2), "positions of a proposal")
        demand_shape(proposal.log_correction, (n,), "log_correction")
        for name, kinds in (("moved", "b"), ("status", "i"), ("n_steps", "i")):
            array = getattr(proposal, name)
            demand(
                array.shape == (n,) and array.dtype.kind in kinds,
                f"{name} must have shape ({n},) and hold "
                f"{'truth values' if kinds == 'b' else 'whole numbers'}, got shape {array.shape} "
                f"of {array.dtype}",
            )
        ok = proposal.status == Status.OK
        demand(ok.any(), "no path of a short proposal on a smooth target ended with status OK")
        demand(
            np.isfinite(proposal.log_correction[ok]).all(),
            f"log_correction must be finite where status is OK, got {proposal.log_correction}",
        )
        demand((proposal.n_steps >= 1).all(), f"n_steps must be at least 1: {proposal.n_steps}")
        still = ~proposal.moved & ok
        demand_equal(
            proposal.positions[still], state.positions[still], "positions of chains not moved"
        )
        for name, array in proposal.cache.items():
            demand(len(array) == n, f"{name} in the cache must have one row a chain")


def check_path_quantities(make: Factory) -> None:
    """A proposal's source, cache and ``log_path_ratio`` agree with its kernel's potential."""
    for target, sampler, state in _cases(make, Banana(), Student()):
        proposal = sampler.propose(state, np.random.default_rng(4))
        ok = proposal.status == Status.OK
        for name, array in sampler.cache(proposal.positions[ok]).items():
            demand_close(
                proposal.cache[name][ok],
                array,
                f"{name} in a proposal's cache against the same evaluated there",
                rtol=1e-7,
                atol=1e-8,
            )
        uses = getattr(make(), "uses_potential", True)
        demand(
            (sampler.potential is not None) == (proposal.source is not None) == uses,
            "a sampler that moves without any potential has a false uses_potential, its kernel "
            "no potential and its proposals no source; others have all three",
        )
        if proposal.source is None:
            demand(
                proposal.log_path_ratio is None,
                "a proposal that names no source has no potential for log_path_ratio to be of",
            )
            continue
        demand(
            proposal.source is target and sampler.potential is target,
            "source of a proposal, and potential of its kernel, must be the very object given to "
            "bind: corrections compare identities to save exact calls",
        )
        _demand_ratio(state, proposal)


def _demand_ratio(state: ChainState, proposal: Proposal) -> None:
    ok = proposal.status == Status.OK
    difference = state.cache["value"] - proposal.cache["value"] + proposal.log_correction
    ratio = proposal.log_path_ratio
    if np.abs(difference[ok]).max() <= 1e-8:  # c = V(q') - V(q)
        demand(
            ratio is None or (ratio[ok] <= 0.0).all(),
            "with c = V(q') - V(q), log_path_ratio is None, or the log of the mean acceptance "
            f"inside, which is at most 0; got {ratio}",
        )
        return
    demand(
        ratio is not None,
        "a proposal that names a source must give log_path_ratio, which tuning looks at, unless "
        "c = V(q') - V(q)",
    )
    demand_close(
        np.asarray(ratio)[ok],
        difference[ok],
        "log_path_ratio against V(q) - V(q') + c",
        rtol=1e-7,
        atol=1e-8,
    )


def check_same_proposal(make: Factory) -> None:
    """The same state and generator give the same proposal bit for bit, however often asked."""
    for target in usable(make, (Banana(),)):
        sampler, fresh = ready(make, target), ready(make, target)
        state = start(sampler, target)
        first = fresh.propose(state, np.random.default_rng(6))
        for i in range(12):
            again = sampler.propose(state, np.random.default_rng(6))
            demand_same(again, first, f"proposal {i + 1} from one state and one generator")
        sampler.propose(start(sampler, target, 3), np.random.default_rng(7))
        again = sampler.propose(state, np.random.default_rng(6))
        demand_same(again, first, "a proposal before and after one from other chains")


def check_global_random_state(make: Factory) -> None:
    """NumPy's global random state is neither used nor changed."""
    _, sampler, state = next(_cases(make, Banana()))
    before = np.random.get_state(legacy=False)  # noqa: NPY002
    first = sampler.propose(state, np.random.default_rng(8))
    after = np.random.get_state(legacy=False)  # noqa: NPY002
    demand_equal(before["state"]["key"], after["state"]["key"], "NumPy's global random state")
    demand(
        before["state"]["pos"] == after["state"]["pos"],
        "a proposal drew from NumPy's global random state; draw from the generator given",
    )
    np.random.seed(0)  # noqa: NPY002
    second = sampler.propose(state, np.random.default_rng(8))
    np.random.set_state(before)  # noqa: NPY002
    demand_same(first, second, "a proposal under two global random states")


def check_state_untouched(make: Factory) -> None:
    """A proposal does not change the state that it starts from, which may be read-only."""
    _, sampler, state = next(_cases(make, Banana()))
    arrays = {"positions": state.positions, "values": state.values, **state.cache}
    before = {name: array.copy() for name, array in arrays.items()}
    for array in arrays.values():
        array.setflags(write=False)
    sampler.propose(state, np.random.default_rng(9))
    for name, array in arrays.items():
        demand_equal(array, before[name], f"{name} of a state before and after a proposal")


def check_binding(make: Factory) -> None:
    """``bind`` reaches every part inside, and changes neither the sampler nor earlier kernels."""
    target = usable(make, (Banana(),))[0]
    left = Forbidden(Gaussian())
    sampler = make()
    kernel = sampler.bind(target, TUNING)
    state = start(kernel, target)
    expected = kernel.propose(state, np.random.default_rng(10))
    sampler.bind(left, TUNING)
    demand_same(
        sampler.bind(target, TUNING).propose(state, np.random.default_rng(10)),
        expected,
        "a proposal after its sampler was bound to another potential and back",
    )
    demand_same(
        kernel.propose(state, np.random.default_rng(10)),
        expected,
        "a proposal before and after its sampler was bound to another potential",
    )


def check_caches_declared(make: Factory) -> None:
    """Caches do not depend on the tuning, unless ``caches_metric`` is true."""
    if getattr(make(), "caches_metric", False):
        return
    for target in usable(make, (Banana(),)):
        positions = target.sample(np.random.default_rng(22), N_CHAINS)
        retuned = Tuning(step_size=0.2, covariance=np.array([[3.0, 0.0], [0.0, 0.5]]), n_steps=2)
        expected = make().bind(target, TUNING).cache(positions)
        for name, array in make().bind(target, retuned).cache(positions).items():
            demand_equal(
                array,
                expected[name],
                f"{name} in a cache under two tunings (a sampler whose caches depend on the tuned "
                "covariance has a true caches_metric)",
            )


def check_exact_values_unused(make: Factory) -> None:
    """A proposal does not depend on the exact values in the state, only on its own potential."""
    _, sampler, state = next(_cases(make, Banana()))
    other = ChainState(
        positions=state.positions, values=np.full(N_CHAINS, np.nan), cache=state.cache
    )
    demand_same(
        sampler.propose(state, np.random.default_rng(12)),
        sampler.propose(other, np.random.default_rng(12)),
        "proposals from states that differ only in their exact values",
    )


def check_failures_flagged(make: Factory) -> None:
    """Where the potential fails, paths get a status; nothing is raised and nothing warns."""
    for target in usable(make, (Banana(),)):
        sampler = ready(make, fenced := Fenced(target, 1.0))
        positions = 0.3 * np.random.default_rng(14).standard_normal((40, 2))
        positions *= np.minimum(1.0, 0.9 / np.linalg.norm(positions, axis=1))[:, None]
        state = ChainState(
            positions=positions, values=fenced.value(positions), cache=sampler.cache(positions)
        )
        rng = np.random.default_rng(15)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(10):
                proposal = sampler.propose(state, rng)
                _demand_flagged(fenced, proposal)


def _demand_flagged(fenced: Fenced, proposal: Proposal) -> None:
    ok = proposal.status == Status.OK
    demand(
        np.isfinite(proposal.positions[ok]).all()
        and not np.isnan(proposal.log_correction[ok]).any(),
        "a path with status OK must end at a finite position with a log_correction that is a "
        "number",
    )
    if proposal.source is None:
        return
    inside = np.isfinite(fenced.value(proposal.positions[ok]))
    demand(
        inside.all(),
        f"{int((~inside).sum())} of {len(inside)} paths ended with status OK where the potential "
        "is inf; give them another status",
    )


def check_state_survives(make: Factory) -> None:
    """Chains go on unchanged after their state was written and read again."""
    target = usable(make, (Mixture(), Banana()))[0]
    sampler, correction = ready(make, target), ReferenceCorrection(potential=target)
    rng = np.random.default_rng(20)
    state = start(sampler, target)
    for _ in range(3):
        state, _ = correction.decide(state, sampler.propose(state, rng), rng)
    other, other_rng = write_and_read(state), np.random.default_rng()
    other_rng.bit_generator.state = rng.bit_generator.state
    afresh = ready(make, target)
    for i in range(5):
        state, _ = correction.decide(state, sampler.propose(state, rng), rng)
        other, _ = correction.decide(other, afresh.propose(other, other_rng), other_rng)
        what = f"positions {i + 1} transitions after a state was written and read"
        demand_equal(other.positions, state.positions, what)


CHECKS: tuple[Check, ...] = (
    Check(check_declarations),
    Check(check_proposal),
    Check(check_path_quantities),
    Check(check_same_proposal),
    Check(check_global_random_state),
    Check(check_state_untouched),
    Check(check_binding),
    Check(check_caches_declared),
    Check(check_exact_values_unused),
    Check(check_failures_flagged),
    Check(check_state_survives),
)
"""For every sampler; those of whole kernels are in
:mod:`~surrokit.testing.checks.kernels.kernel`."""
