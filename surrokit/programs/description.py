"""A file that describes a target of a program, for those who write no Python."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surrokit.coordinates.parameters import Parameter
from surrokit.errors import ConfigurationError, TargetError
from surrokit.potentials import Potential
from surrokit.programs.potential import command_potential
from surrokit.targets.gaussian import GaussianPrior, gaussian_prior

_KEYS = tuple(
    name
    for name in inspect.signature(command_potential).parameters
    if name not in ("energy", "dim", "folder")
)
_SPEC = ("shape", "lower", "upper")


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
        wrong = f"has no {' and no '.join(missing)}" if missing else f"has {', '.join(unknown)}"
        raise ConfigurationError(
            f"{path} must hold command and parameters, and may hold {', '.join(_KEYS[1:])}, but it "
            f"{wrong}"
        )
    given = dict(described)
    given["parameters"] = _parameters(path, given["parameters"])
    if "prior" in given:
        given["prior"] = _prior(path, given["prior"])
    return command_potential(**given, folder=path.resolve().parent)


def _parameters(path: Path, given: Any) -> Any:
    if isinstance(given, list | tuple) and all(isinstance(name, str) for name in given):
        return dict.fromkeys(given)
    if isinstance(given, Mapping):
        return {name: _parameter(path, name, spec) for name, spec in given.items()}
    return given


def _parameter(path: Path, name: str, spec: Any) -> Any:
    if not isinstance(spec, Mapping):
        return spec
    if unknown := [key for key in spec if key not in _SPEC]:
        raise ConfigurationError(
            f"{path} declares parameter {name!r} by {', '.join(_SPEC)}, got {', '.join(unknown)}"
        )
    shape = spec.get("shape", ())
    return Parameter(
        tuple(shape) if isinstance(shape, list) else shape if shape == () else (shape,),
        lower=spec.get("lower"),
        upper=spec.get("upper"),
    )


def _prior(path: Path, given: Any) -> GaussianPrior:
    if not isinstance(given, Mapping) or set(given) != {"mean", "sd"}:
        raise ConfigurationError(
            f"{path} must give the prior as a table of mean and sd, such as "
            f"{{ mean = 0.0, sd = 1.0 }}, got {given!r}"
        )
    return gaussian_prior(given["mean"], given["sd"])
