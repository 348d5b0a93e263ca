"""Alternative texts of pictures may have line breaks; the parser would leave no space there."""

from __future__ import annotations

import re
from typing import Any

_ALT = re.compile(r"!\[[^\]]+\]\(")


def _read(app: Any, docname: str, source: list[str]) -> None:  # noqa: ARG001
    source[0] = _ALT.sub(lambda match: re.sub(r"\s*\n\s*", " ", match[0]), source[0])


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
