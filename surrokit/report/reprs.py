"""How notebooks show runs and their summaries."""

from __future__ import annotations

from typing import Any

from surrokit.report.verdict import findings
from surrokit.shown.elements import Markup, join, tag
from surrokit.shown.tables import MOST_ROWS, table

_COLUMNS = ("mean", "sd", "q05", "q50", "q95", "hdi_low", "hdi_high", "ess", "rhat")

_FORMS = {"ess": ".0f", "rhat": ".3f"}


def show_run(run: Any) -> str:
    """Return the verdict on a run, its costs and its first numbers, as HTML.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    """
    chains, draws, dim = run.draws.shape
    told = f"{chains} chains of {draws} draws of {dim} numbers; {run.total_calls:,.0f} exact calls"
    parts = [findings(run), tag("p", f"{told}.")]
    if draws:
        first = run.parameters.labels[:MOST_ROWS]
        parts.append(_table(run.summary(parameters=first), dim))
    return tag("div", *parts, class_="surrokit-run")


def show_summary(summary: Any) -> str:
    """Return a summary as HTML.

    Parameters
    ----------
    summary
        A :class:`~surrokit.result.summary.Summary`.
    """
    return tag("div", _table(summary, len(summary.labels)), class_="surrokit-summary")


def _table(summary: Any, n: int) -> Markup:
    columns = [name for name in _COLUMNS if name in summary.columns]
    figures = [row for _, row in summary.rows()]
    told = list(zip(summary.titles, figures, strict=True))[:MOST_ROWS]
    rows = [(label, [_cell(name, row[name]) for name in columns]) for label, row in told]
    left = n - len(rows)
    more = f"{left} more numbers: print(run.summary()), or run.report('run.html')."
    return join([table(["", *columns], rows), tag("p", more) if left else None])


def _cell(column: str, value: float) -> str:
    return "missing" if value != value else format(value, _FORMS.get(column, ".4g"))
