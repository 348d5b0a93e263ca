"""Components: what a plugin offers."""

from __future__ import annotations

import inspect

import pytest

from surrokit import Component, Part
from surrokit.components import KINDS
from surrokit.errors import ConfigurationError


def factory(*, size, scale=2.0, sampler=None):
    return size


def component(**changed):
    return Component(
        **{"kind": "metric", "name": "mine", "factory": factory, "summary": "s"} | changed
    )


@pytest.mark.parametrize("name", ["a", "mine", "my-own", "rbf2", "a-b-c"])
def test_names_are_words_joined_by_hyphens(name):
    assert component(name=name).name == name


@pytest.mark.parametrize("name", ["", "Mine", "my_own", "-a", "a-", "a--b", "a b", "é", "a\n"])
def test_other_names_are_refused(name):
    with pytest.raises(ConfigurationError, match="lower-case words joined by hyphens, got"):
        component(name=name)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_taken(kind):
    assert component(kind=kind).kind == kind


@pytest.mark.parametrize("kind", ["metrics", "Metric", "", "figure"])
def test_other_kinds_are_refused(kind):
    with pytest.raises(ConfigurationError, match="kind must be one of potential, surrogate, "):
        component(kind=kind)


def test_settings_are_the_keywords_of_the_factory():
    settings = component(parts={"sampler": Part("sampler")}).settings()
    assert settings == {"size": inspect.Parameter.empty, "scale": 2.0, "sampler": None}


def test_components_are_equal_by_what_they_hold():
    assert component() == component()
    assert component() != component(name="yours")


def test_a_component_cannot_be_changed():
    with pytest.raises(AttributeError):
        component().name = "other"
