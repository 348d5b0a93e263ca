"""From names and settings to objects: ``sample`` and ``make``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import check_flag, is_whole
from surrokit.contracts.explorer import Explorer
from surrokit.cost.budget import Budget
from surrokit.errors import ConfigurationError
from surrokit.executors.terms import ExecutorSpec, Terms
from surrokit.history import Keep
from surrokit.interfaces import Correction, Evaluations, Sampler, Schedule, Surrogate
from surrokit.ledger.known import (
    WarmStart,
    add_known,
    evaluations_of_model,
    read_known,
    with_memo,
)
from surrokit.mode.starts import given_positions, read_evaluations
from surrokit.model.calls import OnError
from surrokit.plan.parts import check_target
from surrokit.plan.recipe import Policy, Recipe, knows_coordinates, read_seed, seed_of
from surrokit.plan.repair import Safety, check_safety
from surrokit.potentials import Potential
from surrokit.registry.catalogue import (
    Composer,
    Spec,
    default_catalogue,
    describe,
    name_and_settings,
)
from surrokit.registry.components import DIFFERENCES, Kind
from surrokit.result.run import Run
from surrokit.run.observers import list_observers
from surrokit.sessions import let_extend, new_file, observed
from surrokit.targets.differences import Differences, suits_differences
from surrokit.targets.scaling import scaled

RETRIES = 2
"""How often a position that failed is evaluated again, where only ``on_error="retry"`` is given."""


def make(kind: Kind, name: str, **settings: Any) -> Any:
    """Build one part from the catalogue.

    Parameters
    ----------
    kind, name
        Kind and name of the part; ``surrokit plugins`` lists them.
    **settings
        Settings of the part. A part inside the part may be a name, a pair of name and settings, or
        an object.

    Raises
    ------
    UnknownComponentError
        If there is no such part.
    ConfigurationError
        If a setting is unknown, missing or out of range.
    """
    return Composer(default_catalogue()).make(kind, (name, settings))


def sample(
    target: Potential | Spec,
    *,
    sampler: Sampler | Spec | None = None,
    surrogate: Surrogate | Potential | Spec | None = None,
    schedule: Schedule | Spec | None = None,
    explorer: Explorer | Spec | None = None,
    integrator: object | None = None,
    metric: object | None = None,
    correction: Correction | Spec | None = None,
    policy: Policy | Spec | None = None,
    chains: int = 4,
    warmup: int | None = None,
    draws: int | None = None,
    step_size: float | None = None,
    n_steps: int | None = None,
    initial: Mapping[str, Any] | npt.ArrayLike | None = None,
    evaluations: Evaluations | tuple[npt.ArrayLike, ...] | None = None,
    seed: int | np.random.Generator | None = None,
    progress: bool = True,
    observers: Iterable[object] = (),
    on_error: OnError = "reject",
    retries: int | None = None,
    safety: Safety | None = None,
    max_calls: int | None = None,
    max_seconds: float | None = None,
    target_ess: float | None = None,
    target_rhat: float | None = None,
    target_mcse: float | None = None,
    path: str | os.PathLike[str] | None = None,
    version: str | None = None,
    warm_start: WarmStart | None = None,
    keep: Keep = "memory",
    executor: ExecutorSpec | None = None,
    workers: int | None = None,
    timeout: float | None = None,
    prefetch: int | None = None,
) -> Run:
    """Draw from a target exactly, on a surrogate where one is named or saves calls.

    Where neither a sampler nor a surrogate is named, the policy picks every part that is not given.
    It goes by what the target offers and by what the target's calls cost; ``run.choice`` holds the
    picks and the reason. Every part is a registered name, a pair of name and settings, or an
    object.

    Parameters
    ----------
    target
        Result of :func:`surrokit.potential` or :func:`surrokit.forward_potential`, or a registered
        name.
    sampler
        Makes proposals; where a surrogate is named, by default ``hmc``.
    surrogate
        Potential for proposals once it has learnt. ``"none"`` means the exact potential throughout,
        and so does None where a sampler is named. A ready potential, in the sampling coordinates,
        serves unchanged from the first iteration.
    schedule
        When to learn; by default ``once`` with a surrogate that learns, else ``never``.
    explorer
        Explores before there is a surrogate. By default this is the exact sampler's own burn-in,
        for a quarter of the warm-up where it pays for gradients, else for half.
    integrator, metric
        Parts of the sampler.
    correction
        Decides on proposals; by default ``metropolis``.
    policy
        Picks the parts where neither a sampler nor a surrogate is named; by default
        ``automatic``.
    chains
        Number of chains.
    warmup
        Iterations before the first kept draw, exploration included. None means 1000. Where the
        exploration tunes the sampler, as ``rounds`` does, None means the length of the exploration
        and 4 to 25 iterations more; the exploration then spends about half of the budget.
    draws
        Draws kept of each chain. None means 1000; with a goal for them, such as ``target_ess``, it
        means as many as the goal takes.
    step_size, n_steps
        Used as given; None has them tuned in warm-up. ``n_steps`` is the longest path: each
        iteration draws its number of steps from {1, ..., n_steps}, unless the sampler's settings
        say otherwise.
    initial : array_like of shape (dim,) or (chains, dim), or dict by name, optional
        Starting positions, in the user's coordinates.
    evaluations
        Exact evaluations already paid for: an :class:`Evaluations`, or a tuple of positions,
        potentials U and perhaps gradients, in the user's coordinates.
    seed
        Whole number or generator.
    progress
        Whether to show a progress bar, or a line a minute where there is no terminal and no
        notebook; and what the run will cost, if its calls take more than a minute.
    observers
        Objects with methods named as the observation hooks.
    on_error
        What to do where the target fails: ``"reject"`` rejects the position and counts it,
        ``"raise"`` stops at the first exception, and ``"retry"`` evaluates the position again, and
        rejects it if it fails each time. Exceptions and NaN are failures; U = inf, a density of
        zero, is none.
    retries
        How often a position is evaluated again at most, with ``on_error="retry"``; None means 2.
        Each attempt counts as a call.
    safety
        What to do when proposals on the surrogate are hardly ever accepted. None means the default
        :class:`Safety`, which repairs the surrogate in warm-up and warns later.
    max_calls, max_seconds
        Limits of the whole run, exploration and warm-up included; see
        :class:`~surrokit.cost.budget.Budget`.
    target_ess, target_rhat, target_mcse
        Effective sample size (the least of its three kinds), R-hat, or Monte Carlo error of mean,
        standard deviation and 5, 50 and 95 % quantile (in posterior standard deviations) at which
        the run stops, once every parameter reaches it. The first of the five limits to be reached
        ends the run.
    path
        A new file, the run's ledger. Every exact evaluation is written to it as soon as it is paid
        for; :func:`surrokit.resume` goes on from it, whatever ended the run.
    version
        Of the target, kept in the ledger; change it when the target changes.
    warm_start
        Ledger of an earlier run of the same target, or several. The surrogate learns from what is
        in them, and no position in them is paid for again. With explorer ``rounds`` nothing else is
        paid before the first draw, if it holds draws by which the surrogate is good.
    keep
        Where draws are: in ``"memory"``, or in a ``"file"`` beside that of ``path``, for more of
        them than fit. The arrays of the result are then read from it, slice by slice; the file has
        no name, and is gone with them.
    executor
        Where exact calls are made: ``"processes"`` or ``"threads"``, which last as long as the run,
        or any :class:`concurrent.futures.Executor`. Each batch of positions is spread over its
        workers, with the same draws to the bit. None means in this process.
    workers
        Number of processes or threads; None means one for each core. Alone it means processes.
    timeout
        Seconds after which a call in one of ``"processes"`` is given up, and counts as a failure.
    prefetch
        Most positions that idle workers evaluate before it is known whether they are wanted, where
        chains move by sub-chains on a frozen surrogate. None means as many as ``workers``, unless
        ``max_calls`` is given or the executor is another's; 0 means none. Draws stay the same;
        ``run.vain_calls`` tells what was evaluated for nothing.

    Returns
    -------
    Run
        Draws, statistics and costs; a run that was stopped or interrupted holds the draws so far.

    Raises
    ------
    UnknownComponentError
        If a name is not registered.
    CapabilityError
        If a part needs what the target or the surrogate does not offer.
    ConfigurationError
        If settings cannot work.
    LedgerError
        If the file at ``path`` exists or cannot be written, or a ledger of ``warm_start`` cannot be
        read or is another target's.
    TargetError
        If the target cannot be evaluated where chains start, or raises under ``on_error="raise"``.
    WorkerError
        If workers die time and again.
    """
    from surrokit.run.loop import run  # late: importing the package stays fast

    _check_sizes(chains, warmup, draws)
    terms = Terms.check(executor, workers, timeout, prefetch)
    check_flag("progress", progress)
    observers = list_observers(observers)
    budget = Budget(
        max_calls=max_calls,
        max_seconds=max_seconds,
        target_ess=target_ess,
        target_rhat=target_rhat,
        target_mcse=target_mcse,
    )
    composer = Composer(default_catalogue())
    exact = check_target(composer.make("potential", target))
    if not knows_coordinates(surrogate, metric, step_size):
        exact = scaled(exact)
    is_open = sampler is None and surrogate is None
    if (is_open or _explores_by_differences(explorer)) and suits_differences(exact, max_calls):
        exact = Differences(exact)
    settings = {
        "integrator": integrator,
        "metric": metric,
        "step_size": step_size,
        "n_steps": n_steps,
    }
    rng = read_seed(seed)
    asked = Recipe(
        exact=exact,
        name=describe(target),
        target=target if name_and_settings(target) is not None else None,
        seed=seed_of(rng),
        sampler=sampler,
        surrogate=surrogate,
        schedule=schedule,
        explorer=explorer,
        correction=correction,
        policy=policy,
        settings={name: value for name, value in settings.items() if value is not None},
        chains=int(chains),
        warmup=None if warmup is None else int(warmup),
        draws=None if draws is None else int(draws),
        initial=None if initial is None else given_positions(initial, exact, chains),
        evaluations=None if evaluations is None else read_evaluations(evaluations, exact),
        on_error=on_error,
        retries=_count_retries(on_error, retries),
        keep=_check_keep(keep, path),
        safety=check_safety(safety),
        budget=budget,
    )
    if warm_start is not None:
        memo, evaluated, past = read_known(warm_start, exact, version)
        asked = add_known(attrs.evolve(asked, exact=with_memo(exact, memo)), evaluated, past)
    asked = add_known(asked, evaluations_of_model(asked.exact))
    with terms.spread(asked.exact) as (exact, ahead):
        asked = attrs.evolve(asked, exact=exact, ahead=ahead, workers=terms.at_once)
        file = None if path is None else new_file(path, asked, rng, version)
        with observed(observers, progress=progress) as listeners:
            outcome = run(asked, composer, rng, listeners, file)
    if file is None:
        return outcome
    return let_extend(outcome, file, target, asked, version, terms)


def _explores_by_differences(explorer: object) -> bool:
    """Return whether an explorer is named to which all is left, and that prefers gradients."""
    if explorer is None:
        return False
    named, wanted = (
        name_and_settings(explorer),
        default_catalogue().serving("explorer", DIFFERENCES),
    )
    return wanted is not None and named == (wanted.name, {})


def _check_keep(keep: Keep, path: object) -> Keep:
    """Return where draws are kept."""
    if keep not in ("memory", "file"):
        raise ConfigurationError(f"keep must be 'memory' or 'file', got {keep!r}")
    if keep == "file" and path is None:
        raise ConfigurationError(
            "keep='file' keeps draws beside the file of the run, but no path is given; pass "
            "path='run.surrokit', say"
        )
    return keep


def _count_retries(on_error: str, retries: int | None) -> int:
    """Return how often a position that failed is evaluated again."""
    if on_error not in ("reject", "raise", "retry"):
        raise ConfigurationError(f"on_error must be 'reject', 'raise' or 'retry', got {on_error!r}")
    if on_error != "retry":
        if retries is not None:
            raise ConfigurationError(
                f"retries is given, but on_error is {on_error!r}, so that nothing is tried again; "
                "pass on_error='retry', or leave retries out"
            )
        return 0
    if retries is None:
        return RETRIES
    if not is_whole(retries, 1):
        raise ConfigurationError(f"retries must be a whole number of at least 1, got {retries!r}")
    return int(retries)


def _check_sizes(chains: int, warmup: int | None, draws: int | None) -> None:
    for name, value, least in (("chains", chains, 1), ("warmup", warmup, 0), ("draws", draws, 1)):
        left_open = value is None and name != "chains"
        if not left_open and not is_whole(value, least):
            raise ConfigurationError(
                f"{name} must be a whole number of at least {least}, got {value!r}"
            )
