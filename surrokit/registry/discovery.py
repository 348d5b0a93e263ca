"""Plugins that are installed, and where others are to be had."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, EntryPoint, distributions
from importlib.util import find_spec
from types import ModuleType

import attrs
import pluggy

from surrokit.errors import ComponentClashError, PluginLoadError
from surrokit.registry import hooks
from surrokit.registry.hooks import GROUP

DISABLE_VARIABLE = "SURROKIT_DISABLE_PLUGINS"
"""Environment variable with the entry names, separated by commas, of plugins to leave out."""


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


@attrs.frozen(kw_only=True, eq=False)
class LoadedPlugin:
    """An imported plugin and where it came from."""

    label: str
    distribution: str
    module: ModuleType


@attrs.frozen(kw_only=True, eq=False)
class Plugins:
    """All plugins of a process: pluggy's manager, and a record of each loaded plugin."""

    manager: pluggy.PluginManager
    loaded: tuple[LoadedPlugin, ...]

    def label_of(self, module: object) -> str:
        """Return ``distribution[entry]`` of a registered module, or the module's own name."""
        for plugin in self.loaded:
            if plugin.module is module:
                return plugin.label
        return getattr(module, "__name__", type(module).__name__)


def disabled_names() -> frozenset[str]:
    """Return the entry names that the environment switches off."""
    value = os.environ.get(DISABLE_VARIABLE, "")
    return frozenset(name.strip() for name in value.split(",") if name.strip())


def find(disabled: Iterable[str] | None = None) -> tuple[FoundPlugin, ...]:
    """List the plugins announced on this machine, sorted, without importing any.

    Parameters
    ----------
    disabled
        Entry names to leave out; by default those of ``SURROKIT_DISABLE_PLUGINS``.

    Raises
    ------
    ComponentClashError
        If two distributions announce an entry of the same name.
    """
    skip = disabled_names() if disabled is None else frozenset(disabled)
    found: dict[str, FoundPlugin] = {}
    seen: set[str] = set()
    for distribution in distributions():
        name = _name_of(distribution)
        if name is None or name in seen:
            continue  # a second copy further down the path is never imported
        seen.add(name)
        for entry in distribution.entry_points.select(group=GROUP):
            if entry.name in skip:
                continue
            plugin = FoundPlugin(distribution=name, version=distribution.version, entry=entry)
            if entry.name in found:
                raise ComponentClashError(
                    f"two distributions announce a plugin named {entry.name!r}: "
                    f"{found[entry.name].label} and {plugin.label}; "
                    "uninstall one, or ask its author for another name"
                )
            found[entry.name] = plugin
    return tuple(sorted(found.values(), key=lambda p: (p.distribution, p.entry.name)))


def _name_of(distribution: Distribution) -> str | None:
    """Return a distribution's name; None for what a broken uninstall leaves."""
    try:
        metadata = distribution.metadata
    except FileNotFoundError:  # the backport of importlib.metadata, once anybody imports it
        return None
    names = metadata.get_all("Name")
    return names[0] if names else None


def load(found: Iterable[FoundPlugin]) -> Plugins:
    """Import plugins and register their hooks.

    Raises
    ------
    PluginLoadError
        If a plugin fails to import, or implements a hook that this version does not have.
    """
    manager = _empty_manager()
    loaded = []
    for plugin in found:
        module = _import_module(plugin)
        loaded.append(
            LoadedPlugin(label=plugin.label, distribution=plugin.distribution, module=module)
        )
        _register(manager, module, plugin.label)
    return Plugins(manager=manager, loaded=tuple(loaded))


def make_plugins(*modules: ModuleType, discover: bool = False) -> Plugins:
    """Return a fresh set of plugins: the modules given, and those announced if ``discover``.

    Raises
    ------
    PluginLoadError
        If a plugin fails to import, or implements a hook that this version does not have.
    """
    plugins = load(find() if discover else ())
    for module in modules:
        _register(plugins.manager, module, module.__name__)
    return plugins


@cache
def default_plugins() -> Plugins:
    """Return the plugins announced on this machine, loaded on first use."""
    return load(find())


def _empty_manager() -> pluggy.PluginManager:
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hooks)
    return manager


def _import_module(plugin: FoundPlugin) -> ModuleType:
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
    return module


def _register(manager: pluggy.PluginManager, module: ModuleType, label: str) -> None:
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
