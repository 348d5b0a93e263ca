"""Checks of corrections: they honour c and waste no exact call."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit.capabilities import ROWS
from surrokit.cost.recording import RecordingPotential
from surrokit.interfaces import ChainState, Proposal, Status, StepInfo
from surrokit.potentials import Potential
from surrokit.testing.checks.kernels.failing import FailingRows, NaNNear
from surrokit.testing.checks.kernels.kernel import NARROW, WIDE, flux, invariance
from surrokit.testing.measures.demands import demand, demand_close, demand_equal, demand_shape
from surrokit.testing.measures.plain import write_and_read
from surrokit.testing.measures.statistics import Verdict
from surrokit.testing.parts.reference import (
    IndependentDraws,
    LeaningWalk,
    OneSidedWalk,
    SubChain,
    proposal_at,
)
from surrokit.testing.results import Check, Factory
from surrokit.testing.targets.counting import CountingPotential, Fenced
from surrokit.testing.targets.densities import Banana, Gaussian, HalfPlane, Mixture
from surrokit.testing.targets.summed import Summed
from surrokit.testing.targets.target import Target
from surrokit.types import FloatArray

N_CHAINS = 12
"""Chains of a single decision."""

N_CHAINS_BY_ROWS = 10_000
"""Chains started from exact draws for corrections that look at rows, which cost more."""


def _positions(target: Target) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(1970)
    return target.sample(rng, N_CHAINS), target.sample(rng, N_CHAINS)


def _by_rows(make: Factory) -> bool:
    """Return whether a correction looks at rows of data, and so knows no exact values."""
    return ROWS in make().needs


def _target(make: Factory, usual: type[Target]) -> Target:
    return Summed() if _by_rows(make) else usual()


def _moves(make: Factory, usual: type[Target]) -> tuple[Target, FloatArray, FloatArray]:
    target = _target(make, usual)
    return target, *_positions(target)


def _ready(make: Factory, potential: Potential) -> Any:
    return make().bind(potential).prepare(np.array([0.4, -0.2]))


def _decide(
    make: Factory, potential: Potential, state: ChainState, proposal: Proposal, seed: int = 1
) -> tuple[ChainState, StepInfo]:
    result: tuple[ChainState, StepInfo] = _ready(make, potential).decide(
        state, proposal, np.random.default_rng(seed)
    )
    return result


def _at(make: Factory, potential: Potential, positions: FloatArray) -> ChainState:
    state: ChainState = make().bind(potential).start(positions, {}, None)
    return state


def _demand_values(make: Factory, found: FloatArray, expected: FloatArray, what: str) -> None:
    """Demand exact values; a correction that looks at rows may give NaN instead."""
    unknown = np.isnan(found) & _by_rows(make)
    demand_close(np.where(unknown, expected, found), expected, what)


def check_start(make: Factory) -> None:
    """The start has exact values, which are paid for unless the cache holds them."""
    target = _target(make, Banana)
    positions, _ = _positions(target)
    counting = CountingPotential(target)
    state = _at(make, counting, positions)
    demand_equal(state.positions, positions, "positions at the start")
    demand_close(state.values, target.value(positions), "values at the start")
    demand(
        counting.batches.total() <= 1 or counting.batches["value"] == 1,
        f"the values at the start must be one batch of {N_CHAINS}, got {dict(counting.batches)}",
    )
    counting = CountingPotential(target)
    cache = {"value": target.value(positions)}
    state = make().bind(counting).start(positions, cache, counting)
    demand_close(state.values, cache["value"], "values at the start, taken from the cache")
    demand(
        counting.batches["value"] == 0,
        "the cache is of the exact potential itself, so its values must be taken, not paid for",
    )


def check_decision(make: Factory) -> None:
    """Each chain has its proposal or its old state, as a whole, with the exact value there."""
    target, old, new = _moves(make, Banana)
    state = ChainState(
        positions=old, values=target.value(old), cache={"value": WIDE.value(old), "twice": 2 * old}
    )
    cache = {"value": WIDE.value(new), "twice": 2 * new}
    proposal = proposal_at(
        new,
        cache["value"] - state.cache["value"],
        cache=cache,
        source=WIDE,
        log_path_ratio=np.zeros(N_CHAINS),
    )
    after, info = _decide(make, target, state, proposal)
    accepted = info.accepted
    demand(
        0 < accepted.sum() < N_CHAINS, f"of {N_CHAINS} plain proposals {accepted.sum()} accepted"
    )
    chosen = np.where(accepted[:, None], new, old)
    demand_equal(after.positions, chosen, "positions after a decision")
    _demand_values(make, after.values, target.value(chosen), "values after a decision")
    demand(
        set(after.cache) >= set(cache),
        f"the state must keep the sampler's cache {sorted(cache)}, got {sorted(after.cache)}",
    )
    demand_equal(after.cache["twice"], 2 * chosen, "a (n, dim) array in the cache after a decision")
    demand_equal(after.cache["value"], WIDE.value(chosen), "the sampler's values in the cache")


def check_info(make: Factory) -> None:
    """The record of a decision has one entry a chain, and probabilities are in [0, 1]."""
    target, old, new = _moves(make, Banana)
    proposal = proposal_at(new, np.zeros(N_CHAINS))
    _, info = _decide(make, target, _at(make, target, old), proposal)
    for name in ("accepted", "divergent"):
        array = getattr(info, name)
        demand(
            array.shape == (N_CHAINS,) and array.dtype.kind == "b",
            f"{name} must be one truth value a chain, got {array!r}",
        )
    for name in ("acceptance", "path_acceptance"):
        array = getattr(info, name)
        demand_shape(array, (N_CHAINS,), name)
        demand(((array >= 0) & (array <= 1)).all(), f"{name} must be in [0, 1], got {array}")
    demand_equal(info.status, proposal.status, "status of a decision and of its proposal")
    demand_equal(info.n_steps, proposal.n_steps, "n_steps of a decision and of its proposal")
    demand(not info.divergent.any(), "proposals with status OK and no path were called divergent")


def check_staying(make: Factory) -> None:
    """A proposal to stay is no move: it is not accepted, and has no acceptance."""
    target = _target(make, Gaussian)
    old = _positions(target)[0]
    moved = np.arange(N_CHAINS) % 3 > 0
    new = np.where(moved[:, None], 0.5 * old, old)
    proposal = proposal_at(new, np.full(N_CHAINS, 50.0) * moved, moved=moved)
    after, info = _decide(make, target, _at(make, target, old), proposal)
    demand_equal(after.positions[~moved], old[~moved], "positions of chains that stay")
    demand(not info.accepted[~moved].any(), "chains that did not move were called accepted")
    demand_equal(np.isnan(info.acceptance), ~moved, "where acceptance is NaN, and who did not move")


def check_log_correction(make: Factory) -> None:
    """Short moves are all rejected where c is far below 0, and all accepted far above it."""
    target = _target(make, Gaussian)
    old = 0.3 * _positions(target)[0]
    new = old + 1e-3
    state = _at(make, target, old)
    for c, share in ((-200.0, 0.0), (200.0, 1.0)):
        _, info = _decide(make, target, state, proposal_at(new, np.full(N_CHAINS, c)))
        demand(
            info.accepted.mean() == share,
            f"with a log_correction of {c:g} a share of {share:g} must be accepted, got "
            f"{info.accepted.mean():g}",
        )


def check_failures_rejected(make: Factory) -> None:
    """A proposal is rejected if U is inf or NaN, c is NaN, or the status is not OK."""
    target = _target(make, Gaussian)
    old = 0.1 * _positions(target)[0]
    new = (1.0 - 1e-6) * old  # a move, if a short one: a proposal to stay needs no decision
    new[0] = [30.0, 0.0]
    new[1] = [np.nan, 0.0]
    log_correction = np.full(N_CHAINS, 5.0)
    log_correction[2] = np.nan
    status = np.full(N_CHAINS, int(Status.OK))
    status[3:6] = [Status.NOT_FINITE, Status.NOT_CONVERGED, Status.NOT_REVERSIBLE]
    new[6] = [2.0, 2.0]
    failing: Potential = FailingRows(target, new[6], 10.0)
    if not _by_rows(make):
        failing = Fenced(NaNNear(target, new[6]), 10.0)
    proposal = proposal_at(new, log_correction, status=status)
    after, info = _decide(make, failing, _at(make, target, old), proposal)
    reasons = [
        "U is inf",
        "U is NaN or inf",
        "log_correction is NaN",
        *[s.name for s in Status][1:],
    ]
    for i, reason in enumerate([*reasons, "U is NaN"]):
        demand(not info.accepted[i], f"a proposal was accepted although {reason}")
        demand_equal(after.positions[i], old[i], f"a position, where {reason},")
    demand(info.accepted[7:].all(), "good proposals beside failed ones must be decided as usual")


def check_cost(make: Factory) -> None:
    """Only chains that moved and whose path ended well are paid for, in one batch."""
    target, old, new = _moves(make, Gaussian)
    moved = np.arange(N_CHAINS) % 3 > 0
    status = np.where(np.arange(N_CHAINS) == 1, int(Status.NOT_FINITE), int(Status.OK))
    new = np.where(moved[:, None], new, old)
    state = _at(make, target, old)
    counting = CountingPotential(target)
    correction = _ready(make, counting)
    _forget(counting)
    proposal = proposal_at(new, np.zeros(N_CHAINS), moved=moved, status=status)
    correction.decide(state, proposal, np.random.default_rng(1))
    paid = int((moved & (status == Status.OK)).sum())
    demand(
        counting.positions["value"] <= paid and counting.batches["value"] <= 1,
        f"{paid} chains moved and ended well, so one batch of at most {paid} exact values is "
        f"due; paid were {counting.positions['value']} in {counting.batches['value']} batches",
    )
    demand(counting.gradients() == 0, "a decision needs exact values, not gradients")
    still = proposal_at(old, np.zeros(N_CHAINS), moved=np.zeros(N_CHAINS, dtype=bool))
    _forget(counting)
    correction.decide(state, still, np.random.default_rng(1))
    demand(counting.batches.total() == 0, "no chain moved, but the exact potential was called")


def _forget(counting: CountingPotential) -> None:
    counting.positions.clear()
    counting.batches.clear()


def check_cost_in_rows(make: Factory) -> None:
    """Rows are touched only for chains that moved, ended well and may still be accepted."""
    target = Summed()
    old, new = _positions(target)
    recording = RecordingPotential(target, keep=False)
    correction = _ready(make, recording)
    state = _at(make, target, old)

    def count_paid(proposal: Proposal) -> dict[str, int]:
        before = recording.calls
        correction.decide(state, proposal, np.random.default_rng(1))
        spent = {kind: n - before[kind] for kind, n in recording.calls.items()}
        return {kind: n for kind, n in spent.items() if n}

    moved = count_paid(proposal_at(new, np.zeros(N_CHAINS)))
    demand(
        set(moved) == {"rows"} and moved["rows"] <= target.n_rows * N_CHAINS,
        f"{N_CHAINS} proposals may touch each of {target.n_rows} rows once, and nothing else; "
        f"paid were {moved}",
    )
    idle = np.zeros(N_CHAINS, dtype=bool)
    failed = np.full(N_CHAINS, int(Status.NOT_FINITE))
    for proposal, why in (
        (proposal_at(old, np.zeros(N_CHAINS), moved=idle), "no chain moved"),
        (proposal_at(new, np.zeros(N_CHAINS), status=failed), "every path failed"),
        (proposal_at(new, np.full(N_CHAINS, -500.0)), "the log correction rejects by itself"),
    ):
        demand(not (spent := count_paid(proposal)), f"{why}, but paid were {spent}")


def check_exact_source_free(make: Factory) -> None:
    """A proposal made on the exact potential brings its values along and costs nothing."""
    target, old, new = _moves(make, Gaussian)
    counting = CountingPotential(target)
    cache = {"value": target.value(new)}
    state = ChainState(positions=old, values=target.value(old), cache={"value": target.value(old)})
    proposal = proposal_at(
        new,
        np.zeros(N_CHAINS),
        cache=cache,
        source=counting,
        log_path_ratio=state.values - cache["value"],
    )
    after, _ = _decide(make, counting, state, proposal)
    demand(
        counting.batches["value"] == 0,
        "the proposal's source is the exact potential itself, but its values were paid for again",
    )
    demand_close(after.values, target.value(after.positions), "values after a free decision")


def check_same_decision(make: Factory) -> None:
    """The same state, proposal and generator give the same decision, and nothing is changed."""
    target, old, new = _moves(make, Mixture)
    state = write_and_read(_at(make, target, old))
    proposal = proposal_at(new, np.linspace(-1.0, 1.0, N_CHAINS))
    for array in (state.positions, state.values, *state.cache.values(), new):
        array.setflags(write=False)
    first, first_info = _decide(make, target, state, proposal)
    second, info = _decide(make, target, state, proposal)
    demand_equal(second.positions, first.positions, "positions after two equal decisions")
    demand_equal(second.values, first.values, "values after two equal decisions")
    demand_equal(info.acceptance, first_info.acceptance, "acceptance of two equal decisions")


def _kernels() -> list[tuple[str, Any]]:
    return [
        ("leaning walk", LeaningWalk()),
        ("one-sided walk", OneSidedWalk()),
        ("draws from a wide surrogate", IndependentDraws(surrogate=WIDE, idle=0.3)),
        ("draws from a narrow surrogate", IndependentDraws(surrogate=NARROW)),
        ("sub-chain on a wide surrogate", SubChain().bind(WIDE)),
        ("sub-chain on a narrow surrogate", SubChain().bind(NARROW)),
    ]


def _usable(make: Factory, targets: tuple[Target, ...]) -> list[Target]:
    if _by_rows(make):
        return [Summed()]
    needs = make().needs
    return [target for target in targets if needs <= target.capabilities]


def check_exact_draws_kept(make: Factory) -> None:
    """Exact draws stay exact draws, with proposals whose c is known."""
    verdicts = [
        invariance(sampler, _ready(make, target), target, f"{name}, {type(target).__name__}: ")
        for target in _usable(make, (Gaussian(), Mixture(), HalfPlane()))
        for name, sampler in _kernels()
    ]
    Verdict.join(verdicts).require(
        "exact draws must stay exact draws, whatever the proposals, if c is honoured"
    )


def check_balance(make: Factory) -> None:
    """As many moves go from each region to each other one as back."""
    verdicts = [
        flux(
            sampler,
            _ready(make, target),
            target,
            f"{name}, {type(target).__name__}: ",
            n_chains=2 * N_CHAINS_BY_ROWS if _by_rows(make) else None,
        )
        for target in _usable(make, (Gaussian(), Mixture()))
        for name, sampler in _kernels()
    ]
    Verdict.join(verdicts).require("a correction makes these proposals reversible")


def _applies(correction: Any) -> bool:
    return bool(correction.needs <= Banana().capabilities | Summed().capabilities)


def _applies_to_rows(correction: Any) -> bool:
    return ROWS in correction.needs and _applies(correction)


CHECKS: tuple[Check, ...] = (
    Check(check_start, applies=_applies),
    Check(check_decision, applies=_applies),
    Check(check_info, applies=_applies),
    Check(check_staying, applies=_applies),
    Check(check_log_correction, applies=_applies),
    Check(check_failures_rejected, applies=_applies),
    Check(check_cost, applies=_applies),
    Check(check_cost_in_rows, applies=_applies_to_rows),
    Check(check_exact_source_free, applies=_applies),
    Check(check_same_decision, applies=_applies),
    Check(check_exact_draws_kept, level="statistical", applies=_applies),
    Check(check_balance, level="statistical", applies=_applies),
)
"""For every correction that needs no more than the suite's targets offer."""
