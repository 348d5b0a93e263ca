"""What a server may do wrong."""

from __future__ import annotations

from surrokit.errors import SurrokitError


class ServerError(SurrokitError, RuntimeError):
    """A server stayed away, or its model failed at a position."""
