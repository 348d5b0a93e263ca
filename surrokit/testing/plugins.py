"""Checks of plugin modules apart from their parts, of policies, and of wrappers of potentials."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from itertools import product
from types import ModuleType
from typing import Any

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.cost.budget import Budget
from surrokit.cost.measuring import Costs
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import PluginError, SurrokitError
from surrokit.plan.plan import make_plan
from surrokit.plan.recipe import Recipe
from surrokit.potentials import Potential
from surrokit.registry import hooks
from surrokit.registry.catalogue import Composer, default_catalogue
from surrokit.registry.components import Component, Kind
from surrokit.registry.discovery import make_plugins
from surrokit.registry.hooks import GROUP
from surrokit.testing import rows
from surrokit.testing.demands import CHECKS, Factory, arguments, check, demand, evaluations_of
from surrokit.testing.targets import AdjointBanana, Banana, Gaussian, Mixture
from surrokit.testing.wrappers import CountingPotential, Limited
from surrokit.types import Capabilities

HEAVY = (
    "arviz", "arviz_base", "arviz_stats", "dask", "jax", "matplotlib", "pandas", "rich", "scipy",
    "sklearn", "sympy", "tensorflow", "torch", "xarray",
)  # fmt: skip
"""Modules that nothing may import until a part is made."""

_REGISTERS = "surrokit_components"
_MARK = f"{GROUP}_impl"
_LONGEST_SUMMARY = 120


def components_of(module: ModuleType) -> list[Component]:
    """Return the components that a plugin module registers."""
    return list(getattr(module, _REGISTERS, list)())


of_module = partial(check, "plugin")


@of_module()
def check_hooks(make: Factory) -> None:
    """Hook functions are marked, with the specified names and arguments and without defaults."""
    module = make()
    functions = {
        name: function
        for name, function in vars(module).items()
        if inspect.isfunction(function)
        and (name.startswith(f"{GROUP}_") or hasattr(function, _MARK))
    }
    advice = f"define {_REGISTERS} and decorate it with surrokit.hookimpl"
    demand(functions, f"{module.__name__} implements no hook; {advice}")
    for name, function in functions.items():
        marked = hasattr(function, _MARK)
        demand(marked, f"{name} is named as a hook but not marked; decorate it as a hookimpl")
        specified = getattr(hooks, getattr(function, _MARK).get("specname") or name, None)
        known = set(inspect.signature(specified).parameters) if specified else set()
        what = f"{name} is no hook of this version; hooks are listed in surrokit.registry.hooks"
        demand(specified is not None, what)
        passed = sorted(known) or "nothing"
        for each in inspect.signature(function).parameters.values():
            what = f"{name} takes {each.name!r}, which the hook does not pass"
            demand(each.name in known, f"{what}; it passes {passed}")
            what = f"{name} gives {each.name!r} a default; pluggy never passes such an argument"
            demand(each.default is inspect.Parameter.empty, what)


@of_module()
def check_registers(make: Factory) -> None:
    """The module can be registered alone, and gives the same components each time, each once."""
    module = make()
    make_plugins(module)
    first, second = components_of(module), components_of(module)
    for component in first:
        what = f"{_REGISTERS} returned {component!r}; every item must be a Component"
        demand(isinstance(component, Component), what)
    keys, again = ([(one.kind, one.name) for one in each] for each in (first, second))
    demand(keys == again, f"two calls of {_REGISTERS} give different components")
    twice = sorted({key for key in keys if keys.count(key) > 1})
    demand(not twice, f"{' and '.join(map(' '.join, twice))} are registered twice")


@of_module()
def check_descriptions(make: Factory) -> None:
    """Every component has a summary of one line and says where it comes from."""
    for component in components_of(make()):
        what, summary = component.title, component.summary
        fits = summary.strip() == summary and 0 < len(summary) <= _LONGEST_SUMMARY
        demand(
            fits and "\n" not in summary,
            f"the summary of {what} must be one line of at most {_LONGEST_SUMMARY} characters, "
            f"got {summary!r}",
        )
        known = component.references and all(each.strip() for each in component.references)
        demand(known, f"{what} has no references; say which paper, equation or code it is from")


@of_module()
def check_settings(make: Factory) -> None:
    """Factories can be imported, examples and parts name settings, and all settings have help."""
    for component in components_of(make()):
        what = component.title
        demand(
            component.examples or component.kind == "potential",
            f"{what} lists no examples, so nothing of it can be checked; only targets whose data "
            "must be fetched may have none",
        )
        try:
            settings = component.settings()
        except PluginError as error:
            raise AssertionError(str(error)) from error
        silent = ", ".join(name for name, setting in settings.items() if not setting.help)
        advice = "the section Parameters of its docstring is shown to users"
        demand(not silent, f"{what} does not say what {silent} means; {advice}")


@of_module()
def check_imports_light(make: Factory) -> None:
    """The module and its list of components import nothing heavy."""
    name = make().__name__
    code = (
        f"import importlib, sys; module = importlib.import_module({name!r})\n"
        f"getattr(module, {_REGISTERS!r}, list)()"
    )
    demand_light(code, f"importing {name} and calling {_REGISTERS}")


def demand_light(code: str, what: str) -> None:
    """Demand that code, run in a fresh interpreter, imports no heavy module."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    code += f"\nimport sys; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    demand(done.returncode == 0, f"{what} fails in a fresh interpreter:\n{done.stderr}")
    loaded = ", ".join(done.stdout.split())
    demand(not loaded, f"{what} imports {loaded}; name factories by their paths")


