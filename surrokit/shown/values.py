"""Settings in few words."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten
from typing import Any

import attrs
import numpy as np

LONGEST = 100
"""Characters of a setting that are shown."""


def settings_of(part: object) -> dict[str, Any]:
    """Return the settings of a part by name, in order.

    Parameters
    ----------
    part
        An object; of an attrs class the settings are its fields, else its public attributes.
    """
    of: Any = type(part)
    if attrs.has(of):
        fields = [each for each in attrs.fields(of) if each.init]
        return {each.name.lstrip("_"): getattr(part, each.name) for each in fields}
    own = vars(part) if hasattr(part, "__dict__") else {}
    return {name: value for name, value in own.items() if not name.startswith("_")}


def describe_value(value: Any) -> str:
    """Return a setting as a reader would say it, however large it is.

    Parameters
    ----------
    value
        Anything.
    """
    return shorten(_tell(value), LONGEST, placeholder=" …")


def _tell(value: Any) -> str:
    if isinstance(value, str | int | None) or value is ...:
        return str(value)
    if isinstance(value, float):
        return format(value, ".6g")
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_tell(each)}" for name, each in value.items())
    if isinstance(value, tuple | list | set | frozenset):
        told = [_tell(each) for each in value]
        return ", ".join(sorted(told) if isinstance(value, set | frozenset) else told)
    return _tell_object(value)


def _tell_object(value: Any) -> str:
    if isinstance(getattr(value, "name", None), str):
        return str(value.name)
    if attrs.has(type(value)):
        changed = ", ".join(f"{name}={_tell(each)}" for name, each in _changed(value).items())
        return f"{type(value).__name__}({changed})"
    if callable(value) and hasattr(value, "__name__"):
        return f"{value.__name__}()"
    return type(value).__name__


def _changed(part: Any) -> dict[str, Any]:
    """Return the settings of a part that are not told as the default ones are."""
    defaults = {each.name: _default(each) for each in attrs.fields(type(part)) if each.init}
    given = {name: getattr(part, name) for name in defaults}
    return {name: value for name, value in given.items() if _tell(value) != _tell(defaults[name])}


def _default(field: Any) -> Any:
    made = isinstance(field.default, attrs.Factory) and not field.default.takes_self  # type: ignore[arg-type]
    return field.default.factory() if made else field.default
