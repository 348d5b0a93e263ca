"""Runs that are written to a file, and taken up again from it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import check_flag
from surrokit.contracts.learner import Surrogate
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import Correction, Sampler
from surrokit.errors import ConfigurationError
from surrokit.ledger.events import last_event
from surrokit.ledger.facts import (
    PARTS,
    read_generator,
    read_sequels,
    read_settings,
    write_generator,
    write_sequels,
    write_settings,
)
from surrokit.ledger.file import RunFile
from surrokit.ledger.fingerprint import check_fingerprint, check_row, write_fingerprint
from surrokit.ledger.known import Known
from surrokit.ledger.lock import Lock
from surrokit.ledger.store import Store
from surrokit.ledger.tape import Tape
from surrokit.plan.parts import check_target
from surrokit.plan.recipe import Recipe
from surrokit.plan.sequel import Sequel
from surrokit.registry.catalogue import default_catalogue
from surrokit.registry.composer import Composer, Spec, name_and_settings
from surrokit.registry.discovery import default_plugins
from surrokit.result.run import Run
from surrokit.run.observers import Observers, list_observers
from surrokit.settings import is_whole

AS_BEFORE: Final = "as before"
"""Stands for a limit that is not changed."""

Limit: TypeAlias = float | Literal["as before"] | None


def resume(
    path: str | os.PathLike[str],
    target: Potential | Spec,
    *,
    draws: int | None = None,
    max_calls: Limit = AS_BEFORE,
    max_seconds: Limit = AS_BEFORE,
    target_ess: Limit = AS_BEFORE,
    target_rhat: Limit = AS_BEFORE,
    target_mcse: Limit = AS_BEFORE,
    sampler: Sampler | None = None,
    surrogate: Surrogate | Potential | None = None,
    schedule: object | None = None,
    explorer: object | None = None,
    integrator: object | None = None,
    metric: object | None = None,
    correction: Correction | None = None,
    policy: object | None = None,
    version: str | None = None,
    check: bool = True,
    progress: bool = True,
    observers: Iterable[object] = (),
) -> Run:
    """Go on with a run from its file, as if nothing had ended it.

    The run is done again from its beginning, with the results of exact calls and the readings of
    the clock from the file. From where these end it pays and appends. Its draws are those of a run
    that was never interrupted, to the bit.

    Parameters
    ----------
    path
        What :func:`surrokit.sample` was given as ``path``.
    target
        The same target, which a file cannot hold.
    draws
        Draws of each chain in all, if more than before are wanted. Warm-up and tuning stay as they
        were, and so do the first draws.
    max_calls, max_seconds, target_ess, target_rhat, target_mcse
        Limits of the whole run from where it goes on; None removes one, and ``"as before"`` leaves
        it. What was decided by a limit before stays decided.
    sampler, surrogate, schedule, explorer, integrator, metric, correction, policy
        The parts that were given as objects, which a file cannot hold either. Parts that were given
        by name are in it.
    version
        As given to :func:`surrokit.sample`; None does not compare versions.
    check
        Whether one position of the file is evaluated again, to see that the target is the same.
        That call is not counted.
    progress, observers
        As for :func:`surrokit.sample`. Observers are told of all iterations, also of those that
        are done again.

    Returns
    -------
    Run
        All draws, and the costs of all sessions together.

    Raises
    ------
    LedgerError
        If the file cannot be read or written, is in use, or is another target's.
    ReplayError
        If the run does not repeat what the file holds.
    ConfigurationError
        If a part is missing, or a setting is out of range.
    """
    given = {
        "sampler": sampler,
        "surrogate": surrogate,
        "schedule": schedule,
        "explorer": explorer,
        "integrator": integrator,
        "metric": metric,
        "correction": correction,
        "policy": policy,
    }
    limits = {
        "max_calls": max_calls,
        "max_seconds": max_seconds,
        "target_ess": target_ess,
        "target_rhat": target_rhat,
        "target_mcse": target_mcse,
    }
    check_flag("progress", progress)
    check_flag("check", check)
    listening = list_observers(observers)
    exact = check_target(Composer(default_catalogue()).make("potential", target))
    path = Path(path)
    lock = Lock(path)
    try:
        store = Store.open(path, write=True)
    except BaseException:
        lock.release()
        raise
    try:
        asked = read_settings(store, exact, given)
        check_fingerprint(store, asked.exact, version)
        sequels = read_sequels(store, asked)
        sequels.append(_next(sequels[-1], last_event(store), draws, limits))
        if check:
            check_row(store, asked.exact)
        write_sequels(store, sequels)
        rng, file = read_generator(store), RunFile(store, lock, Tape(store))
    except BaseException:
        store.close()
        lock.release()
        raise
    outcome = start(asked, rng, listening, file=file, sequels=sequels, progress=progress)
    return _extendable(outcome, path, target, {**given, "version": version})


def record(
    path: str | os.PathLike[str],
    asked: Recipe,
    target: Potential | Spec,
    rng: np.random.Generator,
    observers: Iterable[object],
    *,
    version: str | None = None,
    known: Known | None = None,
    progress: bool,
) -> Run:
    """Run a recipe, and write it to a new file.

    Parameters
    ----------
    path
        The file.
    asked
        The recipe.
    target
        The target as it was given.
    rng
        The run's generator.
    observers
        The observers.
    version
        The user's version of the target.
    known
        Evaluations that are not paid for again.
    progress
        Whether to show a progress bar.

    Raises
    ------
    LedgerError
        If the file exists, or cannot be written.
    ConfigurationError
        If the generator cannot be written down.
    """
    path = Path(path)
    lock = Lock(path)
    try:
        store = Store.create(path)
    except BaseException:
        lock.release()
        raise
    try:
        with store.transaction():
            write_fingerprint(store, asked.exact, version)
            write_settings(store, asked)
            write_generator(store, rng)
        file = RunFile(store, lock, Tape(store, known))
    except BaseException:
        store.close()
        path.unlink(missing_ok=True)
        lock.release()
        raise
    outcome = start(asked, rng, observers, file=file, progress=progress)
    given = {name: getattr(asked, name, None) for name in PARTS} | dict(asked.settings)
    return _extendable(outcome, path, target, {**given, "version": version})


def start(
    asked: Recipe,
    rng: np.random.Generator,
    observers: Iterable[object],
    *,
    file: RunFile | None = None,
    sequels: Sequence[Sequel] = (),
    progress: bool,
) -> Run:
    """Run a recipe, with a progress bar.

    Parameters
    ----------
    asked
        The recipe.
    rng
        The run's generator.
    observers
        The observers.
    file
        Keeps what happens.
    sequels
        Sessions of a run that has a file already, with the one that begins now.
    progress
        Whether to show a progress bar.
    """
    # imported late, so that importing the package stays fast
    from surrokit.output.progress import progress_bar
    from surrokit.run.loop import run

    with progress_bar(enabled=progress) as bar:
        listeners = Observers([*observers, *bar])
        listeners.add_hooks(default_plugins().manager.hook)
        return run(asked, Composer(default_catalogue()), rng, listeners, file, sequels)


def _next(before: Sequel, after: int, draws: int | None, limits: Mapping[str, Limit]) -> Sequel:
    """Return sizes and limits from here on, where those of the last session are the default."""
    if draws is not None and not is_whole(draws, 1):
        raise ConfigurationError(f"draws must be a whole number of at least 1, got {draws!r}")
    changed: dict[str, Any] = {name: limit for name, limit in limits.items() if limit != AS_BEFORE}
    return Sequel(
        draws=before.draws if draws is None else int(draws),
        budget=attrs.evolve(before.budget, **changed),
        after=after,
    )


def _extendable(
    outcome: Run, path: Path, target: Potential | Spec, given: Mapping[str, Any]
) -> Run:
    objects = {
        name: part
        for name, part in given.items()
        if name == "version" or (part is not None and name_and_settings(part) is None)
    }
    return attrs.evolve(outcome, more=partial(resume, path, target, **objects))
