"""Runs that are written to a file, and taken up again from it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import attrs
import numpy as np

from surrokit.arguments import check_flag, is_whole
from surrokit.compute import Compute, check_compute
from surrokit.errors import ConfigurationError, LedgerError, SamplingWarning
from surrokit.interfaces import Correction, Explorer, Sampler, Schedule, Surrogate
from surrokit.ledger.facts import (
    PROGRESS,
    Account,
    describe_generator,
    describe_settings,
    read_account,
    read_arguments,
    read_extensions,
    read_generator,
    read_progress,
    read_settings,
    read_target,
    write_extensions,
)
from surrokit.ledger.file import RunFile, held
from surrokit.ledger.fingerprint import check_row, describe_target, of_file
from surrokit.ledger.known import add_known, read_known, with_memo
from surrokit.ledger.reader import Ledger
from surrokit.ledger.store import Store, reading
from surrokit.ledger.tape import DepartedError, last_event
from surrokit.limits import metered
from surrokit.plan.recipe import PARTS, Extension, Policy, Recipe, is_data, make_room, split_policy
from surrokit.potentials import Potential, check_target, predictor_of
from surrokit.registry.catalogue import Composer, Spec, default_catalogue
from surrokit.registry.discovery import default_plugins
from surrokit.result.run import Run
from surrokit.result.verdict import judge
from surrokit.run.book import Observers, list_observers
from surrokit.targets.energies import read_errors, write_errors

PREDICTOR = "predictor"
"""The fact that holds how predictions are made of a run's draws."""


_OF_ONE_RUN = ("account", "extensions", PROGRESS)

_AS_ACCOUNTED = (
    *("calls", "n_rows", "failures", "failure_kinds", "recheck", "seconds", "adaptation", "chosen"),
    *("parts", "modes"),
)

AS_BEFORE: Final = "as before"
"""Stands for a limit that is not changed."""

Limit: TypeAlias = float | Literal["as before"] | None


def resume(
    path: str | os.PathLike[str],
    target: Potential | Spec | None = None,
    *,
    draws: int | None = None,
    max_calls: Limit = AS_BEFORE,
    max_seconds: Limit = AS_BEFORE,
    target_ess: Limit = AS_BEFORE,
    target_rhat: Limit = AS_BEFORE,
    target_mcse: Limit = AS_BEFORE,
    sampler: Sampler | Policy | Spec | None = None,
    surrogate: Surrogate | Potential | Spec | None = None,
    schedule: Schedule | Spec | None = None,
    explorer: Explorer | Spec | None = None,
    correction: Correction | Spec | None = None,
    check: bool = True,
    compute: Compute | None = None,
    progress: bool = True,
    observers: Iterable[object] = (),
) -> Run:
    """Go on with a run from its file, as if nothing had ended it.

    The run is done again from its beginning, with the results of exact calls and the readings of
    the clock from the file. From where these end it evaluates and appends. Its draws are those of
    a run that was never interrupted, to the bit. Where it cannot be repeated to the bit, as with
    other versions or on another machine, it begins anew with a warning: it learns from all
    evaluations of the former run, whose file gets another name, and makes none of them again.

    Parameters
    ----------
    path
        What :func:`surrokit.sample` was given as ``path``.
    target
        The same target, which a file cannot hold. None for one that was given by a registered name,
        with settings of plain data: the file has those.
    draws
        Draws of each chain in all, if more or fewer than before are wanted. Warm-up and tuning stay
        as they were, and so do all draws that there are. Where a goal such as ``target_ess`` has
        ended the run, more draws are made without goals, unless they are given again.
    max_calls, max_seconds, target_ess, target_rhat, target_mcse
        Limits of the whole run from where it goes on; None removes one, and ``"as before"`` leaves
        it. What was decided by a limit before stays decided.
    sampler, surrogate, schedule, explorer, correction
        The parts that were given as objects, or with settings that are more than plain data, such
        as an estimator or the name of one: nothing that a file names is imported or called. Other
        parts that were given by name are in the file.
    check
        Whether one position of the file is evaluated again, to see that the target is the same.
        That call is not counted.
    compute
        As for :func:`surrokit.sample`; workers may differ from before, and change no draw. What to
        do where a call fails, and where draws are kept, stays as it was.
    progress, observers
        As for :func:`surrokit.sample`. Observers receive all iterations, also of those that
        are done again.

    Returns
    -------
    Run
        All draws, and the costs of all sessions together.

    Raises
    ------
    LedgerError
        If the file cannot be read or written, is in use, or is another target's.
    ConfigurationError
        If a part is missing, a setting is out of range, or more draws are asked for than a limit
        leaves that has ended the run.
    """
    from surrokit.run.loop import run as go_on  # late: importing the package stays fast

    parts: dict[str, Any] = {
        "sampler": sampler,
        "surrogate": surrogate,
        "schedule": schedule,
        "explorer": explorer,
        "correction": correction,
    }
    limits: dict[str, Limit] = {
        "max_calls": max_calls,
        "max_seconds": max_seconds,
        "target_ess": target_ess,
        "target_rhat": target_rhat,
        "target_mcse": target_mcse,
    }
    check_flag("progress", progress)
    check_flag("check", check)
    where = check_compute(compute)
    listening = list_observers(observers)
    composer, path = Composer(default_catalogue()), Path(path).absolute()
    if target is None:
        target = read_target(path)
    with closing(Store.open(path)) as store:
        exact = of_file(store, check_target(composer.make("potential", target)))
    with where.spread(exact) as exact:
        with held(path, partial(Store.open, write=True)) as (store, lock):
            given = {**parts, "sampler": None, **split_policy(sampler, composer.catalogue)}
            asked = read_settings(store, exact, given)
            asked = attrs.evolve(asked, workers=where.at_once)
            extensions = read_extensions(store, asked)
            account = read_account(store)
            extensions.append(_next(extensions[-1], last_event(store), draws, limits, account))
            if check:
                check_row(store, asked.exact)
            write_extensions(store, extensions)
            rng, file = read_generator(store), RunFile(store, lock)
        is_over = (
            account is not None and account.state == "ended" and extensions[-1] == extensions[-2]
        )
        try:
            with observed(listening, progress=progress) as listeners:
                outcome = go_on(asked, composer, rng, listeners, file, extensions)
        except DepartedError as error:
            if is_over:
                raise LedgerError(
                    f"{error}, so that the finished run in {path} cannot be repeated here to the "
                    "bit. Read it with surrokit.open_run(...), or ask for more draws"
                ) from error
            asked, rng, file = _begin_anew(file, extensions[-1].asked_of(asked), error)
            with observed(listening, progress=progress) as listeners:
                outcome = go_on(asked, composer, rng, listeners, file)
    more = partial(resume, path, target, compute=compute, **parts)
    return attrs.evolve(outcome, more=more, asked=file.asked)


