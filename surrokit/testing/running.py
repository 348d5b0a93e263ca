"""The selection of checks for a part, and their execution, with pytest or without."""

from __future__ import annotations

import difflib
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import attrs

from surrokit.errors import ConfigurationError
from surrokit.registry.catalogue import Catalogue, Composer, default_catalogue
from surrokit.registry.components import Component, binds_as

# each declares its checks
from surrokit.testing import (  # noqa: F401
    corrections,
    dynamics,
    learning,
    potentials,
    rows,
    samplers,
    surrogates,
)
from surrokit.testing.demands import CHECKS, Check, CheckedKind, Factory, Level
from surrokit.testing.plugins import components_of

if TYPE_CHECKING:
    import pytest

DEFAULT_LEVELS: tuple[Level, ...] = ("quick", "statistical")
"""The levels that run unless others are asked for."""

Outcome: TypeAlias = Literal["passed", "failed", "known failure"]
"""The outcome of a check. A known failure that passes counts as failed."""

KnownFailures: TypeAlias = Mapping[str, str]
"""Name of a check, or ``check[part]``, to the reason why it fails."""

_SIGNS: tuple[tuple[CheckedKind, tuple[str, ...]], ...] = (
    ("policy", ("choose", "plain")),
    ("surrogate", ("learner",)),
    ("integrator", ("advance", "cache")),
    ("schedule", ("learns", "decide")),
    ("explorer", ("needs", "explore")),
    ("metric", ("draw", "velocity", "energy")),
    ("potential", ("dim", "capabilities", "value")),
)


def kind_of(part: Any) -> CheckedKind:
    """Return the kind of a part, by its methods.

    Raises
    ------
    ConfigurationError
        If it has the methods of no kind.
    """
    for kind, names in _SIGNS:
        if all(hasattr(part, name) for name in names):
            return kind
    if (kind_bound := binds_as(part)) is not None:
        return kind_bound
    if callable(part) and not isinstance(part, type):
        return "wrapper"
    raise ConfigurationError(
        f"a {type(part).__name__} has the methods of no kind of part; see surrokit.plugin, or name "
        f"its kind, one of {', '.join(CHECKS)}"
    )


def _checks_of(kind: str) -> list[Check]:
    if kind not in CHECKS:
        raise ConfigurationError(f"kind must be one of {', '.join(CHECKS)}, got {kind!r}")
    return CHECKS[kind]


def check_names(kind: str) -> list[str]:
    """Return the names of all checks of a kind, whatever a part declares.

    Raises
    ------
    ConfigurationError
        If there is no such kind.
    """
    return [check.name for check in _checks_of(kind)]


def _labelled(
    parts: Iterable[Component | Factory], catalogue: Catalogue | None
) -> Iterator[tuple[str, Factory]]:
    """Yield factories, for all examples of components, with labels: ``hmc-step_size=0.5``."""
    seen: Counter[str] = Counter()
    for part in parts:
        named: list[tuple[str, Factory]] = []
        if isinstance(part, Component):
            for settings in part.examples:
                words = [f"{name}={value}".replace(" ", "") for name, value in settings.items()]
                made = partial(_compose, part, dict(settings), catalogue)
                named.append(("-".join([part.name, *words]), made))
        elif callable(part):
            named.append((_name_of(part), part))
        else:
            raise ConfigurationError(
                f"parts to check must be components or zero-argument factories, got {part!r}; "
                "pass its class, or a function that makes it afresh"
            )
        for name, make in named:
            seen[name] += 1
            yield name if seen[name] == 1 else f"{name}-{seen[name]}", make


def _compose(component: Component, settings: dict[str, Any], catalogue: Catalogue | None) -> Any:
    known = default_catalogue() if catalogue is None else catalogue
    if known.entries.get((component.kind, component.name)) != component:  # another, or none
        known = _with_components(known, [component])
    return Composer(known).make(component.kind, (component.name, settings))


def _with_components(catalogue: Catalogue, components: Iterable[Component]) -> Catalogue:
    """Return a catalogue that also holds some components, in place of any of the same name."""
    new = {(one.kind, one.name): attrs.evolve(one, plugin="under test") for one in components}
    return Catalogue(entries={**catalogue.entries, **new})


def _name_of(factory: Factory) -> str:
    name = getattr(factory, "__name__", "<lambda>")
    if name == "<lambda>":
        try:
            name = type(factory()).__name__
        except Exception:
            name = "part"  # check_builds reports why it cannot be made
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", "-", name).lower()


@attrs.frozen
class Case:
    """One check of one part, with the part's label and factory; calling it runs the check."""

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
        self.check(self.make)


def checks_for(
    *parts: Component | Factory,
    kind: str | None = None,
    levels: Iterable[Level] = DEFAULT_LEVELS,
    catalogue: Catalogue | None = None,
) -> Iterator[Case]:
    """Select checks by the kind of each part and by what it declares: named callables.

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

    Raises
    ------
    ConfigurationError
        If a part is of no known kind.
    """
    wanted = frozenset(levels)
    given = None if kind is None else _checks_of(kind)
    for label, make in _labelled(parts, catalogue):
        for check in _select(make, given):
            if check.level in wanted:
                yield Case(check, label, make)


