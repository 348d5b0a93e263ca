"""Outcomes of one experiment, or of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from surrokit.experiments.contract import Cell, Finished, Report
from surrokit.output.json import plain


@attrs.frozen(kw_only=True)
class Reproduction:
    """The outcome of an experiment.

    Parameters
    ----------
    name, title, settings
        Name, title and settings of the experiment.
    seed
        Seed of all randomness.
    versions
        Package to version.
    finished
        Finished rows, kept ones included.
    asked
        Rows that were asked for, finished or not.
    not_run
        Row to the reason why it could not be done here.
    left
        Rows still to be done, asked for or not.
    report
        Report of the finished rows; without tables if there are none.
    fresh
        Whether kept rows were done again.
    """

    name: str
    title: str
    settings: Mapping[str, Any]
    seed: int
    versions: Mapping[str, str]
    finished: tuple[Finished, ...]
    asked: tuple[str, ...]
    not_run: Mapping[str, str]
    left: tuple[str, ...]
    report: Report
    fresh: bool = False

    @property
    def interrupted(self) -> bool:
        """Whether any row asked for is still to be done."""
        return not set(self.left).isdisjoint(self.asked)

    @property
    def n_done(self) -> int:
        """Number of rows asked for that are finished."""
        return len(self.asked) - len(set(self.asked).intersection([*self.not_run, *self.left]))

    @property
    def notes(self) -> list[str]:
        """Sentences that a reader must know, about the experiment and about missing rows."""
        found = list(self.report.notes)
        for reason, rows in by_reason(self.not_run).items():
            found.append(f"not done: {list_names(rows)}; {reason}")
        stopped = [row for row in self.left if row in self.asked]
        if stopped:
            how = " without --fresh" if self.fresh else ""
            found.append(f"still to be done: {list_names(stopped)}; the same command{how} goes on.")
        others = [row for row in self.left if row not in self.asked]
        if others:
            found.append(f"not asked for: {list_names(others)}; without --only all are done.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data for JSON."""
        report = self.report
        tables = [{"title": t.title, "lines": t.records()} for t in report.tables]
        figures = {
            "experiment": self.name,
            "title": self.title,
            "complete": not self.left and not self.not_run,
            "seed": self.seed,
            "settings": self.settings,
            "versions": self.versions,
            "tables": tables,
            "printed": [attrs.asdict(figure) for figure in report.printed],
            "figures": report.figures,
            "notes": self.notes,
            "rows": [attrs.asdict(row) for row in self.finished],
            "not_run": self.not_run,
            "left": self.left,
        }
        made: dict[str, Any] = plain(figures, self.name)
        return made


def by_reason(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Return reason to names, given name to reason."""
    found: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        found.setdefault(reason, []).append(name)
    return found


def list_names(rows: Sequence[str]) -> str:
    """Return names in one line; of more than three, the first two and a count of the others."""
    if len(rows) <= 3:
        return ", ".join(rows)
    return f"{rows[0]}, {rows[1]} and {len(rows) - 2} more"


@attrs.frozen(kw_only=True)
class AllReproduced:
    """The outcomes of several experiments.

    Parameters
    ----------
    outcomes
        Experiment to outcome, for those that were begun.
    not_made
        Experiment to the reason why it cannot be done here at all.
    failures
        Experiment or row to an unexpected error.
    waiting
        Experiments still to be done after an interrupt, the interrupted one included.
    fresh
        Whether kept rows were done again.
    """

    outcomes: Mapping[str, Reproduction]
    not_made: Mapping[str, str]
    failures: Mapping[str, str]
    waiting: tuple[str, ...] = ()
    fresh: bool = False

    @property
    def n_done(self) -> int:
        """Number of all rows asked for that are finished."""
        return sum(outcome.n_done for outcome in self.outcomes.values())

    def lines(self) -> list[tuple[Cell, ...]]:
        """Return, for each experiment, its name, rows finished, rows asked for, and minutes."""
        return [
            (
                name,
                outcome.n_done,
                len(outcome.asked),
                round(sum(row.seconds for row in outcome.finished) / 60, 1),
            )
            for name, outcome in self.outcomes.items()
        ]

    @property
    def notes(self) -> list[str]:
        """Sentences on what could not be done and why, and on what is still to be done."""
        reasons = {**self.not_made, **self.failures}
        for name, outcome in self.outcomes.items():
            for row, reason in outcome.not_run.items():
                reasons.setdefault(f"{name}/{row}", reason)
        found = [f"not done: {list_names(what)}; {why}" for why, what in by_reason(reasons).items()]
        if self.waiting:
            how = " without --fresh" if self.fresh else ""
            waiting = ", ".join(self.waiting)
            found.append(f"still to be done: {waiting}; the same command{how} goes on.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the outcomes as plain data for JSON."""
        return {
            "experiments": {name: each.to_dict() for name, each in self.outcomes.items()},
            "not_made": dict(self.not_made),
            "failures": dict(self.failures),
            "waiting": list(self.waiting),
            "notes": self.notes,
        }
