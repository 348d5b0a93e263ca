"""surrokit: exact posterior draws from expensive models, driven by cheap learned surrogates.

Importing this package alone imports next to nothing, so that the command line answers at once: the
public names, those of ``surrokit.public``, are imported when the first of them is asked for.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surrokit.public import *  # noqa: F403

    __version__: str

_LIGHT = {
    "Component": "surrokit.registry.components",
    "Part": "surrokit.registry.components",
    "hookimpl": "surrokit.registry.hooks",
}
"""What the modules of plugins import."""


class _Face(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and find_spec(f"{self.__name__}.{name}") is not None:
            return import_module(f"{self.__name__}.{name}")
        if name in (*_LIGHT, "__all__", "__version__") or (name[0] != "_" and name in dir(self)):
            return getattr(import_module(_LIGHT.get(name, "surrokit.public")), name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        names = import_module("surrokit.public").__all__
        return sorted([*names, "__version__", "errors"])

    @property
    def model(self) -> Any:
        """The function, and never the room of this name."""
        return import_module("surrokit.public").model

    @model.setter
    def model(self, room: ModuleType) -> None: ...


sys.modules[__name__].__class__ = _Face