def _select(make: Factory, given: list[Check] | None) -> Iterator[Check]:
    yield Check(check_builds)
    try:
        made = make()
    except Exception:
        return  # check_builds says why
    chosen = _checks_of(kind_of(made)) if given is None else given
    yield from (check for check in chosen if check.applies(made))


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

    Its ids read ``check_reversible[leapfrog]``.

    Parameters
    ----------
    parts
        Components, or zero-argument factories: one for each setting worth testing.
    kind, levels, catalogue
        As for :func:`checks_for`. Statistical and long checks carry the marks ``statistical``
        and ``long``, which :mod:`surrokit.testing.fixtures` registers.
    known_failures
        Name of a check, or ``check[part]``, to the reason why it fails. Such a check must fail.

    Raises
    ------
    ConfigurationError
        If a known failure has no reason, or names no check of these parts.
    """
    import pytest

    cases = list(checks_for(*parts, kind=kind, levels=levels, catalogue=catalogue))
    reasons = _reasons(cases, known_failures)
    parameters = []
    for case in cases:
        marks = [] if case.level == "quick" else [getattr(pytest.mark, case.level)]
        if case.name in reasons:
            marks.append(pytest.mark.xfail(reason=reasons[case.name], strict=True))
        parameters.append(pytest.param(case, id=case.name, marks=marks))
    return pytest.mark.parametrize("check", parameters)


def _reasons(cases: Iterable[Case], known_failures: KnownFailures | None) -> dict[str, str]:
    """Return the reasons of the cases that are known to fail, by name of the case."""
    names = {case.name: case.check.name for case in cases}
    found: dict[str, str] = {}
    for known, reason in (known_failures or {}).items():
        if not isinstance(reason, str) or not reason.strip():
            raise ConfigurationError(f"the known failure {known!r} needs a reason, got {reason!r}")
        matching = [name for name, check in names.items() if known in (name, check)]
        if not matching:
            choices = sorted({*names, *names.values()})
            near = difflib.get_close_matches(known, choices, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "see checks_for"
            raise ConfigurationError(
                f"the known failure {known!r} names no check of these parts; {hint}"
            )
        found |= dict.fromkeys(matching, reason)
    return found


@attrs.frozen
class CheckResult:
    """The result of one check of one part."""

    name: str  # check and part, as in ``check_reversible[leapfrog]``
    outcome: Outcome
    message: str  # why it failed, or the reason for a known failure; empty if it passed
    seconds: float


def run_checks(
    cases: Iterable[Case], known_failures: KnownFailures | None = None
) -> list[CheckResult]:
    """Run checks one after the other, and return their results.

    Raises
    ------
    ConfigurationError
        If a known failure has no reason, or names no check among them.
    """
    chosen, results = list(cases), []
    reasons = _reasons(chosen, known_failures)
    for case in chosen:
        began, message, failed = time.perf_counter(), "", False
        try:
            case()
        except Exception as error:
            failed, plain = True, isinstance(error, AssertionError)
            message = str(error) if plain else f"{type(error).__name__}: {error}"
        outcome: Outcome = "failed" if failed else "passed"
        if (reason := reasons.get(case.name)) is not None:
            outcome = "known failure" if failed else "failed"
            message = reason if failed else f"passed, though it was known to fail because {reason}"
        results.append(CheckResult(case.name, outcome, message, time.perf_counter() - began))
    return results


def plugin_cases(module: ModuleType, *, levels: Iterable[Level] = DEFAULT_LEVELS) -> list[Case]:
    """Return the checks of a plugin module and of every part that it offers."""
    wanted, name = tuple(levels), module.__name__
    cases = [
        Case(check, name, lambda: module) for check in CHECKS["plugin"] if check.level in wanted
    ]
    try:
        components = [each for each in components_of(module) if isinstance(each, Component)]
    except Exception:
        return cases  # the checks above say what is wrong
    catalogue = _with_components(default_catalogue(), components)
    return [*cases, *checks_for(*components, levels=wanted, catalogue=catalogue)]


def _runner(kind: CheckedKind, what: str) -> Callable[..., list[CheckResult]]:
    def check(
        make: Factory,
        *,
        levels: Iterable[Level] = DEFAULT_LEVELS,
        known_failures: KnownFailures | None = None,
    ) -> list[CheckResult]:
        return run_checks(checks_for(make, kind=kind, levels=levels), known_failures)

    check.__name__ = check.__qualname__ = f"check_{kind}"
    check.__doc__ = f"""Check {"an" if kind[0] in "ei" else "a"} {kind}: {what}.

    Parameters
    ----------
    make
        Makes the {kind} afresh: one that is made only once would carry state from check to check.
    levels
        Levels of the checks to run.
    known_failures
        Name of a check to the reason why it fails. Such a check must fail.

    Raises
    ------
    ConfigurationError
        If a known failure has no reason, or names no check of this part.
    """
    return check


check_potential = _runner("potential", "shapes, derivatives, capabilities, purity")
check_surrogate = _runner("surrogate", "its learners, and the potentials that they fit")
check_integrator = _runner("integrator", "reversibility, volume, order, failures")
check_metric = _runner("metric", "energy, velocity, momenta, adaptation")
check_sampler = _runner("sampler", "proposals, reproducibility, and the distribution that it keeps")
check_correction = _runner("correction", "decisions, cost, and the distribution that it keeps")
check_schedule = _runner("schedule", "same history, same decisions; learning ends")
check_explorer = _runner("explorer", "it ends, its findings are right, and it can be resumed")
check_policy = _runner("policy", "picks exist and fit the target, and parts that users named stay")
check_wrapper = _runner(
    "wrapper", "a function of potentials that keeps abilities and repeats no call"
)


def check_plugin(
    module: ModuleType,
    *,
    levels: Iterable[Level] = DEFAULT_LEVELS,
    known_failures: KnownFailures | None = None,
) -> list[CheckResult]:
    """Check a plugin module, and every part that it offers at every one of its examples.

    The module, with its hooks, need not be installed. The rest is as for the other functions here.

    Raises
    ------
    ConfigurationError
        If a known failure has no reason, or names no check of this plugin.
    """
    return run_checks(plugin_cases(module, levels=levels), known_failures)
