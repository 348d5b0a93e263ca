"""From kind and name to the registered component."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, get_args

import attrs

from surrokit.components import KINDS, Component, Kind
from surrokit.discovery import Plugins, default_plugins
from surrokit.errors import ComponentClashError, PluginError, UnknownComponentError

_PLURALS: dict[Kind, str] = {kind: f"{kind}s" for kind in get_args(Kind)}


@attrs.frozen(kw_only=True)
class Entry:
    """A component and the plugin that offers it."""

    component: Component
    plugin: str


@attrs.frozen(kw_only=True)
class Catalogue:
    """All registered components by kind and name."""

    entries: dict[tuple[Kind, str], Entry]

    def __iter__(self) -> Iterator[Entry]:
        """Iterate in the order of kinds, then of names."""
        order = {kind: i for i, kind in enumerate(KINDS)}
        yield from (
            self.entries[key] for key in sorted(self.entries, key=lambda k: (order[k[0]], k[1]))
        )

    def names(self, kind: Kind) -> list[str]:
        """Return the names of one kind, sorted."""
        return sorted(name for k, name in self.entries if k == kind)

    def get(self, kind: Kind, name: str) -> Component:
        """Return a component.

        Raises
        ------
        UnknownComponentError
            If there is none; the message names the nearest ones.
        """
        try:
            return self.entries[kind, name].component
        except KeyError:
            raise UnknownComponentError(self._unknown(kind, name)) from None

    def _unknown(self, kind: Kind, name: str) -> str:
        names = self.names(kind)
        if not names:
            return (
                f"no {_PLURALS[kind]} are registered, so there is no {name!r}; install surrokit "
                "itself (a bare checkout on the path announces no plugins): "
                "python -m pip install ."
            )
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        elsewhere = [k for k, n in self.entries if n == name]
        if elsewhere:
            hint = f"{name!r} is the name of a {elsewhere[0]}; "
        return f"no {kind} is named {name!r}; {hint}registered are: {', '.join(names)}"


def make_catalogue(plugins: Plugins) -> Catalogue:
    """Ask every plugin what it offers.

    Raises
    ------
    ComponentClashError
        If two plugins claim one name of a kind.
    PluginError
        If a plugin returns something else than components of the hook's kind.
    """
    entries: dict[tuple[Kind, str], Entry] = {}
    for kind in KINDS:
        hook = getattr(plugins.manager.hook, f"surrokit_register_{_PLURALS[kind]}")
        for implementation in hook.get_hookimpls():
            label = plugins.label_of(implementation.plugin)
            for component in _offered(implementation.function, kind, label):
                known = entries.setdefault(
                    (kind, component.name), Entry(component=component, plugin=label)
                )
                if known.component is not component:
                    raise ComponentClashError(
                        f"{known.plugin} and {label} both register a {kind} named "
                        f"{component.name!r}; uninstall one, or switch it off with "
                        "SURROKIT_DISABLE_PLUGINS"
                    )
    return Catalogue(entries=entries)


def _offered(hook: Callable[[], Any], kind: Kind, label: str) -> list[Component]:
    name = f"surrokit_register_{_PLURALS[kind]}"
    try:
        offered = hook()
    except Exception as error:
        raise PluginError(
            f"plugin {label} raised {type(error).__name__} in {name}: {error}; fix it, or switch "
            "it off with SURROKIT_DISABLE_PLUGINS"
        ) from error
    if not isinstance(offered, list | tuple):
        raise PluginError(
            f"plugin {label} returned {offered!r} from {name}; it must return a list of Components"
        )
    for component in offered:
        if not isinstance(component, Component) or component.kind != kind:
            raise PluginError(
                f"plugin {label} returned {component!r} from {name}; every item must be a "
                f"Component of kind {kind!r}"
            )
    return list(offered)


@cache
def default_catalogue() -> Catalogue:
    """Return the catalogue of the plugins announced on this machine, built on first use."""
    return make_catalogue(default_plugins())
