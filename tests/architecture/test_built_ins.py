"""Built-in plugins come through the same door as strangers'."""

from __future__ import annotations

import json

from surrokit.registry.catalogue import default_catalogue
from surrokit.registry.discovery import DISABLE_VARIABLE, default_plugins, find
from surrokit.registry.hooks import GROUP


def test_every_plugin_folder_is_found_through_its_entry_point(plugin_names):
    modules = {module.__name__ for module in default_plugins().get_plugins()}
    assert set(plugin_names) <= modules


def test_every_built_in_comes_from_this_distribution_and_group(plugin_names):
    built_in = [p for p in find(()) if p.module.partition(".")[0] in plugin_names]
    assert len(built_in) == len(plugin_names)
    assert {plugin.dist.name for plugin in built_in} == {"surrokit"}
    assert {plugin.group for plugin in built_in} == {GROUP}


def test_every_part_has_a_summary_of_one_line_and_a_reference():
    for entry in default_catalogue():
        assert entry.summary.strip()
        assert "\n" not in entry.summary
    unreferenced = [
        entry.name
        for entry in default_catalogue()
        if not entry.references and entry.kind != "potential"
    ]
    assert unreferenced == []


def test_examples_and_parts_name_real_settings():
    for entry in default_catalogue():
        assert entry.settings() is not None, entry.name  # which refuses others


DISABLED_ONE_BY_ONE = """
import json, os
from surrokit.registry.catalogue import make_catalogue
from surrokit.registry.discovery import find, load
loaded = {}
for name in [plugin.name for plugin in find(())]:
    os.environ["%s"] = name
    plugins = load(find())
    make_catalogue(plugins)
    loaded[name] = sorted(n.partition("[")[2][:-1] for n, _ in plugins.list_name_plugin())
print(json.dumps(loaded))
"""


def test_each_can_be_switched_off_and_the_others_still_load(python):
    loaded = json.loads(python(DISABLED_ONE_BY_ONE % DISABLE_VARIABLE))
    assert len(loaded) == len(find(()))
    for name, others in loaded.items():
        assert others == sorted(set(loaded) - {name})


def test_without_any_plugin_a_run_says_what_to_install(python):
    names = ",".join(plugin.name for plugin in find(()))
    printed = python(
        "import surrokit as sk\n"
        "try: sk.sample(sk.potential(lambda q: q @ q, dim=1), progress=False)\n"
        "except LookupError as error: print(error)",
        **{DISABLE_VARIABLE: names},
    )
    assert "no samplers are registered" in printed
    assert "pip install" in printed
