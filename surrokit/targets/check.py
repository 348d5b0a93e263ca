"""A check of gradients against differences of the value."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.errors import GradientWarning, ShapeError
from surrokit.interfaces import ChainState
from surrokit.potentials import Potential, with_gradient
from surrokit.targets.bounds import labels_on_line, parameters_of, transform_of
from surrokit.types import FloatArray

_STEP = 1e-5  # near the cube root of double precision, best for central differences


@attrs.frozen(kw_only=True, eq=False)
class GradientCheck:
    """The result of :func:`check_gradient`: the given gradient, and central differences.

    Both have shape (dim,), in the sampling coordinates. Differences of a target that computes in
    single precision (float32) are too coarse, so that they disagree with a right gradient.
    """

    labels: list[str]
    given: FloatArray
    differences: FloatArray

    @property
    def wrong(self) -> list[str]:
        """Names of the parameters in which gradient and differences disagree."""
        size = np.maximum(np.abs(self.given), np.abs(self.differences))
        scale = np.maximum(size, 1e-3 * size.max(initial=0.0) + 1e-6)
        off = ~(np.abs(self.given - self.differences) <= 1e-3 * scale)
        return [label for label, is_off in zip(self.labels, off, strict=True) if is_off]

    @property
    def ok(self) -> bool:
        """Whether gradient and differences agree in all parameters."""
        return not self.wrong

    def __str__(self) -> str:
        rows = [f"{'parameter':>12} {'gradient':>14} {'differences':>14}"]
        wrong = set(self.wrong)
        for label, given, difference in zip(self.labels, self.given, self.differences, strict=True):
            flag = "  <- disagrees" if label in wrong else ""
            rows.append(f"{label:>12} {given:14.6g} {difference:14.6g}{flag}")
        return "\n".join(rows)


def check_gradient(target: Potential, position: npt.ArrayLike | Mapping[str, Any]) -> GradientCheck:
    """Compare a target's gradient with central differences of its value.

    Costs one gradient and 2 dim values.

    Parameters
    ----------
    target
        As made by :func:`surrokit.potential`, or any potential with gradient.
    position : array_like of shape (dim,), or mapping
        A position in the user's coordinates, or values by name; best not a mode, where the
        gradient is zero.

    Raises
    ------
    ShapeError
        If the position has another shape.
    CapabilityError
        If the target has no gradient.
    """
    parameters = parameters_of(target)
    user = parameters.position(position)  # type: ignore[arg-type]
    if user.shape != (parameters.dim,):
        raise ShapeError(f"position must have shape ({parameters.dim},), got {user.shape}")
    z = transform_of(target).to_unbounded(user[None])
    gradient = with_gradient(target).value_and_gradient(z)[1][0]
    steps = np.diag(_STEP * np.maximum(1.0, np.abs(z[0])))
    places = np.concatenate([z + steps, z - steps])
    values = target.value(places)
    differences = (values[: target.dim] - values[target.dim :]) / (2.0 * np.diag(steps))
    return GradientCheck(labels=labels_on_line(target), given=gradient, differences=differences)


def check_start(target: Potential, chains: ChainState) -> None:
    """Warn if the first chain's gradient, where known, disagrees with the slope along itself.

    That takes two values. The slope along a right gradient is its length; along a wrong one it
    hardly ever is.
    """
    gradients = chains.cache.get("gradient")
    if gradients is None:
        return
    position, gradient = chains.positions[0], gradients[0]
    length = float(np.linalg.norm(gradient))
    if not np.isfinite(length) or length == 0.0:
        return
    direction = gradient / length
    step = 10.0 * _STEP * max(1.0, float(np.abs(position).max()))
    places = np.stack([position + step * direction, position - step * direction])
    values = target.value(places)
    slope = float(values[0] - values[1]) / (2.0 * step)
    # this leaves room for curvature and for noise in the value, and still catches a
    # sign, a factor of two, a missing term or a wrong order of parameters
    rounding = 4.0 * np.finfo(float).eps * max(float(np.abs(values).max()), 1.0) / step
    if np.isfinite(slope) and abs(slope - length) > 0.3 * length + rounding:
        warnings.warn(
            f"the gradient does not agree with the value: along it the target's slope is "
            f"{slope:.6g}, but its length is {length:.6g}. Draws stay exact, but acceptance falls: "
            "use surrokit.check_gradient(target, position)",
            GradientWarning,
            stacklevel=2,
        )
