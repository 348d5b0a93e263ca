"""Exit statuses of the command line, beyond 0 and 1."""

from __future__ import annotations

INTERRUPTED = 130
"""Exit status of a command that Ctrl-C or a termination ended."""
