"""Checks of corrections: they honour c, keep the target, and waste no exact call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import numpy as np

from surrokit.capabilities import ROWS
from surrokit.cost.recording import RecordingPotential
from surrokit.interfaces import ChainState, Proposal, Status, StepInfo
from surrokit.potentials import Potential, WrappedExpansion
from surrokit.testing.demands import (
    Factory,
    check,
    demand,
    demand_close,
    demand_equal,
    demand_shape,
    write_and_read,
)
from surrokit.testing.parts import (
    IndependentDraws,
    LeaningWalk,
    OneSidedWalk,
    SubChain,
    proposal_at,
)
from surrokit.testing.rows import Summed
from surrokit.testing.samplers import NARROW, WIDE, flux, invariance
from surrokit.testing.statistics import Verdict
from surrokit.testing.targets import Banana, Gaussian, HalfPlane, Mixture, Target
from surrokit.testing.wrappers import CountingPotential, Fenced
from surrokit.types import BoolArray, FloatArray, IntArray

N_CHAINS = 12  # chains of a single decision
N_CHAINS_BY_ROWS = 10_000  # of balance, for corrections that look at rows, which cost more


class _NaNNear(CountingPotential):
    """A target whose value is NaN at one position."""

    def __init__(self, inner: Potential, position: FloatArray) -> None:
        super().__init__(inner)
        self.position = position.copy()

    def evaluate(self, method: str, function: Any, positions: FloatArray) -> Any:
        result = function(positions)
        near = _at(positions, self.position)
        return np.where(near, np.nan, result) if method == "value" else result


class _FailingRows(_NaNNear):
    """A summed target that fails in its expansion: ``inf`` far out, NaN at a position."""

    def expand(self, centre: FloatArray) -> Any:
        return _FailingExpansion(self.inner.expand(centre), self.position)  # type: ignore[attr-defined]


@attrs.frozen(eq=False)
class _FailingExpansion(WrappedExpansion):
    position: FloatArray

    def value(self, positions: FloatArray) -> FloatArray:
        inside = np.square(positions).sum(axis=1) < 10.0**2
        return np.where(inside, self.inner.value(positions), np.inf)

    def changes(
        self, before: FloatArray, after: FloatArray, rows: IntArray, owners: IntArray
    ) -> FloatArray:
        failed = _at(after, self.position)[owners]
        return np.where(failed, np.nan, self.inner.changes(before, after, rows, owners))

    def increases(self, before: FloatArray, after: FloatArray) -> FloatArray:
        failed = _at(after, self.position)
        return np.where(failed, np.nan, self.inner.increases(before, after))


def _at(positions: FloatArray, position: FloatArray) -> BoolArray:
    return np.asarray((positions == position).all(axis=1))


def _by_rows(make: Factory) -> bool:
    """Return whether a correction looks at rows of data, and so knows no exact values."""
    return ROWS in make().needs


def _moves(make: Factory, usual: type[Target]) -> tuple[Target, FloatArray, FloatArray]:
    """Return a target, and where moves on it begin and end."""
    target, rng = Summed() if _by_rows(make) else usual(), np.random.default_rng(1970)
    return target, target.sample(rng, N_CHAINS), target.sample(rng, N_CHAINS)


def _ready(make: Factory, potential: Potential) -> Any:
    return make().bind(potential).prepare(np.array([0.4, -0.2]))


def _decide(
    make: Factory, potential: Potential, state: ChainState, proposal: Proposal
) -> tuple[ChainState, StepInfo]:
    decider = _ready(make, potential)
    result: tuple[ChainState, StepInfo] = decider.decide(state, proposal, np.random.default_rng(1))
    return result


def _start(make: Factory, potential: Potential, positions: FloatArray) -> ChainState:
    state: ChainState = make().bind(potential).start(positions, {}, None)
    return state


def _fits(correction: Any) -> bool:
    return bool(correction.needs <= Banana().capabilities | Summed().capabilities)


on_moves = partial(check, "correction", claimed=_fits)
"""Declares a check of a correction that needs no more than the suite's targets offer."""


