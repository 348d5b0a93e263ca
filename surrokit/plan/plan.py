"""From what a user asks for to the plan of a run: all parts made and checked."""

from __future__ import annotations

import math
import warnings
from typing import Any

import attrs
import numpy as np

from surrokit.capabilities import FORWARD, require
from surrokit.contracts.learner import Evaluations
from surrokit.contracts.sampler import Tuning
from surrokit.cost.budget import Budget, BudgetSpent, StopReason
from surrokit.cost.clock import Clock
from surrokit.cost.measuring import measured_starts
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import ConfigurationError, SamplingWarning, ShapeError
from surrokit.kernel.tuner import tuning_of
from surrokit.mode.starts import paid_evaluations
from surrokit.plan.fallback import Fallback
from surrokit.plan.parts import Parts, chosen_parts, nothing_learns
from surrokit.plan.policy import Choice, Policy
from surrokit.plan.recipe import PART_BEFORE_DRAWS, WARMUP, Request
from surrokit.plan.safety import Safety
from surrokit.plan.stopping import Stopping
from surrokit.registry.composer import Composer
from surrokit.registry.purposes import NO_LEARNING
from surrokit.targets.bounds import transform_of
from surrokit.types import FloatArray

LAST_PART = 0.1
"""Part of the iterations so far that such a warm-up goes on for when its part is about used up. By
then the chains have forgotten that the limit found them where iterations are dear."""


def ending(iteration: int) -> int:
    """Return the iteration at which a warm-up ends whose part of the budget is about used up."""
    return iteration + math.ceil(LAST_PART * iteration)


@attrs.frozen(kw_only=True, eq=False)
class Plan:
    """All parts of a run, made and checked.

    Parameters
    ----------
    target
        The exact potential, recorded.
    parts
        What the run is made of.
    chains, draws
        Sizes.
    warmup
        Iterations before any is kept, the exploration counted; None for 1000, or after an
        exploration that has tuned the sampler for what it took and 10 or 25 more.
    initial : ndarray of shape (chains, dim), optional
        The user's starting positions, in the sampling coordinates.
    evaluations
        Exact evaluations already paid for, in the sampling coordinates.
    safety
        What to do when the surrogate fails.
    budget
        Limits of the whole run.
    exploration
        Limits of the exploration, which then ends early.
    fallback
        What to go on with where the surrogate is not worth its cost; None to keep it.
    choice
        What was picked automatically, and why.
    clock
        Counts the run's seconds.
    over
        Why the run is over before it has begun; None as a rule.
    error
        What was raised before it had begun, if that is why.
    """

    target: RecordingPotential
    parts: Parts
    chains: int
    warmup: int | None
    draws: int
    initial: FloatArray | None
    evaluations: Evaluations | None
    safety: Safety
    budget: Budget
    exploration: Budget
    fallback: Fallback | None = None
    choice: str | None = None
    clock: Clock = attrs.field(factory=Clock)
    over: StopReason | None = None
    error: Exception | None = None

    @property
    def hurry(self) -> Budget:
        """What is used of the budget when a warm-up of open length comes to its end."""
        return self.budget.part(PART_BEFORE_DRAWS / (1.0 + LAST_PART))

    @property
    def most_warmup(self) -> int:
        """Iterations of warm-up, as far as is known before the run."""
        return WARMUP if self.warmup is None else self.warmup


@attrs.frozen(kw_only=True, eq=False)
class _Picked:
    """What was found out before the parts were made."""

    choice: Choice
    starts: FloatArray | None = None
    evaluations: Evaluations | None = None
    fallback: Fallback | None = None
    exploration: Budget = attrs.field(factory=Budget)
    over: StopReason | None = None
    error: Exception | None = None


def planned(composer: Composer, request: Request, rng: np.random.Generator) -> Plan:
    """Make a plan of what was asked for; what was left open is picked first.

    Parameters
    ----------
    composer
        Makes parts.
    request
        What was asked for.
    rng
        The run's generator.

    Raises
    ------
    UnknownComponentError
        If a name is not registered.
    CapabilityError
        If a part needs what the target or the surrogate does not offer.
    ConfigurationError
        If settings cannot work.
    """
    target = RecordingPotential(request.exact, keep=True, on_error=request.on_error)
    target.failure_log.waits = True
    clock = Clock()
    picked = None
    if request.sampler is None and request.surrogate is None:
        picked = _picked(composer, request, target, clock, rng)
    elif request.policy is not None:
        raise ConfigurationError(
            "a policy is given, but sampler or surrogate is named, so that nothing is left to "
            "pick; leave policy out, or name neither"
        )
    parts = _parts(composer, request, picked, rng)
    learns = parts.learner is not None
    target.keep = learns or FORWARD in request.exact.capabilities
    over = None if picked is None else picked.over
    if over is None:
        _check(request, parts)
    limit = Budget() if request.warmup is not None else request.budget.part(PART_BEFORE_DRAWS)
    return Plan(
        target=target,
        parts=attrs.evolve(parts, described={"target": request.name, **parts.described}),
        chains=request.chains,
        warmup=request.warmup,
        draws=request.most_draws,
        initial=request.initial if picked is None or picked.starts is None else picked.starts,
        evaluations=_evaluations(request, picked) if learns else None,
        safety=request.safety,
        budget=request.budget,
        exploration=limit if picked is None else limit.within(picked.exploration),
        fallback=None if picked is None or not learns else picked.fallback,
        choice=None if picked is None else picked.choice.line,
        clock=clock,
        over=over,
        error=None if picked is None else picked.error,
    )


