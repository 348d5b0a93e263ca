"""A cheap model beside an expensive one: a coarse mesh, a loose tolerance, or an earlier fit."""

from __future__ import annotations

from typing import Any

import attrs

from surrokit.errors import ConfigurationError, ShapeError
from surrokit.model.model import PassingWrapper, Wrapper
from surrokit.potentials import OF_A_POTENTIAL, Potential
from surrokit.targets.bounds import LiftedPotential, parameters_of
from surrokit.targets.functions import potential
from surrokit.types import Capabilities


@attrs.frozen(eq=False)
class Paired(PassingWrapper):
    """An expensive potential with a ``cheap`` one of the same position, which decides nothing."""

    inner: Potential
    cheap: Potential


@attrs.frozen(eq=False)
class _Moved(LiftedPotential):
    """A cheap potential in the coordinates of a wrapper around the expensive one."""

    inner: Potential
    like: LiftedPotential

    @property
    def transform(self) -> Any:  # type: ignore[override]
        """The map to the user's coordinates."""
        return self.like.transform

    @property
    def inner_map(self) -> Any:
        """The map to the coordinates of the cheap potential."""
        return self.like.inner_map

    @property
    def parameters(self) -> Any:  # type: ignore[override]
        """Names, shapes and bounds."""
        return self.like.parameters

    @property
    def capabilities(self) -> Capabilities:
        """What the cheap potential offers."""
        return self.inner.capabilities


def with_cheap(target: Potential, cheap: Any) -> Potential:
    """Return a target from whose cheap model surrogates start.

    A surrogate then learns what a cheap model lacks, and the cheap model's value is added to that.
    The expensive target alone decides what is accepted, so draws are as exact as without.

    Parameters
    ----------
    target
        The expensive one.
    cheap
        A potential of the same parameters; one with a forward map where the target has one, whose
        outputs are then corrected. Or ``run.density`` of an earlier run.

    Returns
    -------
    Potential
        The target. ``run.calls["cheap"]`` counts positions at which the cheap model was evaluated.

    Raises
    ------
    ConfigurationError
        If the cheap model is neither.
    ShapeError
        If it has other parameters.
    """
    parameters = parameters_of(target)
    if hasattr(cheap, "logpdf") and hasattr(cheap, "value_and_gradient"):
        cheap = potential(
            value_and_gradient=cheap.value_and_gradient,
            parameters=dict(parameters.specs),
            batched=True,
        )
    missing = [name for name in OF_A_POTENTIAL if not hasattr(cheap, name)]
    if missing:
        raise ConfigurationError(
            f"a cheap model must be a potential or the density of a run, got a "
            f"{type(cheap).__name__}. Make one with surrokit.potential(value, gradient, dim=...)"
        )
    own = parameters_of(cheap)
    if cheap.dim != target.dim or own.labels != parameters.labels:
        raise ShapeError(
            f"the cheap model has the parameters {', '.join(own.labels)}, but the target has "
            f"{', '.join(parameters.labels)}. Declare the same ones for both"
        )
    return Paired(target, cheap)


def cheap_of(target: Potential) -> Potential | None:
    """Return the cheap model of a target, in its coordinates; None without one."""
    if isinstance(target, Paired):
        return target.cheap
    if not isinstance(target, Wrapper):
        return None
    found = cheap_of(target.inner)
    if found is None or not isinstance(target, LiftedPotential):
        return found
    return _Moved(found, target)
