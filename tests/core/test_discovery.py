"""From entry points to loaded plugins: distributions as pip would leave them, made on the spot."""

from __future__ import annotations

import sys
import uuid
from importlib import metadata

import pytest

from surrokit.errors import ComponentClashError, PluginLoadError
from surrokit.registry import discovery
from surrokit.registry.catalogue import make_catalogue
from surrokit.registry.discovery import DISABLE_VARIABLE, find, label, load

GOOD = """
from surrokit import Component, hookimpl

@hookimpl
def surrokit_components():
    return [Component(kind="sampler", name="{name}", factory=dict, summary="made for a test")]
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put distributions on the path, each in a folder of its own, and nothing else."""
    folders = []

    def entry_points(group):
        found = metadata.distributions(path=[str(folder) for folder in folders])
        return [each for of in found for each in of.entry_points.select(group=group)]

    monkeypatch.setattr(discovery, "entry_points", entry_points)

    def add(distribution, entry="mine", source=GOOD, target=None, group="surrokit", name="found"):
        folder = tmp_path / f"{len(folders)}"
        module = f"module_{uuid.uuid4().hex}"
        information = folder / f"{distribution.replace('-', '_')}-1.2.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n"
        )
        (information / "entry_points.txt").write_text(f"[{group}]\n{entry} = {target or module}\n")
        (folder / f"{module}.py").write_text(source.replace("{name}", name))
        folders.append(folder)
        monkeypatch.syspath_prepend(str(folder))
        return module

    return add


def test_a_plugin_is_found_without_being_imported(install):
    module = install("stranger", source="raise AssertionError('imported')")
    (found,) = find(())
    assert label(found) == "stranger[mine]"
    assert module not in sys.modules


def test_a_found_plugin_is_loaded_and_offers_its_parts(install):
    install("stranger", name="strange")
    install("other", group="console_scripts")  # which is not ours
    catalogue = make_catalogue(load(find(())))
    assert [(entry.name, entry.plugin) for entry in catalogue] == [("strange", "stranger[mine]")]


def test_one_entry_name_of_two_distributions_names_both(install):
    install("one", "same")
    install("two", "same")
    message = (
        r"two distributions announce a plugin named 'same': one\[same\] and two\[same\]; uninst"
    )
    with pytest.raises(ComponentClashError, match=message):
        find(())


# --- switched off ---


def test_disabled_entries_are_left_out(install, monkeypatch):
    install("one", "a")
    install("two", "b")
    monkeypatch.delenv(DISABLE_VARIABLE, raising=False)
    assert len(find()) == 2
    monkeypatch.setenv(DISABLE_VARIABLE, " a , ,nonsense")
    assert [label(plugin) for plugin in find()] == ["two[b]"]


# --- what can be wrong with a plugin ---


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("import a_module_that_is_not_there", "ModuleNotFoundError: No module named"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def (", "SyntaxError"),
    ],
)
def test_a_plugin_that_fails_to_import_is_named_with_the_cause(install, source, cause):
    install("stranger", "bad", source=source)
    message = rf"plugin stranger\[bad\] could not be imported from .*: {cause}"
    with pytest.raises(PluginLoadError, match=message) as caught:
        load(find(()))
    assert f"set {DISABLE_VARIABLE}=bad" in str(caught.value)
    assert caught.value.__cause__ is not None


def test_an_entry_must_be_a_module(install):
    install("stranger", "bad", target="os:getcwd")
    message = r"stranger\[bad\] must name a module, but 'os:getcwd' is of type builtin_function"
    with pytest.raises(PluginLoadError, match=message):
        load(find(()))


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ("surrokit_register_teapots()", "surrokit_register_teapots.*upgrade surrokit"),
        ("surrokit_run_started(run, more)", "'more'"),
    ],
)
def test_a_hook_that_this_version_does_not_have_is_refused(install, hook, said):
    source = f"from surrokit import hookimpl\n@hookimpl\ndef {hook}: pass\n"
    install("stranger", "new", source=source)
    message = rf"(?s)stranger\[new\] does not fit this version.*{said}"
    with pytest.raises(PluginLoadError, match=message):
        load(find(()))


def test_two_entries_may_not_name_one_module(install):
    module = install("one", "a")
    install("two", "b", target=module)
    with pytest.raises(
        PluginLoadError, match=rf"two\[b\] names the module {module}, which another"
    ):
        load(find(()))
