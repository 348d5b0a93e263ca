"""Targets that an external program evaluates: asked in JSON, and described in TOML."""

from __future__ import annotations

import inspect
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from surrokit.arguments import check_flag, check_seconds, numbers
from surrokit.coordinates.parameters import Declared, Parameter, Parameters, Plausible
from surrokit.errors import (
    ConfigurationError,
    ProgramError,
    ResultTypeError,
    ShapeError,
    TargetError,
)
from surrokit.model.outcome import say_place
from surrokit.potentials import Energy, Potential
from surrokit.programs.call import Caller, read_command
from surrokit.targets.bounds import with_bounds
from surrokit.targets.differences import Differences
from surrokit.targets.forward import MappedPotential, Maps
from surrokit.targets.functions import FunctionPotential, Functions, declare_parameters
from surrokit.targets.gaussian import Prior, gaussian_prior
from surrokit.targets.noise import Data, ForwardModel, Scale
from surrokit.types import FloatArray


def command_potential(
    command: str | Sequence[str],
    *,
    gradient: bool | Literal["differences"] = False,
    jacobian: bool = False,
    vjp: bool = False,
    data: Data | None = None,
    noise_sd: Scale | None = None,
    prior: Prior | None = None,
    energy: Energy | None = None,
    dim: int | None = None,
    parameters: Declared | None = None,
    plausible: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    folder: str | Path | None = None,
) -> Potential:
    """Make a target of an external program.

    Each call starts the program in a temporary folder of its own, without a shell. The program is
    asked in JSON, such as ``{"want": ["log_density"], "position": [0.1, 2.0]}``, with
    ``"parameters"`` by name if there are names. It answers with what is wanted, such as
    ``{"log_density": -1.5}``, or with ``{"error": "why"}`` where its model fails. More than what is
    wanted does no harm, and numbers and arrays by name in ``"quantities"``, such as
    ``{"log_density": -1.5, "quantities": {"mass": 2.0}}``, are kept with the evaluation. Numbers
    are in the user's coordinates.

    Parameters
    ----------
    command
        The program and its arguments. ``{input}`` stands for the name of the file with the
        question, and ``{output}`` for that of the answer. Without them the question comes on
        standard input, and the answer is what is printed. ``{here}`` stands for ``folder``.
        Arguments that name a file in it become full paths.
    gradient
        Whether the program gives the gradient of its log density too, if it is wanted: shape
        (dim,). ``"differences"`` makes one of central differences, for 2 dim + 1 calls each.
    jacobian
        Whether a forward map gives its derivatives too, if they are wanted: shape (m, dim).
    vjp
        Whether a forward map gives the gradient of its outputs' weighted sum, shape (dim,), if it
        is wanted. The question then holds the ``weights``.
    data, noise_sd, prior, energy
        As for :func:`surrokit.forward_potential`. The program is a forward map if they are given:
        what is wanted are its ``outputs``, shape (m,), in place of its log density.
    dim, parameters, plausible
        As for :func:`surrokit.potential`.
    timeout
        Seconds after which a call is given up. The program is then killed, with those it has
        started.
    folder
        Where the files lie that the command names; the current folder by default.

    Returns
    -------
    Potential
        As :func:`surrokit.potential` or :func:`surrokit.forward_potential` return. Where a call
        fails it raises :class:`surrokit.errors.ProgramError`, TimeoutError, or
        :class:`surrokit.errors.ResultTypeError` for a wrong answer.

    Raises
    ------
    ConfigurationError
        If there is no such program, or settings contradict one another.
    ShapeError
        If ``data`` or ``noise_sd`` are not numbers, or do not fit each other.
    """
    is_map = any(given is not None for given in (data, noise_sd, prior, energy))
    _check_wanted(gradient, jacobian, vjp, is_map=is_map)
    declared = declare_parameters(dim, parameters)
    model = ForwardModel.read(data, noise_sd, prior, energy, declared) if is_map else None
    check_seconds("timeout", timeout)
    words, text = read_command(command, Path.cwd() if folder is None else Path(folder).absolute())
    caller = Caller(words=words, text=text, timeout=timeout)
    named = None if parameters is None else declared

    def wanting(*names: str) -> Callable[..., Any]:
        return partial(_ask, caller, named, names)

    if model is None:
        functions = Functions(
            declared.dim,
            wanting("log_density"),
            gradient=None,
            joint=wanting("log_density", "gradient") if gradient is True else None,
            sign=-1.0,
            batched=False,
            give_up=caller.end_all,
        )
        place = Plausible.declare(plausible, declared)
        inner: Potential = FunctionPotential.of(declared, functions, place)
    else:
        declared = model.parameters
        asked = {"jacobian": jacobian, "vjp": vjp}
        derivatives = {name: wanting(name) if given else None for name, given in asked.items()}
        maps = _maps(model, derivatives, wanting, caller.end_all)
        place = Plausible.declare(model.fill_plausible(plausible), declared)
        inner = MappedPotential.of(declared, maps, place)
    bounded = with_bounds(inner, declared)
    return Differences(bounded) if gradient == "differences" else bounded


def _maps(
    model: ForwardModel,
    derivatives: dict[str, Any],
    wanting: Callable[..., Any],
    give_up: Callable[[], None],
) -> Maps:
    return Maps(
        dim=model.parameters.dim,
        forward=wanting("outputs"),
        both=wanting("outputs", "jacobian"),
        columns=model.columns,
        energy=model.energy,
        batched=False,
        give_up=give_up,
        **derivatives,
    )


