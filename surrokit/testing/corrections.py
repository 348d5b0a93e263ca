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
from surrokit.testing.parts import IndependentDraws, LeaningWalk, OneSidedWalk, SubChain
from surrokit.testing.rows import Summed
from surrokit.testing.samplers import NARROW, WIDE, flux, invariance
from surrokit.testing.statistics import Verdict
from surrokit.testing.targets import Banana, Gaussian, HalfPlane, Mixture, Target
from surrokit.testing.wrappers import CountingPotential, Fenced
from surrokit.types import FloatArray, IntArray

N_CHAINS = 12  # of a single decision


class _NaNNear(CountingPotential):
    """A target whose value is NaN at one position."""

    def __init__(self, inner: Potential, position: FloatArray) -> None:
        super().__init__(inner)
        self.position = position.copy()

    def evaluate(self, method: str, function: Any, positions: FloatArray) -> Any:
        result, near = function(positions), (positions == self.position).all(axis=1)
        return np.where(near, np.nan, result) if method == "value" else result

    def expand(self, centre: FloatArray) -> Any:
        """Return an expansion that fails too: ``inf`` far out, NaN at the position."""
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
        failed = (after == self.position).all(axis=1)[owners]
        return np.where(failed, np.nan, self.inner.changes(before, after, rows, owners))

    def increases(self, before: FloatArray, after: FloatArray) -> FloatArray:
        failed = (after == self.position).all(axis=1)
        return np.where(failed, np.nan, self.inner.increases(before, after))


def _by_rows(make: Factory) -> bool:
    """Return whether a correction looks at rows of data, and so knows no exact values."""
    return ROWS in make().needs


def _ready(make: Factory, potential: Potential) -> Any:
    return make().bind(potential).prepare(np.array([0.4, -0.2]))


def _start(make: Factory, potential: Potential, positions: FloatArray) -> ChainState:
    state: ChainState = make().bind(potential).start(positions, {}, None)
    return state


@attrs.frozen(eq=False)
class _Moves:
    """A correction, a target, and where moves on it begin and end."""

    make: Factory
    target: Target
    old: FloatArray
    new: FloatArray

    def start(self, potential: Potential | None = None) -> ChainState:
        return _start(self.make, potential or self.target, self.old)

    def decide(
        self, state: ChainState, potential: Potential | None = None, **proposal: Any
    ) -> tuple[ChainState, StepInfo]:
        """Decide on a proposal to the new positions, unless others are given."""
        proposed = Proposal(**{"positions": self.new, **proposal})
        decider = _ready(self.make, potential or self.target)
        result: tuple[ChainState, StepInfo] = decider.decide(
            state, proposed, np.random.default_rng(1)
        )
        return result


def _cases(make: Factory) -> list[tuple[_Moves]]:
    rng, target = np.random.default_rng(1970), Summed() if _by_rows(make) else Banana()
    return [(_Moves(make, target, target.sample(rng, N_CHAINS), target.sample(rng, N_CHAINS)),)]


def _fits(correction: Any) -> bool:
    return bool(correction.needs <= Banana().capabilities | Summed().capabilities)


on_moves = partial(check, "correction", cases=_cases, claimed=_fits)
"""Declares a check of a correction, which needs no more than the suite's targets offer, on moves.

These are between exact draws."""


@on_moves()
def check_start(on: _Moves) -> None:
    """The start has exact values, which are evaluated unless the cache holds them."""
    counting, expected = CountingPotential(on.target), on.target.value(on.old)
    state, batches = on.start(counting), counting.batches
    demand_equal(state.positions, on.old, "positions at the start")
    demand_close(state.values, expected, "values at the start")
    once = batches.total() <= 1 or batches["value"] == 1
    demand(once, f"values at the start must be one batch of {N_CHAINS}, got {dict(batches)}")
    counting.forget()
    state = on.make().bind(counting).start(on.old, {"value": expected}, counting)
    demand_close(state.values, expected, "values at the start, taken from the cache")
    what = "the cache is of the exact potential itself, but its values were evaluated"
    demand(batches["value"] == 0, what)


