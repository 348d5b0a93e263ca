"""The contract of potentials, with gradients or known distributions.

Matrices are in :mod:`surrokit.contracts.matrices`, forward maps in
:mod:`surrokit.contracts.forward`, and sums over rows of data in :mod:`surrokit.contracts.rows`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar, cast

import attrs
import numpy as np

from surrokit.capabilities import CONVEX, GAUSSIAN, GRADIENT, GRADIENT_ALONE, require
from surrokit.types import Capabilities, FloatArray


class Potential(Protocol):
    """U(q) = -log density + constant, for rows of positions.

    ``capabilities`` names whatever else it can do (see :mod:`surrokit.capabilities`). A potential
    is pure: the same positions give the same values, and arguments stay unchanged.
    """

    @property
    def dim(self) -> int:
        """Numbers in a position."""

    @property
    def capabilities(self) -> Capabilities:
        """Names of what it can do beyond its value."""

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim); ``inf`` outside the support."""


class GradientPotential(Potential, Protocol):
    """A potential with capability ``gradient``."""

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""


class GradientAlonePotential(Potential, Protocol):
    """A potential with capability ``gradient-alone``: the gradient costs less by itself."""

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U, shape (n, dim)."""


class InitialPotential(Potential, Protocol):
    """A potential with capability ``initial``."""

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return positions, shape (n, dim), from which chains may start."""


class ConvexPotential(Potential, Protocol):
    """A potential with capability ``convex``: its Hessian is positive definite everywhere."""


class GaussianPotential(Potential, Protocol):
    """A potential with capability ``gaussian``: a normal distribution, exactly.

    U(q) = |L^-1 (q - mean)|^2 / 2 + constant at every q, so that mean and L suffice to draw from
    exp(-U).
    """

    @property
    def mean(self) -> FloatArray:
        """Its mean, shape (dim,)."""

    @property
    def factor(self) -> FloatArray:
        """L, lower triangular of shape (dim, dim); L L^T is the covariance."""


def observed_data_of(potential: Potential) -> Mapping[str, Any]:
    """Return arrays of what was observed, by name; empty where a potential does not tell.

    A potential may have an attribute ``observed_data``. The one that it wraps is asked otherwise.

    Parameters
    ----------
    potential
        A target.
    """
    for asked in _from_the_outside(potential):
        found = getattr(asked, "observed_data", None)
        if isinstance(found, Mapping):
            return found
    return {}


def unnormalized_of(potential: Potential) -> tuple[str, ...]:
    """Return what of a potential may lack its normalising constant, in words; nothing if none does.

    A potential may have an attribute ``unnormalized``. The one that it wraps is asked otherwise;
    nothing is known of one that says nothing.

    Parameters
    ----------
    potential
        A target.
    """
    for asked in _from_the_outside(potential):
        found = getattr(asked, "unnormalized", None)
        if isinstance(found, tuple):
            return found
    return ("the density",)


def predictor_of(potential: Potential) -> Any:
    """Return what makes predictions of draws; None where a potential has nothing of the kind.

    A potential may have an attribute ``predictor``. The one that it wraps is asked if it has none
    at all; None there means that nothing is predicted.

    Parameters
    ----------
    potential
        A target.
    """
    for asked in _from_the_outside(potential):
        if hasattr(asked, "predictor"):
            return asked.predictor
    return None


def _from_the_outside(potential: Any) -> Iterator[Any]:
    """Yield a potential, the one that it wraps, and so on."""
    while potential is not None:
        yield potential
        potential = getattr(potential, "inner", None)


Offering = TypeVar("Offering", bound=Potential, covariant=True)


@attrs.frozen
class Typed(Generic[Offering]):
    """Returns a potential, typed as one with a capability, and refuses a potential without it.

    Parameters
    ----------
    capability
        Name of the capability.
    """

    capability: str

    def __call__(self, potential: Potential) -> Offering:
        """Return the potential.

        Raises
        ------
        CapabilityError
            If the potential lacks the capability.
        """
        require(
            "this computation",
            frozenset({self.capability}),
            potential.capabilities,
            type(potential).__name__,
            "use a potential that has it",
        )
        return cast("Offering", potential)


with_gradient = Typed[GradientPotential](GRADIENT)
"""A potential that gives gradients."""

with_gradient_alone = Typed[GradientAlonePotential](GRADIENT_ALONE)
"""A potential that gives gradients without values."""

with_convex = Typed[ConvexPotential](CONVEX)
"""A potential whose Hessian is positive definite everywhere."""

with_gaussian = Typed[GaussianPotential](GAUSSIAN)
"""A potential that is exactly that of a normal distribution."""
