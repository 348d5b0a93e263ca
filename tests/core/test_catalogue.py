"""From kind and name to the registered component."""

from __future__ import annotations

import types

import pytest

from surrokit import Component, hookimpl
from surrokit.errors import ComponentClashError, PluginError, UnknownComponentError
from surrokit.registry.catalogue import make_catalogue
from surrokit.registry.discovery import make_plugins


def component(name, kind="sampler"):
    return Component(kind=kind, name=name, factory=dict, summary=f"the {name} {kind}")


def plugin(name, *components, returned=None):
    """Return a module that offers components, or whatever else its hook shall return or do."""
    module = types.ModuleType(name)

    def surrokit_components():
        offered = list(components) if returned is None else returned
        return offered() if callable(offered) else offered

    module.surrokit_components = hookimpl(surrokit_components)
    return module


def catalogue(*modules):
    return make_catalogue(make_plugins(*modules))


def test_entries_are_in_order_of_kind_and_name():
    found = catalogue(
        plugin("p", component("a", "metric"), component("z"), component("b")),
        plugin("q", returned=(component("s", "surrogate"),)),
    )
    assert [entry.name for entry in found] == ["s", "b", "z", "a"]
    assert found.names("sampler") == ["b", "z"]


def test_a_clash_names_both_plugins():
    with pytest.raises(ComponentClashError, match="p and q both register a sampler named 'same'; "):
        catalogue(plugin("p", component("same")), plugin("q", component("same")))


@pytest.mark.parametrize("returned", [["hmc"], [component("a"), object()]])
def test_a_wrong_item_names_plugin_and_hook(returned):
    message = "plugin p returned .* from surrokit_components; every item must be a Component"
    with pytest.raises(PluginError, match=message):
        catalogue(plugin("p", returned=returned))


@pytest.mark.parametrize("returned", [0, component("a")])
def test_a_wrong_return_names_plugin_and_hook(returned):
    message = "plugin p returned .* from surrokit_components; it must return a list"
    with pytest.raises(PluginError, match=message):
        catalogue(plugin("p", returned=returned))


def test_a_hook_that_raises_is_named():
    def breaks():
        raise ZeroDivisionError("oh")

    message = "plugin p raised ZeroDivisionError in surrokit_components: oh; fix it, or switch"
    with pytest.raises(PluginError, match=message):
        catalogue(plugin("p", returned=breaks))


# --- what is not there ---


@pytest.fixture
def some():
    return catalogue(
        plugin("p", component("hmc"), component("random-walk"), component("dense", "metric"))
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


def test_an_unknown_kind_lists_the_kinds(some):
    with pytest.raises(LookupError, match="there is no kind 'samplers'; kinds are: potential, sur"):
        some.get("samplers", "hmc")


def test_entries_are_found_by_name_alone(some):
    assert [entry.name for entry in some.find(["dense", "hmc"])] == ["hmc", "dense"]
    assert some.find([]) == list(some)
    message = "no part is named 'dens'; did you mean 'dense'\\? surrokit plugins lists them"
    with pytest.raises(UnknownComponentError, match=message):
        some.find(["dens"])


# --- what serves where nothing is named ---


def serving(name, kind="sampler", **more):
    return Component(kind=kind, name=name, factory=dict, summary="s", **more)


def test_what_serves_a_purpose_is_found_by_kind():
    found = catalogue(
        plugin("p", serving("a", serves=["rows"]), serving("b", default=True)),
        plugin("q", serving("c", "metric", default=True, serves=["rows"])),
    )
    assert found.serving("sampler", "rows").name == "a"
    assert found.serving("metric", "rows").name == "c"
    assert found.serving("metric", "nothing") is None
    assert (found.pick("sampler"), found.pick("sampler", "rows")) == ("b", "a")


def test_what_nothing_serves_cannot_be_picked():
    found = catalogue(plugin("p", serving("a"), serving("b")))
    message = "no sampler is registered that serves as 'default'; name one of a, b, or enable the"
    with pytest.raises(UnknownComponentError, match=message):
        found.pick("sampler")
    with pytest.raises(UnknownComponentError, match="no policies are registered, so there is no "):
        found.pick("policy")


@pytest.mark.parametrize(
    ("claim", "purpose"), [({"default": True}, "default"), ({"serves": ["rows"]}, "rows")]
)
def test_two_claims_to_one_purpose_name_both_parts_and_plugins(claim, purpose):
    message = (
        f"sampler 'a' of p and 'b' of q both claim to serve as '{purpose}'; uninstall one, or sw"
    )
    with pytest.raises(ComponentClashError, match=message):
        catalogue(plugin("p", serving("a", **claim)), plugin("q", serving("b", **claim)))
