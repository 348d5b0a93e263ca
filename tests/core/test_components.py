"""Components: what a plugin offers."""

from __future__ import annotations

import sys

import pytest

from surrokit import Component, Part
from surrokit.errors import ConfigurationError, MissingDependencyError, PluginError, PluginLoadError
from surrokit.registry.catalogue import Catalogue, Composer
from surrokit.registry.components import KINDS, members_of, missing_members, protocols_of


def factory(*, size, scale=2.0, sampler=None):
    return size


def component(**changed):
    return Component(
        **{"kind": "metric", "name": "mine", "factory": factory, "summary": "s"} | changed
    )


PATH = "metric 'mine' must be a path such as 'package.module:Class', or a fun"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        *(({"name": name}, "joined by hyphens, got") for name in ("", "Mine", "my_own", "-a")),
        *(({"name": name}, "joined by hyphens, got") for name in ("a--b", "a b", "é", "a\n")),
        *(({"kind": kind}, "one of potential, surrogate") for kind in ("metrics", "Metric", "")),
        *(({"factory": path}, PATH) for path in ("module", "m.Class", "module:", ":C", "a b:C", 3)),
    ],
)
def test_other_names_kinds_and_paths_are_refused(changed, said):
    with pytest.raises(ConfigurationError, match=said):
        component(**changed)


# --- factories by their path ---

MODULE = """
import attrs

@attrs.frozen(kw_only=True)
class Thing:
    size: int = 1

    @classmethod
    def large(cls, size=100):
        return cls(size=size)

class Ready:
    def draw(self):
        pass

    tunable = adapt = velocity = energy = longest_scale = draw

ready = Ready()
number = 3
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "offers_things.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "offers_things"
    sys.modules.pop("offers_things", None)


def test_a_path_is_imported_on_first_use(module):
    mine = component(factory=f"{module}:Thing")
    assert module not in sys.modules
    assert list(mine.settings()) == ["size"]
    assert mine.load() is sys.modules[module].Thing


def test_a_path_may_name_a_method_of_a_class(module):
    mine = component(factory=f"{module}:Thing.large")
    assert mine.settings()["size"].default == 100
    assert mine.load()().size == 100


def test_a_module_that_cannot_be_imported_is_named(tmp_path, monkeypatch):
    message = (
        r"metric 'mine' of plugin them\[x\] is to be made by 'nowhere_at_all:Thing', but "
        "that cannot be imported: ModuleNotFoundError: No module named"
    )
    with pytest.raises(PluginLoadError, match=message):
        component(factory="nowhere_at_all:Thing", plugin="them[x]").load()
    (tmp_path / "breaks_at_once.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PluginLoadError, match="ZeroDivisionError: division by zero; repair it"):
        component(factory="breaks_at_once:Thing").load()
    with pytest.raises(PluginLoadError, match="AttributeError: module 'math' has no attribute 'x'"):
        component(factory="math:x").load()


def test_a_package_that_is_missing_says_so_itself(tmp_path, monkeypatch):
    (tmp_path / "wants_more.py").write_text(
        "from surrokit.errors import MissingDependencyError\n"
        "raise MissingDependencyError('install more')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingDependencyError, match=r"^install more$"):
        component(factory="wants_more:Thing").load()


def test_a_path_may_name_a_part_that_is_ready(module):
    mine = component(factory=f"{module}:ready")
    assert mine.settings() == {}
    assert mine.make({}) is sys.modules[module].ready


def test_what_makes_nothing_is_refused(module):
    message = (
        "is to be made by 'offers_things:number', which is of type int; name a class, a function, "
        "or a metric"
    )
    with pytest.raises(PluginError, match=message):
        component(factory=f"{module}:number").load()


@pytest.mark.parametrize(
    "wrong",
    [
        {"parts": {"metric": Part("metric")}},
        {"serves": {"anything": {"metric": 1}}},
        {"examples": ({"metric": 1},)},
    ],
)
def test_settings_that_the_factory_does_not_have_are_refused(wrong):
    message = (
        r"metric 'mine' of plugin them\[x\] names metric in parts, serves or "
        "examples, but its settings are: size, scale, sampler"
    )
    with pytest.raises(PluginError, match=message):
        component(**wrong, plugin="them[x]").settings()


@pytest.mark.parametrize("made_by", [lambda **settings: settings, lambda *rest: rest])
def test_settings_that_cannot_be_read_are_an_error_of_the_plugin(made_by):
    message = r"the settings of metric 'mine' of plugin them\[x\] cannot be read: .*by name as sett"
    with pytest.raises(PluginError, match=message):
        component(factory=made_by, plugin="them[x]").settings()


# --- what a part is used for where none is named ---


def test_purposes_may_have_settings_and_include_being_the_default():
    assert component().purposes == {}
    assert component(default=True, serves=["rows"]).purposes == {"default": {}, "rows": {}}
    settings = {"size": 3}
    assert component(serves={"rows": settings}).purposes == {"rows": settings}


def test_a_single_purpose_must_stand_in_a_list():
    message = r"serves must be several purposes, .*, got 'rows'; write serves=\['rows'\]"
    with pytest.raises(ConfigurationError, match=message):
        component(serves="rows")


# --- parts keep to the protocol of their kind ---


class Drawing:
    """Half a metric."""

    tunable = False

    def draw(self, rng, n, dim):
        return rng.standard_normal((n, dim))

    velocity = energy = draw


def test_a_part_that_lacks_members_is_refused_with_the_plugin():
    mine = component(factory=Drawing, plugin="them[x]")
    message = (
        r"metric 'mine' of plugin them\[x\] is a Drawing, which is no metric: it lacks adapt, "
        "longest_scale of Metric, or adapt, .*factor.* of PositionMetric; see surrokit.plugin"
    )
    with pytest.raises(PluginError, match=message):
        Composer(Catalogue(entries={("metric", "mine"): mine})).make("metric", "mine")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_a_part_of_any_kind(kind):
    lacking = missing_members(kind, object())
    assert lacking == {protocol.__name__: members_of(protocol) for protocol in protocols_of(kind)}
    assert all(lacking.values())


def test_members_of_an_instance_count():
    class Made:
        def __init__(self):
            self.dim, self.capabilities, self.value = 2, frozenset(), abs

    assert missing_members("potential", Made()) == {}
    assert missing_members("surrogate", Made()) == {}  # a ready potential is one
    assert missing_members("surrogate", Drawing()) == {
        "Surrogate": ["learner"],
        "Potential": ["capabilities", "dim", "value"],
    }


@pytest.mark.parametrize(
    ("kind", "handed"), [("sampler", "bind(potential, tuning)"), ("correction", "bind(potential)")]
)
def test_what_is_bound_to_something_else_is_no_part_of_the_kind(kind, handed):
    (protocol,) = protocols_of(kind)

    class Bound:
        def bind(self, other):
            return self

    for name in set(members_of(protocol)) - {"bind"}:
        setattr(Bound, name, frozenset())
    assert missing_members(kind, Bound()) == {protocol.__name__: [handed]}
