"""The last section of a page: what a run was made of, and how to make it again."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import attrs

from surrokit.shown.elements import Markup, items, join, tag

LIBRARIES = ("surrokit", "numpy", "scipy", "scikit-learn", "arviz-stats", "matplotlib")

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_PARTS = ("sampler", "surrogate", "schedule", "explorer", "correction")


def section(run: Any) -> Markup:
    """Return the section.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    """
    return join(
        [
            items([*((kind, what) for kind, what in run.parts.items()), ("picked", run.choice)]),
            tag("h3", "To make it again"),
            _code(lines_of(run)),
            tag("h3", "Versions"),
            items(versions().items()),
        ]
    )


def _code(lines: str) -> Markup:
    return tag("pre", tag("code", lines), tabindex="0", role="region", aria_label="Python")


def versions() -> dict[str, str]:
    """Return versions of Python and of libraries, those with which the page is made."""
    found = {"Python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def lines_of(run: Any) -> str:
    """Return lines of Python that make a run again, with what is not known in comments.

    A run with a file knows what it was asked for. Of another one only the parts and sizes are
    known.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    """
    notes = ["# the target is yours: no run holds it"]
    if run.asked is not None:
        arguments = dict(run.asked)
    else:
        arguments = _guess(run)
        notes.append("# without path=... a run does not know its seed, nor settings of its parts,")
        notes.append("# nor whether the length of its warm-up was given")
    given = [f"    {name}={_source(value)}," for name, value in arguments.items()]
    if any("..." in line for line in given):
        notes.append("# ... was an object of yours")
    lines = ["import surrokit as sk", "", *notes, "run = sk.sample(", "    target,", *given, ")"]
    return "\n".join(lines)


def _guess(run: Any) -> dict[str, Any]:
    """Return parts and sizes that are known of any run."""
    known = {kind: run.parts[kind] for kind in _PARTS if kind in run.parts}
    parts = {kind: name if _NAME.fullmatch(name) else ... for kind, name in known.items()}
    chains, draws, _ = run.draws.shape
    return {**parts, "chains": chains, "draws": draws}


def _source(value: Any) -> str:
    """Return a value as Python writes it."""
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
    if isinstance(value, tuple):
        inside = ", ".join(map(_source, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return repr(value)
