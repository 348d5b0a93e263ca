"""A run in words and tables: what the command line, notebooks and pages show of it alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from surrokit.diagnostics import format_figure
from surrokit.shown.html import MOST_ROWS, Row, show

_COLUMNS = ("mean", "sd", "q05", "q50", "q95", "hdi_low", "hdi_high", "ess", "rhat")


def headline(run: Any) -> str:
    """Return the verdict on a run in one sentence."""
    n = len(run.verdict.warnings)
    if not run.draws.shape[1]:
        return "There are no draws."
    if n:
        return f"{n} warning{'s' if n > 1 else ''}: read before you use the draws."
    return "Nothing speaks against these draws."


def costs(run: Any) -> dict[str, str | None]:
    """Return what a run cost and how it went by titles, None where there is nothing to say."""
    quality, adaptation, modes = run.fit_quality, run.adaptation, run.modes
    held_out = {
        name: None if value is None else f"{value:.3g}"
        for name in ("variance", "gradient_error", "acceptance")
        for value in [None if quality is None else getattr(quality, name)]
    }
    deployed = f"{len(adaptation.deployments)}, last after iteration {adaptation.last_deployment}"
    each = run.calls_per_effective_draw() if run.draws.shape[1] else np.nan
    return {
        "acceptance rate": _figure(float(np.mean(run.acceptance)), 3) if run.exact else None,
        "surrogate, held-out Var(V - U)": held_out["variance"],
        "surrogate, held-out error of gradients": held_out["gradient_error"],
        "surrogate, predicted acceptance": held_out["acceptance"],
        "seconds, warm-up": f"{run.seconds['warmup']:.2f}",
        "seconds, training": f"{run.seconds['training']:.2f}",
        "seconds, sampling": f"{run.seconds['sampling']:.2f}",
        "modes found": None
        if modes is None
        else f"{len(modes)}, by {modes.searches} search{'es' if modes.searches > 1 else ''}",
        "surrogates deployed": deployed if adaptation.deployments else None,
        "draws of each chain": None if run.stopped == "draws" else str(len(run.kept)),
        "exact calls": calls(run),
        "exact calls per effective draw": _figure(each, 2),
    }


def calls(run: Any) -> str:
    """Return the exact calls of a run by kind."""
    return ", ".join(f"{n} {kind}" for kind, n in run.calls.items() if n) or "none"


def _figure(value: float, digits: int) -> str:
    return format_figure("", value) if np.isnan(value) else f"{value:.{digits}f}"


def rows_of(summary: Any, columns: Iterable[str]) -> list[Row]:
    """Return the rows of a summary, each with some of its figures as text."""
    named = zip(summary.labels, (row for _, row in summary.rows()), strict=True)
    names = list(columns)
    return [(title, [format_figure(name, row[name]) for name in names]) for title, row in named]


def show_run(run: Any) -> str:
    """Return the verdict on a run, its costs and its first numbers, as HTML for a notebook."""
    chains, draws, dim = run.draws.shape
    told = f"{chains} chains of {draws} draws of {dim} numbers; {run.total_calls:,.0f} exact calls."
    first = run.parameters.labels[:MOST_ROWS]
    table = _table(run.summary(parameters=first), dim) if draws else {}
    return show("run", run=run, headline=headline(run), told=told, **table)


def show_summary(summary: Any) -> str:
    """Return a summary as HTML for a notebook."""
    return show("summary", **_table(summary, len(summary.labels)))


def _table(summary: Any, n: int) -> dict[str, Any]:
    columns = [name for name in _COLUMNS if name in summary.columns]
    rows = rows_of(summary, columns)[:MOST_ROWS]
    more = f"{n - len(rows)} more numbers: print(run.summary()), or run.report('run.html')."
    return {"columns": ["", *columns], "rows": rows, "more": more if n > len(rows) else None}
