"""What to say where a plugin is looked for inside the package."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

_PACKAGE = "surrokit"


class PluginsElsewhere(MetaPathFinder):
    """Finds no module, and says where the plugin is that was looked for.

    Plugins are packages of their own, so ``import surrokit.NAME`` cannot work. Python asks this
    finder after all others.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return None, as for any module that is unknown.

        Raises
        ------
        ModuleNotFoundError
            If there is a plugin of this name.
        """
        del path, target
        package, _, name = fullname.partition(".")
        if package != _PACKAGE or not name.isidentifier():
            return None
        plugin = f"{_PACKAGE}_{name}"
        if find_spec(plugin) is None:
            return None
        # without the name of a module: Python would replace the message of a from-import
        raise ModuleNotFoundError(
            f"there is no {fullname}: plugins are packages of their own; write "
            f"from {plugin} import ..."
        )


def say_where_plugins_are() -> None:
    """Have Python ask the finder, once."""
    if not any(isinstance(each, PluginsElsewhere) for each in sys.meta_path):
        sys.meta_path.append(PluginsElsewhere())
