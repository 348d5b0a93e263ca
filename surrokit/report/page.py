"""A page about a run, in one file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import os
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from surrokit.errors import ConfigurationError
from surrokit.report import cost, posterior, recipe, trust, verdict
from surrokit.report.svg import Drawer
from surrokit.shown.elements import Child, Markup, tag

INTERVAL = 0.9
"""Probability of the intervals on a page."""

ENDINGS = (".html", ".htm")

TITLE = "Report of a run"

SECTIONS = {
    "verdict": "Verdict",
    "posterior": "Posterior",
    "trust": "Is it to be trusted?",
    "cost": "What it cost",
    "recipe": "What it was made of",
}
"""Names of the sections in order, with their titles."""


def write_report(
    run: Any,
    path: str | os.PathLike[str],
    *,
    interval: float = INTERVAL,
    note: str | None = None,
) -> Path:
    """Write a page about a run, and return its path.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    path
        A file that ends in ``.html``; one that exists is replaced.
    interval
        Probability of the intervals.
    note
        What stands above all else.

    Raises
    ------
    ConfigurationError
        If the ending is another one, the probability makes no sense, or the file cannot be written.
    MissingDependencyError
        If Matplotlib is not installed.
    """
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
    """Check, before a long run, that a page about it can be written.

    Raises
    ------
    ConfigurationError
        If the ending is no page's, or there is no such folder.
    MissingDependencyError
        If Matplotlib is not installed.
    """
    from surrokit.output.saving import check_folder
    from surrokit.plots.style import drawing

    if Path(path).suffix.lower() not in ENDINGS:
        raise ConfigurationError(
            f"a report is a page, and {Path(path).name!r} does not end in .html; call it "
            f"{Path(path).stem}.html"
        )
    check_folder(path)
    with drawing():
        pass


def page_of(
    run: Any, *, interval: float = INTERVAL, refresh: int | None = None, note: str | None = None
) -> str:
    """Return a page about a run, as text.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`, with any number of draws.
    interval
        Probability of the intervals.
    refresh
        Seconds after which a browser asks for the page again; None for never.
    note
        What stands above all else.

    Raises
    ------
    ConfigurationError
        If the probability makes no sense.
    MissingDependencyError
        If Matplotlib is not installed.
    """
    drawer = Drawer()
    summary = run.summary(interval=interval) if run.draws.shape[1] else None
    none = tag("p", "There are no draws to show.")
    bodies = {
        "verdict": verdict.section(run, summary),
        "posterior": none if summary is None else posterior.section(run, summary, interval, drawer),
        "trust": none if summary is None else trust.section(run, summary, drawer),
        "cost": cost.section(run, drawer),
        "recipe": recipe.section(run),
    }
    sections = [_section(name, SECTIONS[name], body) for name, body in bodies.items()]
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    links = [tag("li", tag("a", title, href=f"#{name}")) for name, title in SECTIONS.items()]
    return _document(
        [
            tag("a", "To the verdict", href="#verdict", class_="skip"),
            tag("header", tag("h1", TITLE), None if note is None else tag("p", note)),
            tag("nav", tag("ul", *links), aria_label="Sections"),
            tag("main", *sections),
            tag("footer", tag("p", f"Made by surrokit on {made}.")),
        ],
        refresh,
    )


def waiting_page(what: str, refresh: int) -> str:
    """Return a page about a run of which there is nothing to show yet.

    Parameters
    ----------
    what
        Why.
    refresh
        Seconds after which a browser asks for the page again.
    """
    main = tag("main", tag("h1", TITLE), tag("p", what))
    again = tag("p", f"This page is read again every {refresh} seconds.")
    return _document([main, tag("footer", again)], refresh)


def _section(name: str, title: str, body: Markup) -> Markup:
    heading = tag("h2", title, id=f"{name}-title")
    return tag("section", heading, body, id=name, aria_labelledby=f"{name}-title")


def _document(body: list[Child], refresh: int | None) -> str:
    """Return a document whose own script is the only one that a browser runs."""
    style, script = (_asset(f"page.{ending}") for ending in ("css", "js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    again = None if refresh is None else tag("meta", http_equiv="refresh", content=str(refresh))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        again,
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", TITLE),
        tag("style", Markup(style)),
    )
    whole = tag("html", head, tag("body", *body, tag("script", Markup(script))), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"


def _asset(name: str) -> str:
    return files("surrokit.report").joinpath(name).read_text(encoding="utf-8")
