"""Docstrings are there, and name what is there."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import surrokit
import surrokit.plugin

UNDERLINE = re.compile(r"^-{3,}$")


def public_members(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield public classes, functions and methods that a module defines, by qualified name."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value):
            yield f"{module.__name__}.{name}", value
        elif inspect.isclass(value):
            yield f"{module.__name__}.{name}", value
            yield from methods(f"{module.__name__}.{name}", value)


def methods(prefix: str, cls: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(value, classmethod | staticmethod):
            yield f"{prefix}.{name}", value.__func__
        elif isinstance(value, property):
            yield f"{prefix}.{name}", value.fget
        elif inspect.isfunction(value):
            yield f"{prefix}.{name}", value


def section(docstring: str, title: str) -> list[str]:
    """Return the lines of a numpydoc section, without indent."""
    lines = inspect.cleandoc(docstring).splitlines()
    for i, line in enumerate(lines[:-1]):
        if line == title and UNDERLINE.match(lines[i + 1]):
            rest = lines[i + 2 :]
            ends = [j for j, text in enumerate(rest) if UNDERLINE.match(text)]
            return rest[: ends[0] - 1] if ends else rest
    return []


def documented_parameters(docstring: str) -> list[str]:
    names = []
    for line in section(docstring, "Parameters"):
        if line and not line[0].isspace():
            names += [name.strip() for name in line.partition(" : ")[0].split(",")]
    return names


def real_parameters(value: Any) -> set[str]:
    names = set()
    for parameter in inspect.signature(value).parameters.values():
        names.add(
            {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
            + parameter.name
        )
    return names


@pytest.fixture(scope="module")
def members(module_names) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in module_names:
        found.update(public_members(importlib.import_module(name)))
    assert len(found) > 300
    return found


def test_everything_public_has_a_docstring(members):
    assert [name for name, value in members.items() if not inspect.getdoc(value)] == []


def test_every_module_has_a_docstring(module_names):
    missing = [name for name in module_names if not importlib.import_module(name).__doc__]
    assert missing == []


def test_documented_parameters_exist(members):
    wrong = {
        name: extra
        for name, value in members.items()
        if (documented := set(documented_parameters(value.__doc__ or "")))
        and (extra := documented - real_parameters(value))
    }
    assert wrong == {}


def test_a_parameters_section_of_what_users_import_names_all_parameters():
    """Inside, parameters whose name says all are left out."""
    faces = [(module, name) for module in (surrokit, surrokit.plugin) for name in module.__all__]
    missing, members = {}, {name: getattr(module, name) for module, name in faces}
    assert len(members) > 50
    for name, value in members.items():
        documented = set(documented_parameters(value.__doc__ or ""))
        if inspect.isfunction(value) and documented:
            absent = real_parameters(value) - documented - {"self", "cls", "_"}
            if absent:
                missing[name] = absent
    assert missing == {}


def test_raised_errors_are_classes_that_exist(members):
    import builtins

    from surrokit import errors

    unknown = {
        f"{name}: {line}"
        for name, value in members.items()
        for line in section(value.__doc__ or "", "Raises")
        if line and not line[0].isspace()
        for error in line.split(",")
        if not hasattr(errors, error.strip()) and not hasattr(builtins, error.strip())
    }
    assert unknown == set()
