"""The conformance suite: checks that every part passes, built-in or from a plugin.

With pytest, one test for all checks of some parts::

    from surrokit.testing import parametrize_with_checks

    @parametrize_with_checks([MySampler, lambda: MySampler(step_size=0.1)])
    def test_contract(check):
        check()

Without pytest, ``run_checks(checks_for(MySampler))`` returns a list of :class:`CheckResult`.
"""

from surrokit.testing.checks import Check, CheckedKind, Factory, Level
from surrokit.testing.running import (
    Case,
    CheckResult,
    check_plugin,
    check_potential,
    checks_for,
    parametrize_with_checks,
    run_checks,
)
from surrokit.testing.statistics import CHECK_RATE, Verdict
from surrokit.testing.wrappers import CountingPotential, Fenced, Limited, Wrapped

__all__ = [
    "CHECK_RATE",
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
    "check_plugin",
    "check_potential",
    "checks_for",
    "parametrize_with_checks",
    "run_checks",
]
