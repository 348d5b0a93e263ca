"""The table, as Markdown that can be read as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from peers.outcome import disagreement, tolerance

DENSE = "hmc-dense"
"""The stronger baseline, and what all means and variances are compared with where it converged."""

TRUSTED_RHAT = 1.05
"""Above it an effective sample size means little."""

WORTH = (
    "method",
    "ESS/s of q",
    "of (q - mean)²",
    "times HMC",
    "times dense HMC",
    "times best peer",
    "ESS/gradient of q",
    "of (q - mean)²",
)
"""Columns of the first table."""

COST = (
    "method",
    "R-hat",
    "off by",
    "draws a chain",
    "seconds before",
    "drawing",
    "ESS/s of drawing",
    "compiling",
    "gradients",
)
"""Columns of the second table."""

Results = Mapping[str, Any]
"""Of one problem, as written to its file: ``lines`` by name of the method, and so on."""


def efficiency(line: Mapping[str, Any] | None) -> float | None:
    """Return the smaller of both rates a second; None where there is none."""
    if line is None or line["status"] != "done" or not trusted(line):
        return None
    rates = [line[name] for name in ("rate", "rate_squares")]
    return None if None in rates else float(min(rates))


def trusted(line: Mapping[str, Any]) -> bool:
    """Whether the chains agree well enough for an effective sample size to mean something."""
    return line["rhat"] is not None and line["rhat"] <= TRUSTED_RHAT


def best_peer(results: Results) -> str | None:
    """Return the name of the peer with the highest efficiency, if there is any."""
    rates = {
        name: rate
        for name, line in results["lines"].items()
        if line["kind"] == "peer" and (rate := efficiency(line)) is not None
    }
    return max(rates, key=lambda name: rates[name]) if rates else None


def reference(results: Results) -> str | None:
    """Return the method that the means and variances of all others are compared with.

    HMC with a dense mass matrix on the exact potential; where its chains disagree, the method with
    most effective draws among those whose chains agree. None where there is no such method.
    """
    sizes = {
        name: min(line["ess"], line["ess_squares"])
        for name, line in results["lines"].items()
        if efficiency(line) is not None
    }
    if not sizes or DENSE in sizes:
        return DENSE if sizes else None
    return max(sizes, key=lambda name: sizes[name])


def markdown(results: Results) -> str:
    """Return title, tables and what has to be said below them, as Markdown."""
    names = results["lines"]
    worth = [_worth(name, results) for name in names]
    cost = [_cost(name, results) for name in names if names[name]["status"] == "done"]
    text = [f"## {results['title']}", "", *_table(WORTH, worth), "", *_table(COST, cost)]
    text += ["", _conditions(results), *_remarks(results), ""]
    return "\n".join(text)


def _worth(name: str, results: Results) -> list[str]:
    line, lines = results["lines"][name], results["lines"]
    if line["status"] != "done":
        return [line["title"], line["status"], *[""] * (len(WORTH) - 2)]
    return [
        line["title"] if trusted(line) else f"{line['title']} †",
        _short(line["rate"]),
        _short(line["rate_squares"]),
        *(_ratio(line, lines.get(other)) for other in ("hmc", DENSE, best_peer(results))),
        _short(line["per_call"]),
        _short(line["per_call_squares"]),
    ]


def _cost(name: str, results: Results) -> list[str]:
    line = results["lines"][name]
    seconds = line["seconds"]
    return [
        line["title"],
        "" if line["rhat"] is None else f"{line['rhat']:.3f}",
        _off(name, results),
        str(line["draws"]),
        f"{seconds['warmup'] + seconds['training']:.1f}",
        f"{seconds['sampling']:.1f}",
        _short(line["sampling_rate"]),
        f"{seconds['compilation']:.1f}",
        f"{line['gradient_equivalents']:.0f}",
    ]


def versions(results: Results) -> str:
    """Return what the figures were made with, as one sentence."""
    found = dict(results["machine"])
    processor, cores = found.pop("processor"), found.pop("cores")
    for line in results["lines"].values():
        found |= line.get("versions", {})
    words = ", ".join(f"{name} {version}" for name, version in found.items())
    return f"On one core of {cores} ({processor}), {words}."


def _ratio(line: Mapping[str, Any], other: Mapping[str, Any] | None) -> str:
    ours, theirs = efficiency(line), efficiency(other)
    return "" if ours is None or not theirs else _short(ours / theirs)


def _off(name: str, results: Results) -> str:
    lines, right = results["lines"], reference(results)
    if right is None or name == right or lines[name]["status"] != "done":
        return ""
    largest = disagreement(lines[name], lines[right])
    if largest is None:
        return ""
    far = largest > tolerance(len(lines[name]["mean"]))
    return f"{largest:.1f} ‡" if far else f"{largest:.1f}"


def _conditions(results: Results) -> str:
    shares = results["shares"]
    text = (
        f"A gradient with its value takes {shares['milliseconds']:.2f} ms in surrokit's target, "
        f"four positions at once; a value alone {shares['value']:.2f} of it"
    )
    if "hessian" in shares:
        text += f", a Hessian {shares['hessian']:.1f}"
    settings = results["settings"]
    others = "".join(
        f", {line['title']} {line['limit']:g} s"
        for line in results["lines"].values()
        if line["limit"] != settings["seconds"]
    )
    return (
        f"{text}. Every method had {settings['seconds']:g} s{others}, and {settings['chains']} "
        f"chains; peers and HMC had a warm-up of {settings['warmup']} iterations, peers a "
        f"{settings['mass']} mass matrix (nutpie's is of low rank where others are dense)."
    )


def _remarks(results: Results) -> list[str]:
    text = []
    lines = results["lines"].values()
    if any(line["status"] == "done" and not trusted(line) for line in lines):
        text += ["", f"† R-hat above {TRUSTED_RHAT}: the effective sample size means little."]
    if any("‡" in _off(name, results) for name in results["lines"]):
        text += ["", "‡ Further off than chance allows one time in a thousand."]
    right = reference(results)
    if right not in (None, DENSE):
        title = results["lines"][right]["title"]
        text += ["", f'"off by" is measured from {title}, since dense HMC did not get far enough.']
    for line in lines:
        said = line["message"] if line["status"] != "done" else line["note"]
        if said:
            text += ["", f"{line['title']}: {' '.join(said.split())}"]
    return text


def _short(number: float | None) -> str:
    if number is None:
        return ""
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.2g}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    return [
        "| " + " | ".join(map(str.ljust, cells, widths)) + " |"  # aligned, to be read as it is
        for cells in lines
    ]
