"""The conformance suite: checks that every part passes, built-in or from a plugin.

With pytest, one test for all checks of some parts::

    from surrokit.testing import parametrize_with_checks

    @parametrize_with_checks([MySampler, lambda: MySampler(step_size=0.1)])
    def test_contract(check):
        check()

Without pytest, ``check_sampler(MySampler)`` and the like return a list of :class:`CheckResult`.
"""

from surrokit.testing.checks import Check, CheckedKind, Factory, Level, write_and_read
from surrokit.testing.running import (
    Case,
    CheckResult,
    check_correction,
    check_explorer,
    check_integrator,
    check_metric,
    check_plugin,
    check_policy,
    check_potential,
    check_sampler,
    check_schedule,
    check_surrogate,
    checks_for,
    parametrize_with_checks,
    plugin_cases,
    run_checks,
)
from surrokit.testing.statistics import CHECK_RATE, FAMILY_RATE, FAMILY_SIZE, Verdict
from surrokit.testing.wrappers import CountingPotential, Fenced, Limited, Wrapped

__all__ = [
    "CHECK_RATE",
    "FAMILY_RATE",
    "FAMILY_SIZE",
    "Case",
    "Check",
    "CheckResult",
    "CheckedKind",
    "CountingPotential",
    "Factory",
    "Fenced",
    "Level",
    "Limited",
    "Verdict",
    "Wrapped",
    "check_correction",
    "check_explorer",
    "check_integrator",
    "check_metric",
    "check_plugin",
    "check_policy",
    "check_potential",
    "check_sampler",
    "check_schedule",
    "check_surrogate",
    "checks_for",
    "parametrize_with_checks",
    "plugin_cases",
    "run_checks",
    "write_and_read",
]
