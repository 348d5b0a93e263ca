"""Targets that an external program evaluates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from surrokit.arguments import check_flag
from surrokit.coordinates.parameters import Bounds, Parameter, Plausible
from surrokit.errors import ConfigurationError
from surrokit.potentials import Energy, Potential
from surrokit.programs.program import Program
from surrokit.targets.bounds import with_bounds
from surrokit.targets.differences import Differences
from surrokit.targets.forward import MappedPotential, Maps
from surrokit.targets.functions import FunctionPotential, Functions, declare_parameters
from surrokit.targets.gaussian import Prior
from surrokit.targets.noise import Data, ForwardModel, Scale


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
    parameters: Mapping[str, Parameter | Bounds | None] | None = None,
    plausible: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    keep_failed: str | Path | None = None,
    folder: str | Path | None = None,
) -> Potential:
    """Make a target of an external program.

    Each call starts the program in a temporary folder of its own, without a shell. The program is
    asked in JSON, such as ``{"want": ["log_density"], "position": [0.1, 2.0]}``, with
    ``"parameters"`` by name if there are names. It answers with what is wanted, such as
    ``{"log_density": -1.5}``, or with ``{"error": "why"}`` where its model fails. More than what is
    wanted does no harm. Numbers are in the user's coordinates.

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
    keep_failed
        Folder in which the files of failed calls are kept, the streams ``stdout`` and ``stderr``
        among them; None removes them.
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
    taken = declared if model is None else model.of_map
    program = Program.read(
        command,
        named=None if parameters is None else taken,
        timeout=timeout,
        keep_failed=keep_failed,
        folder=folder,
    )
    if model is None:
        functions = Functions(
            declared.dim,
            program.log_density,
            gradient=None,
            joint=program.log_density_and_gradient if gradient is True else None,
            sign=-1.0,
            batched=False,
            give_up=program.give_up,
        )
        place = Plausible.declare(plausible, declared)
        inner: Potential = FunctionPotential.of(declared, functions, place)
    else:
        inner = _map(program, model, plausible, jacobian=jacobian, vjp=vjp)
        declared = model.parameters
    bounded = with_bounds(inner, declared)
    return Differences(bounded) if gradient == "differences" else bounded


def _map(
    program: Program,
    model: ForwardModel,
    plausible: Mapping[str, Any] | None,
    *,
    jacobian: bool,
    vjp: bool,
) -> MappedPotential:
    maps = Maps(
        dim=model.parameters.dim,
        forward=program.outputs,
        jacobian=program.jacobian if jacobian else None,
        vjp=program.vjp if vjp else None,
        columns=model.columns,
        energy=model.energy,
        batched=False,
        both=program.outputs_and_jacobian,
        give_up=program.give_up,
    )
    place = Plausible.declare(model.fill_plausible(plausible), model.parameters)
    return MappedPotential.of(model.parameters, maps, place)


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
        name = "jacobian" if jacobian else "vjp"
        raise ConfigurationError(
            f"{name} is given without data or an energy, so the program is a log density and has "
            "no outputs; pass data and noise_sd, or say gradient=True"
        )