def _begin_anew(
    before: RunFile, asked: Recipe, error: DepartedError
) -> tuple[Recipe, np.random.Generator, RunFile]:
    """Begin a run in place of one that cannot be repeated, from all that this one has evaluated."""
    path = before.path
    with Ledger(path) as ledger:
        spent, n, facts = sum(ledger.calls.values()), len(ledger), ledger.facts
    limits = asked.budget
    if limits.calls is not None:
        if limits.calls <= spent:
            raise LedgerError(
                f"{error}, and max_calls leaves no call to begin anew. Pass a larger one, or None "
                "for no limit"
            ) from error
        limits = attrs.evolve(limits, max_calls=limits.calls - spent)
    memo, evaluations, past = read_known([path], asked.exact, check=False)
    names = (path.with_name(f"{path.stem}.before{i or ''}{path.suffix}") for i in count())
    former = next(name for name in names if not name.exists())
    said = f"{n} evaluations of the former run, in {former.name}"
    noticed = f"the run could not be repeated to the bit, and began anew with the {said}"
    asked = attrs.evolve(
        asked, exact=with_memo(asked.exact, memo), budget=limits, noticed=(*asked.noticed, noticed)
    )
    asked = add_known(asked, evaluations, past)
    kept = {name: of for name, of in facts.items() if name not in _OF_ONE_RUN}

    def replace(path: Path) -> Store:
        store = Store.open(path, write=True)
        store.rename_former(former, {**kept, **describe_settings(asked)})
        return store

    with held(path, replace) as (store, lock):
        rng, file = read_generator(store), RunFile(store, lock)
    warnings.warn(
        f"{error}, as versions, the machine, BLAS threads or data have changed, or the target is "
        f"no function of its position. The run begins anew with the {said}",
        SamplingWarning,
        stacklevel=3,
    )
    return asked, rng, file


def open_run(path: str | os.PathLike[str]) -> Run:
    """Return a run as far as it is written, even while another process goes on with it.

    It has draws, costs and a verdict, but no surrogate and no tuned sampler. Where its file may
    name the target, ``extend`` needs nothing more; else it takes ``target=...``.

    Parameters
    ----------
    path
        What :func:`surrokit.sample` was given as ``path``.

    Raises
    ------
    LedgerError
        If the file cannot be read, or nothing is written yet.
    """
    with Ledger(path) as ledger, ledger.store.snapshot(), reading(ledger.path):
        account = ledger.account
        if account is None:
            raise LedgerError(f"no iteration of {path} is written yet; try again later")
        opened = _opened(ledger, account)
    return attrs.evolve(opened, more=partial(resume, path))