@on_moves()
def check_decision(on: _Moves) -> None:
    """Each chain has its proposal or its old state, as a whole, with the exact value there.

    The record has one entry a chain, and probabilities are in [0, 1].
    """
    cache = {"value": WIDE.value(on.new), "twice": 2 * on.new}
    before = {"value": WIDE.value(on.old), "twice": 2 * on.old}
    state = ChainState(positions=on.old, values=on.target.value(on.old), cache=before)
    path: dict[str, Any] = {"source": WIDE, "log_path_ratio": np.zeros(N_CHAINS)}
    c = cache["value"] - before["value"]
    after, info = on.decide(state, log_correction=c, cache=cache, **path)
    n = info.accepted.sum()
    demand(0 < n < N_CHAINS, f"of {N_CHAINS} plain proposals {n} accepted")
    chosen = np.where(info.accepted[:, None], on.new, on.old)
    demand_equal(after.positions, chosen, "positions after a decision")
    unknown = np.isnan(after.values) & _by_rows(on.make)  # who looks at rows may give NaN
    expected = on.target.value(chosen)
    values = np.where(unknown, expected, after.values)
    demand_close(values, expected, "values after a decision")
    kept, held = set(after.cache) >= set(cache), sorted(after.cache)
    demand(kept, f"the state must keep the sampler's cache {sorted(cache)}, got {held}")
    demand_equal(after.cache["twice"], 2 * chosen, "a (n, dim) array in the cache after a decision")
    demand_equal(after.cache["value"], WIDE.value(chosen), "the sampler's values in the cache")
    _, info = on.decide(on.start())
    for name in ("accepted", "divergent"):
        demand_shape(getattr(info, name), (N_CHAINS,), name, "b")
    for name in ("acceptance", "path_acceptance"):
        array = getattr(info, name)
        demand_shape(array, (N_CHAINS,), name)
        demand(((array >= 0) & (array <= 1)).all(), f"{name} must be in [0, 1], got {array}")
    well = (info.status == Status.OK).all() and (info.n_steps == 1).all()
    demand(well, "status and n_steps of a decision must be those of its proposal")
    demand(not info.divergent.any(), "proposals with status OK and no path were called divergent")


@on_moves()
def check_staying(on: _Moves) -> None:
    """A proposal to stay is no move: it is not accepted, and has no acceptance."""
    moved = np.arange(N_CHAINS) % 3 > 0
    new = np.where(moved[:, None], 0.5 * on.old, on.old)
    c = np.full(N_CHAINS, 50.0) * moved
    after, info = on.decide(on.start(), positions=new, log_correction=c, moved=moved)
    demand_equal(after.positions[~moved], on.old[~moved], "positions of chains that stay")
    demand(not info.accepted[~moved].any(), "chains that did not move were called accepted")
    demand_equal(np.isnan(info.acceptance), ~moved, "where acceptance is NaN, and who did not move")


@on_moves()
def check_log_correction(on: _Moves) -> None:
    """Short moves are all rejected where c is far below 0, and all accepted far above it."""
    near = attrs.evolve(on, old=0.3 * on.old, new=0.3 * on.old + 1e-3)
    for c, share in ((-200.0, 0.0), (200.0, 1.0)):
        found = near.decide(near.start(), log_correction=np.full(N_CHAINS, c))[1].accepted.mean()
        what = f"with a log_correction of {c:g} a share of {share:g} must be accepted"
        demand(found == share, f"{what}, got {found:g}")


@on_moves()
def check_failures_rejected(on: _Moves) -> None:
    """A proposal is rejected if U is inf or NaN, c is NaN, or the status is not OK."""
    old = 0.1 * on.old
    new = (1.0 - 1e-6) * old  # a move, if a short one: a proposal to stay needs no decision
    c, status = np.full(N_CHAINS, 5.0), np.full(N_CHAINS, int(Status.OK))
    new[0], new[1], c[2] = [30.0, 0.0], [np.nan, 0.0], np.nan
    status[3:6] = [Status.NOT_FINITE, Status.NOT_CONVERGED, Status.NOT_REVERSIBLE]
    new[6] = [2.0, 2.0]
    failing: Potential = _NaNNear(on.target, new[6])
    failing = failing if _by_rows(on.make) else Fenced(failing, 10.0)
    state = _start(on.make, on.target, old)
    after, info = on.decide(state, failing, positions=new, log_correction=c, status=status)
    bad = [s.name for s in Status if s != Status.OK]
    reasons = ["U is inf", "U is NaN or inf", "log_correction is NaN", *bad, "U is NaN"]
    for i, reason in enumerate(reasons):
        demand(not info.accepted[i], f"a proposal was accepted although {reason}")
        demand_equal(after.positions[i], old[i], f"a position, where {reason},")
    demand(info.accepted[7:].all(), "good proposals beside failed ones must be decided as usual")


