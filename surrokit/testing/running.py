"""The selection of checks for a part, and their execution, with pytest or without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
from surrokit.testing.checks import CHECKS, Check, Factory, Level
from surrokit.testing.plugins import components_of

if TYPE_CHECKING:
    import pytest

LEVELS: tuple[Level, ...] = ("quick", "statistical")
"""The levels that run unless others are asked for."""


@attrs.frozen
class Case:
    """One check of one part, with the part's label and factory; calling it runs the check."""

    check: Check
    part: str
    make: Factory

    @property
    def name(self) -> str:
        """Check and part, as in ``check_reversible[Leapfrog]``."""
        return f"{self.check.name}[{self.part}]"

    def __call__(self) -> None:
        """Run the check.

        Raises
        ------
        AssertionError
            If it fails.
        """
        self.check(self.make)


@attrs.frozen
class CheckResult:
    """The result of one check of one part."""

    name: str  # check and part, as in ``check_reversible[Leapfrog]``
    message: str  # why it failed; empty if it passed

    @property
    def outcome(self) -> Literal["passed", "failed"]:
        """Whether it passed."""
        return "failed" if self.message else "passed"


def _checks_of(kind: str | None, part: Any) -> list[Check]:
    """Return the checks of a kind, or of the kind whose methods a part has."""
    if kind is None:
        kind = next((each for each in KINDS if not missing_members(each, part)), None)
    if kind not in CHECKS:
        raise ConfigurationError(
            f"a {type(part).__name__} has the methods of no kind of part, or kind={kind!r} is "
            f"none. Name its kind, one of {', '.join(CHECKS)}"
        )
    return CHECKS[kind]


def _labelled(
    parts: Iterable[Component | Factory], catalogue: Catalogue | None
) -> Iterator[tuple[str, Factory]]:
    """Yield factories, for all examples of components, with labels: ``hmc-step_size=0.5``."""
    for part in parts:
        if isinstance(part, Component):
            composer = Composer(_with_components(catalogue or default_catalogue(), [part]))
            for settings in part.examples:
                words = [f"{name}={value}".replace(" ", "") for name, value in settings.items()]
                spec = (part.name, dict(settings))
                yield "-".join([part.name, *words]), partial(composer.make, part.kind, spec)
        elif callable(part):
            yield getattr(part, "__name__", "part").strip("<>"), part
        else:
            raise ConfigurationError(
                f"parts to check must be components or zero-argument factories, got {part!r}; "
                "pass its class, or a function that makes it afresh"
            )


def _with_components(catalogue: Catalogue, components: Iterable[Component]) -> Catalogue:
    """Return a catalogue that also holds some components, in place of any of the same name."""
    new = {(one.kind, one.name): attrs.evolve(one, plugin="under test") for one in components}
    return Catalogue(entries={**catalogue.entries, **new})


def checks_for(
    *parts: Component | Factory,
    kind: str | None = None,
    levels: Iterable[Level] = LEVELS,
    catalogue: Catalogue | None = None,
) -> Iterator[Case]:
    """Select checks by the kind of each part and by what it declares: named callables.

    Parameters
    ----------
    parts
        Components, each with all its examples, or zero-argument factories.
    kind
        Kind of all parts; None to tell it from their methods.
    levels
        Levels of the checks to select.
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
    levels: Iterable[Level] = LEVELS,
) -> pytest.MarkDecorator:
    """Parametrise a pytest test with the checks of some parts; the test calls ``check()``.

    Its ids read ``check_reversible[Leapfrog]``. Statistical checks carry the mark ``statistical``,
    which :mod:`surrokit.testing.fixtures` registers.

    Parameters
    ----------
    parts
        Components, or zero-argument factories: one for each setting worth testing.
    kind, levels
        As for :func:`checks_for`.
    """
    import pytest

    parameters = [
        pytest.param(case, id=case.name, marks=[pytest.mark.statistical] * (level != "quick"))
        for case in checks_for(*parts, kind=kind, levels=levels)
        for level in [case.check.level]
    ]
    return pytest.mark.parametrize("check", parameters)


def run_checks(cases: Iterable[Case]) -> list[CheckResult]:
    """Run checks one after the other, and return their results."""
    results = []
    for case in cases:
        message = ""
        try:
            case()
        except AssertionError as error:
            message = str(error) or "AssertionError"
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
        results.append(CheckResult(case.name, message))
    return results


def check_potential(make: Factory) -> list[CheckResult]:
    """Check a potential that a factory makes afresh, and return what came of each check."""
    return run_checks(checks_for(make, kind="potential"))


def check_plugin(module: ModuleType, *, levels: Iterable[Level] = LEVELS) -> list[CheckResult]:
    """Check the hooks of a plugin module, and every part that it offers at all its examples.

    Parameters
    ----------
    module
        The module, which need not be installed.
    levels
        Levels of the checks to run.
    """
    wanted = tuple(levels)
    cases = [Case(check, module.__name__, lambda: module) for check in CHECKS["plugin"]]
    try:
        components = [each for each in components_of(module) if isinstance(each, Component)]
    except Exception:
        components = []  # the checks above say what is wrong
    catalogue = _with_components(default_catalogue(), components)
    return run_checks([*cases, *checks_for(*components, levels=wanted, catalogue=catalogue)])
