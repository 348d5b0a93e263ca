"""The selection of checks for a part, and their execution."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING

import attrs

from surrokit.errors import ConfigurationError
from surrokit.registry.catalogue import Catalogue, default_catalogue
from surrokit.registry.components import Component
from surrokit.testing.building import Labelled, label, with_components
from surrokit.testing.checks.plugins.plugin import components_of
from surrokit.testing.kinds import CHECKS, CheckedKind, check_kind, kind_of
from surrokit.testing.results import DEFAULT_LEVELS, Check, CheckResult, Factory, Level, Outcome

if TYPE_CHECKING:
    import pytest

KnownFailures = Mapping[str, str]
"""Name of a check, or ``check[part]``, to the reason why it fails."""


@attrs.frozen
class Case:
    """One check of one part; calling it runs the check.

    Parameters
    ----------
    check
        The check.
    part
        Label of the part.
    make
        Makes the part.
    """

    check: Check
    part: str
    make: Factory

    @property
    def name(self) -> str:
        """Check and part, as in ``check_reversible[leapfrog]``."""
        return f"{self.check.name}[{self.part}]"

    @property
    def level(self) -> Level:
        """The check's level."""
        return self.check.level

    def __call__(self) -> None:
        """Run the check.

        Raises
        ------
        AssertionError
            If it fails.
        """
        self.check.function(self.make)


def check_names(kind: str) -> list[str]:
    """Return the names of all checks of a kind, whatever a part declares.

    Raises
    ------
    ConfigurationError
        If there is no such kind.
    """
    return [check.name for check in CHECKS[check_kind(kind)]]


def checks_for(
    *parts: Component | Factory,
    kind: str | None = None,
    levels: Iterable[Level] = DEFAULT_LEVELS,
    catalogue: Catalogue | None = None,
) -> Iterator[Case]:
    """Select checks by the kind of each part and by what it declares.

    Parameters
    ----------
    *parts
        Components, each checked at all of its examples, or zero-argument factories.
    kind
        Kind of the parts; None to tell it from their methods.
    levels
        Levels of the checks to run.
    catalogue
        Where the parts inside components are looked up; by default everything that is installed.

    Yields
    ------
    Case
        A named callable for each check.

    Raises
    ------
    ConfigurationError
        If a part is of no known kind.
    """
    wanted = frozenset(levels)
    given = None if kind is None else check_kind(kind)
    for part in label(parts, catalogue):
        for check in _select(part, given):
            if check.level in wanted:
                yield Case(check, part.label, part.make)


def _select(part: Labelled, kind: CheckedKind | None) -> Iterator[Check]:
    yield Check(check_builds)
    try:
        made = part.make()
    except Exception:
        return  # check_builds says why
    for check in CHECKS[kind_of(made) if kind is None else kind]:
        if check.applies(made):
            yield check


def check_builds(make: Factory) -> None:
    """Demand that the part can be made, and made again with the same type."""
    try:
        first, second = make(), make()
    except Exception as error:
        raise AssertionError(f"the part cannot be made: {type(error).__name__}: {error}") from error
    if type(first) is not type(second):
        raise AssertionError(f"a factory made a {type(first).__name__}, then something else")


def parametrize_with_checks(
    parts: Iterable[Component | Factory],
    *,
    kind: str | None = None,
    levels: Iterable[Level] = DEFAULT_LEVELS,
    known_failures: KnownFailures | None = None,
    catalogue: Catalogue | None = None,
) -> pytest.MarkDecorator:
    """Parametrise a pytest test with the checks of some parts; the test calls ``check()``.

    Parameters
    ----------
    parts
        Components, or zero-argument factories: one for each setting worth testing.
    kind, levels, catalogue
        As for :func:`checks_for`. Statistical and long checks carry the marks ``statistical``
        and ``long``, which :mod:`surrokit.testing.fixtures` registers.
    known_failures
        Name of a check, or ``check[part]``, to the reason why it fails. Such a check must fail.

    Returns
    -------
    pytest.MarkDecorator
        Decorates a test with one argument ``check``. Ids read ``check_reversible[leapfrog]``.

    Raises
    ------
    ConfigurationError
        If a known failure has no reason, or names no check of these parts.

    Examples
    --------
    >>> @parametrize_with_checks([MySampler, lambda: MySampler(step_size=0.1)])  # doctest: +SKIP
    ... def test_contract(check):
    ...     check()
    """
    import pytest

    cases = list(checks_for(*parts, kind=kind, levels=levels, catalogue=catalogue))
    reasons = reasons_for(cases, known_failures)
    parameters = []
    for case in cases:
        marks = [] if case.level == "quick" else [getattr(pytest.mark, case.level)]
        if case.name in reasons:
            marks.append(pytest.mark.xfail(reason=reasons[case.name], strict=True))
        parameters.append(pytest.param(case, id=case.name, marks=marks))
    return pytest.mark.parametrize("check", parameters)


def reasons_for(cases: Iterable[Case], known_failures: KnownFailures | None) -> dict[str, str]:
    """Return the reasons of the cases that are known to fail, by name of the case.

    Raises
    ------
    ConfigurationError
        If a reason is missing, or no case has the name.
    """
    names = [case.name for case in cases]
    found: dict[str, str] = {}
    for known, reason in (known_failures or {}).items():
        if not isinstance(reason, str) or not reason.strip():
            raise ConfigurationError(
                f"the known failure {known!r} needs a reason, got {reason!r}; say why it fails "
                "and what would mend it"
            )
        matching = [name for name in names if known in (name, name.partition("[")[0])]
        if not matching:
            raise ConfigurationError(_no_such_check(known, names))
        found |= dict.fromkeys(matching, reason)
    return found


def _no_such_check(known: str, names: list[str]) -> str:
    choices = sorted({name.partition("[")[0] for name in names} | set(names))
    near = difflib.get_close_matches(known, choices, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "see checks_for(part)"
    return f"the known failure {known!r} names no check of these parts; {hint}"


def run_checks(
    cases: Iterable[Case], known_failures: KnownFailures | None = None
) -> list[CheckResult]:
    """Run checks one after the other, and return their results.

    Raises
    ------
    ConfigurationError
        If a known failure has no reason, or names no check among them.
    """
    chosen = list(cases)
    reasons = reasons_for(chosen, known_failures)
    return [_result(case, reasons.get(case.name)) for case in chosen]


def _result(case: Case, reason: str | None) -> CheckResult:
    began = time.perf_counter()
    outcome: Outcome = "passed"
    message = ""
    try:
        case()
    except Exception as error:
        plain = isinstance(error, AssertionError)
        message = str(error) if plain else f"{type(error).__name__}: {error}"
        outcome = "failed"
    if reason is not None:
        failed = outcome == "failed"
        outcome = "known failure" if failed else "failed"
        message = reason if failed else f"passed, though it was known to fail because {reason}"
    return CheckResult(case.name, outcome, message, time.perf_counter() - began)


def plugin_cases(module: ModuleType, *, levels: Iterable[Level] = DEFAULT_LEVELS) -> list[Case]:
    """Return the checks of a plugin module and of every part that it offers."""
    wanted = tuple(levels)
    name = module.__name__
    cases = [Case(check, name, lambda: module) for check in CHECKS["plugin"]]
    cases = [case for case in cases if case.level in wanted]
    try:
        components = [each for each in components_of(module) if isinstance(each, Component)]
    except Exception:
        return cases  # the checks above say what is wrong
    catalogue = with_components(default_catalogue(), components)
    return [*cases, *checks_for(*components, levels=wanted, catalogue=catalogue)]
