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
from surrokit.testing.demands import CHECKS, Factory, arguments, check, demand, evaluations_of
from surrokit.testing.rows import Summed
from surrokit.testing.targets import AdjointBanana, Banana, Gaussian, Mixture
from surrokit.testing.wrappers import CountingPotential, Limited
from surrokit.types import Capabilities

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
    demand(functions, f"{module.__name__} implements no hook; {advice}")
    for name, function in functions.items():
        marked = hasattr(function, mark)
        demand(marked, f"{name} is named as a hook but not marked; decorate it as a hookimpl")
        specified = getattr(hooks, getattr(function, mark).get("specname") or name, None)
        known = set(inspect.signature(specified).parameters) if specified else set()
        what = f"{name} is no hook of this version; hooks are listed in surrokit.registry.hooks"
        demand(specified is not None, what)
        for each in inspect.signature(function).parameters.values():
            what = f"{name} takes {each.name!r}, which the hook does not pass; it passes"
            demand(each.name in known, f"{what} {sorted(known) or 'nothing'}")
            what = f"{name} gives {each.name!r} a default; pluggy never passes such an argument"
            demand(each.default is inspect.Parameter.empty, what)


@check("plugin")
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


@check("plugin")
def check_settings(make: Factory) -> None:
    """Every component has a summary and a source; its factory can be imported.

    Examples and parts name settings, and all settings have help.
    """
    for component in components_of(make()):
        what, summary, longest = component.title, component.summary, 120
        fits = summary.strip() == summary and 0 < len(summary) <= longest and "\n" not in summary
        of = f"the summary of {what} must be one line of at most {longest} characters"
        demand(fits, f"{of}, got {summary!r}")
        known = component.references and all(each.strip() for each in component.references)
        demand(known, f"{what} has no references; say which paper, equation or code it is from")
        shown = component.examples or component.kind == "potential"  # data may have to be fetched
        demand(shown, f"{what} lists no examples, so nothing of it can be checked")
        try:
            settings = component.settings()
        except PluginError as error:
            raise AssertionError(str(error)) from error
        silent = ", ".join(name for name, setting in settings.items() if not setting.help)
        advice = "the section Parameters of its docstring is shown to users"
        demand(not silent, f"{what} does not say what {silent} means; {advice}")


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
    demand(done.returncode == 0, f"{what} fails in a fresh interpreter:\n{done.stderr}")
    loaded = ", ".join(done.stdout.split())
    demand(not loaded, f"{what} imports {loaded}; name factories by their paths")


@attrs.frozen
class _Choice:
    """A policy's choice for a target, and the seconds that a gradient takes."""

    what: str
    policy: Any
    target: Potential
    seconds: float

    def choose(self, **given: Any) -> Recipe:
        """Return the choice, given what the user named."""
        target, seconds, chains = self.target, self.seconds, 3
        gradient = seconds if can.GRADIENT in target.capabilities else None
        costs = Costs(
            value=0.5 * seconds,
            gradient=gradient,
            values=0.5 * chains * seconds,
            gradients=None if gradient is None else chains * seconds,
        )
        start = np.zeros((chains, target.dim))
        asked = Recipe(exact=target, chains=chains, draws=100, initial=start, **given)
        recording, rng = RecordingPotential(target, keep=True), np.random.default_rng(1604)
        catalogue = Composer(default_catalogue())
        choice: Recipe = self.policy.choose(catalogue, asked, recording, costs, rng)
        return choice

    def demand_made(self, choice: Recipe) -> None:
        """Demand that the picked parts exist and fit."""
        try:
            make_plan(Composer(default_catalogue()), choice, np.random.default_rng(1605))
        except SurrokitError as error:
            what = f"what was picked for {self.what} cannot be made: {error}"
            raise AssertionError(what) from error


@check("policy")
def check_choices(make: Factory) -> None:
    """The picked parts exist and fit the target, whatever it offers and its calls cost.

    Parts that the user has named stay. Equal targets, costs and generators give equal choices;
    their limit is one of calls and time. The fallback is an exact kernel that fits the target, and
    its draws cost time. Without measurements the choice is an exact kernel.
    """
    for on in _choices(make):
        what, choice = on.what, on.choose()
        kinds: tuple[Kind, ...] = ("schedule", "explorer", "correction")
        given = {kind: default_catalogue().pick(kind) for kind in kinds}
        named = on.choose(**given)
        for kind, part in given.items():
            picked = getattr(named, kind)
            demand(picked == part, f"for {what} {kind}={part!r} was given, and {picked!r} picked")
        on.demand_made(choice)
        on.demand_made(on.choose(warmup=0))
        asked = Recipe(exact=on.target, chains=3)
        plain = make().plain(Composer(default_catalogue()), asked, "nothing was measured")
        demand(plain.surrogate is None, f"for {what} a surrogate is picked unmeasured")
        on.demand_made(plain)
        demand(on.choose().choice == choice.choice, f"two choices for {what} differ")
        limit, fallback = choice.exploration, choice.fallback
        right = isinstance(limit, Budget)
        right = right and attrs.evolve(limit, max_calls=None, max_seconds=None) == Budget()
        demand(right, f"the limit for {what} must be a Budget of calls and seconds, got {limit!r}")
        if fallback is not None:
            fits = fallback.sampler.needs <= on.target.capabilities
            exact = fits and not fallback.schedule.learns
            demand(exact, f"the fallback for {what} is no exact kernel that fits it")
            costs = fallback.seconds_per_draw > 0
            demand(costs, f"a draw of the fallback for {what} costs nothing")


def _choices(make: Factory) -> Iterator[_Choice]:
    targets: dict[str, Potential] = {
        "a target with gradients": Gaussian(),
        "a target with values only": Limited(Gaussian(), frozenset()),
        "a sum over rows": Summed(),
    }
    for (name, target), seconds in product(targets.items(), (1e-6, 1e-3, 1.0)):
        yield _Choice(f"{name} of {seconds:g} seconds", make(), target, seconds)


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

    A wrapper that changes coordinates may lose ``hessian-diagonal`` and ``metric-product``, which
    the whole matrices stand for, and ``convex``, ``gaussian`` and ``rows``, which no potential here
    has.
    """
    for inner in _LIMITED:
        offered, wrapped = inner.capabilities, make()(inner).capabilities
        spared = offered - {can.HESSIAN_DIAGONAL, can.METRIC_PRODUCT}
        lost, invented = sorted(spared - wrapped), sorted(wrapped - offered)
        what = f"around a potential that offers {sorted(offered) or 'values only'} the wrapper"
        demand(not lost and not invented, f"{what} loses {lost} and invents {invented}")


@check("wrapper")
def check_wrapped_potential(make: Factory) -> None:
    """A wrapped potential passes all checks of potentials, whatever its capabilities."""
    several: tuple[Potential, ...] = (Gaussian(), Mixture(), Summed(), *_LIMITED)
    for inner, each in product(several, CHECKS["potential"]):
        if each.applies(make()(inner)):
            try:
                each(partial(lambda inside: make()(inside), inner))
            except AssertionError as error:
                what = f"{each.name} fails around {type(inner).__name__}"
                raise AssertionError(f"{what}: {error}") from error


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
