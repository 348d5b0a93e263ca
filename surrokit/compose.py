"""From names and settings to objects: ``sample`` and ``make``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, get_args

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import check_flag, is_whole, read_seed
from surrokit.compute import Compute, check_compute
from surrokit.cost.budget import Budget, join_limits
from surrokit.errors import ConfigurationError
from surrokit.interfaces import Correction, Evaluations, Explorer, Sampler, Schedule, Surrogate
from surrokit.ledger.known import (
    WarmStart,
    add_known,
    evaluations_of_model,
    read_known,
    split_known,
    timed_by_model,
    with_memo,
)
from surrokit.mode.starts import given_positions, read_evaluations
from surrokit.plan.recipe import (
    ModeWeights,
    Policy,
    Recipe,
    knows_coordinates,
    seed_of,
    split_policy,
    split_safety,
)
from surrokit.plan.repair import Safety
from surrokit.potentials import Potential, check_target
from surrokit.registry.catalogue import (
    Composer,
    Spec,
    default_catalogue,
    describe,
    name_and_settings,
)
from surrokit.registry.components import DIFFERENCES, Kind
from surrokit.result.run import Run
from surrokit.run.book import list_observers
from surrokit.sessions import let_extend, new_file, observed
from surrokit.targets.differences import Differences, suits_differences
from surrokit.targets.scaling import scaled


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
    sampler: Sampler | Policy | Spec | None = None,
    surrogate: Surrogate | Potential | Spec | None = None,
    schedule: Schedule | Safety | Spec | tuple[Schedule | Spec, Safety] | None = None,
    explorer: Explorer | Spec | None = None,
    correction: Correction | Spec | None = None,
    chains: int = 4,
    warmup: int | None = None,
    draws: int | None = None,
    initial: Mapping[str, Any] | npt.ArrayLike | None = None,
    warm_start: WarmStart | Evaluations | tuple[npt.ArrayLike, ...] | None = None,
    modes: ModeWeights = "weighted",
    seed: int | np.random.Generator | None = None,
    max_calls: float | None = None,
    max_seconds: float | None = None,
    target_ess: float | None = None,
    budget: Budget | None = None,
    compute: Compute | None = None,
    path: str | os.PathLike[str] | None = None,
    progress: bool = True,
    observers: Iterable[object] = (),
) -> Run:
    """Draw from a target exactly, on a surrogate where one is named or saves calls.

    Where neither a sampler nor a surrogate is named, a policy picks every part that is not given.
    It goes by what the target offers and by what the target's calls cost; ``run.choice`` holds the
    picks and the reason. Every part is a registered name, a pair of name and settings, or an
    object.

    Parameters
    ----------
    target
        Result of :func:`surrokit.potential` or :func:`surrokit.forward_potential`, or a registered
        name.
    sampler
        Makes proposals; where a surrogate is named, by default ``hmc``. Its step size, path length,
        integrator and metric are settings: ``("hmc", {"step_size": 0.1, "n_steps": 20})``; what is
        left open is tuned in warm-up. The name of a policy, by default ``automatic``, leaves the
        choice of parts to it.
    surrogate
        Potential for proposals once it has learnt. ``"none"`` means the exact potential throughout,
        and so does None where a sampler is named. A ready potential, in the sampling coordinates,
        serves unchanged from the first iteration.
    schedule
        When to learn; by default ``once`` with a surrogate that learns, else ``never``. A
        :class:`Safety`, alone or as the second of a pair, says what to do when proposals on the
        surrogate are hardly ever accepted.
    explorer
        Explores before there is a surrogate. By default this is the exact sampler's own burn-in,
        for a quarter of the warm-up where it needs gradients, else for half.
    correction
        Decides on proposals; by default ``metropolis``.
    chains
        Number of chains.
    warmup
        Iterations before the first kept draw, exploration included. None means 1000. Where the
        exploration tunes the sampler, as ``rounds`` does, None means the length of the exploration
        and 4 to 25 iterations more; the exploration then spends about half of the budget.
    draws
        Draws kept of each chain. None means 1000, or with a goal as many as it takes.
    initial : array_like of shape (dim,) or (chains, dim), or dict by name, optional
        Starting positions, in the user's coordinates.
    warm_start
        Files of earlier runs of the same target: the surrogate learns from what is in them, and no
        position in them is evaluated again. With explorer ``rounds`` nothing else is evaluated
        before the first draw, if they hold draws by which the surrogate is good. Or exact
        evaluations to learn from: an :class:`Evaluations`, or a tuple of positions, potentials U
        and perhaps gradients, in the user's coordinates.
    modes
        What becomes of draws where chains stay at separate modes: ``"weighted"`` by the modes'
        evidences, so that ``log_weights`` and ``summary`` count each mode by its mass, for which
        some values may be evaluated; or ``"as found"``, by where chains began.
    seed
        Whole number or generator.
    max_calls, max_seconds, target_ess
        Limits of the whole run, exploration and warm-up included, and the effective sample size of
        every parameter at which it stops. The first to be reached ends the run.
    budget
        These and more limits and goals together: R-hat, and Monte Carlo errors.
    compute
        Where exact calls are made, by how many workers, and what to do where one fails.
    path
        A file, new or with other runs in it. Every exact evaluation is written to it as soon as it
        is made; :func:`surrokit.resume` goes on from it, whatever ended the run.
    progress
        Whether to show a progress bar, or a line a minute where there is no terminal and no
        notebook; and what the run will cost, if its calls take more than a minute.
    observers
        Objects with methods named as the observation hooks.

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
        If the file at ``path`` has this very run, is no ledger or cannot be written, or one of
        ``warm_start`` cannot be read or is another target's.
    TargetError
        If the target cannot be evaluated where chains start, or raises under ``on_error="raise"``.
    WorkerError
        If workers die time and again.
    """
    from surrokit.run.loop import run  # late: importing the package stays fast

    for name, value, least in (("chains", chains, 1), ("warmup", warmup, 0), ("draws", draws, 1)):
        left_open = value is None and name != "chains"
        if not left_open and not is_whole(value, least):
            raise ConfigurationError(
                f"{name} must be a whole number of at least {least}, got {value!r}"
            )
    if modes not in get_args(ModeWeights):
        raise ConfigurationError(
            f"modes must be 'weighted' or 'as found', got {modes!r}; leave it out"
        )
    compute = check_compute(compute)
    check_flag("progress", progress)
    observers = list_observers(observers)
    limits = {"max_calls": max_calls, "max_seconds": max_seconds, "target_ess": target_ess}
    composer, rng = Composer(default_catalogue()), read_seed(seed)
    parts = split_policy(sampler, composer.catalogue)
    exact = composer.make("potential", target)
    exact = _exact(exact, parts.get("sampler"), surrogate, explorer, max_calls)
    files, evaluations = split_known(warm_start)
    asked = Recipe(
        exact=exact,
        name=describe(target),
        target=target if name_and_settings(target) is not None else None,
        seed=seed_of(rng),
        **parts,
        surrogate=surrogate,
        **split_safety(schedule),
        explorer=explorer,
        correction=correction,
        chains=int(chains),
        warmup=None if warmup is None else int(warmup),
        draws=None if draws is None else int(draws),
        initial=None if initial is None else given_positions(initial, exact, chains),
        evaluations=None if evaluations is None else read_evaluations(evaluations, exact),
        modes=modes,
        on_error=compute.on_error,
        retries=compute.most_retries,
        budget=join_limits(budget, limits),
    )
    if files:
        memo, evaluated, past = read_known(files, exact)
        asked = add_known(attrs.evolve(asked, exact=with_memo(exact, memo)), evaluated, past)
    asked = add_known(asked, evaluations_of_model(asked.exact))
    if asked.budget.calls == 0 and asked.evaluations is None:
        raise ConfigurationError(
            "max_calls is 0, and nothing is known of the target that could answer; allow for calls"
        )
    if asked.evaluations is not None and asked.initial is None:
        asked = attrs.evolve(asked, timed=timed_by_model(asked.exact))
    with compute.spread(asked.exact) as exact:
        asked = attrs.evolve(asked, exact=exact, workers=compute.at_once)
        file = None if path is None else new_file(path, asked, rng)
        with observed(observers, progress=progress) as listeners:
            outcome = run(asked, composer, rng, listeners, file)
    return outcome if file is None else let_extend(outcome, file, target, asked, compute)


def regroup(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of :func:`sample` from options by name, as a command line has them.

    Options are arguments, and settings of the sampler, of :class:`Budget` and of :class:`Compute`.
    """
    given = {name: value for name, value in options.items() if value is not None}
    policy = given.pop("policy", None)
    groups: tuple[tuple[str, ...], ...] = (
        ("step_size", "n_steps", "metric", "integrator"),
        ("target_rhat", "target_mcse"),
        tuple(each.name for each in attrs.fields(Compute)),
    )
    moves, limits, calls = (
        {name: given.pop(name) for name in names if name in given} for names in groups
    )
    if moves:
        sampler = given.get("sampler") or default_catalogue().pick("sampler")
        name, settings = name_and_settings(sampler) or (sampler, {})
        given["sampler"] = (name, {**settings, **moves})
    elif policy is not None:
        if "sampler" in given:
            raise ConfigurationError(
                "a policy picks the sampler, but a sampler is named; leave one of them out"
            )
        given["sampler"] = policy
    if limits:
        given["budget"] = Budget(**limits)
    if calls:
        given["compute"] = Compute(**calls)
    return given


def _exact(
    target: Potential, sampler: object, surrogate: object, explorer: object, max_calls: float | None
) -> Potential:
    """Return the exact potential in coordinates of like scale, with differences where they help."""
    exact = check_target(target)
    if not knows_coordinates(surrogate, sampler):
        exact = scaled(exact)
    by_differences = sampler is None and surrogate is None
    if explorer is not None:  # one to which all is left, and that prefers gradients
        wanted = default_catalogue().serving("explorer", DIFFERENCES)
        named = name_and_settings(explorer)
        by_differences |= wanted is not None and named == (wanted.name, {})
    return Differences(exact) if by_differences and suits_differences(exact, max_calls) else exact
