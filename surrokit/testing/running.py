"""The selection of checks for a part, and their execution, with pytest or without."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import attrs

from surrokit.errors import ConfigurationError
from surrokit.registry.catalogue import Catalogue, Composer, default_catalogue
from surrokit.registry.components import KINDS, Component, missing_members

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
from surrokit.testing.checks import CHECKS, Check, CheckedKind, Factory, Level
from surrokit.testing.plugins import components_of

if TYPE_CHECKING:
    import pytest

DEFAULT_LEVELS: tuple[Level, ...] = ("quick", "statistical")
"""The levels that run unless others are asked for."""


def _checks_of(kind: str | None, part: Any) -> list[Check]:
    """Return the checks of a kind, or of the kind whose methods a part has."""
    if kind is None:
        kind = next((each for each in KINDS if not missing_members(each, part)), None)
        if kind is None:
            raise ConfigurationError(
                f"a {type(part).__name__} has the methods of no kind of part; see surrokit.plugin, "
                f"or name its kind, one of {', '.join(CHECKS)}"
            )
    if kind not in CHECKS:
        raise ConfigurationError(f"kind must be one of {', '.join(CHECKS)}, got {kind!r}")
    return CHECKS[kind]


def _labelled(
    parts: Iterable[Component | Factory], catalogue: Catalogue | None
) -> Iterator[tuple[str, Factory]]:
    """Yield factories, for all examples of components, with labels: ``hmc-step_size=0.5``."""
    seen: Counter[str] = Counter()
    for part in parts:
        named: list[tuple[str, Factory]] = []
        if isinstance(part, Component):
            known = _with_components(catalogue or default_catalogue(), [part])
            for settings in part.examples:
                words = [f"{name}={value}".replace(" ", "") for name, value in settings.items()]
                spec = (part.name, dict(settings))
                made = partial(Composer(known).make, part.kind, spec)
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
    for label, make in _labelled(parts, catalogue):
        chosen = [Check(check_builds)]
        try:
            made = make()
        except Exception:
            made = None  # check_builds says why
        else:
            chosen += [check for check in _checks_of(kind, made) if check.applies(made)]
        yield from (Case(check, label, make) for check in chosen if check.level in wanted)


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
    known_failures: Mapping[str, str] | None = None,
) -> pytest.MarkDecorator:
    """Parametrise a pytest test with the checks of some parts; the test calls ``check()``.

    Its ids read ``check_reversible[leapfrog]``.

    Parameters
    ----------
    parts
        Components, or zero-argument factories: one for each setting worth testing.
    kind, levels
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

    cases, reasons = list(checks_for(*parts, kind=kind, levels=levels)), dict[str, str]()
    for known, reason in (known_failures or {}).items():
        matching = [case.name for case in cases if known in (case.name, case.check.name)]
        if not (reason and matching):
            what = f"names no check of these parts, got {reason!r}"
            raise ConfigurationError(f"the known failure {known!r} needs a reason, or {what}")
        reasons |= dict.fromkeys(matching, reason)
    parameters = []
    for case in cases:
        marks = [] if case.level == "quick" else [getattr(pytest.mark, case.level)]
        if case.name in reasons:
            marks.append(pytest.mark.xfail(reason=reasons[case.name], strict=True))
        parameters.append(pytest.param(case, id=case.name, marks=marks))
    return pytest.mark.parametrize("check", parameters)


@attrs.frozen
class CheckResult:
    """The result of one check of one part."""

    name: str  # check and part, as in ``check_reversible[leapfrog]``
    outcome: Literal["passed", "failed"]
    message: str  # why it failed; empty if it passed
    seconds: float


def run_checks(cases: Iterable[Case]) -> list[CheckResult]:
    """Run checks one after the other, and return their results."""
    results = []
    for case in cases:
        began, message = time.perf_counter(), ""
        try:
            case()
        except AssertionError as error:
            message = str(error) or "AssertionError"
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - began
        results.append(CheckResult(case.name, "failed" if message else "passed", message, seconds))
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
    def check(make: Any, *, levels: Iterable[Level] = DEFAULT_LEVELS) -> list[CheckResult]:
        if kind == "plugin":
            return run_checks(plugin_cases(make, levels=levels))
        return run_checks(checks_for(make, kind=kind, levels=levels))

    check.__name__ = check.__qualname__ = f"check_{kind}"
    check.__doc__ = f"""Check {"an" if kind[0] in "ei" else "a"} {kind}: {what}.

    Parameters
    ----------
    make
        Makes the {kind} afresh: one that is made only once would carry state from check to check.
        Of a plugin it is the module, which need not be installed.
    levels
        Levels of the checks to run.
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
check_plugin = _runner("plugin", "its hooks, and every part that it offers at all its examples")