class Watch(NamedTuple):
    """How far a run is, by its file, with its last note and when the file was written."""

    state: str
    iteration: int
    note: str | None
    written: float

    @classmethod
    def of(cls, path: Path) -> Watch:
        """Return how far the run of a file is.

        Raises
        ------
        LedgerError
            If the file cannot be read.
        """
        with Ledger(path) as ledger:
            account, note = ledger.account, read_progress(ledger.store)
        files = [path, path.with_name(f"{path.name}-wal")]
        written = max(each.stat().st_mtime for each in files if each.exists())
        if account is None:
            return cls("starting", 0, note, written)
        return cls(account.state, account.iteration, note, written)

    @property
    def goes_on(self) -> bool:
        """Whether the run has not ended, as far as its file shows."""
        return self.state in ("starting", "running")


def _opened(ledger: Ledger, account: Account) -> Run:
    (warmup, kept), weights, ended = ledger.traces(), ledger.weights(), account.state == "ended"
    plain = ledger.facts.get(PREDICTOR)
    predictor: Any = None if plain is None else read_errors(plain, ledger.parameters.dim)
    same = {name: getattr(account, name) for name in _AS_ACCOUNTED}
    reported = SimpleNamespace(**{name: frozenset(of) for name, of in account.sampler.items()})
    run = Run(
        parameters=ledger.parameters,
        kept=kept,
        warmup=warmup,
        **same,
        stopped=cast(Any, account.stopped) if ended else "interrupted",
        length=cast(Any, account.length) if ended else "cut",
        surrogate=None,
        sampler=cast(Sampler, reported),
        weights=weights,
        asked=read_arguments(ledger.store),
        predictor=predictor,
        pointwise=getattr(predictor, "pointwise", None),
        observed_data=getattr(predictor, "observed_data", {}),
    )
    return attrs.evolve(run, verdict=judge(run))


def new_file(
    path: str | os.PathLike[str],
    asked: Recipe,
    rng: np.random.Generator,
) -> RunFile:
    """Return the file of a run that begins.

    Raises
    ------
    LedgerError
        If there is a file, or none can be written.
    ConfigurationError
        If the generator cannot be written down.
    """
    predictor = predictor_of(asked.exact)
    facts = describe_target(asked.exact) | describe_settings(asked) | describe_generator(rng)
    facts[PREDICTOR] = write_errors(predictor)
    with held(Path(path), partial(Store.made, facts=facts)) as (store, lock):
        return RunFile(store, lock, is_new=True)


@contextmanager
def observed(observers: Sequence[object], *, progress: bool) -> Iterator[Observers]:
    """Yield those that hear of a run: observers, plugins, and a bar while the block lasts.

    Where there is no terminal and no notebook, lines stand for a bar.
    """
    # late: importing the package stays fast
    from surrokit.output.progress import progress_bar

    with metered() as meter, progress_bar(meter, enabled=progress) as bar:
        listeners = Observers([*observers, *bar])
        listeners.add_hooks(default_plugins().hook)
        yield listeners


def let_extend(
    outcome: Run,
    file: RunFile,
    target: Potential | Spec,
    asked: Recipe,
    compute: Compute,
) -> Run:
    """Return a run that can be extended, by its file and what it was made with."""
    given, catalogue = {name: getattr(asked, name) for name in PARTS}, default_catalogue()
    objects = {name: part for name, part in given.items() if not is_data(name, part, catalogue)}
    if "policy" in objects:
        objects["sampler"] = objects.pop("policy")
    more = partial(resume, file.path, target, compute=compute, **objects)
    return attrs.evolve(outcome, more=more, asked=file.asked)


def _next(
    before: Extension,
    after: int,
    draws: int | None,
    limits: Mapping[str, Limit],
    account: Account | None,
) -> Extension:
    """Return sizes and limits from here on, where those of the last session are the default."""
    if draws is not None and not is_whole(draws, 1):
        raise ConfigurationError(f"draws must be a whole number of at least 1, got {draws!r}")
    changed: dict[str, Any] = {name: limit for name, limit in limits.items() if limit != AS_BEFORE}
    if draws is not None and account is not None and draws > account.kept:
        changed = make_room(changed, attrs.asdict(account, recurse=False))
    return Extension(
        draws=before.draws if draws is None else int(draws),
        budget=attrs.evolve(before.budget, **changed),
        after=after,
    )