_CHAINS = 3


@attrs.frozen
class _Case:
    """A target to choose parts for, and the seconds that a gradient takes."""

    what: str
    target: Potential
    seconds: float

    def choose(self, make: Factory, **given: Any) -> Recipe:
        """Return what a policy chooses, given what the user named."""
        target, seconds = self.target, self.seconds
        gradient = seconds if can.GRADIENT in target.capabilities else None
        costs = Costs(
            value=0.5 * seconds,
            gradient=gradient,
            values=0.5 * _CHAINS * seconds,
            gradients=None if gradient is None else _CHAINS * seconds,
        )
        start = np.zeros((_CHAINS, target.dim))
        asked = Recipe(exact=target, chains=_CHAINS, draws=100, initial=start, **given)
        recording, rng = RecordingPotential(target, keep=True), np.random.default_rng(1604)
        catalogue = Composer(default_catalogue())
        choice: Recipe = make().choose(catalogue, asked, recording, costs, rng)
        return choice


def _cases(make: Factory) -> Iterator[tuple[Factory, _Case]]:
    targets: dict[str, Potential] = {
        "a target with gradients": Gaussian(),
        "a target with values only": Limited(Gaussian(), frozenset()),
        "a sum over rows": rows.Summed(),
    }
    for (name, target), seconds in product(targets.items(), (1e-6, 1e-3, 1.0)):
        yield make, _Case(f"{name} of {seconds:g} seconds", target, seconds)


of_choices = partial(check, "policy", cases=_cases)
"""Declares a check of a policy on one target."""


def _demand_made(choice: Recipe, what: str) -> None:
    try:
        make_plan(Composer(default_catalogue()), choice, np.random.default_rng(1605))
    except SurrokitError as error:
        raise AssertionError(f"what was picked for {what} cannot be made: {error}") from error


@of_choices()
def check_choices_can_be_made(make: Factory, case: _Case) -> None:
    """The picked parts exist and fit the target, whatever it offers and its calls cost."""
    _demand_made(case.choose(make), case.what)
    _demand_made(case.choose(make, warmup=0), case.what)


@of_choices()
def check_fixed_parts(make: Factory, case: _Case) -> None:
    """Parts that the user has named stay."""
    kinds: tuple[Kind, ...] = ("schedule", "explorer", "correction")
    given = {kind: default_catalogue().pick(kind) for kind in kinds}
    choice = case.choose(make, **given)
    for kind, named in given.items():
        picked = getattr(choice, kind)
        what = f"for {case.what} {kind}={named!r} was given, and {picked!r} picked"
        demand(picked == named, what)


@of_choices()
def check_plain(make: Factory, case: _Case) -> None:
    """Without measurements the choice is an exact kernel that fits the target."""
    asked = Recipe(exact=case.target, chains=_CHAINS)
    choice = make().plain(Composer(default_catalogue()), asked, "nothing was measured")
    demand(choice.surrogate is None, f"for {case.what} a surrogate is picked unmeasured")
    _demand_made(choice, case.what)


