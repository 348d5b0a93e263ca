"""How a user's JAX function takes its parameters: by name, as a vector, or as a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.coordinates.models import called
from surrokit.coordinates.parameters import Bounds, Parameter, Parameters
from surrokit.errors import ConfigurationError
from surrokit.targets.functions import declare_parameters
from surrokit_jax.library import load_jax

Declarations = Mapping[str, Parameter | Bounds | None]


@attrs.frozen(eq=False)
class OfTree:
    """A function of a tree of arrays, as one of a position (dim,).

    Parameters
    ----------
    function
        Takes the tree.
    structure
        JAX's description of the tree without its leaves.
    parameters
        One for each leaf.
    """

    function: Callable[[Any], Any]
    structure: Any
    parameters: Parameters

    def __call__(self, position: Any) -> Any:
        """Call the function."""
        leaves = [
            position[where].reshape(self.parameters.specs[name].shape)
            for name, where in self.parameters.slices().items()
        ]
        return self.function(load_jax().tree_util.tree_unflatten(self.structure, leaves))


def declare(
    what: str,
    function: Callable[..., Any],
    parameters: Declarations | None,
    dim: int | None,
    example: Any,
) -> tuple[Callable[[Any], Any], Parameters]:
    """Return a function of one position vector, and its parameters.

    Parameters
    ----------
    what
        What the function is, for messages.
    function
        The user's.
    parameters, dim, example
        Declarations, a number of numbers, or a tree of arrays; exactly one of declarations and
        example unless there is ``dim``.

    Raises
    ------
    ConfigurationError
        If they cannot be read, or contradict one another.
    """
    if not callable(function):
        raise ConfigurationError(f"{what} must be a function, got {function!r}")
    if example is not None:
        if parameters is not None or dim is not None:
            raise ConfigurationError(
                "example declares names and shapes by itself; leave parameters and dim out, or "
                "declare bounds by parameters and leave example out"
            )
        return _of_tree(function, example)
    declared = declare_parameters(dim, parameters)
    return called(what, function, declared), declared


def _of_tree(function: Callable[..., Any], example: Any) -> tuple[OfTree, Parameters]:
    trees = load_jax().tree_util
    pairs, structure = trees.tree_flatten_with_path(example)
    named = {
        trees.keystr(path, simple=True, separator=".") or "q": Parameter(_shape(path, leaf))
        for path, leaf in pairs
    }
    if len(named) != len(pairs):
        raise ConfigurationError(
            f"the example has {len(pairs)} arrays under {len(named)} names, such as "
            f"{next(iter(named), None)!r}; give keys that differ as text"
        )
    parameters = Parameters.declare(named)
    return OfTree(function, structure, parameters), parameters


def _shape(path: Any, leaf: Any) -> tuple[int, ...]:
    array = leaf if hasattr(leaf, "dtype") else np.asarray(leaf)
    if np.dtype(array.dtype).kind not in "fiub":
        raise ConfigurationError(
            f"the example must hold arrays or numbers, got {leaf!r} at "
            f"{load_jax().tree_util.keystr(path)}"
        )
    return tuple(array.shape)
