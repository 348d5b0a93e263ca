"""What a program is asked, and what it answers, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from surrokit.arguments import numbers
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import ProgramError, ResultTypeError, ShapeError
from surrokit.types import FloatArray


def ask(
    position: FloatArray,
    wanted: tuple[str, ...],
    *,
    named: Parameters | None,
    weights: FloatArray | None = None,
) -> str:
    """Return the question to a program, with every number to its last digit.

    Parameters
    ----------
    position : ndarray of shape (dim,)
        The position, in the user's coordinates.
    wanted
        What is wanted there.
    named
        Names and shapes, if the user gave names.
    weights : ndarray of shape (m,), optional
        Weights of the outputs, for an adjoint.
    """
    question: dict[str, Any] = {"want": list(wanted), "position": position.tolist()}
    if named is not None:
        question["parameters"] = {
            name: position[part].reshape(named.specs[name].shape).tolist()
            for name, part in named.slices().items()
        }
    if weights is not None:
        question["weights"] = weights.tolist()
    return json.dumps(question)


def read_answer(text: str, wanted: tuple[str, ...], *, dim: int, who: str) -> dict[str, FloatArray]:
    """Return what was wanted, as arrays.

    An answer without a gradient is right where the log density is minus infinity; NaN then stand
    for the gradient.

    Parameters
    ----------
    text
        What the program wrote.
    wanted
        What it was asked for.
    dim
        Numbers in the position.
    who
        The program, for messages.

    Raises
    ------
    ProgramError
        If the answer is that the model failed.
    ResultTypeError
        If it is not what was asked for.
    """
    answer = _object(text, who)
    if "error" in answer:
        raise ProgramError(f"{who} answered with an error: {answer['error']}")
    if "gradient" in wanted and answer.get("log_density") == -np.inf:
        answer.setdefault("gradient", [np.nan] * dim)
    missing = [name for name in wanted if name not in answer]
    if missing:
        raise ResultTypeError(
            f"{who} must answer with {_named(wanted)}, but {_named(missing)} is not in its answer, "
            f"which has {_named(answer) or 'nothing'}"
        )
    try:
        return {name: numbers(name, answer[name]) for name in wanted}
    except ShapeError as error:
        raise ResultTypeError(f"in the answer of {who}, {error}") from error


def _object(text: str, who: str) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ResultTypeError(
            f"the answer of {who} is no JSON: {error}; it begins {_beginning(text)}. A program "
            "that prints other things should write its answer to {output}"
        ) from error
    if not isinstance(answer, Mapping):
        raise ResultTypeError(
            f"the answer of {who} must be a JSON object, such as "
            f'{{"log_density": -1.5}}, got {_beginning(text)}'
        )
    return dict(answer)


def _beginning(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:80]} ...")


def _named(names: Any) -> str:
    return ", ".join(repr(name) for name in names)
