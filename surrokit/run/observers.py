"""Observers of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from surrokit.errors import ConfigurationError

EVENTS = (
    "surrokit_run_started",
    "surrokit_transition_done",
    "surrokit_surrogate_deployed",
    "surrokit_round_weighed",
    "surrokit_run_finished",
)
"""Names of the observation hooks."""


def list_observers(observers: Iterable[object]) -> list[object]:
    """Return observers as a list, if each listens to something.

    Raises
    ------
    ConfigurationError
        If ``observers`` is not iterable, or one of them has none of the methods.
    """
    if not isinstance(observers, Iterable):
        raise ConfigurationError(
            f"observers must be a list of objects, got {observers!r}; pass observers=[...]"
        )
    found = list(observers)
    Observers(found)
    return found


class Observers:
    """The plugins and objects that listen, by event; an event without listeners costs nothing.

    Parameters
    ----------
    objects
        Observers of one run: objects with one or more methods that have the name and arguments of
        a hook.

    Raises
    ------
    ConfigurationError
        If an object has none of the methods.
    """

    def __init__(self, objects: Iterable[object] = ()) -> None:
        self._listeners: dict[str, list[Callable[..., Any]]] = {event: [] for event in EVENTS}
        for observer in objects:
            found = [event for event in EVENTS if callable(getattr(observer, event, None))]
            if not found:
                raise ConfigurationError(
                    f"an observer must have at least one of the methods {', '.join(EVENTS)}; "
                    f"{observer!r} has none"
                )
            for event in found:
                self._listeners[event].append(getattr(observer, event))

    def add_hooks(self, hooks: Any) -> None:
        """Let plugins listen, through the hook relay of a plugin manager."""
        for event in EVENTS:
            caller = getattr(hooks, event)
            if caller.get_hookimpls():
                self._listeners[event].append(caller)

    def hear_of(self, event: str) -> bool:
        """Return whether anybody listens to an event."""
        return bool(self._listeners[event])

    def tell(self, event: str, **arguments: object) -> None:
        """Call everybody who listens to an event."""
        for listener in self._listeners[event]:
            listener(**arguments)
