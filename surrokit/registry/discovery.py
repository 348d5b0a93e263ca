"""Plugins that are installed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, distributions
from types import ModuleType
from typing import TypeAlias

import attrs
import pluggy

from surrokit.errors import ComponentClashError, PluginLoadError
from surrokit.registry import hooks
from surrokit.registry.hooks import GROUP

DISABLE_VARIABLE = "SURROKIT_DISABLE_PLUGINS"
"""Environment variable with the entry names, separated by commas, of plugins to leave out."""

Plugins: TypeAlias = pluggy.PluginManager
"""All plugins of a process, by the labels of :class:`FoundPlugin`; their hooks are ``hook``."""


@attrs.frozen(kw_only=True)
class FoundPlugin:
    """An announced plugin, not imported yet."""

    distribution: str
    version: str
    entry: EntryPoint

    @property
    def label(self) -> str:
        """``distribution[entry]``, as messages name it."""
        return f"{self.distribution}[{self.entry.name}]"


def find(disabled: Iterable[str] | None = None) -> tuple[FoundPlugin, ...]:
    """List the plugins announced on this machine, sorted, without importing any.

    Entry names that are ``disabled`` are left out, by default those of
    ``SURROKIT_DISABLE_PLUGINS``. A ComponentClashError names two distributions that announce an
    entry of the same name.
    """
    if disabled is None:
        disabled = map(str.strip, os.environ.get(DISABLE_VARIABLE, "").split(","))
    skip, seen = frozenset(disabled), set[str]()
    found: dict[str, FoundPlugin] = {}
    for distribution in distributions():
        try:  # a broken uninstall may leave no name, or with a backport no metadata
            names = distribution.metadata.get_all("Name") or []
        except FileNotFoundError:
            continue
        if not names or names[0] in seen:
            continue  # a second copy further down the path is never imported
        seen.add(names[0])
        for entry in distribution.entry_points.select(group=GROUP):
            if entry.name in skip:
                continue
            plugin = FoundPlugin(distribution=names[0], version=distribution.version, entry=entry)
            if entry.name in found:
                raise ComponentClashError(
                    f"two distributions announce a plugin named {entry.name!r}: "
                    f"{found[entry.name].label} and {plugin.label}; "
                    "uninstall one, or ask its author for another name"
                )
            found[entry.name] = plugin
    return tuple(sorted(found.values(), key=lambda p: (p.distribution, p.entry.name)))


def load(found: Iterable[FoundPlugin]) -> Plugins:
    """Import plugins and register their hooks.

    A PluginLoadError names one that fails to import, or implements a hook that this version does
    not have.
    """
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hooks)
    for plugin in found:
        try:
            module = plugin.entry.load()
        except (Exception, SystemExit) as error:
            raise PluginLoadError(
                f"plugin {plugin.label} could not be imported from {plugin.entry.value!r}: "
                f"{type(error).__name__}: {error}; fix or uninstall {plugin.distribution}, or set "
                f"{DISABLE_VARIABLE}={plugin.entry.name}"
            ) from error
        if not isinstance(module, ModuleType):
            raise PluginLoadError(
                f"plugin {plugin.label} must name a module, but {plugin.entry.value!r} is of type "
                f"{type(module).__name__}; point the entry at the module with the hooks"
            )
        _register(manager, module, plugin.label)
    return manager


def make_plugins(*modules: ModuleType, discover: bool = False) -> Plugins:
    """Return a fresh set of plugins: the modules given, and those announced if ``discover``."""
    manager = load(find() if discover else ())
    for module in modules:
        _register(manager, module, module.__name__)
    return manager


@cache
def default_plugins() -> Plugins:
    """Return the plugins announced on this machine, loaded on first use."""
    return load(find())


def _register(manager: Plugins, module: ModuleType, label: str) -> None:
    try:
        manager.register(module, name=label)
        manager.check_pending()
    except ValueError as error:
        raise PluginLoadError(
            f"plugin {label} names the module {module.__name__}, which another plugin has "
            "registered already; give each plugin a module of its own"
        ) from error
    except pluggy.PluginValidationError as error:
        raise PluginLoadError(
            f"plugin {label} does not fit this version of surrokit: {error}; "
            "upgrade surrokit, or the plugin"
        ) from error
