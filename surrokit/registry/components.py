"""Components: what a plugin registers, with kind, purposes and settings."""

from __future__ import annotations

import importlib
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, reduce
from typing import Any, Literal, TypeAlias, Union, cast, get_args, get_type_hints

import attrs

from surrokit.arguments import is_hidden, offers_of
from surrokit.errors import ConfigurationError, PluginError, PluginLoadError, SurrokitError


def load_object(path: str, what: str) -> Any:
    """Import the module of ``package.module:Class``, and return what the path names.

    ``what`` is the name in messages of the part that it makes.
    """
    name, _, attribute = path.partition(":")
    made_by = f"{what} is to be made by {path!r}, but"
    try:
        return reduce(getattr, attribute.split("."), importlib.import_module(name))
    except SurrokitError:
        raise  # it says what to do already, such as to install a package
    except (Exception, SystemExit) as error:
        raise PluginLoadError(
            f"{made_by} that cannot be imported: {type(error).__name__}: {error}; repair it, or "
            "the factory of the component"
        ) from error


Kind: TypeAlias = Literal[
    "potential",
    "surrogate",
    "explorer",
    "schedule",
    "sampler",
    "integrator",
    "metric",
    "correction",
    "policy",
]
"""What a part can be."""

KINDS: tuple[Kind, ...] = get_args(Kind)
"""All kinds, in the order in which ``surrokit plugins`` lists them."""

_PROTOCOLS: dict[Kind, tuple[str, ...]] = {
    "potential": ("surrokit.potentials:Potential",),
    "surrogate": ("surrokit.interfaces:Surrogate", "surrokit.potentials:Potential"),
    "explorer": ("surrokit.interfaces:Explorer",),
    "schedule": ("surrokit.interfaces:Schedule",),
    "sampler": ("surrokit.interfaces:Sampler",),
    "integrator": ("surrokit.interfaces:Integrator",),
    "metric": ("surrokit.interfaces:Metric", "surrokit.interfaces:PositionMetric"),
    "correction": ("surrokit.interfaces:Correction",),
    "policy": ("surrokit.plan.recipe:Policy",),
}
"""Paths of each kind's protocols, since the policy's module imports the registry."""


def protocols_of(kind: Kind) -> tuple[type, ...]:
    """Return the protocols of a kind; a part has all members of one of them."""
    return tuple(load_object(path, f"the protocol of kind {kind}") for path in _PROTOCOLS[kind])


_HANDED: dict[tuple[str, ...], Kind] = {
    ("potential", "tuning"): "sampler",
    ("potential",): "correction",
}
"""What ``bind`` is given to the kinds of parts that are settings until they are bound."""


def binds_as(part: object) -> Kind | None:
    """Return the kind that the arguments of a part's ``bind`` tell; None without such a method."""
    if not callable(bind := getattr(part, "bind", None)):
        return None
    return _HANDED.get(tuple(name for name in inspect.signature(bind).parameters if name != "self"))


def members_of(protocol: type) -> list[str]:
    """Return the names that a protocol declares, inherited ones too, sorted."""
    bases = [each for each in protocol.__mro__ if getattr(each, "_is_protocol", False)]
    names = {name for base in bases for name in {*vars(base), *base.__annotations__}}
    return sorted(name for name in names if not name.startswith("_"))


def missing_members(kind: Kind, part: Any) -> dict[str, list[str]]:
    """Return protocol to the members that a part lacks; empty if the part has all of one protocol.

    Properties of the part are not evaluated.
    """
    lacking = {}
    for protocol in protocols_of(kind):
        missing = [
            name
            for name in members_of(protocol)
            if not (hasattr(type(part), name) or hasattr(part, name))
        ]
        for handed, of in _HANDED.items():
            if of == kind and not missing and binds_as(part) != kind:
                missing = [f"bind({', '.join(handed)})"]
        if not missing:
            return {}
        lacking[protocol.__name__] = missing
    return lacking


