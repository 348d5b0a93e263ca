"""From names and settings to objects: ``sample`` and ``make``."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.capabilities import FORWARD
from surrokit.catalogue import default_catalogue
from surrokit.components import Kind
from surrokit.composer import Composer, Spec
from surrokit.discovery import default_plugins
from surrokit.errors import ConfigurationError, SamplingWarning
from surrokit.exact_calls import OnError
from surrokit.observers import Observers
from surrokit.paid_evaluations import paid_evaluations
from surrokit.parts import Parts, checked_target, chosen_parts, described, nothing_learns
from surrokit.protocols import Correction, Explorer, Potential, Sampler, Schedule, Surrogate
from surrokit.recording import RecordingPotential
from surrokit.records import Evaluations
from surrokit.result import Run
from surrokit.run import Plan, run
from surrokit.safety import Safety, checked_safety
from surrokit.settings import is_whole
from surrokit.starting import given_positions

DEFAULT_SAMPLER = "hmc"
DEFAULT_CORRECTION = "metropolis"


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
    surrogate: Surrogate | Potential | Spec | None = None,
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
    safety: Safety | None = None,
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
        What proposals are made on once it has learnt; None for the exact potential throughout. A
        ready potential, in the sampling coordinates, serves from the first iteration as it is.
    schedule
        When to learn; by default ``once`` with a surrogate that learns, else ``never``.
    explorer
        Looks around before there is a surrogate; by default the exact sampler's own burn-in, for a
        quarter of the warm-up where it pays for gradients, else for half of it.
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
    safety
        What to do when proposals on the surrogate are hardly ever accepted; None for a
        :class:`Safety` as it comes, which repairs the surrogate in warm-up and warns later.

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
    exact = checked_target(composer.make("potential", target))
    rng = _generator(seed)
    parts = chosen_parts(
        composer,
        exact,
        rng,
        sampler=DEFAULT_SAMPLER if sampler is None else sampler,
        sampler_settings={
            "integrator": integrator,
            "metric": metric,
            "step_size": step_size,
            "n_steps": n_steps,
        },
        surrogate=None if surrogate == "none" else surrogate,
        schedule=schedule,
        explorer=explorer,
        correction=DEFAULT_CORRECTION if correction is None else correction,
        chains=chains,
        warmup=warmup,
    )
    learns = parts.learner is not None
    net = _fitting_safety(safety, parts)
    if not learns and evaluations is not None:
        raise ConfigurationError(
            f"evaluations are given, but {nothing_learns(parts.ready)}, or leave evaluations out"
        )
    if not warmup and "step_size" in parts.sampler.tunes:
        warnings.warn(
            "there is no warm-up to tune the step size in; pass step_size=... or warmup=...",
            SamplingWarning,
            stacklevel=2,
        )
    plan = Plan(
        target=RecordingPotential(
            exact, keep=learns or FORWARD in exact.capabilities, on_error=on_error
        ),
        parts=attrs.evolve(parts, described={"target": described(target), **parts.described}),
        chains=chains,
        warmup=warmup,
        draws=draws,
        initial=None if initial is None else given_positions(initial, exact, chains),
        evaluations=None if evaluations is None else paid_evaluations(evaluations, exact),
        safety=net,
    )
    return _run(plan, rng, progress, observers)


def _run(plan: Plan, rng: np.random.Generator, progress: bool, observers: Iterable[object]) -> Run:
    from surrokit.progress import progress_bar

    with progress_bar(enabled=progress) as bar:
        listeners = Observers([*observers, *bar])
        listeners.add_hooks(default_plugins().manager.hook)
        return run(plan, rng, listeners)


def _fitting_safety(safety: Safety | None, parts: Parts) -> Safety:
    net = checked_safety(safety)
    if net.restart and parts.learner is None:
        raise ConfigurationError(
            f"safety asks for restart, but {nothing_learns(parts.ready)}, or leave restart out"
        )
    if not net.mix:
        return net
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
    return net


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
