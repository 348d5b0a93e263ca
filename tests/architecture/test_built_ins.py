"""Built-in plugins come through the same door as strangers'."""

from __future__ import annotations

import inspect
import json

from surrokit.catalogue import default_catalogue
from surrokit.components import KINDS
from surrokit.discovery import DISABLE_VARIABLE, default_plugins, find
from surrokit.markers import GROUP


def test_every_plugin_folder_is_found_through_its_entry_point(plugin_names):
    modules = {plugin.module.__name__ for plugin in default_plugins().loaded}
    assert {f"{name}.plugin" for name in plugin_names} <= modules


def test_every_built_in_comes_from_this_distribution_and_group(plugin_names):
    built_in = [p for p in find(()) if p.entry.module.partition(".")[0] in plugin_names]
    assert len(built_in) == len(plugin_names)
    assert {plugin.distribution for plugin in built_in} == {"surrokit"}
    assert {plugin.entry.group for plugin in built_in} == {GROUP}


def test_every_part_says_which_plugin_it_is_from():
    labels = {plugin.label for plugin in default_plugins().loaded}
    assert {entry.plugin for entry in default_catalogue()} <= labels


def test_every_kind_has_a_part():
    kinds = {entry.component.kind for entry in default_catalogue()}
    assert kinds == set(KINDS)


def test_every_part_has_a_summary_of_one_line_and_a_reference():
    for entry in default_catalogue():
        assert entry.component.summary.strip()
        assert "\n" not in entry.component.summary
    unreferenced = [
        entry.component.name
        for entry in default_catalogue()
        if not entry.component.references and entry.component.kind != "potential"
    ]
    assert unreferenced == []


def test_parts_inside_parts_are_keywords_of_the_factory():
    for entry in default_catalogue():
        assert set(entry.component.parts) <= set(entry.component.settings())


def test_examples_name_real_settings():
    for entry in default_catalogue():
        for example in entry.component.examples:
            assert set(example) <= set(entry.component.settings()), entry.component.name


def test_every_setting_of_a_factory_can_be_named():
    by_name = {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    for entry in default_catalogue():
        kinds = {p.kind for p in inspect.signature(entry.component.factory).parameters.values()}
        assert kinds <= by_name, entry.component.name


DISABLED_ONE_BY_ONE = """
import json, os
from surrokit.catalogue import make_catalogue
from surrokit.discovery import find, load
loaded = {}
for name in [plugin.entry.name for plugin in find(())]:
    os.environ["%s"] = name
    plugins = load(find())
    make_catalogue(plugins)
    loaded[name] = sorted(p.label.partition("[")[2][:-1] for p in plugins.loaded)
print(json.dumps(loaded))
"""


def test_each_can_be_switched_off_and_the_others_still_load(python):
    loaded = json.loads(python(DISABLED_ONE_BY_ONE % DISABLE_VARIABLE))
    assert len(loaded) == len(find(()))
    for name, others in loaded.items():
        assert others == sorted(set(loaded) - {name})


def test_without_any_plugin_a_run_says_what_to_install(python):
    names = ",".join(plugin.entry.name for plugin in find(()))
    printed = python(
        "import surrokit as sk\n"
        "try: sk.sample(sk.potential(lambda q: q @ q, dim=1), progress=False)\n"
        "except LookupError as error: print(error)",
        **{DISABLE_VARIABLE: names},
    )
    assert "no samplers are registered" in printed
    assert "pip install" in printed
