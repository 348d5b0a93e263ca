"""Docstrings are there, and name what is there."""

from __future__ import annotations

import builtins
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import surrokit
import surrokit.plugin
from surrokit import errors
from surrokit.registry.components import parameter_texts


def public_members(owner: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield public classes, functions and methods that a module defines, by qualified name."""
    for name, value in vars(owner).items():
        if isinstance(value, classmethod | staticmethod):
            value = value.__func__
        elif isinstance(value, property):
            value = value.fget
        if name.startswith("_") or getattr(value, "__module__", None) != prefix.partition(":")[0]:
            continue
        if inspect.isfunction(value) or inspect.isclass(value):
            yield f"{prefix}.{name}", value
        if inspect.isclass(value) and inspect.ismodule(owner):
            yield from public_members(value, f"{prefix}:{name}")


@pytest.fixture(scope="module")
def members(module_names) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in module_names:
        found.update(public_members(importlib.import_module(name), name))
    assert len(found) > 2000
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
        if (documented := set(parameter_texts(value.__doc__)))
        and (extra := documented - set(inspect.signature(value).parameters))
    }
    assert wrong == {}


def test_a_parameters_section_of_what_users_import_names_all_parameters():
    """Inside, parameters whose name says all are left out."""
    faces = [(module, name) for module in (surrokit, surrokit.plugin) for name in module.__all__]
    missing, members = {}, {name: getattr(module, name) for module, name in faces}
    assert len(members) > 50
    for name, value in members.items():
        documented = set(parameter_texts(value.__doc__))
        if inspect.isfunction(value) and documented:
            absent = set(inspect.signature(value).parameters) - documented
            if absent:
                missing[name] = absent
    assert missing == {}


def test_raised_errors_are_classes_that_exist(members):
    named = {
        error.strip()
        for value in members.values()
        for _, text in [inspect.cleandoc(value.__doc__ or "").partition("Raises\n------\n")[1:]]
        for line in re.findall(r"^([A-Z][\w, ]+)\n ", text, re.MULTILINE)
        for error in line.split(",")
    }
    assert len(named) > 20
    assert {e for e in named if not hasattr(errors, e) and not hasattr(builtins, e)} == set()
