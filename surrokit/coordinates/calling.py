"""How a user's function takes the parameters: as one vector, or each by its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import unmasked
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray


@attrs.frozen(eq=False)
class ByName:
    """A function of named arrays, as one of a position (dim,), or of rows of them.

    Parameters
    ----------
    function
        Takes each parameter by its name, in its own shape; of rows with one more axis in front.
    parameters
        Names and shapes.
    """

    function: Callable[..., Any]
    parameters: Parameters

    def __call__(self, position: FloatArray) -> Any:
        """Call the function; a gradient by name becomes a vector."""
        result = self.function(**self.parameters.split(position))
        if isinstance(result, Mapping):
            return self.join(result, position.shape)
        is_pair = isinstance(result, tuple) and len(result) == 2
        if is_pair and isinstance(result[1], Mapping):
            return result[0], self.join(result[1], position.shape)
        return result

    def join(self, by_name: Mapping[str, Any], shape: tuple[int, ...]) -> FloatArray:
        """Return a gradient by name as an array of a position's shape.

        Raises
        ------
        ShapeError
            If a parameter is missing, or has another shape.
        """
        if by_name.keys() != self.parameters.specs.keys():
            raise ShapeError(
                "a gradient by name must have one array for each of "
                f"{', '.join(self.parameters.specs)}, got {', '.join(map(str, by_name)) or 'none'}"
            )
        found = np.empty(shape)
        for name, where in self.parameters.slices().items():
            array = np.asarray(unmasked(by_name[name]), dtype=np.float64)
            expected = (*shape[:-1], *self.parameters.specs[name].shape)
            if array.shape != expected:
                raise ShapeError(
                    f"the gradient of {name!r} must have shape {expected}, got {array.shape}"
                )
            found[..., where] = array.reshape(*shape[:-1], -1)
        return found


def called(what: str, function: Callable[..., Any] | None, parameters: Parameters) -> Any:
    """Return a function of one position, whichever way the user's takes the parameters.

    A function that takes just the parameters' names is called with arrays by name. One that takes
    a single argument is called with the vector.

    Parameters
    ----------
    what
        What the function is, for messages.
    function
        The user's; None stays None.
    parameters
        Names and shapes.

    Raises
    ------
    ConfigurationError
        If it takes other names.
    """
    if function is None:
        return None
    try:
        arguments = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # compiled code does not tell
        return function
    needed = [each.name for each in arguments if _is_needed(each)]
    names = {each.name for each in arguments if each.kind is not inspect.Parameter.VAR_KEYWORD}
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in arguments)
    declared = set(parameters.specs)
    if set(needed) <= declared and (declared <= names or (takes_any and not names)):
        return ByName(function, parameters)
    first = next(iter(arguments), None)
    if len(needed) <= 1 and first is not None and first.kind is not inspect.Parameter.KEYWORD_ONLY:
        return function
    raise ConfigurationError(
        f"{what} takes {', '.join(needed) or 'no argument'}, but the parameters are "
        f"{', '.join(parameters.specs)}; give it one argument for the whole vector, or arguments "
        "of these names"
    )


def _is_needed(argument: inspect.Parameter) -> bool:
    if argument.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        return False
    return argument.default is inspect.Parameter.empty