def _check_wanted(gradient: object, jacobian: object, vjp: object, *, is_map: bool) -> None:
    if gradient != "differences":
        check_flag("gradient", gradient)
    check_flag("jacobian", jacobian)
    check_flag("vjp", vjp)
    if is_map and gradient:
        raise ConfigurationError(
            "gradient is given together with data or an energy, which make the program a forward "
            "map; say jacobian=True or vjp=True if it gives such derivatives, or leave gradient out"
        )
    if not is_map and (jacobian or vjp):
        raise ConfigurationError(
            f"{'jacobian' if jacobian else 'vjp'} is given without data or an energy, so the "
            "program is a log density and has no outputs; pass data and noise_sd, or say "
            "gradient=True"
        )


def _ask(
    caller: Caller,
    named: Parameters | None,
    wanted: tuple[str, ...],
    position: FloatArray,
    weights: FloatArray | None = None,
) -> Any:
    """Return what is wanted at a position (dim,): an array or several; ``vjp`` takes weights."""
    question: dict[str, Any] = {"want": wanted, "position": position.tolist()}
    if named is not None:
        by_name = named.split(position)
        question["parameters"] = {name: array.tolist() for name, array in by_name.items()}
    if weights is not None:
        question["weights"] = weights.tolist()
    try:
        text = caller.call(json.dumps(question))
        found, beside = _read_answer(text, wanted, len(position), caller.text)
    except (ProgramError, TimeoutError, ResultTypeError) as error:
        say_place(error, None)  # it would be a line of ours
        raise
    if beside is not None and wanted[0] in ("log_density", "outputs"):
        return (*found, beside)
    return found[0] if len(found) == 1 else found


def _read_answer(
    text: str, wanted: tuple[str, ...], dim: int, who: str
) -> tuple[tuple[FloatArray, ...], dict[str, Any] | None]:
    """Return what was wanted, as arrays, and quantities as they came, if any.

    An answer without a gradient is right where the log density is minus infinity; NaN then stand
    for the gradient.
    """
    answer = None
    with suppress(ValueError, RecursionError):
        answer = json.loads(text)
    if not isinstance(answer, dict):
        raise ResultTypeError(
            f'the answer of {who} must be a JSON object, such as {{"log_density": -1.5}}, got '
            f"{text[:80]!r}. A program that prints other things should write to {{output}}"
        )
    if "error" in answer:
        raise ProgramError(f"{who} answered with an error: {answer['error']}")
    if "gradient" in wanted and answer.get("log_density") == -np.inf:
        answer.setdefault("gradient", [np.nan] * dim)
    if missing := [name for name in wanted if name not in answer]:
        raise ResultTypeError(
            f"{', '.join(map(repr, missing))} is not in the answer of {who}, which has "
            f"{', '.join(map(repr, answer)) or 'nothing'}"
        )
    try:
        found = tuple(numbers(name, answer[name]) for name in wanted)
    except ShapeError as error:
        raise ResultTypeError(f"in the answer of {who}, {error}") from error
    beside = answer.get("quantities")
    if not isinstance(beside, dict | None):
        raise ResultTypeError(
            f"in the answer of {who}, quantities must be an object of numbers by name, got "
            f"{beside!r:.80}; leave them out where there are none"
        )
    return found, beside


_KEYS = tuple(
    name
    for name in inspect.signature(command_potential).parameters
    if name not in ("energy", "dim", "folder")
)


def read_program(path: Path, settings: Mapping[str, Any]) -> Potential:
    """Return the target of a file in TOML, whose keys are arguments of :func:`command_potential`.

    Parameters
    ----------
    path
        The file. What its command names lies in the same folder. ``parameters`` are a list of
        names, or a table with a pair of bounds for each, or a table of ``shape``, ``lower`` and
        ``upper``. ``prior`` is a table of ``mean`` and ``sd``.
    settings
        Keys that replace those of the file.

    Raises
    ------
    TargetError
        If there is no such file, or it is no TOML.
    ConfigurationError
        If a key is missing, or there is none of that name, or its value cannot work.
    """
    try:
        with path.open("rb") as file:
            described = {**tomllib.load(file), **settings}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TargetError(
            f"cannot read {path}: {error}; give a file with at least command and parameters"
        ) from error
    unknown = [key for key in described if key not in _KEYS]
    missing = [key for key in ("command", "parameters") if key not in described]
    if unknown or missing:
        raise ConfigurationError(
            f"{path} must hold command and parameters, and may hold {', '.join(_KEYS[1:])}, but it "
            f"{'has no' if missing else 'has'} {', '.join(missing or unknown)}"
        )
    given = {**described, "parameters": _parameters(path, described["parameters"])}
    if (prior := described.get("prior")) is not None:
        if not isinstance(prior, Mapping) or set(prior) != {"mean", "sd"}:
            raise ConfigurationError(
                f"{path} must give the prior as a table of mean and sd, such as "
                f"{{ mean = 0.0, sd = 1.0 }}, got {prior!r}"
            )
        given["prior"] = gaussian_prior(prior["mean"], prior["sd"])
    return command_potential(**given, folder=path.resolve().parent)


def _parameters(path: Path, given: Any) -> Any:
    if isinstance(given, list):
        return dict.fromkeys(given)
    if not isinstance(given, Mapping):
        return given
    made = dict(given)
    for name, spec in given.items():
        if isinstance(spec, Mapping):
            if not set(spec) <= {"shape", "lower", "upper"}:
                raise ConfigurationError(
                    f"{path} declares parameter {name!r} by shape, lower, upper, got "
                    f"{', '.join(spec)}"
                )
            shape = np.atleast_1d(spec.get("shape", ())).tolist()
            made[name] = Parameter(tuple(shape), lower=spec.get("lower"), upper=spec.get("upper"))
    return made
