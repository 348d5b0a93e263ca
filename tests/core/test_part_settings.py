"""Settings are read off the class or function that makes a part."""

from __future__ import annotations

import attrs
import pytest

from surrokit.arguments import HIDDEN, fraction, not_negative, one_of, positive_integer, spread
from surrokit.errors import ConfigurationError
from surrokit.registry.components import (
    COMPUTED,
    REQUIRED,
    Setting,
    build,
    settings_of,
    without_markup,
)


@attrs.frozen(kw_only=True)
class Inner:
    """More settings.

    Parameters
    ----------
    depth
        How deep.
    width : float, optional
        How wide; see :class:`~somewhere.Else`.
    """

    depth: int = attrs.field(default=3, validator=positive_integer)
    width: float | None = None
    memory: int = attrs.field(default=7, metadata=HIDDEN)


@attrs.frozen(kw_only=True)
class Outer:
    """A part.

    Parameters
    ----------
    estimator, method
        Both at once,
        on two lines.
    start
        Where it begins.
    """

    estimator: object
    method: str = attrs.field(default="a", validator=one_of("a", "b"))
    _cache: float = 0.5
    size: int = attrs.field(default=1, init=False)
    start_by: float = attrs.field(default=0.1, alias="start", validator=fraction)
    inner: Inner = attrs.field(factory=lambda: Inner(depth=5), metadata=spread())
    found: object = attrs.field(default=None, metadata=HIDDEN)
    last: list[int] = attrs.field(factory=list)
    both: int = attrs.field(
        validator=attrs.validators.and_(
            positive_integer, attrs.validators.instance_of(int), not_negative
        )
    )

    @both.default
    def _one(self):
        return 1


def test_settings_of_a_record_are_its_fields():
    found = settings_of(Outer)
    assert list(found) == ["estimator", "method", "start", "depth", "width", "last", "both"]
    text = "Both at once, on two lines."
    assert found["estimator"] == Setting(
        name="estimator", default=REQUIRED, type="object", help=text
    )
    assert found["method"] == Setting(name="method", default="a", type="one of 'a', 'b'", help=text)
    assert found["start"].type == "a number between 0 and 1"
    assert found["start"].help == "Where it begins."
    assert found["last"].default == []
    assert found["both"].default is COMPUTED
    assert found["both"].type == "a whole number of at least 1 and a finite number of at least 0"


def test_settings_of_a_record_inside_have_the_defaults_of_the_part():
    found = settings_of(Outer)
    assert found["depth"] == Setting(
        name="depth", default=5, type="a whole number of at least 1", help="How deep."
    )
    assert found["width"].type == "float, optional"


def test_settings_go_to_the_record_that_has_them():
    made = build(Outer, {"estimator": 1, "width": 2.0})
    assert made.inner == Inner(depth=5, width=2.0)
    assert build(Outer, {"estimator": 1, "start": 0.9}).start_by == 0.9


def test_two_settings_of_one_name_are_refused():
    @attrs.frozen
    class Twice:
        depth: int = 1
        inner: Inner = attrs.field(factory=Inner, metadata=spread())

    with pytest.raises(ConfigurationError, match="Twice has two settings 'depth'; name"):
        settings_of(Twice)


def test_what_is_spread_must_be_a_record():
    @attrs.frozen
    class Empty:
        inner: Inner | None = attrs.field(default=None, metadata=spread())

    with pytest.raises(ConfigurationError, match="the field 'inner' is spread, but its d"):
        settings_of(Empty)


def test_what_a_base_class_documents_is_known():
    @attrs.frozen(kw_only=True)
    class Derived(Inner):
        """More."""

        depth: int = 4

    assert settings_of(Derived)["depth"].help == "How deep."


def test_settings_of_a_function_are_its_arguments():
    def make(size, *, scale: float = 2.0):
        """Make it.

        Parameters
        ----------
        size : int
            How large.

        Returns
        -------
        scale
            Not this.
        """

    assert settings_of(make) == {
        "size": Setting(name="size", type="int", help="How large."),
        "scale": Setting(name="scale", default=2.0, type="float"),
    }


def test_what_cannot_be_named_is_refused():
    message = r"takes \*\*more, which cannot be given by name as settings are; spell its settings"
    with pytest.raises(ConfigurationError, match=message):
        settings_of(lambda **more: more)


def test_markup_goes_where_text_is_printed():
    text = "``a`` or :class:`~x.y.Thing`, see :data:`x.NUMBER`"
    assert without_markup(text) == "a or Thing, see x.NUMBER"
