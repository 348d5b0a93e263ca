"""Targets and settings named on the command line: registered targets, and objects in a file."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from surrokit.errors import ConfigurationError, SurrokitError, TargetError
from surrokit.registry.components import KINDS, Kind

if TYPE_CHECKING:
    from surrokit.registry.catalogue import Catalogue

_PARTS = ("target", *(kind for kind in KINDS if kind != "potential"))


def parse_settings(settings: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the settings of each part from ``part.setting=value``, a literal of Python or text."""
    parsed: dict[str, dict[str, Any]] = {}
    for item in settings:
        key, equals, value = item.partition("=")
        part, dot, setting = key.partition(".")
        if not (equals and dot and setting.isidentifier()):
            raise ConfigurationError(
                f"--set takes part.setting=value, got {item!r}; for example surrogate.n_nodes=500"
            )
        if part not in _PARTS:
            raise ConfigurationError(
                f"--set {item!r}: there is no part {part!r}; parts are {', '.join(_PARTS)}"
            )
        settings_of_part = parsed.setdefault(part, {})
        settings_of_part[setting] = value
        with suppress(ValueError, SyntaxError):
            settings_of_part[setting] = ast.literal_eval(value)
    return parsed


def specs_of(
    names: Mapping[str, str | None], settings: Mapping[str, dict[str, Any]], catalogue: Catalogue
) -> dict[str, Any]:
    """Join names of parts with their settings into arguments of :func:`surrokit.sample`.

    Settings of a kind whose name is None go to the default part of the kind.
    """
    specs: dict[str, Any] = {}
    for kind in cast(Mapping[Kind, Any], {**names, **settings}):
        name = names.get(kind)
        if kind not in settings:
            specs[kind] = name
        elif name == "none":
            raise ConfigurationError(
                f"there is no {kind}, so {', '.join(settings[kind])} cannot be set; name one with "
                f"--{kind}"
            )
        else:
            specs[kind] = (name or catalogue.pick(kind), settings[kind])
    return specs


def name_or_target(target: Any, settings: Mapping[str, Any], *, one_by_one: bool = False) -> Any:
    """Return a target as :func:`surrokit.sample` takes it; a registered one stays a name.

    The file of a run then has the name, from which it can be resumed. None stands for the target
    that a file names; with ``one_by_one`` a target is evaluated one position at a time.
    """
    if target is None:
        if settings or one_by_one:
            given = "--one-by-one" if one_by_one else f"--set target.{next(iter(settings))}"
            raise TargetError(f"{given} goes with a target; give TARGET after FILE, as to sample")
        return None
    if one_by_one:
        from surrokit.model.model import one_by_one as in_single_rows

        return in_single_rows(resolve_target(target, settings))
    if not isinstance(target, str) or not _is_name(target):
        return resolve_target(target, settings)
    return (target, dict(settings)) if settings else target


def _is_name(target: str) -> bool:
    return not target.endswith(".toml") and ".py" not in target and ":" not in target


def resolve_target(target: Any, settings: Mapping[str, Any]) -> Any:
    """Return a target by registered name, from ``path/to/file.py:object``, or of a program.

    A file ``.toml`` describes a program; a potential is returned as it is. Settings are those of a
    registered target or of a program, or arguments of an object that is a function.
    """
    from surrokit.compose import make
    from surrokit.programs.potential import read_program

    if not isinstance(target, str):
        return target
    if target.endswith(".toml"):
        return read_program(Path(target), settings)
    if _is_name(target):
        return make("potential", target, **settings)
    path, colon, name = target.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise TargetError(
            f"a target is a registered name or path/to/file.py:object, got {target!r}; "
            "say which object of the file to sample, or give a file .toml that describes a program"
        )
    module = _import_module(Path(path))
    if not hasattr(module, name):
        names = [n for n in vars(module) if not n.startswith("_")]
        raise TargetError(f"{path} has no object {name!r}; it has {', '.join(names) or 'none'}")
    return _potential_of(getattr(module, name), target, settings)


def _potential_of(found: Any, target: str, settings: Mapping[str, Any]) -> Any:
    """Return a potential as it is, and what else makes one called with settings."""
    if hasattr(found, "value") and hasattr(found, "dim"):
        if not settings:
            return found
        raise TargetError(
            f"{target} is a potential already, so it takes no settings "
            f"({', '.join(settings)}); name a function that makes one"
        )
    if not callable(found):
        raise TargetError(
            f"{target} is of type {type(found).__name__}; it must be a potential, such as "
            "surrokit.potential(...) returns, or a function that returns one"
        )
    try:
        made = found(**settings)
    except SurrokitError:
        raise
    except (Exception, SystemExit) as error:
        raise TargetError(
            f"{target} was called to make a target, and raised {type(error).__name__}: {error}; "
            "name a function that needs no more than its settings (--set target.name=value)"
        ) from error
    if not (hasattr(made, "value") and hasattr(made, "dim")):
        raise TargetError(
            f"{target} returned a {type(made).__name__}; it must return a potential, such as "
            "surrokit.potential(...) does"
        )
    return made


def _import_module(path: Path) -> ModuleType:
    from surrokit.executors.worker import send_whole

    if not path.is_file():
        raise TargetError(f"there is no file {path}; give the path to a Python file")
    name = f"surrokit_target_{path.stem}"  # no clash with a module of that name
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickle look it up
    sys.path.insert(0, str(path.parent.resolve()))  # as python itself does for a script
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise TargetError(
            f"{path} could not be imported: {type(error).__name__}: {error}; try python {path}"
        ) from error
    finally:
        sys.path.pop(0)
    send_whole(module, path)
    return module
