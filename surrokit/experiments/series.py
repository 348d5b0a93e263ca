"""Running several experiments, one after the other."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from surrokit.errors import ConfigurationError, SurrokitError
from surrokit.experiments.bar import RowBar, row_bar
from surrokit.experiments.contract import Conditions, Experiment
from surrokit.experiments.outcome import AllReproduced, Reproduction
from surrokit.experiments.work import Work, do_rows, plan, report
from surrokit.registry.catalogue import Catalogue
from surrokit.registry.composer import Composer

Tell: TypeAlias = Callable[[Experiment, Reproduction], None]
"""Called with each experiment at its end, if at least one row is finished."""

Failed: TypeAlias = Callable[[str, Exception], None]
"""Called with the name of an experiment or of a row, and the error that ended it."""


def choose_experiments(names: Sequence[str], only: Iterable[str]) -> dict[str, list[str]]:
    """Return experiment to names of its chosen rows, in order; no name means all rows.

    Parameters
    ----------
    names
        Names of all experiments; in the result figure-10 comes after figure-9.
    only
        Experiments, or rows of one such as ``figure-7/simulated``; by default all.

    Raises
    ------
    ConfigurationError
        If there is no such experiment; the message lists them.
    """
    ordered = sorted(names, key=_with_numbers)
    chosen: dict[str, list[str]] = {}
    for item in only:
        name, _, row = item.partition("/")
        if name not in names:
            near = difflib.get_close_matches(name, ordered, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ConfigurationError(
                f"there is no experiment {name!r}; {hint}--only takes one of "
                f"{', '.join(ordered)}, or rows of one such as {ordered[0]}/ROW"
            )
        chosen.setdefault(name, []).append(row)
    if not chosen:
        return {name: [] for name in ordered}
    return {name: _rows(chosen[name]) for name in ordered if name in chosen}


def _with_numbers(name: str) -> list[str | int]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _rows(rows: list[str]) -> list[str]:
    return [] if "" in rows else rows


def make_experiments(
    catalogue: Catalogue, names: Iterable[str], settings: Mapping[str, Any], *, quick: bool = False
) -> tuple[dict[str, Experiment], dict[str, str]]:
    """Make experiments, each with those settings that it has.

    Parameters
    ----------
    catalogue
        Catalogue of the experiments.
    names
        Names of the experiments.
    settings
        Setting to value.
    quick
        Whether to use small sizes.

    Returns
    -------
    made, not_made : dict
        Name to experiment, and name to the reason why it cannot be made here.

    Raises
    ------
    ConfigurationError
        If no experiment has a setting (the message lists all settings), or one refuses a value.
    """
    known = {name: catalogue.get("experiment", name).settings() for name in names}
    for setting in settings:
        if not any(setting in own for own in known.values()):
            raise ConfigurationError(_no_such_setting(setting, known))
    made, not_made = {}, {}
    for name, own in known.items():
        given = {setting: value for setting, value in settings.items() if setting in own}
        values = {**({"quick": True} if quick else {}), **given}
        try:
            made[name] = Composer(catalogue).make("experiment", (name, values))
        except (SurrokitError, ImportError) as error:
            if given and not isinstance(error, ImportError):
                raise ConfigurationError(f"{name}: {error}") from error
            not_made[name] = str(error)
    return made, not_made


def _no_such_setting(setting: str, known: Mapping[str, Mapping[str, Any]]) -> str:
    names = sorted({name for own in known.values() for name in own})
    near = difflib.get_close_matches(setting, names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return (
        f"none of the experiments {', '.join(known)} has a setting {setting!r}; {hint}their "
        f"settings are: {', '.join(names)}"
    )


def reproduce_all(
    experiments: Mapping[str, Experiment],
    out: Path,
    tell: Tell,
    *,
    conditions: Conditions,
    only: Mapping[str, Sequence[str]] | None = None,
    fresh: bool = False,
    progress: bool = True,
    failed: Failed = lambda *_: None,
    not_made: Mapping[str, str] | None = None,
) -> AllReproduced:
    """Do the rows of several experiments that are not kept yet.

    Rows that cannot be done are left out. An interrupt (Ctrl-C) keeps the finished rows; the same
    call goes on from there.

    Parameters
    ----------
    experiments
        Name to experiment, in the order of work.
    out
        Folder for the finished rows.
    tell
        Called with each experiment at its end, to write and print it.
    conditions
        Seed and data.
    only
        Experiment to names of the rows to do, or their first words; by default all.
    fresh
        Whether to do kept rows again.
    progress
        Whether to show one progress bar over all rows, if output is a terminal.
    failed
        Called with unexpected errors.
    not_made
        Experiment to the reason why it could not be made, for the outcome.

    Raises
    ------
    ConfigurationError
        If there is no such row, or the folder cannot be written to.
    """
    works = {
        name: plan(each, out, conditions, only=(only or {}).get(name, ()), fresh=fresh)
        for name, each in experiments.items()
    }
    run = _AllWorks(works, conditions, tell, failed)
    total = sum(len(work.asked) for work in works.values())
    kept = sum(work.n_kept() for work in works.values())
    with row_bar(total, kept, enabled=progress) as bar:
        waiting = run.do(bar)
    return AllReproduced(
        outcomes=run.outcomes,
        not_made=not_made or {},
        failures=run.failures,
        waiting=waiting,
        fresh=fresh,
    )


class _AllWorks:
    """Does works one after the other, and keeps their outcomes."""

    def __init__(
        self, works: Mapping[str, Work], conditions: Conditions, tell: Tell, failed: Failed
    ) -> None:
        self._works = works
        self._conditions = conditions
        self._tell = tell
        self._failed = failed
        self.outcomes: dict[str, Reproduction] = {}
        self.failures: dict[str, str] = {}

    def do(self, bar: RowBar) -> tuple[str, ...]:
        """Do works until an interrupt; return the names of those still to be done."""
        names = list(self._works)
        for i, name in enumerate(names):
            bar.experiment(f"{name} ({i + 1} of {len(names)})")
            try:
                interrupted = self._do(name, bar)
            except KeyboardInterrupt:
                return tuple(names[i:])
            if interrupted:
                return tuple(names[i:])
        return ()

    def _do(self, name: str, bar: RowBar) -> bool:
        work = self._works[name]

        def remember(row: str, error: Exception) -> None:
            with bar.pause():
                self._remember(f"{name}/{row}", error)

        not_run = do_rows(work, self._conditions, bar, remember)
        try:
            outcome = report(work, not_run)
            self.outcomes[name] = outcome
            if outcome.finished:
                with bar.pause():
                    self._tell(work.experiment, outcome)
        except Exception as error:
            with bar.pause():
                self._remember(name, error)
            return False
        return outcome.interrupted

    def _remember(self, what: str, error: Exception) -> None:
        own = isinstance(error, SurrokitError)
        self.failures[what] = str(error) if own else f"it ended in {type(error).__name__}: {error}"
        self._failed(what, error)
