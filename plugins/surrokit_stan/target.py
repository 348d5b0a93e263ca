"""Targets of models written down in Stan, and what they report."""

from __future__ import annotations

import os
import re
import warnings
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import is_whole
from surrokit.coordinates.models import Axis, ModelMap, reported_as
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.errors import ConfigurationError, SamplingWarning
from surrokit.targets.forward import ModelledPotential
from surrokit.types import FloatArray, IntArray
from surrokit_stan.model import REQUIRED, StanModel, StanPotential, Turns, load_bridgestan

_MOST = 2**32  # seeds have as many values
_TRIED = 16  # positions at which a number is the same if it is constant
_NAME = re.compile(r"^(.*?)((?:\.\d+)*)$", re.DOTALL)

# What is reported, and what is left of it where a block of the model fails.
_BLOCKS: tuple[dict[str, Any], ...] = (
    {"include_tp": True, "include_gq": True},
    {"include_tp": True},
    {},
)


def from_stan(
    model: StanModel | str | os.PathLike[str],
    data: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    propto: bool = False,
    seed: int = 0,
) -> ModelledPotential:
    """Make a target of a model written down in Stan.

    Chains move in Stan's unconstrained space. Draws come back by the model's names, with
    constrained values; transformed parameters and generated quantities are among them.

    Parameters
    ----------
    model
        A ``bridgestan.StanModel``, with its data; any object with the methods of
        :class:`surrokit_stan.model.StanModel`; or the path of a file ``.stan``, or of a compiled
        model, for BridgeStan.
    data
        The data, where a path is given: a dictionary, a text in JSON, or a file of it.
    propto
        Whether terms without parameters are left out of the log density. Without them the
        integral of the density is no evidence.
    seed
        Of random numbers in generated quantities, at least 0.

    Returns
    -------
    ModelledPotential
        With gradients, and the second derivatives that the model offers.

    Raises
    ------
    MissingDependencyError
        If a path is given, and BridgeStan is not installed.
    ConfigurationError
        If it is no such model, it has no parameters, or it cannot be loaded.
    """
    if not is_whole(seed, 0) or seed >= _MOST:
        raise ConfigurationError(f"seed must be a whole number below {_MOST}, got {seed!r}")
    given = _loaded(model, data)
    turns = Turns(given)
    dim = int(given.param_unc_num())
    if dim == 0:
        raise ConfigurationError("the model has no parameter, so there is nothing to draw")
    return ModelledPotential(StanPotential.of(turns, dim, propto=propto), _map(turns, dim, seed))


def _loaded(model: Any, data: Any) -> StanModel:
    if isinstance(model, str | os.PathLike):
        try:
            loaded: StanModel = load_bridgestan().StanModel(model, data)
        except (OSError, RuntimeError, ValueError) as error:
            raise ConfigurationError(
                f"BridgeStan cannot load {os.fspath(model)}: {type(error).__name__}: {error}"
            ) from error
        return loaded
    lacking = [name for name in REQUIRED if not callable(getattr(model, name, None))]
    if lacking:
        raise ConfigurationError(
            "model must be a bridgestan.StanModel, or the path of one, got "
            f"{type(model).__name__}, which lacks {', '.join(lacking)}; write "
            "bridgestan.StanModel('model.stan', data)"
        )
    if data is not None:
        raise ConfigurationError("the model has its data already; leave data out, or give a path")
    given: StanModel = model
    return given


def _map(model: Turns, dim: int, seed: int) -> ModelMap:
    """Return the map to all that a model reports; labels count from 1, as Stan does."""
    layout = _Layout.of(model.call("param_names", include_tp=True, include_gq=True))
    constrained = _Constrained(model, layout, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)  # these positions are no draws
        reported = reported_as(
            layout.shapes,
            constrained,
            np.random.default_rng(0).uniform(-2.0, 2.0, size=(_TRIED, dim)),
            lambda name: tuple(Axis(labels=tuple(range(1, n + 1))) for n in layout.shapes[name]),
        )
    sizes = _Layout.of(model.call("param_unc_names")).sizes
    origin = np.asarray(model.call("param_constrain", np.zeros(dim)), dtype=np.float64)
    return ModelMap(
        reported=reported,
        own=Parameters({name: Parameter((size,)) for name, size in sizes.items()}),
        constrain=constrained,
        unconstrain=_Positions(model, _Layout.of(model.call("param_names")), origin),
    )


