"""A potential of a model that another library has written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.contracts.potential import Potential
from surrokit.coordinates.models import ModelMap
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import ShapeError
from surrokit.model.model import Wrapper
from surrokit.shown.target import ShownTarget
from surrokit.types import Capabilities, FloatArray

Starts: TypeAlias = Callable[[np.random.Generator, int], FloatArray]
"""Draws starting positions of chains on the line, shape (n, dim)."""


@attrs.frozen(eq=False)
class ModelledPotential(Wrapper, ShownTarget):
    """A potential on the line of another library, with what the model there reports.

    It does all that the inner potential does, by the same methods.

    Parameters
    ----------
    inner
        U on the line, Jacobian included.
    transform
        The map from the line to what the model reports.
    starts
        Where chains start; None for anywhere near zero.
    observed_data
        What was observed, by the model's names.
    missing
        Why it lacks capabilities, by their names.
    unnormalized
        What may lack its normalising constant: models have terms of their own, and flat priors.

    Raises
    ------
    ShapeError
        If the map and the potential have another number of numbers on the line.
    """

    inner: Potential
    transform: ModelMap
    starts: Starts | None = None
    observed_data: Mapping[str, Any] = attrs.field(factory=dict)
    missing: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    unnormalized: tuple[str, ...] = ("the model",)

    predictor: ClassVar[None] = None
    """Nothing is predicted: rows inside go by the line's numbers, and draws by the model's."""

    def __attrs_post_init__(self) -> None:
        if self.transform.own.dim != self.inner.dim:
            raise ShapeError(
                f"the model's map takes {self.transform.own.dim} numbers on the line, but the "
                f"potential takes {self.inner.dim}"
            )

    @property
    def parameters(self) -> Parameters:
        """All that the model reports."""
        return self.transform.reported

    @property
    def dim(self) -> int:
        """Numbers in a position on the line."""
        return self.inner.dim

    @property
    def capabilities(self) -> Capabilities:
        """What the inner potential offers, and ``initial`` where it is known where to start."""
        own = frozenset() if self.starts is None else frozenset({can.INITIAL})
        return self.inner.capabilities | own

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        return self.inner.value(positions)

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return starting positions, shape (n, dim)."""
        assert self.starts is not None
        return self.starts(rng, n)

    def __getattr__(self, name: str) -> Any:
        """Return what else the inner potential has."""
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)
