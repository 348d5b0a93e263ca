"""The table, as Markdown that can be read as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from harness import Row, table
from real_posteriors.cases import CASES
from real_posteriors.judging import verdict
from real_posteriors.methods import METHODS

COLUMNS = (
    "posterior",
    "method",
    "came out",
    "R-hat",
    "mean off",
    "sd off",
    "calls before",
    "calls an effective draw",
    "seconds",
    "said",
)
"""Of the table of all runs."""

SUMMARY = (
    "method",
    "posteriors",
    "right on all seeds",
    "runs right",
    "wrong, warned",
    "wrong, silent",
    "right, warned",
    "no draws",
    "calls an effective draw",
    "seconds",
)
"""Of the table of methods."""

LETTERS = {"gradient": "g", "value": "v", "forward": "f", "jacobian": "j", "hessian": "h"}
"""Kinds of calls as the table writes them; others by their names."""

WORDS_OF_A_WARNING = 60

NO_DRAWS = ("failed", "over time", "not installed")


def report(rows: Iterable[Row]) -> str:
    """Return both tables, and what the letters mean."""
    kept = list(rows)
    letters = ", ".join(f"{letter} {kind}" for kind, letter in LETTERS.items())
    return "\n".join(
        [
            *table(COLUMNS, [_line(group) for group in _groups(kept, ("posterior", "method"))]),
            "",
            "Calls, effective draws and seconds are medians over the seeds, the rest is the worst "
            f"of them. Calls by kind: {letters}.",
            "",
            *table(SUMMARY, [_of_method(group) for group in _groups(kept, ("method",))]),
            "",
        ]
    )


EFFECTIVE = 1000
"""Effective draws that gradients are counted for."""


def gradients(rows: Iterable[Row]) -> str:
    """Return the table of gradients of 1000 effective draws, for each of them.

    Those before the first kept draw count. Effective draws are the least of bulk, tails and squares
    over the parameters; where there are more or fewer than 1000, draws are taken to go on alike. A
    figure is a median over the seeds, in brackets where a run is wrong.
    """
    kept = list(rows)
    methods = [name for name in METHODS if any(row["method"] == name for row in kept)]
    cells: dict[str, dict[str, tuple[float, str]]] = {}
    for group in _groups(kept, ("posterior", "method")):
        first = group[0]
        found = [_gradients(row) for row in group if row["status"] == "done"]
        price = float(np.median(found)) if found else np.nan
        words = "" if np.isnan(price) else f"{price:.1f}"
        right = {verdict(row) for row in group} == {"right"}
        words = words if right or not words else f"({words})"
        cells.setdefault(first["posterior"], {})[first["method"]] = price, words
    lines = [
        [name, *(found.get(method, (np.nan, ""))[1] for method in methods)]
        for name, found in cells.items()
    ]
    prices = {m: [found.get(m, (np.nan, ""))[0] for found in cells.values()] for m in methods}
    medians = [f"{np.nanmedian(prices[method]):.1f}" for method in methods]
    titles = [METHODS[method].title for method in methods]
    return "\n".join([*table(["posterior", *titles], [*lines, ["median", *medians]]), ""])


def _gradients(row: Row) -> float:
    # a Jacobian of a forward model gives the gradient
    before, calls = (
        sum(row[name].get(kind, 0) for kind in ("gradient", "jacobian"))
        for name in ("calls_before", "calls")
    )
    return before / EFFECTIVE + (calls - before) / row["ess"] if row["ess"] else float("nan")


def _groups(rows: list[Row], names: tuple[str, ...]) -> list[list[Row]]:
    """Return rows that agree in some names, in the order of the catalogue."""
    order = {"posterior": list(CASES), "method": list(METHODS)}
    found: dict[tuple[int, ...], list[Row]] = {}
    for row in rows:
        key = tuple(order[name].index(row[name]) for name in names)
        found.setdefault(key, []).append(row)
    return [sorted(found[key], key=lambda row: row["seed"]) for key in sorted(found)]


def _line(rows: list[Row]) -> list[str]:
    first, done = rows[0], [row for row in rows if row["status"] == "done"]
    return [
        f"{first['posterior']} ({CASES[first['posterior']].dim})",
        METHODS[first["method"]].title,
        came_out(rows),
        _worst(done, "rhat", ".3f"),
        _worst(done, "mean", ".2f"),
        _worst(done, "sd", ".0%"),
        _calls([row["calls_before"] for row in done]),
        _calls([_per_draw(row) for row in done]),
        _median([row["seconds"] for row in done], ".1f"),
        _said(rows),
    ]


def came_out(rows: Sequence[Row]) -> str:
    """Return verdicts with their seeds, or one verdict if all are the same."""
    seeds: dict[str, list[int]] = {}
    for row in rows:
        words = verdict(row)
        if words == "right" and row["warnings"]:
            words = "right, warned"
        seeds.setdefault(words.replace("silent", "**silent**"), []).append(row["seed"])
    if len(seeds) == 1:
        return next(iter(seeds))
    return "; ".join(f"{words} ({', '.join(map(str, n))})" for words, n in seeds.items())


def _worst(rows: Sequence[Row], name: str, form: str) -> str:
    values = [row[name] for row in rows]
    if not values:
        return ""
    return "none" if None in values else format(max(values), form)


def _per_draw(row: Row) -> dict[str, float]:
    ess = row["ess"]
    return {kind: np.nan if not ess else n / ess for kind, n in row["calls"].items()}


def _calls(several: Sequence[dict[str, float]]) -> str:
    kinds = {kind for calls in several for kind in calls}
    shown = [kind for kind in LETTERS if kind in kinds] + sorted(kinds - set(LETTERS))
    medians = {k: float(np.median([calls.get(k, 0) for calls in several])) for k in shown}
    return " + ".join(f"{_number(n)} {LETTERS.get(k, k)}" for k, n in medians.items() if n)


def _number(value: float) -> str:
    if np.isnan(value):
        return "none"
    return f"{value:,.3g}" if value < 100 else f"{value:,.0f}"


def _median(values: Sequence[float], form: str) -> str:
    return format(float(np.median(values)), form) if values else ""


def _said(rows: Sequence[Row]) -> str:
    """Return the beginnings of warnings and of what went wrong, each once."""
    said = [
        text for row in rows for text in (row.get("message", ""), *row.get("warnings", ())) if text
    ]
    beginnings = dict.fromkeys(text[:WORDS_OF_A_WARNING].replace("|", "/") for text in said)
    return "; ".join(beginnings)


def _of_method(rows: list[Row]) -> list[str]:
    done = [row for row in rows if row["status"] == "done"]
    verdicts = [verdict(row) for row in rows]
    by_posterior: dict[str, list[str]] = {}
    for row, words in zip(rows, verdicts, strict=True):
        by_posterior.setdefault(row["posterior"], []).append(words)
    all_right = sum(set(words) == {"right"} for words in by_posterior.values())
    right = [row for row in done if not row["wrong"]]
    return [
        METHODS[rows[0]["method"]].title,
        str(len(by_posterior)),
        str(all_right),
        f"{len(right)} of {len(rows)}",
        str(verdicts.count("wrong, warned")),
        str(verdicts.count("wrong, silent")),
        str(sum(bool(row["warnings"]) for row in right)),
        str(sum(words in NO_DRAWS for words in verdicts)),
        _calls([_per_draw(row) for row in right]),
        _median([row["seconds"] for row in done], ".1f"),
    ]