DEFAULT = "default"  #: Used where nothing of its kind is named.
GRADIENTS = "gradients"  #: A sampler of exact potentials that have gradients.
VALUES = "values"  #: A sampler of exact potentials that have nothing but values.
NO_LEARNING = "no-learning"  #: A schedule that never learns.
STARTS = "starts"  #: An explorer that takes chains of an exact sampler to where the mass is.
DIFFERENCES = "differences"  #: An explorer for which differences are worth what they cost.
ON_SURROGATE = "surrogate"
"""A sampler whose transitions on a surrogate are many for one exact call, and an explorer that
looks for a surrogate."""
FEW_VALUES = "few-values"
"""A surrogate and an explorer for values alone, where some hundred of them are all there are."""
ANSWERS = "answers"  #: A correction of answers rather than of draws.
SUMS_OF_ROWS = "rows"  #: A potential that is a sum over rows, by the name of its terms' family.
OWN_SUMS = "own-rows"  #: A potential that is a sum over rows, of terms that a function gives.
PARTITIONED_SUMS = "partitioned-rows"  #: The same of rows in partitions, perhaps elsewhere.


def parameter_texts(docstring: str | None) -> dict[str, tuple[str, str]]:
    """Return parameter to type and description, either perhaps empty, by numpydoc's section."""
    text = inspect.cleandoc(docstring or "") + "\n\n"
    section = re.search(r"^Parameters\n-{3,}\n(.*?)(?=^\S[^\n]*\n-{3,}\n|\Z)", text, re.M | re.S)
    found = {}
    entries = r"^(\S[^\n]*)\n((?:(?:[ \t][^\n]*)?\n)*)"
    for heads, body in re.findall(entries, section[1] if section else "", re.M):
        names, _, kind = heads.partition(" : ")
        for name in names.split(","):
            found[name.strip(" *")] = (kind.strip(), " ".join(body.split()))
    return found


def without_markup(text: str) -> str:
    """Return a text without the markup of literals and references."""
    return re.sub(r":[a-z:]+:`(~[\w.]*\.)?([^`]+)`", r"\2", text).replace("``", "")


REQUIRED: Any = inspect.Parameter.empty  #: Default of a setting that must be given.

COMPUTED: Any = attrs.NOTHING  #: Default of a setting that follows from the others.


@attrs.frozen(kw_only=True)
class Setting:
    """One setting of a part."""

    name: str
    #: :data:`REQUIRED` where it must be given, :data:`COMPUTED` where it follows from others.
    default: Any = REQUIRED
    type: str = ""  #: By its validator, docstring or annotation; empty where none has it.
    help: str = ""
    #: The annotation of what may be given, as a type; ``Any`` where there is none.
    takes: Any = attrs.field(default=Any, eq=False)


def settings_of(factory: Callable[..., Any]) -> dict[str, Setting]:
    """Return name to setting: the fields of an attrs class, else the arguments.

    Raises
    ------
    ConfigurationError
        If two records inside the class have a setting of one name, or an argument of the function
        cannot be given by name.
    """
    name = getattr(factory, "__qualname__", repr(factory))
    read = [*(_of_record(factory) if _is_record(factory) else _of_signature(factory, name))]
    found = {setting.name: setting for setting in read}
    if len(found) < len(read):
        twice = Counter(setting.name for setting in read).most_common(1)[0][0]
        raise ConfigurationError(
            f"{name} has two settings {twice!r}; name those that spread() shall offer"
        )
    return found


