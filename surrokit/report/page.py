"""A page about a run, in one file that needs nothing else."""

from __future__ import annotations

import base64
import os
import platform
import warnings
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeAlias

import numpy as np
from markupsafe import Markup

from surrokit.diagnostics import FEWEST_EFFECTIVE, LARGEST_RHAT, format_figure
from surrokit.errors import ConfigurationError
from surrokit.output.console import printable
from surrokit.output.files import check_folder, replacing
from surrokit.plots.figure import drawing
from surrokit.plots.plots import LARGE, errors_of, note_on_draws
from surrokit.report.words import costs

SECTIONS = {
    "verdict": "Verdict",
    "posterior": "Posterior",
    "surrogate": "Surrogate",
    "cost": "What it cost",
    "recipe": "What it was made of",
}
"""Names of the sections in order, with their titles."""

Fact: TypeAlias = tuple[str, str | None]
"""A word, and what stands beside it; None for nothing, so that the word is left out."""

MOST_ROWS = 100
"""Numbers of quantities in the table at most."""

_COLUMNS = {
    "mean": "mean",
    "sd": "sd",
    "q50": "median",
    "hdi_low": "from",
    "hdi_high": "to",
    "ess": "ESS",
    "rhat": "R-hat",
    "mcse": "error of mean",
}


def write_report(
    run: Any, path: str | os.PathLike[str], *, interval: float = 0.9, note: str | None = None
) -> Path:
    """Write a page about a run, and return its path; see :meth:`surrokit.Run.report`."""
    check_report(path)
    page = page_of(run, interval=interval, note=note)
    with replacing(Path(path)) as file:
        file.write_text(page, encoding="utf-8")
    return Path(path)


def check_report(path: str | os.PathLike[str]) -> None:
    """Check, before a long run, that a page about it can be written."""
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ConfigurationError(
            f"a report is a page, and {path.name!r} does not end in .html; call it {path.stem}.html"
        )
    check_folder(path)
    with drawing():  # Matplotlib is needed
        pass


