"""Checks of plugin modules apart from their parts, and of policies."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
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
from surrokit.testing import must
from surrokit.testing.checks import Factory, check
from surrokit.testing.rows import Summed
from surrokit.testing.targets import Gaussian
from surrokit.testing.wrappers import Limited

HEAVY = (
    "arviz", "arviz_base", "arviz_stats", "dask", "jax", "matplotlib", "pandas", "rich", "scipy",
    "sklearn", "sympy", "tensorflow", "torch", "xarray",
)  # fmt: skip
"""Modules that nothing may import until a part is made."""

_REGISTERS = "surrokit_components"


def components_of(module: ModuleType) -> list[Component]:
    """Return the components that a plugin module registers."""
    return list(getattr(module, _REGISTERS, list)())


@check("plugin")
def check_hooks(make: Factory) -> None:
    """Hook functions are marked, with the specified names and arguments and without defaults."""
    module, mark = make(), f"{GROUP}_impl"
    functions = {
        name: function
        for name, function in vars(module).items()
        if inspect.isfunction(function)
        and (name.startswith(f"{GROUP}_") or hasattr(function, mark))
    }
    advice = f"define {_REGISTERS} and decorate it with surrokit.hookimpl"
    must.hold(functions, f"{module.__name__} implements no hook; {advice}")
    for name, function in functions.items():
        marked = hasattr(function, mark)
        must.hold(marked, f"{name} is named as a hook but not marked; decorate it as a hookimpl")
        specified = getattr(hooks, getattr(function, mark).get("specname") or name, None)
        known = set(inspect.signature(specified).parameters) if specified else set()
        what = f"{name} is no hook of this version; hooks are listed in surrokit.registry.hooks"
        must.hold(specified is not None, what)
        for each in inspect.signature(function).parameters.values():
            what = f"{name} takes {each.name!r}, which the hook does not pass; it passes"
            must.hold(each.name in known, f"{what} {sorted(known) or 'nothing'}")
            what = f"{name} gives {each.name!r} a default; pluggy never passes such an argument"
            must.hold(each.default is inspect.Parameter.empty, what)


@check("plugin")
def check_registers(make: Factory) -> None:
    """The module can be registered alone, and gives the same components each time, each once."""
    module = make()
    make_plugins(module)
    first, second = components_of(module), components_of(module)
    for component in first:
        what = f"{_REGISTERS} returned {component!r}; every item must be a Component"
        must.hold(isinstance(component, Component), what)
    keys, again = ([(one.kind, one.name) for one in each] for each in (first, second))
    must.hold(keys == again, f"two calls of {_REGISTERS} give different components")
    twice = sorted({key for key in keys if keys.count(key) > 1})
    must.hold(not twice, f"{' and '.join(map(' '.join, twice))} are registered twice")


@check("plugin")
def check_settings(make: Factory) -> None:
    """Every component has a summary and a source; its factory can be imported.

    Examples and parts name settings, and all settings have help.
    """
    for component in components_of(make()):
        what, summary, longest = component.title, component.summary, 120
        fits = summary.strip() == summary and 0 < len(summary) <= longest and "\n" not in summary
        of = f"the summary of {what} must be one line of at most {longest} characters"
        must.hold(fits, f"{of}, got {summary!r}")
        known = component.references and all(each.strip() for each in component.references)
        must.hold(known, f"{what} has no references; say which paper, equation or code it is from")
        shown = component.examples or component.kind == "potential"  # data may have to be fetched
        must.hold(shown, f"{what} lists no examples, so nothing of it can be checked")
        try:
            settings = component.settings()
        except PluginError as error:
            raise AssertionError(str(error)) from error
        silent = ", ".join(name for name, setting in settings.items() if not setting.help)
        advice = "the section Parameters of its docstring is shown to users"
        must.hold(not silent, f"{what} does not say what {silent} means; {advice}")


@check("plugin")
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
    must.hold(done.returncode == 0, f"{what} fails in a fresh interpreter:\n{done.stderr}")
    loaded = ", ".join(done.stdout.split())
    must.hold(not loaded, f"{what} imports {loaded}; name factories by their paths")


# --- policies ---


def _choose(policy: Any, target: Potential, seconds: float, **given: Any) -> Recipe:
    """Return a policy's choice for a target whose gradient takes some seconds."""
    gradient, chains = seconds if can.GRADIENT in target.capabilities else None, 3
    costs = Costs(
        value=0.5 * seconds,
        gradient=gradient,
        values=0.5 * chains * seconds,
        gradients=None if gradient is None else chains * seconds,
    )
    start = np.zeros((chains, target.dim))
    asked = Recipe(exact=target, chains=chains, draws=100, initial=start, **given)
    recording, rng = RecordingPotential(target, keep=True), np.random.default_rng(1604)
    choice: Recipe = policy.choose(Composer(default_catalogue()), asked, recording, costs, rng)
    return choice


def _demand_made(choice: Recipe, what: str) -> None:
    """Demand that the picked parts exist and fit."""
    try:
        make_plan(Composer(default_catalogue()), choice, np.random.default_rng(1605))
    except SurrokitError as error:
        raise AssertionError(f"what was picked for {what} cannot be made: {error}") from error


@check(
    "policy",
    cases=lambda make: product(
        [make], (Gaussian(), Limited(Gaussian(), frozenset()), Summed()), (1e-6, 1e-3, 1.0)
    ),
)
def check_choices(make: Factory, target: Potential, seconds: float) -> None:
    """The picked parts exist and fit the target, whatever it offers and its calls cost.

    Parts that the user has named stay. Equal targets, costs and generators give equal choices;
    their limit is one of calls and time. The fallback is an exact kernel that fits the target, and
    its draws cost time. Without measurements the choice is an exact kernel.
    """
    what = f"a {type(target).__name__} of {seconds:g} seconds"
    choice = _choose(make(), target, seconds)
    again = _choose(make(), target, seconds)
    must.hold(again.choice == choice.choice, f"two choices for {what} differ")
    kinds: tuple[Kind, ...] = ("schedule", "explorer", "correction")
    given: dict[str, Any] = {kind: default_catalogue().pick(kind) for kind in kinds}
    named = _choose(make(), target, seconds, **given)
    for kind, part in given.items():
        picked = getattr(named, kind)
        must.hold(picked == part, f"for {what} {kind}={part!r} was given, and {picked!r} picked")
    _demand_made(choice, what)
    _demand_made(_choose(make(), target, seconds, warmup=0), what)
    asked = Recipe(exact=target, chains=3)
    plain = make().plain(Composer(default_catalogue()), asked, "nothing was measured")
    must.hold(plain.surrogate is None, f"for {what} a surrogate is picked unmeasured")
    _demand_made(plain, what)
    limit, fallback = choice.exploration, choice.fallback
    right = isinstance(limit, Budget)
    right = right and attrs.evolve(limit, max_calls=None, max_seconds=None) == Budget()
    must.hold(right, f"the limit for {what} must be a Budget of calls and seconds, got {limit!r}")
    if fallback is not None:
        exact = fallback.sampler.needs <= target.capabilities and not fallback.schedule.learns
        must.hold(exact, f"the fallback for {what} is no exact kernel that fits it")
        costs = fallback.seconds_per_draw > 0
        must.hold(costs, f"a draw of the fallback for {what} costs nothing")
