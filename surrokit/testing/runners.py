"""Functions that run all checks of one part, without pytest.

Each takes a zero-argument factory, since a part that is made only once would carry state from check
to check. It returns a :class:`CheckResult` for each check.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Protocol

from surrokit.testing.kinds import CheckedKind
from surrokit.testing.results import DEFAULT_LEVELS, CheckResult, Factory, Level
from surrokit.testing.selection import KnownFailures, checks_for, plugin_cases, run_checks


class Runner(Protocol):
    """The signature of the functions of this module."""

    def __call__(
        self,
        make: Factory,
        *,
        levels: Iterable[Level] = DEFAULT_LEVELS,
        known_failures: KnownFailures | None = None,
    ) -> list[CheckResult]:
        """Run the checks."""


_DOCUMENTATION = """{summary}

    Parameters
    ----------
    make
        Makes {what}.
    levels
        Levels of the checks to run.
    known_failures
        Name of a check to the reason why it fails. Such a check must fail.

    Raises
    ------
    ConfigurationError
        If a known failure has no reason, or names no check of this part.
    """


def _runner(kind: CheckedKind, summary: str, what: str = "the part") -> Runner:
    def check(
        make: Factory,
        *,
        levels: Iterable[Level] = DEFAULT_LEVELS,
        known_failures: KnownFailures | None = None,
    ) -> list[CheckResult]:
        return run_checks(checks_for(make, kind=kind, levels=levels), known_failures)

    check.__name__ = check.__qualname__ = f"check_{kind}"
    check.__doc__ = _DOCUMENTATION.format(summary=summary, what=what)
    return check


check_potential = _runner(
    "potential", "Check a potential: shapes, derivatives, capabilities, purity."
)
check_surrogate = _runner(
    "surrogate", "Check a surrogate: its learners, and the potentials that they fit."
)
check_integrator = _runner(
    "integrator", "Check an integrator: reversibility, volume, order, failures."
)
check_metric = _runner("metric", "Check a metric: energy, velocity, momenta, adaptation.")
check_sampler = _runner(
    "sampler", "Check a sampler: proposals, reproducibility, and the distribution that it keeps."
)
check_correction = _runner(
    "correction", "Check a correction: decisions, cost, and the distribution that it keeps."
)
check_schedule = _runner(
    "schedule", "Check a schedule: same history, same decisions; learning ends."
)
check_explorer = _runner(
    "explorer", "Check an explorer: it ends, its findings are right, and it can be repeated."
)
check_policy = _runner(
    "policy", "Check a policy: picks exist and fit the target, and parts that users named stay."
)
check_wrapper = _runner(
    "wrapper",
    "Check a wrapper of potentials: capabilities are kept, and calls not multiplied.",
    "a function, or a class, that takes a potential and returns it wrapped",
)


def check_plugin(
    module: ModuleType,
    *,
    levels: Iterable[Level] = DEFAULT_LEVELS,
    known_failures: KnownFailures | None = None,
) -> list[CheckResult]:
    """Check a plugin module, and every part that it offers at every one of its examples.

    Parameters
    ----------
    module
        The module with the hooks; it need not be installed.
    levels, known_failures
        As for the other functions here.

    Raises
    ------
    ConfigurationError
        If a known failure has no reason, or names no check of this plugin.
    """
    return run_checks(plugin_cases(module, levels=levels), known_failures)
