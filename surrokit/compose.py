"""From names and settings to objects: ``sample`` and ``make``."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from surrokit.bounds import transform_of
from surrokit.capabilities import FORWARD, GRADIENT, JACOBIAN, require, with_forward
from surrokit.catalogue import default_catalogue
from surrokit.components import Kind
from surrokit.composer import Composer, Spec, named
from surrokit.discovery import default_plugins
from surrokit.errors import CapabilityError, ConfigurationError, SamplingWarning, ShapeError
from surrokit.exact_calls import OnError
from surrokit.observers import Observers
from surrokit.protocols import (
    Correction,
    Explorer,
    Learner,
    Potential,
    Sampler,
    Schedule,
    Surrogate,
)
from surrokit.recording import RecordingPotential
from surrokit.records import Evaluations, LearningProblem
from surrokit.result import Run
from surrokit.run import Plan, run
from surrokit.settings import is_whole
from surrokit.starting import given_positions
from surrokit.types import FloatArray

DEFAULT_SAMPLER = "hmc"
DEFAULT_SCHEDULE = "once"
DEFAULT_EXPLORER = "sampler"
DEFAULT_CORRECTION = "metropolis"
GRADIENT_FREE_SAMPLER = "random-walk"
"""Explores targets that do not offer what the run's sampler needs."""


