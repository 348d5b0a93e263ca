"""Checks of explorers, driven as a run drives them, and of schedules.

Equal histories give equal decisions, and learning ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

import attrs
import numpy as np

from surrokit.cost.recording import RecordingPotential
from surrokit.interfaces import Decision, Evaluations, Findings, Moment, Stage, Start
from surrokit.modes import Modes
from surrokit.potentials import Potential
from surrokit.testing import must
from surrokit.testing.checks import Factory, check
from surrokit.testing.targets import Banana, Target, usable

N_CHAINS, WARMUP = 4, 80
"""Chains of an exploration, and the length of the warm-up, exploration included."""


@attrs.frozen(eq=False)
class _Explored:
    target: Target
    findings: Findings
    rows: Evaluations  # all that there is to learn from
    n_steps: int


def _explore(make: Factory, *, fits: bool = True) -> _Explored:
    """Make a whole exploration, as a run does, on a target that records every exact call.

    A fit returns a perfect surrogate that costs nothing; the first one fails, and all unless
    ``fits``.
    """
    explorer, rng = make(), np.random.default_rng(1605)
    (target,) = usable(explorer, Banana())
    recording, blocks, n_fits = RecordingPotential(target, keep=True), list[Evaluations](), count()

    def fit(rows: Evaluations, modes: Modes | None = None) -> Potential | None:  # noqa: ARG001
        blocks.append(rows)
        return target if next(n_fits) and fits else None

    start = Start(
        potential=recording,
        positions=target.sample(np.random.default_rng(1606), N_CHAINS),
        warmup=WARMUP,
        evaluated=recording.drain,
        fit=fit,
    )
    steps = iter(explorer.explore(start, rng))
    last, n_steps = next(steps), 0
    must.hold(not last.done, "the exploration is done before the first step")
    must.equal(last.findings.chains.positions, start.positions, "where the chains are at first")
    unused = rng.bit_generator.state == np.random.default_rng(1605).bit_generator.state
    must.hold(unused, "the first item took numbers from the generator")
    while not last.done:
        must.hold(n_steps < WARMUP, f"done is still False after the warm-up of {WARMUP}")
        step = next(steps, None)
        must.hold(step is not None, "the exploration ended without an item that is marked done")
        last, n_steps = step or last, n_steps + 1
        blocks += [] if last.rows is None else [last.rows]
        left = len(recording.drain())
        must.hold(left == 0, f"{left} evaluations of a step were not asked for by evaluated()")
    must.hold(next(steps, None) is None, "something follows an item that is marked done")
    return _Explored(target, last.findings, Evaluations.join(blocks, 2), n_steps)


@check("explorer")
def check_exploration(make: Factory) -> None:
    """An exploration takes at least one step and ends within the warm-up, even if no fit succeeds.

    Its first item has the chains at their starts, and takes nothing from the generator. After each
    step it has asked for all evaluations that it has made; nothing follows its end. The same start
    and generator give the same exploration.
    """
    _explore(make, fits=False)
    first, second = _explore(make), _explore(make)
    same = first.n_steps == second.n_steps
    must.hold(same, "two equal explorations took unequal numbers of steps")
    end, again = (each.findings.chains.positions for each in (first, second))
    must.equal(again, end, "where two equal runs ended")
    what = "training rows of two equal explorations"
    must.equal(second.rows.positions, first.rows.positions, what)


@check("explorer")
def check_findings(make: Factory) -> None:
    """The chains found and the rows to learn from have exact values; other findings are usable."""
    explored = _explore(make)
    found, target, rows = explored.findings, explored.target, explored.rows
    must.shape(found.chains.positions, (N_CHAINS, 2), "positions of the chains found")
    must.between(found.chains.values, -np.inf, np.inf, "values of the chains found")
    exact = target.value(found.chains.positions)
    must.close(found.chains.values, exact, "values of the chains found")
    if found.covariance is not None:
        must.shape(found.covariance, (2, 2), "covariance found")
        must.matrices(found.covariance[None], "covariance found", np.finfo(float).tiny)
    if found.acceptance is not None:
        must.between(found.acceptance, 0.0, 1.0, "acceptance predicted")
    if (modes := found.modes) is not None:
        must.matrices(modes.covariances, "covariances of modes", np.finfo(float).tiny)
        must.close(modes.values, target.value(modes.positions), "potentials of the modes found")
    must.hold(len(rows) > 0, "the exploration ended without a single row to learn from")
    with np.errstate(all="ignore"):  # paths that ran away were evaluated as well
        values, gradients = target.value_and_gradient(rows.positions)
    must.close(rows.values, values, "values of the training rows")
    if rows.gradients is not None:
        known = np.isfinite(rows.gradients).all(axis=1)
        must.close(rows.gradients[known], gradients[known], "gradients of the training rows")


# --- schedules ---

EXPLORED, BEFORE, KEPT = 60, 120, 6000
"""Iterations in the histories shown to a schedule: of exploration, before kept ones, and kept."""


def _moments(iterations: Iterable[int]) -> list[Moment]:
    """Return the moments of a run after some iterations; ``explored`` ends the exploration."""

    def moment(i: int) -> Moment:
        stage: Stage = "exploration" if i <= EXPLORED else "warmup" if i <= BEFORE else "sampling"
        return Moment(
            stage=stage,
            iteration=i,
            explored=i == EXPLORED,
            since_explored=max(i - EXPLORED, -1),
            draws_follow=i == BEFORE,
        )

    return [moment(i) for i in iterations]


def _history() -> list[Moment]:
    return _moments(range(1, BEFORE + KEPT + 1))


def _decisions(schedule: Any, moments: list[Moment], seed: int) -> list[Decision]:
    rng = np.random.default_rng([1603, seed])
    return [schedule.decide(moment, rng) for moment in moments]


def _deployed(made: list[Decision]) -> int:
    return sum(decision.deploy for decision in made)


@check("schedule")
def check_learns(make: Factory) -> None:
    """``learns`` and ``deployment_rate`` agree with what is deployed, after it was observed."""
    schedule, made = make(), _decisions(make(), _history(), 2)
    learns, rate, n = schedule.learns, schedule.deployment_rate, _deployed(made)
    must.hold(bool(n) == bool(learns), f"learns is {learns}, but {n} of {len(made)} deploy")
    observed = deployed = False
    for decision in made:
        observed, deployed = observed or decision.observe, deployed or decision.deploy
        must.hold(observed or not deployed, "a surrogate is deployed, though nothing was observed")
    must.between(rate, 0.0, 1.0, "deployment_rate")
    must.hold(rate > 0 or n <= 1, f"deployment_rate is 0, but {n} surrogates are deployed")


@check("schedule")
def check_decisions(make: Factory) -> None:
    """A schedule keeps no memory: decisions are the same for the same history and generator."""
    moments, schedule = _history(), make()
    first = _decisions(make(), moments, 0)
    for one, which in ((make(), "another schedule"), (schedule, "it"), (schedule, "it again")):
        what = f"a schedule decided, and {which} decided differently on the same history"
        must.hold(_decisions(one, moments, 0) == first, f"{what}; it may have no memory")


@check("schedule")
def check_frozen(make: Factory) -> None:
    """Once frozen, a schedule stays frozen and deploys nothing, at round numbers of draws too."""
    rounded = [digit * 10**power for power in range(3, 13) for digit in (1, 2, 5)]
    begins = (0, EXPLORED, BEFORE)  # of the run, and of its phases
    far = {at + n + i for at in begins for n in rounded for i in (-1, 0, 1)}
    moments = _moments(sorted(far.union(range(1, BEFORE + KEPT + 1))))
    for seed in range(3):
        frozen_at = None
        made = _decisions(make(), moments, seed)
        for moment, decision in zip(moments, made, strict=True):
            right = frozen_at is None or (decision.frozen and not decision.deploy)
            found = f"deploy={decision.deploy} at iteration {moment.iteration}"
            advice = "freeze for good, or report that it never does"
            must.hold(right, f"frozen at iteration {frozen_at}, and {found}; {advice}")
            if frozen_at is None and decision.frozen:
                frozen_at = moment.iteration


@check("schedule")
def check_learning_ends(make: Factory) -> None:
    """Deployments among the kept draws stop, or become rarer and rarer."""
    kept = 0
    for seed in range(3):
        made = _decisions(make(), _history(), seed)
        kept += _deployed(made[BEFORE:])
        # even slow rates fall between these: (1 + t)^-0.1 to a quarter
        near, far = (
            _deployed(_decisions(make(), _moments(BEFORE + begin + i for i in range(KEPT)), seed))
            for begin in (10**6, 10**12)
        )
        what = f"{near} and {far} surrogates are deployed in {KEPT} iterations from 1e6 and 1e12 on"
        must.hold(far <= 0.8 * near, f"{what}; adaptation must stop, or its rate fall to zero")
    what = "nothing is deployed among the kept draws, but the schedule never says that it is frozen"
    must.hold(made[-1].frozen or kept > 0, what)
