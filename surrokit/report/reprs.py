"""How notebooks show runs and their summaries."""

from __future__ import annotations

from typing import Any

from surrokit.shown.html import MOST_ROWS, show

_COLUMNS = ("mean", "sd", "q05", "q50", "q95", "hdi_low", "hdi_high", "ess", "rhat")

_FORMS = {"ess": ".0f", "rhat": ".3f"}


def show_run(run: Any) -> str:
    """Return the verdict on a run, its costs and its first numbers, as HTML."""
    chains, draws, dim = run.draws.shape
    told = f"{chains} chains of {draws} draws of {dim} numbers; {run.total_calls:,.0f} exact calls."
    first = run.parameters.labels[:MOST_ROWS]
    table = _table(run.summary(parameters=first), dim) if draws else {}
    return show("run", run=run, headline=headline(run), told=told, **table)


def show_summary(summary: Any) -> str:
    """Return a summary as HTML."""
    return show("summary", **_table(summary, len(summary.labels)))


def headline(run: Any) -> str:
    """Return the verdict on a run in one sentence."""
    n = len(run.verdict.warnings)
    if not run.draws.shape[1]:
        return "There are no draws."
    if n:
        return f"{n} warning{'s' if n > 1 else ''}: read before you use the draws."
    return "Nothing speaks against these draws."


def _table(summary: Any, n: int) -> dict[str, Any]:
    columns = [name for name in _COLUMNS if name in summary.columns]
    named = zip(summary.titles, (row for _, row in summary.rows()), strict=True)
    rows = [(label, [_cell(name, row[name]) for name in columns]) for label, row in named]
    left = n - min(len(rows), MOST_ROWS)
    more = f"{left} more numbers: print(run.summary()), or run.report('run.html')."
    return {"columns": ["", *columns], "rows": rows[:MOST_ROWS], "more": more if left else None}


def _cell(column: str, value: float) -> str:
    return "missing" if value != value else format(value, _FORMS.get(column, ".4g"))
