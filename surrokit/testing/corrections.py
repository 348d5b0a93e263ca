"""Checks of corrections: they honour c, keep the target, and waste no exact call."""

from __future__ import annotations

from functools import partial
from typing import Any

import attrs
import numpy as np

from surrokit.capabilities import ROWS
from surrokit.cost.recording import RecordingPotential
from surrokit.interfaces import ChainState, Proposal, Status, StepInfo
from surrokit.potentials import Potential, WrappedExpansion
from surrokit.testing import must
from surrokit.testing.checks import Factory, check
from surrokit.testing.parts import LeaningWalk, SubChain
from surrokit.testing.rows import Summed
from surrokit.testing.samplers import NARROW, WIDE, invariance
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
        return _FailingExpansion(self.inner.expand(centre), self.position)  # type: ignore[attr-defined]


@attrs.frozen(eq=False)
class _FailingExpansion(WrappedExpansion):
    """An expansion that fails too: ``inf`` far out, NaN at the position."""

    position: FloatArray

    def value(self, positions: FloatArray) -> FloatArray:
        inside = np.square(positions).sum(axis=1) < 10.0**2
        return np.where(inside, self.inner.value(positions), np.inf)

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        failed = (positions == self.position).all(axis=1)[owners]
        return np.where(failed, np.nan, self.inner.remainders(positions, rows, owners))


def _by_rows(make: Factory) -> bool:
    """Return whether a correction looks at rows of data, and so knows no exact values."""
    return ROWS in make().needs


@attrs.frozen(eq=False)
class _Moves:
    """A correction, a target, and where moves on it begin and end."""

    make: Factory
    target: Target
    old: FloatArray
    new: FloatArray

    def start(self) -> ChainState:
        state: ChainState = self.make().bind(self.target).start(self.old, {}, None)
        return state

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


def _ready(make: Factory, potential: Potential) -> Any:
    return make().bind(potential).prepare(np.array([0.4, -0.2]))


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
    """The start has exact values, which are not evaluated where the cache holds them."""
    counting, expected = CountingPotential(on.target), on.target.value(on.old)
    state = on.make().bind(counting).start(on.old, {}, None)
    must.equal(state.positions, on.old, "positions at the start")
    must.close(state.values, expected, "values at the start")
    counting.forget()
    state = on.make().bind(counting).start(on.old, {"value": expected}, counting)
    must.close(state.values, expected, "values at the start, from a cache")
    what = "the cache is of the exact potential itself, but its values were evaluated"
    must.hold("value" not in counting.batches, what)


@on_moves()
def check_decision(on: _Moves) -> None:
    """Each chain has its proposal or its old state, as a whole, with the exact value there.

    The record has one entry a chain, and probabilities are in [0, 1].
    """
    before, cache = ({"value": WIDE.value(q), "twice": 2 * q} for q in (on.old, on.new))
    state = ChainState(positions=on.old, values=on.target.value(on.old), cache=before)
    path: dict[str, Any] = {"source": WIDE, "log_path_ratio": np.zeros(N_CHAINS)}
    c = cache["value"] - before["value"]
    after, info = on.decide(state, log_correction=c, cache=cache, **path)
    n = info.accepted.sum()
    must.hold(0 < n < N_CHAINS, f"of {N_CHAINS} plain proposals {n} accepted")
    chosen = np.where(info.accepted[:, None], on.new, on.old)
    must.equal(after.positions, chosen, "positions after a decision")
    unknown = np.isnan(after.values) & _by_rows(on.make)  # who looks at rows may give NaN
    expected = on.target.value(chosen)
    values = np.where(unknown, expected, after.values)
    must.close(values, expected, "values after a decision")
    for name, array in {"twice": 2 * chosen, "value": WIDE.value(chosen)}.items():
        must.equal(after.cache[name], array, f"{name} in the sampler's cache after a decision")
    _, info = on.decide(on.start())
    for name in ("accepted", "divergent"):
        must.shape(getattr(info, name), (N_CHAINS,), name, "b")
    for name in ("acceptance", "path_acceptance"):
        must.shape(getattr(info, name), (N_CHAINS,), name)
        must.between(getattr(info, name), 0.0, 1.0, name)
    well = (info.status == Status.OK).all() and (info.n_steps == 1).all()
    must.hold(well, "status and n_steps of a decision must be those of its proposal")
    must.hold(
        not info.divergent.any(), "proposals with status OK and no path were called divergent"
    )


@on_moves()
def check_staying(on: _Moves) -> None:
    """A proposal to stay is no move: it is not accepted, and has no acceptance."""
    moved = np.arange(N_CHAINS) % 3 > 0
    new = np.where(moved[:, None], 0.5 * on.old, on.old)
    c = np.full(N_CHAINS, 50.0) * moved
    after, info = on.decide(on.start(), positions=new, log_correction=c, moved=moved)
    must.equal(after.positions[~moved], on.old[~moved], "positions of chains that stay")
    must.hold(not info.accepted[~moved].any(), "chains that did not move were called accepted")
    must.equal(np.isnan(info.acceptance), ~moved, "where acceptance is NaN, and who did not move")


