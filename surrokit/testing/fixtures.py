"""A pytest fixture for plugin authors.

Opt in by ``pytest_plugins = ["surrokit.testing.fixtures"]`` in the top ``conftest.py``. This also
registers the mark ``statistical`` that parametrised checks carry.
"""

from __future__ import annotations

from functools import partialmethod
from typing import Any, NamedTuple

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark of the checks."""
    statistical = "seeded checks of a distribution, with a stated false-alarm rate"
    config.addinivalue_line("markers", f"statistical: {statistical}")


class HookCall(NamedTuple):
    """One call of an observation hook: its name, and its arguments by name."""

    name: str
    arguments: dict[str, Any]


class HookCalls:
    """An observer that records every observation hook called on it, in order.

    Pass it in ``surrokit.sample(..., observers=[hook_calls])``.
    """

    def __init__(self) -> None:
        self.calls: list[HookCall] = []

    @property
    def names(self) -> list[str]:
        """The names of the hooks called, in order."""
        return [call.name for call in self.calls]

    def of(self, name: str) -> list[HookCall]:
        """Return the calls of one hook."""
        return [call for call in self.calls if call.name == name]

    def _record(self, name: str, **arguments: Any) -> None:
        self.calls.append(HookCall(name, arguments))

    surrokit_run_started = partialmethod(_record, "surrokit_run_started")
    surrokit_transition_done = partialmethod(_record, "surrokit_transition_done")
    surrokit_surrogate_deployed = partialmethod(_record, "surrokit_surrogate_deployed")
    surrokit_round_weighed = partialmethod(_record, "surrokit_round_weighed")
    surrokit_run_finished = partialmethod(_record, "surrokit_run_finished")


@pytest.fixture
def hook_calls() -> HookCalls:
    """Give an observer that records the observation hooks called on it, in order."""
    return HookCalls()
