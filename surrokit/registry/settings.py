"""The settings of a part, read off the class or function that makes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Union, get_type_hints

import attrs

from surrokit.errors import ConfigurationError
from surrokit.registry.docstrings import parameter_texts
from surrokit.settings import is_hidden, offers_of

REQUIRED: Any = inspect.Parameter.empty
"""Default of a setting that must be given."""

COMPUTED: Any = attrs.NOTHING
"""Default of a setting that follows from the others."""

_FACTORY: Any = attrs.Factory


@attrs.frozen(kw_only=True)
class Setting:
    """One setting of a part.

    Parameters
    ----------
    name
        The keyword.
    default
        :data:`REQUIRED` where it must be given, :data:`COMPUTED` where it follows from others.
    type
        From the docstring, else from the annotation; empty where neither has it.
    limits
        The values that are allowed, in words; empty where only the part knows.
    help
        Its description in the docstring.
    takes
        The annotation of what may be given, as a type; ``Any`` where there is none.
    """

    name: str
    default: Any = REQUIRED
    type: str = ""
    limits: str = ""
    help: str = ""
    takes: Any = attrs.field(default=Any, eq=False)


def settings_of(factory: Callable[..., Any]) -> dict[str, Setting]:
    """Return name to setting for a class or function.

    Parameters
    ----------
    factory
        An attrs class, whose fields are the settings; or any other class or function, whose
        arguments are the settings.

    Raises
    ------
    ConfigurationError
        If two records inside the class have a setting of one name, or an argument of the function
        cannot be given by name.
    """
    found: dict[str, Setting] = {}
    read = _of_record if _is_record(factory) else _of_signature
    for setting in read(factory):
        if setting.name in found:
            raise ConfigurationError(
                f"{_name_of(factory)} has two settings {setting.name!r}; name those that spread() "
                "shall offer"
            )
        found[setting.name] = setting
    return found


def build(factory: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """Return what a class or function makes of settings, with records inside it filled in."""
    return factory(**(_gather(factory, settings) if _is_record(factory) else settings))


def _is_record(factory: object) -> bool:
    return isinstance(factory, type) and attrs.has(factory)


def _name_of(factory: Callable[..., Any]) -> str:
    return getattr(factory, "__qualname__", repr(factory))


def _of_signature(function: Callable[..., Any]) -> Iterator[Setting]:
    texts, hints = parameter_texts(function.__doc__), _hints(function)
    for argument in inspect.signature(function).parameters.values():
        if argument.kind not in (argument.KEYWORD_ONLY, argument.POSITIONAL_OR_KEYWORD):
            raise ConfigurationError(
                f"{_name_of(function)} takes {argument}, which cannot be given by name as settings "
                "are; spell its settings out"
            )
        kind, text = texts.get(argument.name, ("", ""))
        yield Setting(
            name=argument.name,
            default=argument.default,
            type=kind or _spell(argument.annotation),
            help=text,
            takes=hints.get(argument.name, Any),
        )


def _of_record(owner: Any) -> Iterator[Setting]:
    """Yield the settings of an attrs class, or of a record with its values as defaults."""
    cls = owner if isinstance(owner, type) else type(owner)
    texts, hints = _texts_of(cls), _hints(cls)
    for field in _fields(owner):
        if offers_of(field) is not None:
            yield from _spread_out(_value(owner, field), field)
        else:
            kind, text = texts.get(_keyword(field), ("", ""))
            yield Setting(
                name=_keyword(field),
                default=_value(owner, field),
                type=kind or _spell(field.type),
                limits=_limits(field.validator),
                help=text,
                takes=Union[hints.get(field.name, Any), _converted(field)],  # noqa: UP007
            )


def _spread_out(record: Any, field: attrs.Attribute[Any]) -> Iterator[Setting]:
    if not attrs.has(type(record)):
        raise ConfigurationError(
            f"the field {field.name!r} is spread, but its default is {record!r}; give it a record "
            "of settings as its default"
        )
    offers = offers_of(field)
    for setting in _of_record(record):
        if offers is None or offers(setting.name):
            yield setting


def _converted(field: attrs.Attribute[Any]) -> Any:
    """Return the annotation of what a field's converter takes; ``Any`` if there is none."""
    converter: Any = field.converter
    if not inspect.isfunction(converter):
        return Any
    first = next(iter(inspect.signature(converter).parameters), "")
    return _hints(converter).get(first, Any)


@cache
def _hints(annotated: Any) -> dict[str, Any]:
    """Return the annotations of a class or function as types; none where one cannot be found."""
    try:
        return get_type_hints(annotated)
    except Exception:  # a name that is imported for the type checker alone, or no annotations
        return {}


def _fields(owner: Any) -> list[attrs.Attribute[Any]]:
    fields = attrs.fields(owner if isinstance(owner, type) else type(owner))
    return [
        field
        for field in fields
        if field.init and not (field.name.startswith("_") or is_hidden(field))
    ]


def _keyword(field: attrs.Attribute[Any]) -> str:
    return field.alias or field.name


def _value(owner: Any, field: attrs.Attribute[Any]) -> Any:
    """Return the value of a record's field, or the default of a class's."""
    if not isinstance(owner, type):
        return getattr(owner, field.name)
    default: Any = field.default
    if default is attrs.NOTHING:
        return REQUIRED
    if isinstance(default, _FACTORY):
        return COMPUTED if default.takes_self else default.factory()
    return default


def _gather(owner: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a class, with settings of records inside it gathered into these."""
    own = dict(settings)
    for field in filter(offers_of, _fields(owner)):
        record = _value(owner, field)
        names = [setting.name for setting in _spread_out(record, field)]
        inner = {name: own.pop(name) for name in names if name in own}
        if inner:
            own[_keyword(field)] = attrs.evolve(record, **_gather(record, inner))
    return own


def _texts_of(cls: type) -> dict[str, tuple[str, str]]:
    """Return the types and descriptions of fields in docstrings, inherited ones too."""
    texts: dict[str, tuple[str, str]] = {}
    for each in reversed(cls.__mro__):
        texts |= parameter_texts(each.__doc__)
    return texts


def _limits(validator: Any) -> str:
    """Return the values that a validator allows, in words, as far as they can be read off it."""
    joined = getattr(validator, "_validators", None)  # of attrs.validators.and_
    if joined is not None:
        return " and ".join(filter(None, map(_limits, joined)))
    if hasattr(validator, "compare_op"):
        return f"{validator.compare_op} {validator.bound}"
    if hasattr(validator, "options"):
        return f"one of {', '.join(map(repr, validator.options))}"
    return str(getattr(validator, "expected", ""))


def _spell(annotation: Any) -> str:
    if annotation is None or annotation is inspect.Parameter.empty:
        return ""
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