@on_moves()
def check_start(make: Factory) -> None:
    """The start has exact values, which are evaluated unless the cache holds them."""
    target, positions, _ = _moves(make, Banana)
    counting = CountingPotential(target)
    state = _start(make, counting, positions)
    demand_equal(state.positions, positions, "positions at the start")
    demand_close(state.values, target.value(positions), "values at the start")
    batches = counting.batches
    once = batches.total() <= 1 or batches["value"] == 1
    demand(once, f"values at the start must be one batch of {N_CHAINS}, got {dict(batches)}")
    counting.forget()
    cache = {"value": target.value(positions)}
    state = make().bind(counting).start(positions, cache, counting)
    demand_close(state.values, cache["value"], "values at the start, taken from the cache")
    what = "the cache is of the exact potential itself, but its values were evaluated"
    demand(batches["value"] == 0, what)


@on_moves()
def check_decision(make: Factory) -> None:
    """Each chain has its proposal or its old state, as a whole, with the exact value there."""
    target, old, new = _moves(make, Banana)
    cache = {"value": WIDE.value(new), "twice": 2 * new}
    before = {"value": WIDE.value(old), "twice": 2 * old}
    state = ChainState(positions=old, values=target.value(old), cache=before)
    path = {"source": WIDE, "log_path_ratio": np.zeros(N_CHAINS)}
    proposal = proposal_at(new, cache["value"] - before["value"], cache=cache, **path)
    after, info = _decide(make, target, state, proposal)
    n = info.accepted.sum()
    demand(0 < n < N_CHAINS, f"of {N_CHAINS} plain proposals {n} accepted")
    chosen = np.where(info.accepted[:, None], new, old)
    demand_equal(after.positions, chosen, "positions after a decision")
    unknown = np.isnan(after.values) & _by_rows(make)  # who looks at rows may give NaN
    expected = target.value(chosen)
    values = np.where(unknown, expected, after.values)
    demand_close(values, expected, "values after a decision")
    kept, held = set(after.cache) >= set(cache), sorted(after.cache)
    demand(kept, f"the state must keep the sampler's cache {sorted(cache)}, got {held}")
    demand_equal(after.cache["twice"], 2 * chosen, "a (n, dim) array in the cache after a decision")
    demand_equal(after.cache["value"], WIDE.value(chosen), "the sampler's values in the cache")


@on_moves()
def check_info(make: Factory) -> None:
    """The record of a decision has one entry a chain, and probabilities are in [0, 1]."""
    target, old, new = _moves(make, Banana)
    proposal = proposal_at(new, np.zeros(N_CHAINS))
    _, info = _decide(make, target, _start(make, target, old), proposal)
    for name in ("accepted", "divergent"):
        demand_shape(getattr(info, name), (N_CHAINS,), name, "b")
    for name in ("acceptance", "path_acceptance"):
        array = getattr(info, name)
        demand_shape(array, (N_CHAINS,), name)
        demand(((array >= 0) & (array <= 1)).all(), f"{name} must be in [0, 1], got {array}")
    demand_equal(info.status, proposal.status, "status of a decision and of its proposal")
    demand_equal(info.n_steps, proposal.n_steps, "n_steps of a decision and of its proposal")
    demand(not info.divergent.any(), "proposals with status OK and no path were called divergent")


@on_moves()
def check_staying(make: Factory) -> None:
    """A proposal to stay is no move: it is not accepted, and has no acceptance."""
    target, old, _ = _moves(make, Gaussian)
    moved = np.arange(N_CHAINS) % 3 > 0
    new = np.where(moved[:, None], 0.5 * old, old)
    proposal = proposal_at(new, np.full(N_CHAINS, 50.0) * moved, moved=moved)
    after, info = _decide(make, target, _start(make, target, old), proposal)
    demand_equal(after.positions[~moved], old[~moved], "positions of chains that stay")
    demand(not info.accepted[~moved].any(), "chains that did not move were called accepted")
    demand_equal(np.isnan(info.acceptance), ~moved, "where acceptance is NaN, and who did not move")