def make(kind: Kind, name: str, **settings: Any) -> Any:
    """Build one part from the catalogue.

    Parameters
    ----------
    kind, name
        Which; ``surrokit plugins`` lists them.
    **settings
        Its settings. Parts inside the part may be names, pairs of name and settings, or objects.

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
    surrogate: Surrogate | Spec | None = None,
    schedule: Schedule | Spec | None = None,
    explorer: Explorer | Spec | None = None,
    integrator: object | None = None,
    metric: object | None = None,
    correction: Correction | Spec | None = None,
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    step_size: float | None = None,
    n_steps: int | None = None,
    initial: Mapping[str, Any] | npt.ArrayLike | None = None,
    evaluations: Evaluations | tuple[npt.ArrayLike, ...] | None = None,
    seed: int | np.random.Generator | None = None,
    progress: bool = True,
    observers: Iterable[object] = (),
    on_error: OnError = "reject",
) -> Run:
    """Draw from a target, exactly, with a surrogate if one is named.

    Every part is a registered name, a pair of name and settings, or an object.

    Parameters
    ----------
    target
        As made by :func:`surrokit.potential` or :func:`surrokit.forward_potential`; or a
        registered name.
    sampler
        Makes proposals; by default ``hmc``.
    surrogate
        What proposals are made on once it has learnt; None for the exact potential throughout.
    schedule
        When to learn; by default ``once`` with a surrogate, else ``never``.
    explorer
        Looks around before there is a surrogate; by default the exact sampler's own burn-in, for
        half of the warm-up.
    integrator, metric
        Parts of the sampler.
    correction
        Decides on proposals; by default ``metropolis``.
    chains, warmup, draws
        Sizes; ``warmup`` counts the exploration.
    step_size, n_steps
        Taken as they are; None has them tuned in warm-up. ``n_steps`` is the longest path, the
        number of steps being drawn from {1, ..., n_steps} in each iteration, unless the sampler's
        settings say otherwise.
    initial : array_like of shape (dim,) or (chains, dim), or dict by name, optional
        Where to start, in the user's coordinates.
    evaluations
        Exact evaluations already paid for: an :class:`Evaluations`, or a tuple of positions,
        potentials U and perhaps gradients, in the user's coordinates.
    seed
        An integer, or a generator.
    progress
        Show a progress bar, if output is a terminal.
    observers
        Objects with methods named as the observation hooks.
    on_error
        What to do where the target raises: ``"reject"`` counts it as a rejection, ``"raise"``
        stops.

    Returns
    -------
    Run
        Draws, statistics and costs; of what was drawn so far if interrupted.

    Raises
    ------
    UnknownComponentError
        If a name is not registered.
    CapabilityError
        If a part needs what the target or the surrogate does not offer.
    ConfigurationError
        If settings cannot work.
    TargetError
        If the target cannot be evaluated where chains start, or raises and was asked to.
    """
    _check_sizes(chains, warmup, draws, on_error)
    composer = Composer(default_catalogue())
    exact: Potential = composer.make("potential", target)
    _check_target(exact)
    rng = _generator(seed)
    own_sampler: Sampler = composer.make(
        "sampler",
        DEFAULT_SAMPLER if sampler is None else sampler,
        integrator=integrator,
        metric=metric,
        step_size=step_size,
        n_steps=n_steps,
    )
    own_correction: Correction = composer.make("correction", correction or DEFAULT_CORRECTION)
    composer = composer.with_own({"sampler": own_sampler, "correction": own_correction})
    learns = surrogate is not None and surrogate != "none"
    learner = _learner(composer, surrogate, exact, rng) if learns else None
    if learner is None:
        _check_nothing_to_learn(explorer=explorer, evaluations=evaluations)
    own_schedule = _schedule(composer, schedule, learner)
    own_explorer = _explorer(composer, explorer, exact, own_sampler) if learner else None
    _check_needs(exact, own_sampler, own_correction, own_explorer, learner)
    _warn_if_untuned(own_sampler, warmup)
    plan = Plan(
        target=RecordingPotential(
            exact,
            keep=learner is not None or FORWARD in exact.capabilities,
            on_error=on_error,
        ),
        sampler=own_sampler,
        correction=own_correction,
        schedule=own_schedule,
        explorer=own_explorer,
        learner=learner,
        chains=chains,
        warmup=warmup,
        draws=draws,
        initial=None if initial is None else given_positions(initial, exact, chains),
        evaluations=_evaluations(evaluations, exact),
        parts=_described(
            target=target,
            sampler=sampler or DEFAULT_SAMPLER,
            surrogate=surrogate if learns else "none",
            schedule=schedule or (DEFAULT_SCHEDULE if learner else "never"),
            explorer=(explorer or DEFAULT_EXPLORER) if learner else "none",
            correction=correction or DEFAULT_CORRECTION,
        ),
    )
    return _run(plan, rng, progress, observers)


def _run(plan: Plan, rng: np.random.Generator, progress: bool, observers: Iterable[object]) -> Run:
    from surrokit.progress import progress_bar

    with progress_bar(enabled=progress) as bar:
        listeners = Observers([*observers, *bar])
        listeners.add_hooks(default_plugins().manager.hook)
        return run(plan, rng, listeners)


def _check_sizes(chains: int, warmup: int, draws: int, on_error: str) -> None:
    for name, value, least in (("chains", chains, 1), ("warmup", warmup, 0), ("draws", draws, 1)):
        if not is_whole(value, least):
            raise ConfigurationError(
                f"{name} must be a whole number of at least {least}, got {value!r}"
            )
    if on_error not in ("reject", "raise"):
        raise ConfigurationError(f"on_error must be 'reject' or 'raise', got {on_error!r}")


def _generator(seed: object) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"seed must be a whole number of at least 0, a numpy generator or None, got {seed!r}"
        ) from error


def _check_nothing_to_learn(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise ConfigurationError(
                f"{name} is given, but there is no surrogate to learn from it; pass "
                f"surrogate=..., or leave {name} out"
            )


def _warn_if_untuned(sampler: Sampler, warmup: int) -> None:
    if not warmup and sampler.tunes:
        warnings.warn(
            f"there is no warm-up to tune {', '.join(sorted(sampler.tunes))} in; give them, or "
            "pass warmup=...",
            SamplingWarning,
            stacklevel=3,
        )


def _check_target(target: object) -> None:
    missing = [name for name in ("dim", "capabilities", "value") if not hasattr(target, name)]
    if missing:
        raise ConfigurationError(
            f"a target must be a potential, got {type(target).__name__} without "
            f"{', '.join(missing)}; make one with surrokit.potential(value, gradient, dim=...)"
        )


def _learner(
    composer: Composer,
    surrogate: Surrogate | Spec | None,
    exact: Potential,
    rng: np.random.Generator,
) -> Learner:
    made: Surrogate = composer.make("surrogate", surrogate)
    problem = LearningProblem(
        dim=exact.dim,
        capabilities=exact.capabilities,
        energy=with_forward(exact).energy if FORWARD in exact.capabilities else None,
    )
    return made.learner(problem, rng)


def _schedule(
    composer: Composer, schedule: Schedule | Spec | None, learner: Learner | None
) -> Schedule:
    default = "never" if learner is None else DEFAULT_SCHEDULE
    made: Schedule = composer.make("schedule", schedule or default)
    if made.learns and learner is None:
        raise ConfigurationError(
            f"schedule {schedule!r} deploys a surrogate, but none is named; pass surrogate=..., "
            "or leave schedule out"
        )
    if learner is not None and not made.learns:
        raise ConfigurationError(
            f"a surrogate is named, but schedule {schedule!r} never deploys it; pass "
            f"schedule={DEFAULT_SCHEDULE!r}, or leave surrogate out"
        )
    return made


def _explorer(
    composer: Composer, explorer: Explorer | Spec | None, exact: Potential, sampler: Sampler
) -> Explorer:
    if explorer is not None or sampler.needs <= exact.capabilities:
        made: Explorer = composer.make("explorer", explorer or DEFAULT_EXPLORER)
        return made
    gradient_free = (DEFAULT_EXPLORER, {"sampler": GRADIENT_FREE_SAMPLER})
    found: Explorer = composer.make("explorer", gradient_free)
    return found


def _check_needs(
    exact: Potential,
    sampler: Sampler,
    correction: Correction,
    explorer: Explorer | None,
    learner: Learner | None,
) -> None:
    advice = (
        f"give the target what is missing, or use sampler={GRADIENT_FREE_SAMPLER!r}, or a "
        "surrogate that learns from values"
    )
    require("the correction", correction.needs, exact.capabilities, "the target", advice)
    if learner is None:
        require("the sampler", sampler.needs, exact.capabilities, "the target", advice)
        return
    if explorer is not None:
        require("the explorer", explorer.needs, exact.capabilities, "the target", advice)
    require(
        "the sampler", sampler.needs, learner.provides, "the surrogate", "use another surrogate"
    )
    _check_learnable(learner, exact)


def _check_learnable(learner: Learner, exact: Potential) -> None:
    offered = {"value"}
    offered |= {"gradient"} if GRADIENT in exact.capabilities else set()
    offered |= {"outputs"} if FORWARD in exact.capabilities else set()
    offered |= {"jacobian"} if JACOBIAN in exact.capabilities else set()
    missing = learner.needs - offered
    if missing:
        raise CapabilityError(
            f"the surrogate learns from {', '.join(sorted(learner.needs))}, but evaluations of "
            f"the target give only {', '.join(sorted(offered))}; use another surrogate, or give "
            "the target what is missing"
        )


def _evaluations(
    evaluations: Evaluations | tuple[npt.ArrayLike, ...] | None, exact: Potential
) -> Evaluations | None:
    if evaluations is None:
        return None
    if not isinstance(evaluations, Evaluations):
        if not 2 <= len(evaluations) <= 3:
            raise ShapeError(
                "evaluations must be (positions, values) or (positions, values, gradients), got "
                f"{len(evaluations)} items"
            )
        evaluations = Evaluations(
            positions=evaluations[0],
            values=evaluations[1],
            gradients=evaluations[2] if len(evaluations) == 3 else None,
        )
    if evaluations.positions.shape[1] != exact.dim:
        raise ShapeError(
            f"evaluations have positions of {evaluations.positions.shape[1]} numbers, but the "
            f"target has dim {exact.dim}"
        )
    return _in_sampling_coordinates(evaluations, exact)


def _in_sampling_coordinates(evaluations: Evaluations, exact: Potential) -> Evaluations:
    transform = transform_of(exact)
    z = transform.to_unbounded(evaluations.positions)
    inside = np.isfinite(z).all(axis=1)
    kept = evaluations.take(inside)
    z = z[inside]
    d = transform.derivatives(z)

    def pulled(array: FloatArray | None, by: FloatArray, plus: FloatArray | float):  # type: ignore[no-untyped-def]
        return None if array is None else array * by - plus

    return Evaluations(
        positions=z,
        values=kept.values - transform.log_jacobian(z),
        gradients=pulled(kept.gradients, d.first, d.log_first),
        outputs=kept.outputs,
        jacobians=pulled(kept.jacobians, d.first[:, None, :], 0.0),
    )


def _described(**specs: object) -> dict[str, str]:
    described = {}
    for kind, spec in specs.items():
        found = named(spec)
        if found is None:
            described[kind] = type(spec).__name__
        else:
            settings = ", ".join(f"{name}={value!r}" for name, value in found[1].items())
            described[kind] = found[0] + (f"({settings})" if settings else "")
    return described
