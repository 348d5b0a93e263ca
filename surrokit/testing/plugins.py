"""Checks of plugin modules apart from their parts, and of policies."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from types import ModuleType

import attrs
import numpy as np

from surrokit.cost.measuring import Costs
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import PluginError, SurrokitError
from surrokit.plan.plan import make_plan
from surrokit.plan.recipe import Recipe
from surrokit.potentials import Potential
from surrokit.registry.catalogue import Composer, default_catalogue
from surrokit.registry.components import Component
from surrokit.registry.discovery import make_plugins
from surrokit.registry.hooks import GROUP
from surrokit.testing import must
from surrokit.testing.checks import Factory, check
from surrokit.testing.rows import Summed
from surrokit.testing.targets import Gaussian

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
def check_registers(make: Factory) -> None:
    """The module can be registered, its hooks are marked, and each component is there once."""
    module, mark = make(), f"{GROUP}_impl"
    manager = make_plugins(module)
    for name, function in vars(module).items():
        if inspect.isfunction(function) and (name.startswith(GROUP) or hasattr(function, mark)):
            what = f"{name} is named as a hook but not marked; decorate it with surrokit.hookimpl"
            must.hold(hasattr(function, mark), what)
            given = inspect.signature(function).parameters.values()
            usual = [each.name for each in given if each.default is not inspect.Parameter.empty]
            what = f"{name} gives {usual} a default; pluggy never passes such an argument"
            must.hold(not usual, what)
    advice = f"define {_REGISTERS} and decorate it with surrokit.hookimpl"
    must.hold(manager.get_hookcallers(module), f"{module.__name__} implements no hook; {advice}")
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
        what, summary = component.title, component.summary
        fits = 0 < len(summary) <= 120 and "\n" not in summary
        of = f"the summary of {what} must be one line of at most 120 characters"
        must.hold(fits, f"{of}, got {summary!r}")
        advice = "say which paper, equation or code it is from"
        must.hold(component.references, f"{what} has no references; {advice}")
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


@check("policy", cases=lambda make: [(make, Gaussian()), (make, Summed())])
def check_choices(make: Factory, target: Potential) -> None:
    """The picked parts fit the target, and equal costs and generators give equal choices.

    A part that the user has named stays.
    """
    composer, start = Composer(default_catalogue()), np.zeros((3, target.dim))
    costs = Costs(value=1e-3, gradient=2e-3, values=3e-3, gradients=6e-3)
    asked = Recipe(exact=target, chains=3, draws=100, initial=start)

    def choose(asked: Recipe) -> Recipe:
        recording, rng = RecordingPotential(target, keep=True), np.random.default_rng(1604)
        choice: Recipe = make().choose(composer, asked, recording, costs, rng)
        try:
            make_plan(composer, choice, np.random.default_rng(1605))
        except SurrokitError as error:
            raise AssertionError(f"what was picked cannot be made: {error}") from error
        return choice

    must.hold(choose(asked).choice == choose(asked).choice, "two choices for one target differ")
    correction = default_catalogue().pick("correction")
    picked = choose(attrs.evolve(asked, correction=correction)).correction
    must.hold(picked == correction, f"correction={correction!r} was given, {picked!r} picked")
