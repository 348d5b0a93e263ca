"""All checks of one part, run at once: no pytest needed, so of use in a notebook as well.

Each function takes a zero-argument factory, since parts that are made once would leak from check
to check, and returns a :class:`CheckResult` for each check.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType

from surrokit.testing.results import DEFAULT_LEVELS, CheckResult, Factory, Level
from surrokit.testing.selection import KnownFailures, checks_for, plugin_cases, run_checks


def check_potential(
    make: Factory,
    *,
    levels: Iterable[Level] = DEFAULT_LEVELS,
    known_failures: KnownFailures | None = None,
) -> list[CheckResult]:
    """Check a potential: shapes, derivatives, capabilities, purity.

    Parameters
    ----------
    make
        Makes the part.
    levels
        Levels of the checks wanted.
    known_failures
        Name of a check to the reason why it fails; one that passes after all is a failure.

    Raises
    ------
    ConfigurationError
        If a known failure has no reason, or names no check of this part.
    """
    return run_checks(checks_for(make, kind="potential", levels=levels), known_failures)


def check_surrogate(
    make: Factory,
    *,
    levels: Iterable[Level] = DEFAULT_LEVELS,
    known_failures: KnownFailures | None = None,
) -> list[CheckResult]:
    """Check a surrogate: its learners, and the potentials that they fit.

    Parameters
    ----------
    make
        Makes the part.
    levels
        Levels of the checks wanted.
    known_failures
        Name of a check to the reason why it fails; one that passes after all is a failure.

    Raises
    ------
    ConfigurationError
        If a known failure has no reason, or names no check of this part.
    """
    return run_checks(checks_for(make, kind="surrogate", levels=levels), known_failures)


def check_integrator(
    make: Factory,
    *,
    levels: Iterable[Level] = DEFAULT_LEVELS,
    known_failures: KnownFailures | None = None,
) -> list[CheckResult]:
    """Check an integrator: reversibility, volume, order, failures.

    Parameters
    ----------
    make
        Makes the part.
    levels
        Levels of the checks wanted.
    known_failures
        Name of a check to the reason why it fails; one that passes after all is a failure.

    Raises
    ------
    ConfigurationError
        If a known failure has no reason, or names no check of this part.
    """
    return run_checks(checks_for(make, kind="integrator", levels=levels), known_failures)


def check_metric(
    make: Factory,
    *,
    levels: Iterable[Level] = DEFAULT_LEVELS,
    known_failures: KnownFailures | None = None,
) -> list[CheckResult]:
    """Check a metric: energy, velocity, momenta, adaptation.

    Parameters
    ----------
    make
        Makes the part.
    levels
        Levels of the checks wanted.
    known_failures
        Name of a check to the reason why it fails; one that passes after all is a failure.

    Raises
    ------
    ConfigurationError
        If a known failure has no reason, or names no check of this part.
    """
    return run_checks(checks_for(make, kind="metric", levels=levels), known_failures)


def check_sampler(
    make: Factory,
    *,
    levels: Iterable[Level] = DEFAULT_LEVELS,
    known_failures: KnownFailures | None = None,
) -> list[CheckResult]:
    """Check a sampler: proposals, reproducibility, and the distribution that it keeps.

    Parameters
    ----------
    make
        Makes the part.
    levels
        Levels of the checks wanted.
    known_failures
        Name of a check to the reason why it fails; one that passes after all is a failure.

    Raises
    ------
    ConfigurationError
        If a known failure has no reason, or names no check of this part.
    """
    return run_checks(checks_for(make, kind="sampler", levels=levels), known_failures)


def check_correction(
    make: Factory,
    *,
    levels: Iterable[Level] = DEFAULT_LEVELS,
    known_failures: KnownFailures | None = None,
) -> list[CheckResult]:
    """Check a correction: decisions, cost, and the distribution that it keeps.

    Parameters
    ----------
    make
        Makes the part.
    levels
        Levels of the checks wanted.
    known_failures
        Name of a check to the reason why it fails; one that passes after all is a failure.

    Raises
    ------
    ConfigurationError
        If a known failure has no reason, or names no check of this part.
    """
    return run_checks(checks_for(make, kind="correction", levels=levels), known_failures)


def check_schedule(
    make: Factory,
    *,
    levels: Iterable[Level] = DEFAULT_LEVELS,
    known_failures: KnownFailures | None = None,
) -> list[CheckResult]:
    """Check a schedule: same history, same decisions; learning ends.

    Parameters
    ----------
    make
        Makes the part.
    levels
        Levels of the checks wanted.
    known_failures
        Name of a check to the reason why it fails; one that passes after all is a failure.

    Raises
    ------
    ConfigurationError
        If a known failure has no reason, or names no check of this part.
    """
    return run_checks(checks_for(make, kind="schedule", levels=levels), known_failures)


def check_explorer(
    make: Factory,
    *,
    levels: Iterable[Level] = DEFAULT_LEVELS,
    known_failures: KnownFailures | None = None,
) -> list[CheckResult]:
    """Check an explorer: it ends, finds what is so, and can be taken up again.

    Parameters
    ----------
    make
        Makes the part.
    levels
        Levels of the checks wanted.
    known_failures
        Name of a check to the reason why it fails; one that passes after all is a failure.

    Raises
    ------
    ConfigurationError
        If a known failure has no reason, or names no check of this part.
    """
    return run_checks(checks_for(make, kind="explorer", levels=levels), known_failures)


def check_wrapper(
    make: Factory,
    *,
    levels: Iterable[Level] = DEFAULT_LEVELS,
    known_failures: KnownFailures | None = None,
) -> list[CheckResult]:
    """Check a wrapper of potentials: capabilities are kept, and calls not multiplied.

    Parameters
    ----------
    make
        Makes a function, or a class, that takes a potential and returns it wrapped.
    levels
        Levels of the checks wanted.
    known_failures
        Name of a check to the reason why it fails; one that passes after all is a failure.

    Raises
    ------
    ConfigurationError
        If a known failure has no reason, or names no check of this part.
    """
    return run_checks(checks_for(make, kind="wrapper", levels=levels), known_failures)


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