@on_moves()
def check_log_correction(make: Factory) -> None:
    """Short moves are all rejected where c is far below 0, and all accepted far above it."""
    target, old, _ = _moves(make, Gaussian)
    state = _start(make, target, 0.3 * old)
    for c, share in ((-200.0, 0.0), (200.0, 1.0)):
        proposal = proposal_at(0.3 * old + 1e-3, np.full(N_CHAINS, c))
        found = _decide(make, target, state, proposal)[1].accepted.mean()
        what = f"with a log_correction of {c:g} a share of {share:g} must be accepted"
        demand(found == share, f"{what}, got {found:g}")


@on_moves()
def check_failures_rejected(make: Factory) -> None:
    """A proposal is rejected if U is inf or NaN, c is NaN, or the status is not OK."""
    target, old, _ = _moves(make, Gaussian)
    old = 0.1 * old
    new = (1.0 - 1e-6) * old  # a move, if a short one: a proposal to stay needs no decision
    log_correction, status = np.full(N_CHAINS, 5.0), np.full(N_CHAINS, int(Status.OK))
    new[0], new[1], log_correction[2] = [30.0, 0.0], [np.nan, 0.0], np.nan
    status[3:6] = [Status.NOT_FINITE, Status.NOT_CONVERGED, Status.NOT_REVERSIBLE]
    new[6] = [2.0, 2.0]
    failing: Potential = _FailingRows(target, new[6])
    if not _by_rows(make):
        failing = Fenced(_NaNNear(target, new[6]), 10.0)
    proposal = proposal_at(new, log_correction, status=status)
    after, info = _decide(make, failing, _start(make, target, old), proposal)
    bad = [s.name for s in Status if s != Status.OK]
    reasons = ["U is inf", "U is NaN or inf", "log_correction is NaN", *bad, "U is NaN"]
    for i, reason in enumerate(reasons):
        demand(not info.accepted[i], f"a proposal was accepted although {reason}")
        demand_equal(after.positions[i], old[i], f"a position, where {reason},")
    demand(info.accepted[7:].all(), "good proposals beside failed ones must be decided as usual")


@on_moves()
def check_cost(make: Factory) -> None:
    """Only chains that moved and whose path ended well are evaluated, in one batch."""
    target, old, new = _moves(make, Gaussian)
    moved = np.arange(N_CHAINS) % 3 > 0
    status = np.where(np.arange(N_CHAINS) == 1, int(Status.NOT_FINITE), int(Status.OK))
    new = np.where(moved[:, None], new, old)
    state = _start(make, target, old)
    decider = _ready(make, counting := CountingPotential(target))
    counting.forget()
    c, rng = np.zeros(N_CHAINS), np.random.default_rng(1)
    decider.decide(state, proposal_at(new, c, moved=moved, status=status), rng)
    due = int((moved & (status == Status.OK)).sum())
    positions, batches = counting.positions["value"], counting.batches["value"]
    demand(
        positions <= due and batches <= 1,
        f"{due} chains moved and ended well, so one batch of at most {due} exact values is due, "
        f"got {positions} in {batches} batches",
    )
    demand(counting.gradients() == 0, "a decision needs exact values, not gradients")
    counting.forget()
    decider.decide(state, proposal_at(old, c, moved=np.zeros(N_CHAINS, dtype=bool)), rng)
    demand(counting.batches.total() == 0, "no chain moved, but the exact potential was called")


