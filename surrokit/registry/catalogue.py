"""The catalogue of registered parts, and objects made of names and settings."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import attrs

from surrokit.errors import (
    ComponentClashError,
    ConfigurationError,
    PluginError,
    UnknownComponentError,
)
from surrokit.registry.components import DEFAULT, KINDS, REQUIRED, Component, Kind, missing_members
from surrokit.registry.discovery import Plugins, default_plugins


@attrs.frozen(kw_only=True)
class Catalogue:
    """All registered components by kind and name."""

    entries: dict[tuple[Kind, str], Component]

    def __iter__(self) -> Iterator[Component]:
        """Iterate in the order of kinds, then of names."""
        return iter(sorted(self.entries.values(), key=lambda c: (KINDS.index(c.kind), c.name)))

    def names(self, kind: Kind) -> list[str]:
        """Return the names of one kind, sorted."""
        return sorted(name for k, name in self.entries if k == kind)

    def get(self, kind: Kind, name: str) -> Component:
        """Return a component; where there is none, an UnknownComponentError names the nearest."""
        if (kind, name) not in self.entries:
            raise UnknownComponentError(self._unknown(kind, name))
        return self.entries[kind, name]

    def serving(self, kind: Kind, purpose: str) -> Component | None:
        """Return the component that serves a purpose, if there is one.

        Purposes of the core are in :mod:`surrokit.registry.components`.
        """
        serve = (each for each in self if each.kind == kind and purpose in each.purposes)
        return next(serve, None)

    def pick(self, kind: Kind, purpose: str = DEFAULT) -> str:
        """Return the name of the component that serves a purpose; an error if there is none."""
        if (found := self.serving(kind, purpose)) is not None:
            return found.name
        if not (names := self.names(kind)):
            raise UnknownComponentError(self._unknown(kind, purpose))
        raise UnknownComponentError(
            f"no {kind} is registered that serves as {purpose!r}; name one of "
            f"{', '.join(names)}, or enable the plugin that has it"
        )

    def find(self, names: Sequence[str], kind: Kind | None = None) -> list[Component]:
        """Return the components with these names, of one kind or any; without names all of them."""
        entries = [each for each in self if kind in (None, each.kind)]
        known = sorted({each.name for each in entries})
        for name in names:
            if name not in known and kind is not None:
                raise UnknownComponentError(self._unknown(kind, name))
            if name not in known:
                raise UnknownComponentError(
                    f"no part is named {name!r}; {_near(name, known)}surrokit plugins lists them"
                )
        return [each for each in entries if not names or each.name in names]

    def _unknown(self, kind: Kind, name: str) -> str:
        names = self.names(kind)
        if kind not in KINDS:
            return f"there is no kind {kind!r}; kinds are: {', '.join(KINDS)}"
        if not names:
            plural = "policies" if kind == "policy" else f"{kind}s"
            return (
                f"no {plural} are registered, so there is no {name!r}; install surrokit "
                "itself (a bare checkout on the path announces no plugins): "
                "python -m pip install ."
            )
        elsewhere = [k for k, n in self.entries if n == name]
        hint = f"{name!r} is the name of a {elsewhere[0]}; " if elsewhere else _near(name, names)
        return f"no {kind} is named {name!r}; {hint}registered are: {', '.join(names)}"


def _near(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(map(repr, near))}? " if near else ""


def make_catalogue(plugins: Plugins) -> Catalogue:
    """Return the catalogue of what all plugins offer.

    A ComponentClashError names two that claim one name or one purpose of a kind; a PluginError one
    that raises, or returns something other than components.
    """
    entries: dict[tuple[Kind, str], Component] = {}
    serving: dict[tuple[Kind, str], Component] = {}
    advice = "uninstall one, or switch it off with SURROKIT_DISABLE_PLUGINS"
    for implementation in plugins.hook.surrokit_components.get_hookimpls():
        for offered in _offered(implementation.function, implementation.plugin_name):
            kind, name = offered.kind, offered.name
            new = attrs.evolve(offered, plugin=implementation.plugin_name)
            if (known := entries.setdefault((kind, name), new)) is not new:
                raise ComponentClashError(
                    f"{known.plugin} and {new.plugin} both register a {kind} named {name!r}; "
                    f"{advice}"
                )
            for purpose in new.purposes:
                if (first := serving.setdefault((kind, purpose), new)) is not new:
                    raise ComponentClashError(
                        f"{kind} {first.name!r} of {first.plugin} and {name!r} of {new.plugin} "
                        f"both claim to serve as {purpose!r}; {advice}"
                    )
    return Catalogue(entries=entries)


def _offered(hook: Callable[[], Any], label: str) -> Sequence[Component]:
    name = "surrokit_components"
    try:
        offered = hook()
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"plugin {label} raised {type(error).__name__} in {name}: {error}; fix it, or switch "
            "it off with SURROKIT_DISABLE_PLUGINS"
        ) from error
    said = f"plugin {label} returned {offered!r} from {name};"
    if not isinstance(offered, list | tuple):
        raise PluginError(f"{said} it must return a list of Components")
    if not all(isinstance(each, Component) for each in offered):
        raise PluginError(f"{said} every item must be a Component")
    return offered


@cache
def default_catalogue() -> Catalogue:
    """Return the catalogue of the plugins announced on this machine, built on first use."""
    return make_catalogue(default_plugins())


Spec: TypeAlias = str | tuple[str, Mapping[str, Any]]
"""A registered name, or a name with settings."""


class Composer:
    """Builds parts, and the parts inside them, which default to the run's ``own`` by kind."""

    def __init__(self, catalogue: Catalogue, own: Mapping[Kind, Any] | None = None) -> None:
        self.catalogue = catalogue
        self.own = dict(own or {})

    def with_own(self, parts: Mapping[Kind, Any]) -> Composer:
        """Return a composer that knows more of the run's own parts."""
        return Composer(self.catalogue, {**self.own, **parts})

    def make(self, kind: Kind, spec: Spec | object) -> Any:
        """Return the object that a name, or a pair of name and settings, describes.

        An object is returned as it is. An UnknownComponentError, ConfigurationError or PluginError
        says why there is no such part, a setting cannot be, or the part is none of its kind.
        """
        found = name_and_settings(spec)
        if found is None:
            if kind != "potential":  # which check_target looks at
                self._check_kind(kind, spec)
            return spec
        component, settings = self.catalogue.get(kind, found[0]), found[1]
        _check_settings(component, settings)
        for name, part in component.parts.items():
            inner = settings.get(name)
            if inner is None:
                inner = part.default if part.default is not None else self.own.get(part.kind)
            if inner is None:
                raise ConfigurationError(
                    f"{kind} {component.name!r} needs a {part.kind} as {name!r}; give a name "
                    f"({', '.join(self.catalogue.names(part.kind))}) or an object"
                )
            settings[name] = self.make(part.kind, inner)
        return component.make(settings)

    def _check_kind(self, kind: Kind, given: object) -> None:
        """Raise if an object cannot be a part of a kind, before code deep inside fails on it."""
        if missing_members(kind, given):
            raise ConfigurationError(
                f"a {kind} must be a registered name ({', '.join(self.catalogue.names(kind))}), a "
                "pair of name and settings, or an object with the methods of "
                f"surrokit.plugin.{kind.capitalize()}; got {given!r}"
            )
        if isinstance(given, type):
            raise ConfigurationError(
                f"as {kind}, the class {given.__name__} is given; make an object of it"
            )


def name_and_settings(spec: object) -> tuple[str, dict[str, Any]] | None:
    """Return the name and settings in a spec, or None for an object."""
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


def _check_settings(component: Component, settings: Mapping[str, Any]) -> None:
    known = component.settings()
    for name in settings:
        if name not in known:
            raise ConfigurationError(
                f"{component.kind} {component.name!r} has no setting {name!r}; {_near(name, known)}"
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
