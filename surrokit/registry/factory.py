"""The import of a class or function by its path."""

from __future__ import annotations

import difflib
import importlib
import re
from functools import reduce
from typing import Any

from surrokit.errors import PluginLoadError, SurrokitError

PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
"""``package.module:Class``, or ``package.module:Class.method``."""


def load_object(path: str, what: str) -> Any:
    """Import the module of a path, and return what the path names.

    Parameters
    ----------
    path
        ``package.module:Class``.
    what
        The name in messages of the part that it makes.

    Raises
    ------
    PluginLoadError
        If there is no such module, or it cannot be imported, or there is no such name in it.
    """
    name, _, attribute = path.partition(":")
    try:
        module = importlib.import_module(name)
    except SurrokitError:
        raise  # it says what to do already, such as to install a package
    except (Exception, SystemExit) as error:
        raise PluginLoadError(
            f"{what} is to be made by {path!r}, but {name} cannot be imported: "
            f"{type(error).__name__}: {error}; repair it, or the factory of the component"
        ) from error
    try:
        return reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        near = difflib.get_close_matches(attribute, dir(module), n=1)
        hint = f"did you mean {name}:{near[0]}? " if near else ""
        raise PluginLoadError(
            f"{what} is to be made by {path!r}, but {error}; {hint}correct the factory of the "
            "component"
        ) from error