@attrs.frozen(eq=False)
class _Constrained:
    """Parameters, transformed parameters and generated quantities at rows of positions.

    Random numbers of generated quantities depend on the position and the seed alone, so that a
    draw has the same quantities whenever they are asked for.
    """

    model: Turns
    layout: _Layout
    seed: int

    def __call__(self, positions: FloatArray) -> FloatArray:
        """Return them, shape (n, n_user), at positions (n, dim); NaN where a block fails."""
        found = np.full((len(positions), len(self.layout.places)), np.nan)
        errors: list[Exception] = []
        for row, position in zip(found, np.ascontiguousarray(positions), strict=True):
            numbers = self._numbers(position, errors)
            row[: len(numbers)] = numbers
        if errors:
            warnings.warn(
                f"generated quantities cannot be computed at {len(errors)} of {len(found)} draws "
                f"and are NaN there; the first time Stan said: {errors[0]}",
                SamplingWarning,
                stacklevel=2,
            )
        return found[:, self.layout.places]

    def _numbers(self, position: FloatArray, errors: list[Exception]) -> FloatArray:
        """Return as many numbers as there are, in Stan's order, and note an error if any."""
        failed: list[Exception] = []
        for blocks in _BLOCKS:
            seed = zlib.crc32(position.tobytes(), self.seed)
            random = {"rng": self.model.call("new_rng", seed)} if "include_gq" in blocks else {}
            try:
                numbers = self.model.call("param_constrain", position, **blocks, **random)
            except Exception as error:
                failed.append(error)
                continue
            errors += failed[:1]
            return np.asarray(numbers, dtype=np.float64)
        raise failed[-1]


@attrs.frozen(eq=False)
class _Positions:
    """Positions on the line of constrained parameters; those that cannot vary keep their origin."""

    model: Turns
    layout: _Layout
    origin: FloatArray

    def __call__(self, arrays: Mapping[str, FloatArray]) -> FloatArray:
        """Return positions (n, dim) at arrays by name, (n, *shape) each."""
        n = len(next(iter(arrays.values())))
        numbers = np.tile(self.origin, (n, 1))
        start = 0
        for name, size in self.layout.sizes.items():
            where = self.layout.places[start : start + size]
            start += size
            if name in arrays:
                numbers[:, where] = arrays[name].reshape(n, size)
        return np.array([self.model.call("param_unconstrain", row) for row in numbers])


@attrs.frozen(eq=False)
class _Layout:
    """Shapes of variables, and where Stan puts their numbers.

    Names of parts of tuples and complex numbers are Stan's own: ``pair:1``, ``z.real``. For each
    number of the variables one after another, arrays in C order, there is its place in Stan's
    vector, where the first index of an array moves fastest.
    """

    shapes: Mapping[str, tuple[int, ...]]
    places: IntArray

    @classmethod
    def of(cls, names: Sequence[str]) -> _Layout:
        """Return that of Stan's names of single numbers: ``a``, ``b.1``, ``c.1.2``."""
        variables: dict[str, dict[tuple[int, ...], int]] = {}
        for place, name in enumerate(names):
            match = _NAME.match(name)
            assert match is not None
            index = tuple(map(int, match[2].split(".")[1:]))
            variables.setdefault(match[1], {})[index] = place
        shapes = {
            name: tuple(np.max(list(where), axis=0).tolist()) for name, where in variables.items()
        }
        places = [where[index] for where in variables.values() for index in sorted(where)]
        return cls(shapes, np.array(places, dtype=np.int64))

    @property
    def sizes(self) -> dict[str, int]:
        """Count of the numbers of each variable."""
        return {name: int(np.prod(shape, dtype=int)) for name, shape in self.shapes.items()}
