"""The frame of the paper's experiments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs


@attrs.frozen(kw_only=True)
class PaperExperiment:
    """A table or figure of the paper, whose settings are its fields."""

    name: ClassVar[str]
    """As it is registered."""

    title: ClassVar[str]
    """What it shows."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings."""
        return attrs.asdict(self)

    def settings_without(self, *names: str) -> dict[str, Any]:
        """Return all settings but some, which differ from row to row."""
        return {name: value for name, value in self.settings.items() if name not in names}