@on_moves()
def check_cost(on: _Moves) -> None:
    """Only chains that moved and whose path ended well are evaluated, in one batch."""
    moved = np.arange(N_CHAINS) % 3 > 0
    status = np.where(np.arange(N_CHAINS) == 1, int(Status.NOT_FINITE), int(Status.OK))
    new = np.where(moved[:, None], on.new, on.old)
    state, rng = on.start(), np.random.default_rng(1)
    decider = _ready(on.make, counting := CountingPotential(on.target))
    counting.forget()
    decider.decide(state, Proposal(positions=new, moved=moved, status=status), rng)
    due = int((moved & (status == Status.OK)).sum())
    positions, batches = counting.positions["value"], counting.batches["value"]
    what = f"{due} chains moved and ended well, so one batch of at most {due} exact values is due"
    fits = positions <= due and batches <= 1
    demand(fits, f"{what}, got {positions} in {batches} batches")
    demand(counting.gradients() == 0, "a decision needs exact values, not gradients")
    counting.forget()
    decider.decide(state, Proposal(positions=on.old, moved=np.zeros(N_CHAINS, dtype=bool)), rng)
    demand(counting.batches.total() == 0, "no chain moved, but the exact potential was called")


@check("correction", cases=_cases, claimed=lambda each: ROWS in each.needs and _fits(each))
def check_cost_in_rows(on: _Moves) -> None:
    """Rows are touched only for chains that moved, ended well and may still be accepted."""
    recording, state = RecordingPotential(on.target, keep=False), on.start()
    decider, n_rows = _ready(on.make, recording), Summed().n_rows

    def count(**proposal: Any) -> dict[str, int]:
        before = recording.calls
        proposed = Proposal(**{"positions": on.new, **proposal})
        decider.decide(state, proposed, np.random.default_rng(1))
        return {kind: n - before[kind] for kind, n in recording.calls.items() if n > before[kind]}

    moved = count()
    few = set(moved) == {"rows"} and moved["rows"] <= n_rows * N_CHAINS
    what = f"{N_CHAINS} proposals may touch each of {n_rows} rows once, and nothing else"
    demand(few, f"{what}; got {moved}")
    cases: dict[str, dict[str, Any]] = {
        "no chain moved": {"positions": on.old, "moved": np.zeros(N_CHAINS, dtype=bool)},
        "every path failed": {"status": np.full(N_CHAINS, int(Status.NOT_FINITE))},
        "the log correction rejects by itself": {"log_correction": np.full(N_CHAINS, -500.0)},
    }
    for why, proposal in cases.items():
        demand(not (spent := count(**proposal)), f"{why}, but evaluated were {spent}")


@on_moves()
def check_exact_source_free(on: _Moves) -> None:
    """A proposal made on the exact potential brings its values along and costs nothing."""
    counting = CountingPotential(on.target)
    before, cache = {"value": on.target.value(on.old)}, {"value": on.target.value(on.new)}
    state = ChainState(positions=on.old, values=before["value"], cache=before)
    path = {"source": counting, "log_path_ratio": before["value"] - cache["value"]}
    after, _ = on.decide(state, counting, cache=cache, **path)
    what = "the proposal's source is the exact potential itself, but its values were evaluated"
    demand(counting.batches["value"] == 0, what)
    demand_close(after.values, on.target.value(after.positions), "values after a free decision")


@on_moves()
def check_same_decision(on: _Moves) -> None:
    """The same state, proposal and generator give the same decision, and nothing is changed."""
    state, c = write_and_read(on.start()), np.linspace(-1.0, 1.0, N_CHAINS)
    for array in (state.positions, state.values, *state.cache.values(), on.new):
        array.setflags(write=False)
    (first, told), (second, again) = (on.decide(state, log_correction=c) for _ in range(2))
    demand_equal(second.positions, first.positions, "positions after two equal decisions")
    demand_equal(second.values, first.values, "values after two equal decisions")
    demand_equal(again.acceptance, told.acceptance, "acceptance of two equal decisions")


_KERNELS: tuple[tuple[str, Any], ...] = (
    ("leaning walk", LeaningWalk()),
    ("one-sided walk", OneSidedWalk()),
    ("draws from a wide surrogate", IndependentDraws(potential=WIDE, idle=0.3)),
    ("draws from a narrow surrogate", IndependentDraws(potential=NARROW)),
    ("sub-chain on a wide surrogate", SubChain(potential=WIDE)),
    ("sub-chain on a narrow surrogate", SubChain(potential=NARROW)),
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


@check("correction", level="statistical", claimed=_fits)
def check_exact_draws_kept(make: Factory) -> None:
    """Exact draws stay exact draws, with proposals whose c is known."""
    _compared(make, invariance, Gaussian(), Mixture(), HalfPlane()).require(
        "exact draws must stay exact draws, whatever the proposals, if c is honoured"
    )


@check("correction", level="statistical", claimed=_fits)
def check_balance(make: Factory) -> None:
    """As many moves go from each region to each other one as back."""
    sizes = {"n_chains": 20_000} if _by_rows(make) else {}  # rows cost more
    verdict = _compared(make, flux, Gaussian(), Mixture(), **sizes)
    verdict.require("a correction makes these proposals reversible")
