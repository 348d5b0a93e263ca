"""A page about a run, in one file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import io
import itertools
import os
import platform
import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from markupsafe import Markup

from surrokit.diagnostics import FEWEST_EFFECTIVE, LARGEST_RHAT
from surrokit.errors import ConfigurationError
from surrokit.modes import describe_searches
from surrokit.output.files import check_folder
from surrokit.plots.diagnostics import cost_panels, rank_panels, trust_panels
from surrokit.plots.panel import INK, PALETTE, Panel, Sample, drawing, new_figure, percent
from surrokit.plots.posterior import (
    AT_ONCE,
    forest_panel,
    marginal_panels,
    pair_panels,
    strongest_pairs,
)
from surrokit.plots.surrogate import error_panel
from surrokit.report.words import costs, headline, rows_of
from surrokit.shown.html import Fact, Row, printable, render

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
    path = Path(path)
    check_report(path)
    page = page_of(run, interval=interval, note=note)
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {path}: {error.strerror or error}; give a file in a folder that you may "
            "write to"
        ) from error
    return path


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
    numbers = itertools.count()

    def draw(panel: Panel) -> Markup:
        return inline_svg(panel, f"p{next(numbers)}")

    adaptation, diverged = run.adaptation, int(run.divergences.sum())
    repairs = adaptation.rescues
    return _document(
        refresh,
        waiting=None,
        note=note,
        run=run,
        draw=draw,
        headline=headline(run),
        facts=_facts(run, summary),
        **({"rows": []} if summary is None else _posterior(run, summary, interval)),
        costs=cost_panels(run),
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
        lines=lines_of(run),
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


def _worst(summary: Any, column: str, choose: Any, form: str) -> Markup | None:
    """Return the worst figure of a column, and whose it is."""
    values = summary[column]
    if not np.isfinite(values).any():
        return None
    at = int(choose(values))
    name = printable(summary.labels[at])
    return Markup("{}, of <bdi>{}</bdi>").format(format(values[at], form), name)


def _posterior(run: Any, summary: Any, interval: float) -> dict[str, Any]:
    columns, left_out = _with_pictures(summary)
    rhat, several = summary["rhat"], run.parameters.slices()
    vectors = [name for name, spec in run.parameters.specs.items() if spec.size >= 3]
    everything, most = range(len(run.labels)), 6
    diagnostics = trust_panels(run, summary["ess"], rhat)
    ranked = sorted(columns, key=lambda column: -float(rhat[column]))[:12]
    if (error := error_panel(run)) is not None:
        diagnostics.append(error)
    return {
        "interval": percent(interval),
        "note_on_draws": Sample.of(run).note,
        "columns": ["parameter", *_COLUMNS.values()],
        "rows": _rows(summary),
        "left_out": left_out,
        "marginals": marginal_panels(run, columns, interval),
        "pairs": pair_panels(run, strongest_pairs(run, 6)) if len(run.labels) > 1 else [],
        "among": f", among the first {AT_ONCE} numbers" if len(run.labels) > AT_ONCE else "",
        "forests": [
            forest_panel(run, everything[several[name]], interval, name, rhat)
            for name in vectors[:most]
        ],
        "more_forests": max(len(vectors) - most, 0),
        "diagnostics": diagnostics,
        "of_surrogate": _of_surrogate(run),
        "chains": "chains" if run.answer is None else "chains on the surrogate, before weights",
        "ranks": rank_panels(run, sorted(ranked), rhat),
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
        return (
            "A file holds no surrogate: its errors are shown where the page is made by "
            "run.report(...) of the run itself, or of surrokit.resume(...)."
        )
    return "All proposals were made on the exact potential; there was no surrogate."


def _versions() -> list[Fact]:
    found: list[Fact] = [("Python", platform.python_version())]
    for name in ("surrokit", "numpy", "scipy", "scikit-learn", "arviz-stats", "matplotlib"):
        with suppress(metadata.PackageNotFoundError):
            found.append((name, metadata.version(name)))
    return found


def lines_of(run: Any) -> str:
    """Return lines of Python that make a run again, with what is not known in comments."""
    arguments = dict(run.asked or {})
    target = _source(arguments.pop("target")) if "target" in arguments else None
    given = [f"    {name}={_source(value)}," for name, value in arguments.items()]
    notes = [] if target else ["# the target is yours: no run holds it"]
    if run.asked is None:
        notes.append("# what this run was asked for is not known")
    elif run.choice is not None and not {"sampler", "surrogate"} & set(arguments):
        notes.append("# parts were picked by what calls cost: name them, so that others are not")
    if any("..." in line for line in given):
        notes.append("# ... was an object of yours")
    call = ["run = sk.sample(", f"    {target or 'target'},", *given, ")"]
    return "\n".join(["import surrokit as sk", "", *notes, *call])


def _source(value: Any) -> str:
    if value is ...:
        return "..."
    if attrs.has(type(value)):
        changed = {
            each.name: getattr(value, each.name)
            for each in attrs.fields(type(value))
            if getattr(value, each.name) != each.default
        }
        inside = ", ".join(f"{name}={_source(each)}" for name, each in changed.items())
        return f"sk.{type(value).__name__}({inside})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_source(each)}' for key, each in value.items())}}}"
    if isinstance(value, np.ndarray):
        return repr(value.tolist()) if value.size <= 100 else "..."
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, list):
        return f"[{', '.join(map(_source, value))}]"
    if isinstance(value, tuple):
        inside = ", ".join(map(_source, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return repr(value)


# --- panels as vector graphics that are part of a page ---

COLOURS = {
    INK: "currentColor",
    **{colour.lower(): f"var(--{name})" for name, colour in PALETTE.items()},
}
"""Colours of pictures to those of the page, which differ in light and dark."""

_PICTURE = Markup(
    '<svg role="img" aria-labelledby="{name}-title" aria-describedby="{name}-text" '
    'viewBox="{view}" width="{width:.0f}" height="{height:.0f}">'
    '<title id="{name}-title">{title}</title><desc id="{name}-text">{text}</desc>{inside}</svg>'
)


def inline_svg(panel: Panel, name: str) -> Markup:
    """Return a panel as an element of a page, with its text for readers who do not see it.

    ``name`` is another one for each panel of a page.
    """
    import matplotlib as mpl

    file = io.StringIO()
    with warnings.catch_warnings(), drawing():
        mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": name})
        figure = new_figure(panel.width, panel.height)
        panel.draw(figure.add_subplot())
        # letters are the reader's, who may have more of them
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    written = re.sub(r"<(metadata|style).*?</\1>|<!--.*?-->", "", file.getvalue(), flags=re.DOTALL)
    start, inside = re.findall(r"(<svg[^>]*>)(.*)</svg>", written, flags=re.DOTALL)[0]
    used = {"".join(each) for each in re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', inside)}
    inside = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", inside)
    inside = re.sub(r' (d|transform|x|y|style|points)="([^"]*)"', _shorten, inside)
    inside = re.sub(r">\s+<", "><", inside).strip()
    return _PICTURE.format(
        name=name,
        view=re.findall('viewBox="([^"]*)"', start)[0],
        width=panel.width * 96.0,  # pixels in an inch, by CSS
        height=panel.height * 96.0,
        title=printable(panel.title),
        text=printable(panel.text),
        inside=Markup(inside),
    )


def _shorten(attribute: re.Match[str]) -> str:
    """Leave out digits and blanks that nobody sees, and fonts and colours that are the page's."""
    key, value = attribute.groups()
    value = re.sub(r"-?\d+\.\d{3,}", lambda m: f"{round(float(m[0]), 2):g}", value)
    value = " ".join(value.split())
    if key == "style":
        font = r"font: (?:[a-z]+ )*([\d.]+px)[^;]*|font-family:[^;]*;?"
        value = re.sub(font, lambda m: f"font-size: {m[1]}" if m[1] else "", value)
        value = re.sub("#[0-9a-fA-F]{6}", lambda m: COLOURS.get(m[0].lower(), m[0]), value)
    return f' {key}="{value}"'
