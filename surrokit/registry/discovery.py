"""Plugins that are installed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import TypeAlias

import pluggy

from surrokit.errors import ComponentClashError, PluginLoadError
from surrokit.registry import hooks
from surrokit.registry.hooks import GROUP

DISABLE_VARIABLE = "SURROKIT_DISABLE_PLUGINS"
"""Environment variable with the entry names, separated by commas, of plugins to leave out."""

Plugins: TypeAlias = pluggy.PluginManager
"""All plugins of a process, by what :func:`label` calls them; their hooks are ``hook``."""


def label(plugin: EntryPoint) -> str:
    """Return ``distribution[entry]``, as messages name a plugin."""
    return f"{plugin.dist.name if plugin.dist else 'unknown'}[{plugin.name}]"


def find(disabled: Iterable[str] | None = None) -> tuple[EntryPoint, ...]:
    """List the plugins announced on this machine, sorted, without importing any.

    Entry names that are ``disabled`` are left out, by default those of
    ``SURROKIT_DISABLE_PLUGINS``. A ComponentClashError names two distributions that announce an
    entry of the same name.
    """
    if disabled is None:
        disabled = map(str.strip, os.environ.get(DISABLE_VARIABLE, "").split(","))
    skip, found = frozenset(disabled), dict[str, EntryPoint]()
    for plugin in entry_points(group=GROUP):
        if plugin.name in skip:
            continue
        if plugin.name in found:
            raise ComponentClashError(
                f"two distributions announce a plugin named {plugin.name!r}: "
                f"{label(found[plugin.name])} and {label(plugin)}; "
                "uninstall one, or ask its author for another name"
            )
        found[plugin.name] = plugin
    return tuple(sorted(found.values(), key=label))


def load(found: Iterable[EntryPoint]) -> Plugins:
    """Import plugins and register their hooks.

    A PluginLoadError names one that fails to import, or implements a hook that this version does
    not have.
    """
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hooks)
    for plugin in found:
        try:
            module = plugin.load()
        except (Exception, SystemExit) as error:
            raise PluginLoadError(
                f"plugin {label(plugin)} could not be imported from {plugin.value!r}: "
                f"{type(error).__name__}: {error}; fix or uninstall it, or set "
                f"{DISABLE_VARIABLE}={plugin.name}"
            ) from error
        if not isinstance(module, ModuleType):
            raise PluginLoadError(
                f"plugin {label(plugin)} must name a module, but {plugin.value!r} is of type "
                f"{type(module).__name__}; point the entry at the module with the hooks"
            )
        _register(manager, module, label(plugin))
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


def _register(manager: Plugins, module: ModuleType, name: str) -> None:
    try:
        manager.register(module, name=name)
        manager.check_pending()
    except ValueError as error:
        raise PluginLoadError(
            f"plugin {name} names the module {module.__name__}, which another plugin has "
            "registered already; give each plugin a module of its own"
        ) from error
    except pluggy.PluginValidationError as error:
        raise PluginLoadError(
            f"plugin {name} does not fit this version of surrokit: {error}; "
            "upgrade surrokit, or the plugin"
        ) from error
