"""The markers with which plugins name their hooks."""

import pluggy

GROUP = "surrokit"
"""Name of the project for pluggy, and of the entry-point group."""

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)
"""Decorates a plugin's functions that implement a hook of :mod:`surrokit.hookspecs`."""