def page_of(run: Any, *, interval: float = 0.9, note: str | None = None) -> str:
    """Return a page about a run, with any number of draws, as text."""
    summary = run.summary(interval=interval) if run.draws.shape[1] else None
    beside = run.summary_of_quantities(interval) if run.draws.shape[1] else None
    style = files("surrokit").joinpath("templates", "page.css").read_text("utf-8")
    about = note_on_draws(run)
    adaptation, diverged, warned = (
        run.adaptation,
        int(run.divergences.sum()),
        len(run.verdict.warnings),
    )
    headline = "Nothing speaks against these draws."
    if summary is None:
        headline = "There are no draws."
    elif warned:
        headline = f"{warned} warning{'s'[: warned - 1]}: read before you use the draws."
    return render(
        "page.html",
        sections=SECTIONS,
        style=Markup(style),
        note=note,
        run=run,
        headline=headline,
        facts=_facts(run, summary),
        interval=f"{100.0 * interval:.6g}%",
        columns=["parameter", *_COLUMNS.values()],
        rows=[]
        if summary is None
        else _rows(summary) + (_rows(beside)[:MOST_ROWS] if beside else []),
        note_on_draws=None if about is None else f"Draws are {about}.",
        of_surrogate=_of_surrogate(run),
        pictures=_pictures(run, summary, interval),
        cost_facts=[
            *costs(run).items(),
            ("diverged paths", str(diverged) if np.size(run.divergences) else None),
            ("positions that failed", f"{run.failures:,}"),
            ("evaluations learnt from", f"{adaptation.training_rows:,}"),
            ("repairs", str(len(adaptation.repairs))),
            ("iterations", f"{len(run.warmup):,} of warm-up, {len(run.kept):,} kept"),
        ],
        repairs=adaptation.repairs,
        parts_of_run=[*run.parts.items(), ("picked", run.choice)],
        asked=[
            (name, shorten(str(value), 100, placeholder=" …"))
            for name, value in (run.asked or {}).items()
        ],
        versions=_versions(),
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def render(template: str, **values: Any) -> str:
    """Return a template, filled with values; all text is escaped unless it is markup already."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: imports stay fast

    def shown(value: Any) -> Any:
        if value is None:
            return ""
        return type(value)(printable(value)) if isinstance(value, str) else value

    environment = Environment(
        loader=PackageLoader("surrokit"),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(values).lstrip()


def _pictures(run: Any, summary: Any, interval: float) -> dict[str, tuple[str, str, float]]:
    """Return name to the address of a picture that is in the page, its text and its width."""
    plot, found = run.plot, dict[str, tuple[str, Any]]()
    if any(run.calls.values()) and len(run.kept) + len(run.warmup):
        spent = ", ".join(f"{n} {kind}" for kind, n in run.calls.items() if n)
        found["cost"] = f"Exact calls over time, by kind: {spent} at the end.", plot.cost()
    if summary is not None:
        names = summary.labels[:24]
        reported = f"Densities of {', '.join(names)}, whose intervals are in the table."
        found["marginals"] = reported, plot.marginals(interval=interval)
    if run.by_chains and run.surrogate is not None and np.isfinite(run.kept.values).sum() > 1:
        _, errors = errors_of(run)
        reported = (
            f"Exact potential less surrogate at {len(errors)} draws: standard deviation "
            f"{np.nanstd(errors):.2g} nats; {int((np.abs(errors) > LARGE).sum())} draws are off "
            f"by more than {LARGE} nats."
        )
        found["errors"] = reported, plot.surrogate()
    return {
        name: (_address(figure), reported, 96 * figure.get_figwidth())
        for name, (reported, figure) in found.items()
    }


def _address(figure: Any) -> str:
    with warnings.catch_warnings():
        # a glyph that no font of Matplotlib has is a box
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        return f"data:image/png;base64,{base64.b64encode(figure._repr_png_(dpi=144)).decode()}"


def _facts(run: Any, summary: Any) -> list[Fact]:
    chains, draws, dim = run.draws.shape
    facts: list[Fact] = [
        ("draws", f"{chains} chains of {draws} draws of {dim} numbers"),
        ("exact calls", f"{run.total_calls:,.0f}"),
        *(("modes", each) for each in run.describe_modes()),
    ]
    if summary is None:
        return facts
    each = summary["calls_per_ess"]
    known = each[np.isfinite(each)]
    return [
        *facts,
        ("fewest effective draws", _worst(summary, "ess", np.nanargmin, ".0f")),
        ("largest R-hat", _worst(summary, "rhat", np.nanargmax, ".3f")),
        ("exact calls for each effective draw", f"{known.max():.3g}" if known.size else None),
    ]


def _worst(summary: Any, column: str, choose: Any, form: str) -> str | None:
    values = summary[column]
    if not np.isfinite(values).any():
        return None
    at = int(choose(values))
    return f"{values[at]:{form}}, of {summary.labels[at]}"


def _rows(summary: Any) -> list[tuple[str, list[str]]]:
    """Return the numbers of a table as text; those that are doubtful are marked."""
    doubtful = {
        "ess": ~(summary["ess"] >= FEWEST_EFFECTIVE),
        "rhat": ~(summary["rhat"] <= LARGEST_RHAT),
    }
    rows = []
    for i, (title, (_, row)) in enumerate(zip(summary.labels, summary.rows(), strict=True)):
        cells = {name: format_figure(name, row.get(name, np.nan)) for name in _COLUMNS}
        for name, marked in doubtful.items():
            if marked[i]:
                cells[name] = Markup('<span class="doubtful">{} !</span>').format(cells[name])
        rows.append((title, [*cells.values()]))
    return rows


def _of_surrogate(run: Any) -> str | None:
    quality = run.fit_quality
    if quality is not None:
        return (
            f"At {quality.n_points} evaluations that were held out, Var(V - U) of the surrogate is "
            f"{quality.variance:.3g} squared nats, by which {quality.acceptance:.1%} of "
            "independent draws from it would be accepted. The exact potential decided on every "
            "draw: errors of the surrogate cost mixing, not correctness."
        )
    if run.surrogate is not None:
        return None
    if run.adaptation.deployments:
        return "A file holds no surrogate: run.report(...) of the run itself shows its errors."
    return "All proposals were made on the exact potential; there was no surrogate."


def _versions() -> list[Fact]:
    found: list[Fact] = [("Python", platform.python_version())]
    for name in ("surrokit", "numpy", "scipy", "scikit-learn", "arviz-stats", "matplotlib"):
        with suppress(metadata.PackageNotFoundError):
            found.append((name, metadata.version(name)))
    return found
