"""From kind and name to the registered component."""

from __future__ import annotations

import types

import pytest

from surrokit import Component, hookimpl
from surrokit.catalogue import make_catalogue
from surrokit.components import KINDS
from surrokit.discovery import make_plugins
from surrokit.errors import ComponentClashError, PluginError, UnknownComponentError


def component(name, kind="sampler"):
    return Component(kind=kind, name=name, factory=dict, summary=f"the {name} {kind}")


def plugin(name, **hooks):
    """Return a module that implements hooks by what they shall return."""
    module = types.ModuleType(name)
    for kind, returned in hooks.items():

        def hook(returned=returned):
            return returned() if callable(returned) else returned

        # pluggy passes no argument that has a default
        function = types.FunctionType(hook.__code__, hook.__globals__, argdefs=hook.__defaults__)
        function.__name__ = f"surrokit_register_{kind}"
        setattr(module, function.__name__, hookimpl(function))
    return module


def catalogue(*modules):
    return make_catalogue(make_plugins(*modules))


@pytest.mark.parametrize("kind", KINDS)
def test_components_of_each_kind_are_found(kind):
    mine = component("mine", kind)
    assert catalogue(plugin("p", **{f"{kind}s": [mine]})).get(kind, "mine") is mine


def test_one_name_may_serve_several_kinds():
    found = catalogue(
        plugin("p", samplers=[component("same")], metrics=[component("same", "metric")])
    )
    assert found.get("metric", "same").kind == "metric"


def test_entries_are_in_order_of_kind_and_name():
    found = catalogue(
        plugin("p", metrics=[component("a", "metric")], samplers=[component("z"), component("b")]),
        plugin("q", surrogates=(component("s", "surrogate"),)),
    )
    assert [entry.component.name for entry in found] == ["s", "b", "z", "a"]
    assert found.names("sampler") == ["b", "z"]


def test_entries_know_their_plugin():
    found = catalogue(
        plugin("p", samplers=[component("a")]), plugin("q", samplers=[component("b")])
    )
    assert {entry.component.name: entry.plugin for entry in found} == {"a": "p", "b": "q"}


def test_a_clash_names_both_plugins():
    with pytest.raises(ComponentClashError, match="p and q both register a sampler named 'same'; "):
        catalogue(
            plugin("p", samplers=[component("same")]), plugin("q", samplers=[component("same")])
        )


def test_a_clash_within_one_plugin_is_one_too():
    with pytest.raises(ComponentClashError, match="p and p both register a sampler named 'same'"):
        catalogue(plugin("p", samplers=[component("same"), component("same")]))


@pytest.mark.parametrize(
    "returned", [[3], [component("a", "metric")], ["hmc"], [None], [component("a"), object()]]
)
def test_a_wrong_item_names_plugin_and_hook(returned):
    message = "plugin p returned .* from surrokit_register_samplers; every item must be a Component"
    with pytest.raises(PluginError, match=message):
        catalogue(plugin("p", samplers=returned))


@pytest.mark.parametrize("returned", [None, component("a"), 3, {"a": component("a")}])
def test_a_wrong_return_names_plugin_and_hook(returned):
    message = "plugin p returned .* from surrokit_register_samplers; it must return a list"
    with pytest.raises(PluginError, match=message):
        catalogue(plugin("p", samplers=returned))


def test_a_hook_that_raises_is_named():
    def breaks():
        raise ZeroDivisionError("oh")

    message = (
        "plugin p raised ZeroDivisionError in surrokit_register_samplers: oh; fix it, or switch"
    )
    with pytest.raises(PluginError, match=message):
        catalogue(plugin("p", samplers=breaks))


# --- what is not there ---


@pytest.fixture
def some():
    return catalogue(
        plugin(
            "p",
            samplers=[component("hmc"), component("random-walk")],
            metrics=[component("dense", "metric")],
        )
    )


def test_the_nearest_name_is_proposed(some):
    with pytest.raises(
        UnknownComponentError, match=r"did you mean 'random-walk'\? registered are: hmc"
    ):
        some.get("sampler", "randomwalk")


def test_a_name_like_no_other_lists_what_there_is(some):
    with pytest.raises(UnknownComponentError) as caught:
        some.get("sampler", "zzzzz")
    assert str(caught.value) == "no sampler is named 'zzzzz'; registered are: hmc, random-walk"


def test_a_name_of_another_kind_is_recognised(some):
    with pytest.raises(LookupError, match="'dense' is the name of a metric; registered are: hmc"):
        some.get("sampler", "dense")


def test_an_empty_catalogue_says_what_to_install():
    message = (
        "no samplers are registered, so there is no 'hmc'; install surrokit itself .*pip install"
    )
    with pytest.raises(UnknownComponentError, match=message):
        catalogue().get("sampler", "hmc")