@on_moves()
def check_failures_rejected(on: _Moves) -> None:
    """A proposal is rejected if U is inf or NaN, c is NaN, or the status is not OK."""
    near = attrs.evolve(on, old=0.1 * on.old)
    new = (1.0 - 1e-6) * near.old  # a move, if a short one: a proposal to stay needs no decision
    c, status = np.full(N_CHAINS, 5.0), np.full(N_CHAINS, int(Status.OK))
    new[0], new[1], c[2] = [30.0, 0.0], [np.nan, 0.0], np.nan
    bad = [each for each in Status if each != Status.OK]
    last = 3 + len(bad)
    status[3:last], new[last] = bad, [2.0, 2.0]
    failing: Potential = _NaNNear(on.target, new[last])
    failing = failing if _by_rows(on.make) else Fenced(failing, 10.0)
    after, info = near.decide(near.start(), failing, positions=new, log_correction=c, status=status)
    reasons = ["U is inf", "U is NaN or inf", "log_correction is NaN"]
    reasons += [*(each.name for each in bad), "U is NaN"]
    for i, reason in enumerate(reasons):
        must.hold(not info.accepted[i], f"a proposal was accepted although {reason}")
        must.equal(after.positions[i], near.old[i], f"a position, where {reason},")
    decided = info.accepted[last + 1 :].all()
    must.hold(decided, "good proposals beside failed ones must be decided as usual")


@on_moves()
def check_cost(on: _Moves) -> None:
    """Only chains that moved and whose path ended well are evaluated.

    A proposal made on the exact potential brings its values along. Of rows each is touched once for
    each chain at most.
    """
    still, failed = np.zeros(N_CHAINS, dtype=bool), np.full(N_CHAINS, int(Status.NOT_FINITE))
    moved = np.arange(N_CHAINS) % 3 > 0
    status = np.where(np.arange(N_CHAINS) == 1, int(Status.NOT_FINITE), int(Status.OK))
    moves = {"positions": np.where(moved[:, None], on.new, on.old), "moved": moved}
    state, recording = on.start(), RecordingPotential(on.target, keep=False)
    decider = _ready(on.make, recording)
    cases: list[tuple[str, int, dict[str, Any]]] = [
        ("of chains that moved one failed", int((moved & (status == 0)).sum()), moves),
        ("no chain moved", 0, {"positions": on.old, "moved": still}),
        ("every path failed", 0, {"status": failed}),
    ]
    for why, due, proposal in cases:
        before = recording.calls
        proposed = Proposal(**{"positions": on.new, "status": status, **proposal})
        decider.decide(state, proposed, np.random.default_rng(1))
        spent = {kind: n - before[kind] for kind, n in recording.calls.items() if n > before[kind]}
        # a value of a sum is one of all its rows
        n_rows = on.target.n_rows if isinstance(on.target, Summed) else 1
        found = sum(n * (1 if kind == "rows" else n_rows) for kind, n in spent.items())
        fits = found <= due * n_rows and "gradient" not in spent
        must.hold(fits, f"{why}, and {due * n_rows} values or rows are due; evaluated were {spent}")
    counting = CountingPotential(on.target)
    old, new = ({"value": on.target.value(q)} for q in (on.old, on.new))
    state = ChainState(positions=on.old, values=old["value"], cache=old)
    path = {"source": counting, "log_path_ratio": old["value"] - new["value"]}
    after, _ = on.decide(state, counting, cache=new, **path)
    what = "the proposal's source is the exact potential itself, but its values were evaluated"
    must.hold(counting.batches["value"] == 0, what)
    must.close(after.values, on.target.value(after.positions), "values after a free decision")


_KERNELS: tuple[tuple[str, Any], ...] = (
    ("leaning walk", LeaningWalk()),
    ("sub-chain on a wide surrogate", SubChain(potential=WIDE)),
    ("sub-chain on a narrow surrogate", SubChain(potential=NARROW)),
)


@check("correction", level="statistical", claimed=_fits)
def check_exact_draws_kept(make: Factory) -> None:
    """Exact draws stay exact draws, with proposals whose c is known."""
    targets = (Summed(),) if _by_rows(make) else (Gaussian(), Mixture(), HalfPlane())
    verdicts = [
        invariance(kernel, _ready(make, on), on, f"{name}, {type(on).__name__}: ")
        for on in targets
        if make().needs <= on.capabilities
        for name, kernel in _KERNELS
    ]
    Verdict.join(verdicts).require(
        "exact draws must stay exact draws, whatever the proposals, if c is honoured"
    )
