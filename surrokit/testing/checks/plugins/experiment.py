"""Checks of experiments: rows are independent, results plain, and some rows enough to report."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from typing import Any

from surrokit.errors import ConfigurationError, SurrokitError
from surrokit.experiments.contract import Conditions, Finished, Report, Table
from surrokit.output.json import plain
from surrokit.testing.measures.demands import demand
from surrokit.testing.results import Check, Factory

_NAME = re.compile(r"[A-Za-z0-9.,=+-]+(/[A-Za-z0-9.,=+-]+)*")
_SEED = 1607


def _plain(value: Any, what: str) -> Any:
    try:
        return json.loads(json.dumps(plain(value, what), allow_nan=False))
    except ConfigurationError as error:
        raise AssertionError(str(error)) from error


def check_words(make: Factory) -> None:
    """Name and title are text, each in one line."""
    experiment = make()
    for what in ("name", "title"):
        text = getattr(experiment, what)
        demand(
            isinstance(text, str) and text.strip() == text and text and "\n" not in text,
            f"{what} must be text in one line, got {text!r}",
        )


def check_settings_plain(make: Factory) -> None:
    """Settings are plain data."""
    _plain(make().settings, "settings")


def check_rows(make: Factory) -> None:
    """Rows have unique names and plain settings, and are the same each time they are made."""
    rows = make().rows()
    demand(rows, "an experiment must have at least one row")
    names = [row.name for row in rows]
    for name in names:
        demand(
            _NAME.fullmatch(name),
            f"the name of a row must be words joined by slashes, got {name!r}",
        )
        demand(names.count(name) == 1, f"two rows are named {name!r}")
    facts = [(row.name, _plain(row.settings, row.name)) for row in rows]
    again = [(row.name, _plain(row.settings, row.name)) for row in make().rows()]
    demand(facts == again, "two experiments of the same settings have different rows")


def check_first_row(make: Factory) -> None:
    """One row gives plain data, which is enough for a report and a picture.

    A row that cannot be done here may raise one of surrokit's own errors instead.
    """
    experiment = make()
    row = experiment.rows()[0]
    try:
        result = experiment.run(row, Conditions(seed=_SEED))
    except SurrokitError:
        return
    finished = Finished(
        name=row.name,
        settings=_plain(row.settings, row.name),
        result=_plain(result, f"the result of {row.name}"),
        seconds=1.0,
    )
    report: Report = experiment.report([finished])
    demand(len(report.tables) > 0, "a report must have at least one table")
    for table in report.tables:
        _check_table(table)
    _plain(report.figures, "figures of the report")
    if find_spec("matplotlib") is not None:
        figure = experiment.draw([finished])
        demand(
            figure is None or callable(getattr(figure, "savefig", None)),
            f"draw must return a Matplotlib figure or None, got {type(figure).__name__}",
        )


def _check_table(table: Table) -> None:
    for line in table.lines:
        demand(
            len(line) == len(table.columns),
            f"a line of the report has {len(line)} cells under {len(table.columns)} titles: "
            f"{line!r}",
        )


CHECKS: tuple[Check, ...] = (
    Check(check_words),
    Check(check_settings_plain),
    Check(check_rows),
    Check(check_first_row),
)
"""For every experiment."""
