"""Checks of plugin modules, apart from the parts that they offer."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from types import ModuleType
from typing import Any

from surrokit.errors import PluginError
from surrokit.registry import hooks
from surrokit.registry.components import Component
from surrokit.registry.discovery import make_plugins
from surrokit.registry.hooks import GROUP
from surrokit.testing.measures.demands import demand
from surrokit.testing.results import Check, Factory

HEAVY = (
    "arviz", "arviz_base", "arviz_stats", "dask", "jax", "matplotlib", "pandas", "rich", "scipy",
    "sklearn", "sympy", "tensorflow", "torch", "xarray",
)  # fmt: skip
"""Modules that nothing may import until a part is made."""

_PREFIX = f"{GROUP}_"
_REGISTERS = "surrokit_components"
_LONGEST_SUMMARY = 120


def components_of(module: ModuleType) -> list[Component]:
    """Return the components that a plugin module registers."""
    hook = getattr(module, _REGISTERS, None)
    return [] if hook is None else list(hook())


def _implementations(module: ModuleType) -> dict[str, Any]:
    return {
        name: function
        for name, function in vars(module).items()
        if inspect.isfunction(function)
        and (name.startswith(_PREFIX) or hasattr(function, f"{GROUP}_impl"))
    }


def check_hooks(make: Factory) -> None:
    """Hook functions are marked, with the specified names and arguments and without defaults."""
    module = make()
    implementations = _implementations(module)
    demand(
        implementations,
        f"{module.__name__} implements no hook; define {_REGISTERS} and decorate it with "
        "surrokit.hookimpl",
    )
    for name, function in implementations.items():
        demand(
            hasattr(function, f"{GROUP}_impl"),
            f"{name} is named as a hook but not marked; decorate it with surrokit.hookimpl",
        )
        options = getattr(function, f"{GROUP}_impl")
        specified = getattr(hooks, options.get("specname") or name, None)
        demand(
            specified is not None,
            f"{name} is no hook of this version; hooks are listed in surrokit.registry.hooks",
        )
        known = set(inspect.signature(specified).parameters) if specified else set()
        for argument in inspect.signature(function).parameters.values():
            demand(
                argument.name in known,
                f"{name} takes {argument.name!r}, which the hook does not pass; it passes "
                f"{sorted(known) or 'nothing'}",
            )
            demand(
                argument.default is inspect.Parameter.empty,
                f"{name} gives {argument.name!r} a default; pluggy never passes an argument that "
                "has one",
            )


def check_registers(make: Factory) -> None:
    """The module can be registered alone, and gives the same components each time."""
    module = make()
    make_plugins(module)
    first, second = components_of(module), components_of(module)
    for component in first:
        demand(
            isinstance(component, Component),
            f"{_REGISTERS} returned {component!r}; every item must be a Component",
        )
    demand(
        [(c.kind, c.name) for c in first] == [(c.kind, c.name) for c in second],
        f"two calls of {_REGISTERS} give different components",
    )


def check_names(make: Factory) -> None:
    """Names are unique within a kind; ``Component`` itself demands kebab-case."""
    seen: set[tuple[str, str]] = set()
    for component in components_of(make()):
        key = (component.kind, component.name)
        demand(key not in seen, f"{component.title()} is registered twice")
        seen.add(key)


def check_descriptions(make: Factory) -> None:
    """Every component has a summary of one line and says where it comes from."""
    for component in components_of(make()):
        what = component.title()
        summary = component.summary
        demand(
            summary.strip() == summary and 0 < len(summary) <= _LONGEST_SUMMARY,
            f"the summary of {what} must be one line of at most {_LONGEST_SUMMARY} characters, "
            f"got {summary!r}",
        )
        demand("\n" not in summary, f"the summary of {what} must be one line, got {summary!r}")
        demand(
            all(reference.strip() for reference in component.references) and component.references,
            f"{what} has no references; say which paper, equation or code it comes from",
        )


def check_settings(make: Factory) -> None:
    """Factories can be imported, examples and parts name settings, and all settings have help."""
    for component in components_of(make()):
        what = component.title()
        demand(
            component.examples or component.kind == "potential",
            f"{what} lists no examples, so nothing of it can be checked; only targets whose data "
            "must be fetched may have none",
        )
        try:
            settings = component.settings()
        except PluginError as error:
            raise AssertionError(str(error)) from error
        silent = [name for name, setting in settings.items() if not setting.help]
        demand(
            not silent,
            f"{what} does not say what {', '.join(silent)} means; the section Parameters of its "
            "docstring is shown to users",
        )


def check_imports_light(make: Factory) -> None:
    """The module and its list of components import nothing heavy."""
    name = make().__name__
    code = (
        f"import importlib, sys; module = importlib.import_module({name!r})\n"
        f"getattr(module, {_REGISTERS!r}, list)()\n"
        f"print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    demand_light(code, f"importing {name} and calling {_REGISTERS}")


def demand_light(code: str, what: str) -> None:
    """Demand that code, run in a fresh interpreter, prints no name of an imported module."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    demand(done.returncode == 0, f"{what} fails in a fresh interpreter:\n{done.stderr}")
    loaded = done.stdout.split()
    demand(
        not loaded,
        f"{what} imports {', '.join(loaded)}; name factories by their paths, so that listing what "
        "there is stays fast",
    )


CHECKS: tuple[Check, ...] = (
    Check(check_hooks),
    Check(check_registers),
    Check(check_names),
    Check(check_descriptions),
    Check(check_settings),
    Check(check_imports_light),
)
"""For every plugin module."""
