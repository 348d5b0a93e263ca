"""Checks of samplers that are tuned."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit.interfaces import ChainState, Proposal, Status, Tuning, changes_with_position
from surrokit.testing.checks.kernels.sampler import demand_same, start, usable
from surrokit.testing.measures.demands import demand
from surrokit.testing.results import Check, Factory
from surrokit.testing.targets.densities import Banana, Gaussian


def check_tuning(make: Factory) -> None:
    """``bind`` sets what ``tunes`` names and nothing else."""
    target = usable(make, (Banana(),))[0]
    sampler = make()
    tunes = sampler.tunes
    small, large = Tuning(step_size=0.01, n_steps=1), Tuning(step_size=0.3, n_steps=3)
    state = start(sampler.bind(target, small), target)

    def proposal(tuning: Tuning) -> Proposal:
        result: Proposal = sampler.bind(target, tuning).propose(state, np.random.default_rng(16))
        return result

    first, second = proposal(small), proposal(large)
    demand(
        sampler.tunes == tunes,
        f"tunes was {sorted(tunes)} and is {sorted(sampler.tunes)} after bind; it says what the "
        "user left free, which tuning does not change",
    )
    if not tunes:
        demand_same(second, first, "a sampler that tunes nothing, bound with two tunings")
        return
    if "step_size" in tunes:
        near, far = _moves(state, first), _moves(state, second)
        demand(
            near < 0.5 * far,
            f"step_size is left free, but moves at step sizes 0.01 and 0.3 are {near:.3g} and "
            f"{far:.3g} long",
        )
    demand_same(proposal(small), first, "a sampler before and after it was bound otherwise")


def _moves(state: ChainState, proposal: Proposal) -> float:
    ok = proposal.status == Status.OK
    return float(np.abs(proposal.positions[ok] - state.positions[ok]).mean())


def check_tuned_metric(make: Factory) -> None:
    """If the metric is left free, the covariance given to ``bind`` shapes the moves."""
    target = Gaussian()
    wide = Tuning(step_size=0.1, covariance=np.diag([9.0, 0.01]), n_steps=1)
    kernel = make().bind(target, wide)
    state = start(kernel, target, 400)
    proposal = kernel.propose(state, np.random.default_rng(18))
    size = np.abs(proposal.positions - state.positions).mean(axis=0)
    demand(
        size[0] > 3.0 * size[1],
        f"the metric is left free, but with standard deviations 3 and 0.1 moves have sizes {size}",
    )


def _takes_shape(sampler: Any) -> bool:
    """Return whether a covariance shapes moves; a metric by position takes only units from it."""
    by_position = changes_with_position(getattr(sampler, "metric", None))
    return {"step_size", "metric"} <= sampler.tunes and not by_position


CHECKS: tuple[Check, ...] = (
    Check(check_tuning, applies=lambda s: not s.tunes or "step_size" in s.tunes),
    Check(check_tuned_metric, applies=_takes_shape),
)
"""For every sampler."""
