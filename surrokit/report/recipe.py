"""The last section of a page: what a run was made of, and how to make it again."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import attrs
import numpy as np

from surrokit.shown.elements import Markup, items, join, tag

LIBRARIES = ("surrokit", "numpy", "scipy", "scikit-learn", "arviz-stats", "matplotlib")

MOST_NUMBERS = 100
"""Numbers of an array in the lines that make a run again."""


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

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    """
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
    if isinstance(value, np.ndarray):
        return repr(value.tolist()) if value.size <= MOST_NUMBERS else "..."
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, list):
        return f"[{', '.join(map(_source, value))}]"
    if isinstance(value, tuple):
        inside = ", ".join(map(_source, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return repr(value)
