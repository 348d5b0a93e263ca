"""A cheap model beside an expensive one: a coarse mesh, a loose tolerance, or an earlier fit."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from surrokit.capabilities import FORWARD, GRADIENT, JACOBIAN
from surrokit.coordinates.constraints import CoordinateMap
from surrokit.coordinates.parameters import Parameters
from surrokit.coordinates.transforms import Scaled, Scaling
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.model.model import PassingWrapper
from surrokit.potentials import OF_A_POTENTIAL, Potential, find_within
from surrokit.targets.bounds import LiftedPotential, parameters_of, transform_of
from surrokit.types import Capabilities


@attrs.frozen(eq=False)
class Paired(PassingWrapper):
    """An expensive potential with a ``cheap`` one of the same position, which decides nothing.

    ``is_fit`` says that the latter is the surrogate of an earlier run, whose calls do not count.
    """

    inner: Potential
    cheap: Potential
    is_fit: bool = False


@attrs.frozen(eq=False)
class _Moved(LiftedPotential):
    """A cheap potential in other coordinates, such as those of the expensive one's wrapper."""

    inner: Potential
    inner_map: CoordinateMap
    parameters: Parameters
    transform: CoordinateMap

    @property
    def capabilities(self) -> Capabilities:
        """Gradient, outputs and their Jacobian, as far as the cheap potential has them."""
        return self.inner.capabilities & {GRADIENT, FORWARD, JACOBIAN}


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
        outputs are then corrected. Or an earlier run, or its ``density``: its surrogate is taken.
        This is best where a value takes more than a tenth of a millisecond, as surrogates are
        evaluated very often.

    Returns
    -------
    Potential
        The target. ``run.calls["cheap"]`` counts positions at which a cheap model was evaluated.

    Raises
    ------
    ConfigurationError
        If the cheap model is neither.
    ShapeError
        If it has other parameters.
    """
    parameters = parameters_of(target)
    reported = getattr(getattr(cheap, "kept", cheap), "transform", None)
    is_fit = False
    if hasattr(cheap, "surrogate") and isinstance(reported, CoordinateMap):
        is_fit = True
        cheap = _on_line_of(target, cheap.surrogate, reported)
    missing = [name for name in OF_A_POTENTIAL if not hasattr(cheap, name)]
    if missing:
        raise ConfigurationError(
            f"a cheap model must be a potential, or a run with a surrogate, got a "
            f"{type(cheap).__name__}. Make one with surrokit.potential(value, gradient, dim=...)"
        )
    own = parameters if is_fit else parameters_of(cheap)
    if cheap.dim != target.dim or own.labels != parameters.labels:
        raise ShapeError(
            f"the cheap model has {cheap.dim} parameters ({', '.join(own.labels[:5])}), but the "
            f"target has {target.dim} ({', '.join(parameters.labels[:5])}). Declare the same ones "
            "for both"
        )
    return Paired(target, cheap, is_fit)


def _on_line_of(target: Potential, surrogate: Any, reported: CoordinateMap) -> Any:
    """Return the surrogate of a run, whose coordinates may be of like scale, on a target's line."""
    if surrogate is None or not isinstance(reported, Scaled):
        return surrogate
    back = np.linalg.inv(reported.scaling.matrix).astype(np.float64)
    scaling = Scaling(-back @ reported.scaling.shift, back)
    return _Moved(surrogate, scaling, parameters_of(target), transform_of(target))


def cheap_of(target: Potential) -> Potential | None:
    """Return the cheap model of a target, in its coordinates; None without one."""
    if isinstance(target, Paired):
        return target.cheap
    inner: Potential | None = getattr(target, "inner", None)
    found = None if inner is None else cheap_of(inner)
    if found is None or not isinstance(target, LiftedPotential):
        return found
    lifted: Any = target
    return _Moved(found, lifted.inner_map, lifted.parameters, lifted.transform)


def is_fit(target: Potential) -> bool:
    """Return whether the cheap model of a target is the surrogate of an earlier run."""
    return bool(find_within(target, "is_fit", bool))
