"""A page about a run, in one file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import warnings
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from surrokit.diagnostics import FEWEST_EFFECTIVE, LARGEST_RHAT
from surrokit.errors import ConfigurationError
from surrokit.modes import describe_searches
from surrokit.output.files import check_folder, replacing
from surrokit.plots.figure import Sample, drawing
from surrokit.plots.surrogate import LARGE, Comparison
from surrokit.report.words import costs, headline, rows_of
from surrokit.shown.html import Fact, Row, render
from surrokit.shown.target import describe_value

SECTIONS = {
    "verdict": "Verdict",
    "posterior": "Posterior",
    "trust": "Is it to be trusted?",
    "cost": "What it cost",
    "recipe": "What it was made of",
}
"""Names of the sections in order, with their titles."""

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


def page_of(
    run: Any, *, interval: float = 0.9, refresh: int | None = None, note: str | None = None
) -> str:
    """Return a page about a run, with any number of draws, as text.

    A browser asks for it again after ``refresh`` seconds, if any.
    """
    summary = run.summary(interval=interval) if run.draws.shape[1] else None
    adaptation, diverged = run.adaptation, int(run.divergences.sum())
    repairs = adaptation.rescues
    return _document(
        refresh,
        waiting=None,
        note=note,
        run=run,
        headline=headline(run),
        facts=_facts(run, summary),
        **({"rows": []} if summary is None else _posterior(run, summary, interval)),
        pictures=_pictures(run, summary, interval),
        cost_facts=[
            *costs(run).items(),
            ("diverged paths", str(diverged) if np.size(run.divergences) else None),
            ("positions that failed", f"{run.failures:,}"),
            ("evaluations learnt from", f"{adaptation.training_rows:,}"),
            ("repairs", str(len(repairs))),
            ("iterations", f"{len(run.warmup):,} of warm-up, {len(run.kept):,} kept"),
        ],
        repairs=repairs,
        parts_of_run=[*run.parts.items(), ("picked", run.choice)],
        asked=[(name, describe_value(value)) for name, value in (run.asked or {}).items()],
        versions=_versions(),
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def waiting_page(what: str, refresh: int) -> str:
    """Return a page about a run of which there is nothing to show yet, and why."""
    return _document(refresh, waiting=what)


def _document(refresh: int | None, **values: Any) -> str:
    """Return a document whose own script is the only one that a browser runs."""
    folder = files("surrokit").joinpath("templates")
    style, script = (folder.joinpath(f"page.{e}").read_text("utf-8") for e in ("css", "js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    own = {"style": Markup(style), "script": Markup(script), "digest": digest}
    page = {"title": "Report of a run", "sections": SECTIONS, "refresh": refresh}
    return render("page.html", **page, **own, **values).lstrip()


def _pictures(run: Any, summary: Any, interval: float) -> dict[str, tuple[str, str, float]]:
    """Return name to the address of a picture that is in the page, its text and its width."""
    plot, found = run.plot, dict[str, tuple[str, Any]]()
    if any(run.calls.values()) and len(run.kept) + len(run.warmup):
        spent = ", ".join(f"{n} {kind}" for kind, n in run.calls.items() if n)
        found["cost"] = f"Exact calls over time, by kind: {spent} at the end.", plot.cost()
    if summary is not None:
        names = [summary.labels[i] for i in _with_pictures(summary)[0]]
        told = f"Densities of {', '.join(names)}, whose intervals are in the table."
        found["marginals"] = told, plot.marginals(names, interval=interval)
        told = "How the ranks of each chain's draws are spread; R-hat is in the table."
        found["ranks"] = told, plot.ranks()
        if len(run.labels) > 1:
            found["pairs"] = "Draws of numbers that tell most of one another.", plot.pairs()
    if run.exact and run.surrogate is not None and np.isfinite(run.kept.values).sum() > 1:
        errors = Comparison.of(run)
        told = (
            f"Exact potential less surrogate at {len(errors.errors)} draws: standard deviation "
            f"{errors.spread:.2g} nats; {int((np.abs(errors.errors) > LARGE).sum())} draws are off "
            f"by more than {LARGE} nats."
        )
        found["errors"] = told, plot.surrogate()
    return {
        name: (_address(figure), told, 96 * figure.get_figwidth())
        for name, (told, figure) in found.items()
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
        ("searches for modes", describe_searches(run.adaptation.searches)),
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


def _posterior(run: Any, summary: Any, interval: float) -> dict[str, Any]:
    return {
        "interval": f"{100.0 * interval:.6g}%",
        "note_on_draws": Sample.of(run).note,
        "columns": ["parameter", *_COLUMNS.values()],
        "rows": _rows(summary),
        "left_out": _with_pictures(summary)[1],
        "of_surrogate": _of_surrogate(run),
    }


def _with_pictures(summary: Any) -> tuple[list[int], str | None]:
    """Return which numbers have pictures, and what a reader is told of the others."""
    n, first, worst = len(summary.labels), 6, 6
    if n <= 24:
        return list(range(n)), None
    rhat = np.nan_to_num(summary["rhat"], nan=np.inf)
    others = [int(i) for i in np.lexsort([summary["ess"], -rhat]) if i >= first][:worst]
    told = (
        f"Of {n} numbers, the first {first} and the {worst} others with the largest R-hat have "
        "pictures; the table has all."
    )
    return [*range(first), *others], told


def _rows(summary: Any) -> list[Row]:
    doubtful = {
        "ess": ~(summary["ess"] >= FEWEST_EFFECTIVE),
        "rhat": ~(summary["rhat"] <= LARGEST_RHAT),
    }
    rows = [(title, list(cells)) for title, cells in rows_of(summary, _COLUMNS)]
    for at, name in enumerate(_COLUMNS):
        for i in np.flatnonzero(doubtful.get(name, ())):
            rows[i][1][at] = Markup('<span class="doubtful">{} !</span>').format(rows[i][1][at])
    return [*rows]


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
