"""The way from ``sample`` to a user's function, traced in a run and drawn."""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from types import FrameType
from typing import Any

WIDTH, MARGIN, INDENT, LINE, GAP = 640, 8, 14, 19, 20
_START = "sample"


def trace_path(**settings: Any) -> list[tuple[str, list[str]]]:
    """Return the files between ``sample`` and a user's gradient, each with its functions.

    The last call of a run is traced, which is one among draws.

    Parameters
    ----------
    **settings
        As for :func:`surrokit.sample`.
    """
    import surrokit as sk

    found: list[FrameType] = []

    def gradient(q: Any) -> Any:
        found[:] = _frames(sys._getframe(1))
        return q

    def value(q: Any) -> Any:
        found[:] = _frames(sys._getframe(1))
        return 0.5 * q @ q

    target = sk.potential(value, gradient, dim=2)
    sk.sample(target, chains=2, warmup=12, draws=2, seed=1, progress=False, **settings)
    path: list[tuple[str, list[str]]] = []
    for frame in reversed(found):
        file = _file(frame)
        if not path or path[-1][0] != file:
            path.append((file, []))
        path[-1][1].append(frame.f_code.co_qualname)
    return path


def _frames(frame: FrameType) -> list[FrameType]:
    """Return the calls of ours that led to one, from itself back to ``sample``."""
    frames = [frame]
    while frames[-1].f_code.co_name != _START and frames[-1].f_back is not None:
        frames.append(frames[-1].f_back)
    return frames


def _file(frame: FrameType) -> str:
    """Return a file of ours as it is imported from, with slashes; others by their full path."""
    path = Path(frame.f_code.co_filename)
    folders = path.parent.parts
    ours = [i for i, folder in enumerate(folders) if folder.startswith("surrokit")]
    return "/".join(path.parts[ours[-1] :]) if ours else str(path)


def draw(path: list[tuple[str, list[str]]]) -> str:
    """Return a picture of a path: a box for each file, with its functions in it, as SVG."""
    shapes, y = [], MARGIN
    for i, (file, functions) in enumerate(path):
        height = LINE * (len(functions) + 1) + 10
        if i:
            shapes.append(_arrow(y - GAP, y))
        shapes.append(
            f'<rect x="{MARGIN}" y="{y}" width="{WIDTH - 2 * MARGIN}" height="{height}" rx="6" '
            'fill="none" stroke="currentColor"/>'
        )
        shapes.append(_text(y + LINE, file, 'font-weight="bold"', MARGIN + INDENT))
        for line, function in enumerate(functions, 2):
            shapes.append(_text(y + line * LINE, function, 'opacity="0.8"', MARGIN + 3 * INDENT))
        y += height + GAP
    words = "; ".join(f"{file}: {', '.join(functions)}" for file, functions in path)
    label = escape(f"The calls from sample to a user's function, file by file. {words}.", True)
    return (
        f'<svg viewBox="0 0 {WIDTH} {y - GAP + MARGIN}" xmlns="http://www.w3.org/2000/svg" '
        f'role="img" aria-label="{label}" style="max-width: {WIDTH}px; width: 100%" '
        f'font-family="monospace" font-size="14">{"".join(shapes)}</svg>'
    )


def _text(y: int, words: str, style: str, x: int) -> str:
    return f'<text x="{x}" y="{y}" fill="currentColor" {style}>{escape(words)}</text>'


def _arrow(top: int, bottom: int) -> str:
    x = MARGIN + 2 * INDENT
    head = f"M {x - 4} {bottom - 6} L {x} {bottom} L {x + 4} {bottom - 6}"
    return f'<path d="M {x} {top} L {x} {bottom} {head}" fill="none" stroke="currentColor"/>'