@check("correction", claimed=lambda each: ROWS in each.needs and _fits(each))
def check_cost_in_rows(make: Factory) -> None:
    """Rows are touched only for chains that moved, ended well and may still be accepted."""
    target, old, new = _moves(make, Gaussian)
    assert isinstance(target, Summed)
    recording = RecordingPotential(target, keep=False)
    decider, state, c = _ready(make, recording), _start(make, target, old), np.zeros(N_CHAINS)

    def count(proposal: Proposal) -> dict[str, int]:
        before = recording.calls
        decider.decide(state, proposal, np.random.default_rng(1))
        return {kind: n - before[kind] for kind, n in recording.calls.items() if n > before[kind]}

    moved = count(proposal_at(new, c))
    few = set(moved) == {"rows"} and moved["rows"] <= target.n_rows * N_CHAINS
    what = f"{N_CHAINS} proposals may touch each of {target.n_rows} rows once, and nothing else"
    demand(few, f"{what}; got {moved}")
    failed = np.full(N_CHAINS, int(Status.NOT_FINITE))
    for proposal, why in (
        (proposal_at(old, c, moved=np.zeros(N_CHAINS, dtype=bool)), "no chain moved"),
        (proposal_at(new, c, status=failed), "every path failed"),
        (proposal_at(new, c - 500.0), "the log correction rejects by itself"),
    ):
        demand(not (spent := count(proposal)), f"{why}, but evaluated were {spent}")


@on_moves()
def check_exact_source_free(make: Factory) -> None:
    """A proposal made on the exact potential brings its values along and costs nothing."""
    target, old, new = _moves(make, Gaussian)
    counting = CountingPotential(target)
    before, cache = {"value": target.value(old)}, {"value": target.value(new)}
    state = ChainState(positions=old, values=before["value"], cache=before)
    path = {"source": counting, "log_path_ratio": before["value"] - cache["value"]}
    proposal = proposal_at(new, np.zeros(N_CHAINS), cache=cache, **path)
    after, _ = _decide(make, counting, state, proposal)
    what = "the proposal's source is the exact potential itself, but its values were evaluated"
    demand(counting.batches["value"] == 0, what)
    demand_close(after.values, target.value(after.positions), "values after a free decision")


@on_moves()
def check_same_decision(make: Factory) -> None:
    """The same state, proposal and generator give the same decision, and nothing is changed."""
    target, old, new = _moves(make, Mixture)
    state = write_and_read(_start(make, target, old))
    proposal = proposal_at(new, np.linspace(-1.0, 1.0, N_CHAINS))
    for array in (state.positions, state.values, *state.cache.values(), new):
        array.setflags(write=False)
    first, first_info = _decide(make, target, state, proposal)
    second, info = _decide(make, target, state, proposal)
    demand_equal(second.positions, first.positions, "positions after two equal decisions")
    demand_equal(second.values, first.values, "values after two equal decisions")
    demand_equal(info.acceptance, first_info.acceptance, "acceptance of two equal decisions")


_KERNELS: tuple[tuple[str, Any], ...] = (
    ("leaning walk", LeaningWalk()),
    ("one-sided walk", OneSidedWalk()),
    ("draws from a wide surrogate", IndependentDraws(surrogate=WIDE, idle=0.3)),
    ("draws from a narrow surrogate", IndependentDraws(surrogate=NARROW)),
    ("sub-chain on a wide surrogate", SubChain().bind(WIDE)),
    ("sub-chain on a narrow surrogate", SubChain().bind(NARROW)),
)


def _compared(
    make: Factory, test: Callable[..., Verdict], *targets: Target, **sizes: int
) -> Verdict:
    usable: tuple[Target, ...] = (Summed(),) if _by_rows(make) else targets
    return Verdict.join(
        test(kernel, _ready(make, on), on, f"{name}, {type(on).__name__}: ", **sizes)
        for on in usable
        if make().needs <= on.capabilities
        for name, kernel in _KERNELS
    )


@on_moves(level="statistical")
def check_exact_draws_kept(make: Factory) -> None:
    """Exact draws stay exact draws, with proposals whose c is known."""
    _compared(make, invariance, Gaussian(), Mixture(), HalfPlane()).require(
        "exact draws must stay exact draws, whatever the proposals, if c is honoured"
    )


@on_moves(level="statistical")
def check_balance(make: Factory) -> None:
    """As many moves go from each region to each other one as back."""
    sizes = {"n_chains": 2 * N_CHAINS_BY_ROWS} if _by_rows(make) else {}
    verdict = _compared(make, flux, Gaussian(), Mixture(), **sizes)
    verdict.require("a correction makes these proposals reversible")
