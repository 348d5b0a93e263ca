"""The composer: it makes parts, and the parts inside them, from names and settings."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeAlias

from surrokit.errors import ConfigurationError
from surrokit.registry.catalogue import Catalogue, Entry
from surrokit.registry.components import Component
from surrokit.registry.kinds import BOUND_KINDS, Kind, binds_as
from surrokit.registry.settings import REQUIRED

Spec: TypeAlias = str | tuple[str, Mapping[str, Any]]
"""A registered name, or a name with settings."""


_METHODS: Mapping[Kind, tuple[tuple[str, ...], ...]] = {
    "surrogate": (("learner",), ("dim", "capabilities", "value")),
    "schedule": (("learns", "decide"),),
    "explorer": (("needs", "explore"),),
    "integrator": (("advance",),),
    "metric": (("energy",),),
}
"""Members by which an object of each kind is known; a surrogate may be a ready potential."""


class Composer:
    """Builds parts, and the parts inside them.

    Parameters
    ----------
    catalogue
        Where names are looked up.
    own
        The run's own parts by kind, which a part inside another defaults to.
    """

    def __init__(self, catalogue: Catalogue, own: Mapping[Kind, Any] | None = None) -> None:
        self.catalogue = catalogue
        self.own = dict(own or {})

    def with_own(self, parts: Mapping[Kind, Any]) -> Composer:
        """Return a composer that knows more of the run's own parts."""
        return Composer(self.catalogue, {**self.own, **parts})

    def make(self, kind: Kind, spec: Spec | object, **extra: Any) -> Any:
        """Return the object that a spec describes; an object is returned as it is.

        Parameters
        ----------
        kind
            Kind of part.
        spec
            Name, pair of name and settings, or object.
        **extra
            More settings; None means not given.

        Raises
        ------
        UnknownComponentError
            If there is no such part.
        ConfigurationError
            If a setting is unknown or missing, or given for an object that is already made.
        PluginError
            If the part cannot be imported, or lacks members of its kind.
        """
        given = {name: value for name, value in extra.items() if value is not None}
        found = name_and_settings(spec)
        if found is None:
            if given:
                raise ConfigurationError(
                    f"{', '.join(given)} cannot be set on a {kind} that is already made "
                    f"({spec!r}); set it when making the object, or name the {kind}"
                )
            self._check_kind(kind, spec)
            return spec
        name, settings = found
        entry = self.catalogue.entry(kind, name)
        settings = {**settings, **given}
        _check_settings(entry, settings)
        parts = self._parts(entry.component, settings)
        return entry.make({**settings, **parts})

    def _check_kind(self, kind: Kind, given: object) -> None:
        """Raise if an object cannot be a part of a kind, before code deep inside fails on it."""
        if kind in _METHODS:
            alike = any(all(hasattr(given, name) for name in names) for names in _METHODS[kind])
        elif kind in BOUND_KINDS:
            alike = binds_as(given) == kind
        else:
            return
        if isinstance(given, type) and alike:
            raise ConfigurationError(
                f"as {kind}, the class {given.__name__} is given; make an object of it"
            )
        if not alike:
            raise ConfigurationError(
                f"a {kind} must be a registered name ({', '.join(self.catalogue.names(kind))}), a "
                "pair of name and settings, or an object with the methods of "
                f"surrokit.protocols.{kind.capitalize()}; got {given!r}"
            )

    def _parts(self, component: Component, settings: dict[str, Any]) -> dict[str, Any]:
        """Take the parts out of ``settings``, and return them made."""
        made = {}
        for setting, part in component.parts.items():
            spec = settings.pop(setting, None)
            if spec is None:
                spec = part.default if part.default is not None else self.own.get(part.kind)
            if spec is None:
                raise ConfigurationError(
                    f"{component.kind} {component.name!r} needs a {part.kind} as {setting!r}; "
                    f"give a name ({', '.join(self.catalogue.names(part.kind))}) or an object"
                )
            made[setting] = self.make(part.kind, spec)
        return made


def name_and_settings(spec: object) -> tuple[str, dict[str, Any]] | None:
    """Return the name and settings in a spec, or None for an object.

    Raises
    ------
    ConfigurationError
        If the settings are not a dictionary.
    """
    if isinstance(spec, str):
        return spec, {}
    if isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[0], str):
        if not isinstance(spec[1], Mapping):
            raise ConfigurationError(
                f"settings of {spec[0]!r} must be a dictionary, got {spec[1]!r}"
            )
        return spec[0], dict(spec[1])
    return None


def describe(spec: object) -> str:
    """Return a name with its settings, or the type of an object."""
    found = name_and_settings(spec)
    if found is None:
        return type(spec).__name__
    settings = ", ".join(f"{name}={value!r}" for name, value in found[1].items())
    return found[0] + (f"({settings})" if settings else "")


def _check_settings(entry: Entry, settings: Mapping[str, Any]) -> None:
    component, known = entry.component, entry.settings()
    for name in settings:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ConfigurationError(
                f"{component.kind} {component.name!r} has no setting {name!r}; {hint}"
                f"its settings are: {', '.join(known) or 'none'}"
            )
    missing = [
        name
        for name, setting in known.items()
        if setting.default is REQUIRED and name not in settings and name not in component.parts
    ]
    if missing:
        raise ConfigurationError(
            f"{component.kind} {component.name!r} needs {', '.join(missing)}; pass "
            f"({component.name!r}, {{{', '.join(f'{m!r}: ...' for m in missing)}}})"
        )
