"""``--set part.setting=value`` of the command line."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any, cast

from surrokit.errors import ConfigurationError
from surrokit.registry.catalogue import Catalogue
from surrokit.registry.components import KINDS, Kind

_PARTS = ("target", *(kind for kind in KINDS if kind != "potential"))


def parse_settings(settings: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Parse ``part.setting=value`` items into the settings of each part.

    A value that is no Python literal is text.

    Raises
    ------
    ConfigurationError
        If an item has another form, or there is no such part.
    """
    parsed: dict[str, dict[str, Any]] = {}
    for item in settings:
        key, equals, value = item.partition("=")
        part, dot, setting = key.partition(".")
        if not (equals and dot and setting.isidentifier()):
            raise ConfigurationError(
                f"--set takes part.setting=value, got {item!r}; for example surrogate.n_nodes=500"
            )
        if part not in _PARTS:
            raise ConfigurationError(
                f"--set {item!r}: there is no part {part!r}; parts are {', '.join(_PARTS)}"
            )
        parsed.setdefault(part, {})[setting] = _literal(value)
    return parsed


def specs_of(
    names: Mapping[str, str | None], settings: Mapping[str, dict[str, Any]], catalogue: Catalogue
) -> dict[str, Any]:
    """Join names of parts with their settings into arguments of :func:`surrokit.sample`.

    Parameters
    ----------
    names
        Kind to name, None where none is given.
    settings
        Kind to settings; where no name is given, they go to the default part of the kind.
    catalogue
        Catalogue with the defaults.

    Raises
    ------
    ConfigurationError
        If settings are given for a kind that is named ``"none"``.
    """
    specs: dict[str, Any] = {}
    for kind in cast(Mapping[Kind, Any], {**names, **settings}):
        name = names.get(kind)
        if kind not in settings:
            specs[kind] = name
        elif name == "none":
            raise ConfigurationError(
                f"there is no {kind}, so {', '.join(settings[kind])} cannot be set; name one with "
                f"--{kind}"
            )
        else:
            specs[kind] = (name or catalogue.pick(kind), settings[kind])
    return specs


def _literal(value: str) -> Any:
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value