@of_choices()
def check_choice(make: Factory, case: _Case) -> None:
    """Equal targets, costs and generators give equal choices; their limit is one of calls and time.

    The fallback is an exact kernel that fits the target, and its draws cost time.
    """
    what, choice = case.what, case.choose(make)
    demand(case.choose(make).choice == choice.choice, f"two choices for {what} differ")
    limit, fallback = choice.exploration, choice.fallback
    right = isinstance(limit, Budget)
    right = right and attrs.evolve(limit, max_calls=None, max_seconds=None) == Budget()
    demand(right, f"the limit for {what} must be a Budget of calls and seconds, got {limit!r}")
    if fallback is not None:
        fits = fallback.sampler.needs <= case.target.capabilities
        exact = fits and not fallback.schedule.learns
        demand(exact, f"the fallback for {what} is no exact kernel that fits it")
        costs = fallback.seconds_per_draw > 0
        demand(costs, f"a draw of the fallback for {what} costs nothing")


_GRADIENTS: Capabilities = frozenset({can.GRADIENT, can.GRADIENT_ALONE})

SUBSETS: tuple[Capabilities, ...] = (
    frozenset(),
    frozenset({can.GRADIENT}),
    _GRADIENTS,
    _GRADIENTS | {can.HESSIAN},
    _GRADIENTS | {can.HESSIAN, can.HESSIAN_DERIVATIVE},
    _GRADIENTS | {can.HESSIAN_PRODUCT},
    _GRADIENTS | {can.HESSIAN, can.HESSIAN_DIAGONAL},
    _GRADIENTS | {can.HESSIAN_PRODUCT, can.HESSIAN_DIAGONAL},
    frozenset({can.GRADIENT, can.METRIC, can.INITIAL}),
    frozenset({can.GRADIENT, can.METRIC, can.METRIC_DERIVATIVE}),
    frozenset({can.FORWARD}),
    frozenset({can.FORWARD, can.JACOBIAN, can.GRADIENT}),
    frozenset({can.FORWARD, can.VJP, can.GRADIENT}),
    Banana().capabilities,
    AdjointBanana().capabilities,
)
"""Capabilities of the potentials to wrap."""

_LIMITED = tuple(Limited(AdjointBanana(), offered) for offered in SUBSETS)


@check("wrapper")
def check_capabilities_kept(make: Factory) -> None:
    """A wrapped potential has the capabilities of the one inside, no more and no less.

    A wrapper that changes coordinates may lose ``convex``, ``gaussian`` and ``rows``; no potential
    here has them.
    """
    for inner in _LIMITED:
        offered, wrapped = inner.capabilities, make()(inner).capabilities
        lost, invented = sorted(offered - wrapped), sorted(wrapped - offered)
        what = f"around a potential that offers {sorted(offered) or 'values only'} the wrapper"
        demand(not lost and not invented, f"{what} loses {lost} and invents {invented}")


@check("wrapper")
def check_wrapped_potential(make: Factory) -> None:
    """A wrapped potential passes all checks of potentials, whatever its capabilities."""
    several: tuple[Potential, ...] = (Gaussian(), Mixture(), rows.Summed(), *_LIMITED)
    for inner, each in product(several, CHECKS["potential"]):
        if not each.applies(make()(inner)):
            continue
        try:
            each(partial(_wrap, make, inner))
        except AssertionError as error:
            what = f"{each.name} fails around {type(inner).__name__}"
            raise AssertionError(f"{what}: {error}") from error


def _wrap(make: Factory, inner: Potential) -> Any:
    return make()(inner)


@check("wrapper")
def check_wrapped_calls(make: Factory) -> None:
    """An evaluation of the wrapped potential costs each position once, in one batch."""
    target = AdjointBanana()
    wrapped = make()(counting := CountingPotential(target))
    positions = target.sample(np.random.default_rng(21), 5)
    for name in sorted(evaluations_of(wrapped)):
        given = arguments(wrapped, name, positions)
        counting.forget()
        getattr(wrapped, name)(*given)
        cost, batches = dict(counting.positions), dict(counting.batches)
        once = max(cost.values(), default=0) == 5 and max(batches.values(), default=0) == 1
        what = f"{name} at 5 positions cost {cost} positions in {batches} batches"
        demand(once, f"{what} of the potential inside; expected 5 in 1")