def build(factory: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """Return what a class or function makes of settings, with records inside it filled in."""
    return factory(**(_gather(factory, settings) if _is_record(factory) else settings))


def _is_record(factory: object) -> bool:
    return isinstance(factory, type) and attrs.has(factory)


def _of_signature(function: Callable[..., Any], name: str) -> Iterator[Setting]:
    of_protocol = isinstance(function, type) and getattr(function, "_is_protocol", None) is False
    if of_protocol and "__init__" not in vars(function):
        return  # a subclass of a protocol, which has no settings of its own
    texts, hints = parameter_texts(function.__doc__), _hints(function)
    for argument in inspect.signature(function).parameters.values():
        if argument.kind not in (argument.KEYWORD_ONLY, argument.POSITIONAL_OR_KEYWORD):
            raise ConfigurationError(
                f"{name} takes {argument}, which cannot be given by name as settings are; spell "
                "its settings out"
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
    texts, hints = dict[str, tuple[str, str]](), _hints(cls)
    for each in reversed(cls.__mro__):
        texts |= parameter_texts(each.__doc__)
    for field in _fields(cls):
        if offers_of(field) is not None:
            yield from _spread_out(_value(owner, field), field)
            continue
        name, accepted = field.alias or field.name, Any
        converter: Any = field.converter
        if inspect.isfunction(converter):
            first = next(iter(inspect.signature(converter).parameters), "")
            accepted = _hints(converter).get(first, Any)
        kind, text = texts.get(name, ("", ""))
        yield Setting(
            name=name,
            default=_value(owner, field),
            type=_limits(field.validator) or kind or _spell(field.type),
            help=text,
            takes=Union[hints.get(field.name, Any), accepted],  # noqa: UP007
        )


def _spread_out(record: Any, field: attrs.Attribute[Any]) -> list[Setting]:
    if not attrs.has(type(record)):
        raise ConfigurationError(
            f"the field {field.name!r} is spread, but its default is {record!r}; give it a record "
            "of settings as its default"
        )
    offers = offers_of(field)
    return [each for each in _of_record(record) if offers is None or offers(each.name)]


@cache
def _hints(annotated: Any) -> dict[str, Any]:
    """Return the annotations of a class or function as types; none where one cannot be found."""
    try:
        return get_type_hints(annotated)
    except Exception:  # a name that is imported for the type checker alone, or no annotations
        return {}


def _fields(cls: Any) -> list[attrs.Attribute[Any]]:
    return [
        field
        for field in attrs.fields(cls)
        if field.init and not (field.name.startswith("_") or is_hidden(field))
    ]


def _value(owner: Any, field: attrs.Attribute[Any]) -> Any:
    """Return the value of a record's field, or the default of a class's."""
    if not isinstance(owner, type):
        return getattr(owner, field.name)
    default: Any = field.default
    if default is attrs.NOTHING:
        return REQUIRED
    if isinstance(default, cast(Any, attrs.Factory)):
        return COMPUTED if default.takes_self else default.factory()
    return default


def _gather(owner: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a class, with settings of records inside it gathered into these."""
    own = dict(settings)
    for field in filter(offers_of, _fields(owner if isinstance(owner, type) else type(owner))):
        record = _value(owner, field)
        names = [setting.name for setting in _spread_out(record, field)]
        inner = {name: own.pop(name) for name in names if name in own}
        if inner:
            own[field.alias or field.name] = attrs.evolve(record, **_gather(record, inner))
    return own


def _limits(validator: Any) -> str:
    """Return the values that a validator allows, in words, as far as is known."""
    several = getattr(validator, "_validators", None)  # of attrs.validators.and_
    if several is not None:
        return " and ".join(filter(None, map(_limits, several)))
    return str(getattr(validator, "expected", ""))


def _spell(annotation: Any) -> str:
    if annotation is None or annotation is inspect.Parameter.empty:
        return ""
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


@attrs.frozen
class Part:
    """A setting that takes another part of a kind.

    ``default`` is the name of the part that is made if none is given; None takes the run's own part
    of that kind.
    """

    kind: Kind
    default: str | None = None


def _with_settings(
    serves: Mapping[str, Mapping[str, Any]] | Iterable[str],
) -> dict[str, Mapping[str, Any]]:
    """Return purpose to settings, which are empty where purposes alone are given."""
    if isinstance(serves, str):
        raise ConfigurationError(
            f"serves must be several purposes, or a dictionary of them, got {serves!r}; write "
            f"serves=[{serves!r}]"
        )
    return dict(serves) if isinstance(serves, Mapping) else {purpose: {} for purpose in serves}


@attrs.frozen
class Component:
    """One part that a plugin offers.

    Parameters
    ----------
    kind, name
        Names are lower-case words joined by hyphens, unique within the kind.
    factory
        What makes it: ``"package.module:Class"``, imported on first use, or a function. The fields
        of an attrs class, else the arguments, are the settings of the part. The path may also name
        a ready-made part, which has no settings.
    summary
        One line for ``surrokit plugins``.
    references
        Where it comes from: papers, with DOI or equation.
    parts
        Settings that take another part. They may be given by name; the factory always receives an
        object.
    examples
        Settings at which the conformance suite makes the part; list every setting that leads
        down another path.
    default
        Whether it is used where nothing of its kind is named.
    serves
        Other purposes for which it is used where its kind is not named, each perhaps with settings.
        Runs look for the purposes in :mod:`surrokit.registry.components`.
    plugin
        The plugin that offers it, for messages; a catalogue sets it.

    Raises
    ------
    ConfigurationError
        If there is no such kind, or the name or the factory is not of the right form.
    """

    kind: Kind
    name: str
    factory: str | Callable[..., Any]
    summary: str
    references: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    parts: Mapping[str, Part] = attrs.field(factory=dict, kw_only=True)
    examples: tuple[Mapping[str, Any], ...] = attrs.field(default=({},), kw_only=True)
    default: bool = attrs.field(default=False, kw_only=True)
    serves: Mapping[str, Mapping[str, Any]] = attrs.field(
        default=(), converter=_with_settings, kw_only=True
    )
    plugin: str = attrs.field(default="", eq=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise ConfigurationError(
                f"a component's name must be lower-case words joined by hyphens, got "
                f"{self.name!r}; for example 'my-surrogate'"
            )
        if self.kind not in KINDS:
            raise ConfigurationError(
                f"a component's kind must be one of {', '.join(KINDS)}, got {self.kind!r}"
            )
        dotted, factory = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", self.factory
        is_path = isinstance(factory, str) and re.fullmatch(f"{dotted}:{dotted}", factory)
        if not (callable(factory) or is_path):
            raise ConfigurationError(
                f"the factory of {self.title} must be a path such as 'package.module:Class', or a "
                f"function, got {factory!r}"
            )

    @property
    def purposes(self) -> dict[str, Mapping[str, Any]]:
        """All purposes, each with the settings for it."""
        return {**({DEFAULT: {}} if self.default else {}), **self.serves}

    @property
    def title(self) -> str:
        """Its name in messages: kind, name, and the plugin if known."""
        return f"{self.kind} {self.name!r}" + (f" of plugin {self.plugin}" if self.plugin else "")

    def load(self) -> Callable[..., Any]:
        """Return the factory, imported on first use; else a PluginError says what it is instead."""
        if not isinstance(self.factory, str):
            return self.factory
        found = load_object(self.factory, self.title)
        if not isinstance(found, type) and not missing_members(self.kind, found):
            return lambda: found  # a part that is ready
        if not callable(found):
            raise PluginError(
                f"{self.title} is to be made by {self.factory!r}, which is of type "
                f"{type(found).__name__}; name a class, a function, or a {self.kind}"
            )
        return found  # type: ignore[no-any-return]

    def settings(self) -> dict[str, Setting]:
        """Return name to setting, read off the class or function, whose module is imported.

        A PluginError says why if they cannot be read, or the component names others.
        """
        factory = self.load()
        try:
            known = settings_of(factory)
        except (ConfigurationError, ValueError) as error:
            raise PluginError(f"the settings of {self.title} cannot be read: {error}") from error
        sets = (self.parts, *self.serves.values(), *self.examples)
        unknown = sorted({name for each in sets for name in each} - known.keys())
        if unknown:
            raise PluginError(
                f"{self.title} names {', '.join(unknown)} in parts, serves or examples, "
                f"but its settings are: {', '.join(known) or 'none'}"
            )
        return known

    def make(self, settings: Mapping[str, Any]) -> Any:
        """Return the part that the factory makes of settings by name.

        A PluginError says which members of its protocol it lacks, if any.
        """
        made = build(self.load(), settings)
        lacking = missing_members(self.kind, made)
        if lacking:
            members = ", or ".join(
                f"{', '.join(names)} of {protocol}" for protocol, names in lacking.items()
            )
            raise PluginError(
                f"{self.title} is a {type(made).__name__}, which is no {self.kind}: it lacks "
                f"{members}; see surrokit.plugin"
            )
        return made