def _picked(
    composer: Composer,
    request: Request,
    target: RecordingPotential,
    clock: Clock,
    rng: np.random.Generator,
) -> _Picked:
    """Time a few calls, within the budget, and pick by them."""
    _check_given(composer, request)
    policy: Policy = composer.make("policy", request.policy or composer.catalogue.pick("policy"))
    transform = transform_of(request.exact)
    guard = Stopping(request.budget, target, clock, transform, request.chains).guard
    target.guarded(guard)
    try:
        with clock.phase("warmup"):
            starts, costs = measured_starts(target, request.initial, request.chains, rng)
            fixed = request.fixed(composer.catalogue)
            choice = policy.choose(composer, target, costs, fixed, starts, rng)
            evaluations = target.drain()
    except BudgetSpent as spent:
        return _nothing_known(policy, composer, request, spent.reason)
    except KeyboardInterrupt:
        return _nothing_known(policy, composer, request, "interrupted")
    except Exception as error:  # the run raises it, with what was paid until then
        return attrs.evolve(_nothing_known(policy, composer, request, "error"), error=error)
    finally:
        target.guarded(None)
    return _Picked(
        choice=choice,
        starts=starts,
        evaluations=evaluations if len(evaluations) else None,
        fallback=policy.fallback(
            composer,
            target.capabilities,
            costs,
            target.dim,
            request.wanted_draws,
            request.settings,
        ),
        exploration=policy.exploration(costs, request.chains, request.wanted_draws),
    )


def _check_given(composer: Composer, request: Request) -> None:
    """Refuse settings that cannot work before the first call."""
    pick = composer.catalogue.pick
    sampler = composer.make("sampler", pick("sampler"), **request.settings)
    correction = composer.make("correction", request.correction or pick("correction"))
    offered, advice = request.exact.capabilities, "name another correction, or leave it out"
    require("the correction", correction.needs, offered, "the target", advice)
    composer = composer.with_own({"sampler": sampler, "correction": correction})
    composer.make("schedule", request.schedule or pick("schedule", NO_LEARNING))
    if request.explorer is not None:
        composer.make("explorer", request.explorer)
    if request.evaluations is not None:
        paid_evaluations(request.evaluations, request.exact)


def _nothing_known(
    policy: Policy, composer: Composer, request: Request, why: StopReason
) -> _Picked:
    """Return what an empty run is called that was over before anything could be picked."""
    reason = f"nothing was measured, {why} came first"
    choice = policy.plain(composer, request.exact.capabilities, request.settings, reason)
    return _Picked(choice=choice, over=why)


def _parts(
    composer: Composer, request: Request, picked: _Picked | None, rng: np.random.Generator
) -> Parts:
    asked: Any = request if picked is None else picked.choice
    return chosen_parts(
        composer,
        request.exact,
        rng,
        sampler=asked.sampler or composer.catalogue.pick("sampler"),
        sampler_settings=asked.settings,
        surrogate=None if asked.surrogate == "none" else asked.surrogate,
        schedule=asked.schedule,
        explorer=asked.explorer,
        correction=asked.correction or composer.catalogue.pick("correction"),
        chains=request.chains,
        warmup=WARMUP if request.warmup is None else request.warmup,
    )


def _evaluations(request: Request, picked: _Picked | None) -> Evaluations | None:
    given = None
    if request.evaluations is not None:
        given = paid_evaluations(request.evaluations, request.exact)
    paid = None if picked is None else picked.evaluations
    blocks = [block for block in (given, paid) if block is not None]
    return Evaluations.joined(blocks, request.exact.dim) if blocks else None


def _check(request: Request, parts: Parts) -> None:
    """Refuse what cannot work together, and warn of what hardly can."""
    _check_safety(request.safety, parts)
    _check_tuning(tuning_of(parts.sampler), request.exact.dim)
    if parts.learner is None and request.evaluations is not None:
        raise ConfigurationError(
            f"evaluations are given, but {nothing_learns(parts.ready)}, or leave evaluations out"
        )
    untuned = "step_size" in parts.sampler.tunes and tuning_of(parts.sampler) is None
    if request.warmup == 0 and untuned:
        warnings.warn(
            "there is no warm-up to tune the step size in; pass step_size=... or warmup=...",
            SamplingWarning,
            stacklevel=4,  # the caller of sample
        )


def _check_tuning(tuning: Tuning | None, dim: int) -> None:
    covariance = None if tuning is None else tuning.covariance
    if covariance is not None and len(covariance) != dim:
        raise ShapeError(
            f"the sampler was tuned on a target with dim {len(covariance)}, but this one has dim "
            f"{dim}; name the sampler, so that a new one is made"
        )


def _check_safety(net: Safety, parts: Parts) -> None:
    if net.restart and parts.learner is None:
        raise ConfigurationError(
            f"safety asks for restart, but {nothing_learns(parts.ready)}, or leave restart out"
        )
    if not net.mix:
        return
    if parts.learner is None and parts.ready is None:
        raise ConfigurationError(
            "safety asks to mix in exact transitions, but there is no surrogate and all are exact; "
            "leave mix out"
        )
    if parts.exact_sampler is None:
        raise ConfigurationError(
            "safety asks to mix in exact transitions, but no sampler at hand suits the target: it "
            "needs one that moves by gradients or values alone; enable a plugin that has one, or "
            "leave mix out"
        )
