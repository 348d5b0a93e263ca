"""Labelled factories, from components and plain factories."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

import attrs

from surrokit.errors import ConfigurationError
from surrokit.registry.catalogue import Catalogue, Entry, default_catalogue
from surrokit.registry.components import Component
from surrokit.testing.results import Factory


@attrs.frozen
class Labelled:
    """A factory, and the label of its part in names of results.

    Parameters
    ----------
    label
        Such as ``leapfrog``, or ``hmc-step_size=0.5``.
    make
        The factory.
    """

    label: str
    make: Factory


def label(
    parts: Iterable[Component | Factory], catalogue: Catalogue | None = None
) -> list[Labelled]:
    """Return a factory for each part, and for each of a component's examples, with unique labels.

    Parameters
    ----------
    parts
        Components, or zero-argument factories such as a class.
    catalogue
        Where the parts inside components are looked up; by default everything that is installed.

    Raises
    ------
    ConfigurationError
        If a part is neither.
    """
    found: list[Labelled] = []
    for part in parts:
        if isinstance(part, Component):
            found += [_example(part, settings, catalogue) for settings in part.examples]
        elif callable(part):
            found.append(Labelled(_name_of(part), part))
        else:
            raise ConfigurationError(
                f"parts to check must be components or zero-argument factories, got {part!r}; "
                "pass a class or a function that makes the part afresh, not the part itself"
            )
    return _unique(found)


def _example(component: Component, settings: Any, catalogue: Catalogue | None) -> Labelled:
    words = [f"{name}={value}".replace(" ", "") for name, value in settings.items()]
    label = "-".join([component.name, *words])
    return Labelled(label, partial(_compose, component, dict(settings), catalogue))


def _compose(component: Component, settings: dict[str, Any], catalogue: Catalogue | None) -> Any:
    from surrokit.registry.catalogue import Composer

    known = default_catalogue() if catalogue is None else catalogue
    key = (component.kind, component.name)
    if key not in known.entries or known.entries[key].component is not component:
        # a component that is not installed, or not this one
        known = with_components(known, [component])
    return Composer(known).make(component.kind, (component.name, settings))


def with_components(catalogue: Catalogue, components: Iterable[Component]) -> Catalogue:
    """Return a catalogue that also holds some components, in place of any of the same name."""
    entries = dict(catalogue.entries)
    for component in components:
        entry = Entry(component=component, plugin="under test")
        entries[component.kind, component.name] = entry
    return Catalogue(entries=entries)


def _name_of(factory: Factory) -> str:
    name = getattr(factory, "__name__", "<lambda>")
    if name == "<lambda>":
        try:
            name = type(factory()).__name__
        except Exception:
            name = "part"  # check_builds reports why it cannot be made
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", "-", name).lower()


def _unique(parts: list[Labelled]) -> list[Labelled]:
    seen: dict[str, int] = {}
    found = []
    for part in parts:
        seen[part.label] = number = seen.get(part.label, 0) + 1
        label = part.label if number == 1 else f"{part.label}-{number}"
        found.append(attrs.evolve(part, label=label))
    return found
