"""Component: one registered part."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from surrokit.errors import ConfigurationError, PluginError
from surrokit.registry.factory import PATH, load_object
from surrokit.registry.kinds import KINDS, Kind, missing_members
from surrokit.registry.purposes import DEFAULT
from surrokit.registry.settings import Setting, build, settings_of

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@attrs.frozen
class Part:
    """A setting that takes another part.

    Parameters
    ----------
    kind
        Kind of part.
    default
        Name of the part that is made if none is given; None takes the run's own part of that
        kind.
    """

    kind: Kind
    default: str | None = None


def _check_name(_: object, __: object, value: str) -> None:
    if not _NAME.fullmatch(value):
        raise ConfigurationError(
            f"a component's name must be lower-case words joined by hyphens, got {value!r}; "
            "for example 'my-surrogate'"
        )


def _check_kind(_: object, __: object, value: str) -> None:
    if value not in KINDS:
        raise ConfigurationError(
            f"a component's kind must be one of {', '.join(KINDS)}, got {value!r}"
        )


def _check_factory(component: Component, _: object, value: Any) -> None:
    if not (callable(value) or (isinstance(value, str) and PATH.fullmatch(value))):
        raise ConfigurationError(
            f"the factory of {component.title()} must be a path such as "
            f"'package.module:Class', or a function, got {value!r}"
        )


def _with_settings(
    serves: Mapping[str, Mapping[str, Any]] | Iterable[str],
) -> dict[str, Mapping[str, Any]]:
    """Return purpose to settings, which are empty where purposes alone are given."""
    if isinstance(serves, str):
        raise ConfigurationError(
            f"serves must be several purposes, or a dictionary of them, got {serves!r}; write "
            f"serves=[{serves!r}]"
        )
    return dict(serves) if isinstance(serves, Mapping) else {purpose: {} for purpose in serves}


@attrs.frozen
class Component:
    """One part that a plugin offers.

    Parameters
    ----------
    kind
        What it is.
    name
        Lower-case words joined by hyphens, unique within the kind.
    factory
        What makes it: ``"package.module:Class"``, imported on first use, or a function. The fields
        of an attrs class, else the arguments, are the settings of the part. The path may also name
        a ready-made part, which has no settings.
    summary
        One line for ``surrokit plugins``.
    references
        Where it comes from: papers, with DOI or equation.
    parts
        Settings that take another part. They may be given by name; the factory always receives an
        object.
    examples
        Settings at which the conformance suite makes the part; list every setting that leads
        down another path.
    default
        Whether it is used where nothing of its kind is named.
    serves
        Other purposes for which it is used where its kind is not named, each perhaps with settings.
        Runs look for the purposes in :mod:`surrokit.registry.purposes`.

    Raises
    ------
    ConfigurationError
        If there is no such kind, or the name or the factory is not of the right form.
    """

    kind: Kind = attrs.field(validator=_check_kind)
    name: str = attrs.field(validator=_check_name)
    factory: str | Callable[..., Any] = attrs.field(validator=_check_factory)
    summary: str
    references: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    parts: Mapping[str, Part] = attrs.field(factory=dict, kw_only=True)
    examples: tuple[Mapping[str, Any], ...] = attrs.field(default=({},), kw_only=True)
    default: bool = attrs.field(default=False, kw_only=True)
    serves: Mapping[str, Mapping[str, Any]] = attrs.field(
        default=(), converter=_with_settings, kw_only=True
    )

    @property
    def purposes(self) -> dict[str, Mapping[str, Any]]:
        """All purposes, each with the settings for it."""
        return {**({DEFAULT: {}} if self.default else {}), **self.serves}

    def title(self, plugin: str = "") -> str:
        """Return its name in messages: kind, name, and the plugin if known."""
        return f"{self.kind} {self.name!r}" + (f" of plugin {plugin}" if plugin else "")

    def load(self, plugin: str = "") -> Callable[..., Any]:
        """Return the factory, imported on first use.

        Parameters
        ----------
        plugin
            The plugin that offers it, for messages.

        Raises
        ------
        PluginLoadError
            If its module cannot be imported, or has no such name.
        PluginError
            If the factory is neither callable nor a part.
        """
        if not isinstance(self.factory, str):
            return self.factory
        found = load_object(self.factory, self.title(plugin))
        if not isinstance(found, type) and not missing_members(self.kind, found):
            return lambda: found  # a part that is ready
        if not callable(found):
            raise PluginError(
                f"{self.title(plugin)} is to be made by {self.factory!r}, which is of type "
                f"{type(found).__name__}; name a class, a function, or a {self.kind}"
            )
        return found  # type: ignore[no-any-return]

    def settings(self, plugin: str = "") -> dict[str, Setting]:
        """Return name to setting, read off the class or function, whose module is imported.

        Parameters
        ----------
        plugin
            The plugin that offers it, for messages.

        Raises
        ------
        PluginError
            If the factory cannot be imported, or its settings cannot be read.
        """
        factory = self.load(plugin)
        try:
            found = settings_of(factory)
        except (ConfigurationError, ValueError) as error:
            raise PluginError(
                f"the settings of {self.title(plugin)} cannot be read: {error}"
            ) from error
        self._check_named(found, plugin)
        return found

    def _check_named(self, known: Mapping[str, Setting], plugin: str) -> None:
        """Raise if the component names settings that its factory does not have."""
        sets = (self.parts, *self.serves.values(), *self.examples)
        unknown = sorted({name for each in sets for name in each} - known.keys())
        if unknown:
            raise PluginError(
                f"{self.title(plugin)} names {', '.join(unknown)} in parts, serves or examples, "
                f"but its settings are: {', '.join(known) or 'none'}"
            )

    def make(self, settings: Mapping[str, Any], plugin: str = "") -> Any:
        """Return the part that the factory makes.

        Parameters
        ----------
        settings
            By name, as the class or function takes them.
        plugin
            The plugin that offers it, for messages.

        Raises
        ------
        PluginError
            If the factory cannot be imported, or what it makes lacks members of its protocol.
        """
        made = build(self.load(plugin), settings)
        lacking = missing_members(self.kind, made)
        if lacking:
            members = ", or ".join(
                f"{', '.join(names)} of {protocol}" for protocol, names in lacking.items()
            )
            raise PluginError(
                f"{self.title(plugin)} is a {type(made).__name__}, which is no {self.kind}: it "
                f"lacks {members}; see surrokit.protocols"
            )
        return made
