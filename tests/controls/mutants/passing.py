"""What passes everything on to a sound part, for mutants that spoil one thing."""

from __future__ import annotations

from typing import Any


class Passing:
    """Has all that a sound part has."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)
