"""Pictures as files; Matplotlib is needed for nothing else in the core."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surrokit.errors import ConfigurationError

RESOLUTION = 200
"""Dots per inch of a PNG."""


def write_pictures(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as PNG and SVG, and return their paths.

    Equal figures give SVG files that are equal byte for byte.

    Parameters
    ----------
    figure
        A :class:`matplotlib.figure.Figure`.
    stem
        Path without ending.

    Raises
    ------
    ConfigurationError
        If a file cannot be written.
    """
    import matplotlib as mpl

    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in ("png", "svg")]
    with mpl.rc_context({"svg.hashsalt": "surrokit", "svg.fonttype": "path"}):
        for path in paths:
            metadata = {"Date": None} if path.suffix == ".svg" else None
            try:
                figure.savefig(path, dpi=RESOLUTION, metadata=metadata)
            except OSError as error:
                raise ConfigurationError(
                    f"cannot write {path}: {error.strerror}; give another folder with --out"
                ) from error
    return paths
