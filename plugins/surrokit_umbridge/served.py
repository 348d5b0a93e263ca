"""Targets as models for others: what each operation of the protocol returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs
import numpy as np

import surrokit as sk
from surrokit import capabilities as can
from surrokit.errors import ConfigurationError, EvaluationError
from surrokit.potentials import Potential, with_forward, with_gradient
from surrokit.types import FloatArray


class Served(Protocol):
    """A model of one input and one output."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def dim(self) -> int:
        """Numbers in its input."""

    @property
    def supported(self) -> Sequence[str]:
        """Operations that it supports."""

    def n_outputs(self) -> int:
        """Return the count of numbers in its output."""

    def evaluate(self, position: FloatArray) -> FloatArray:
        """Return the output (m,) at a position (dim,)."""

    def gradient(self, position: FloatArray, weights: FloatArray) -> FloatArray:
        """Return J^T w, shape (dim,)."""

    def apply_jacobian(self, position: FloatArray, vector: FloatArray) -> FloatArray:
        """Return J u, shape (m,)."""


@attrs.frozen
class ServedDensity:
    """The log density of a target, in the user's coordinates.

    Parameters
    ----------
    name
        Its name.
    target
        The target, in the user's coordinates.
    lower, upper : ndarray of shape (dim,)
        Bounds, beyond which the density is zero.
    """

    name: str
    target: Potential
    lower: FloatArray
    upper: FloatArray

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.target.dim

    @property
    def supported(self) -> Sequence[str]:
        """Evaluate, and more with a gradient."""
        if can.GRADIENT in self.target.capabilities:
            return ("Evaluate", "Gradient", "ApplyJacobian")
        return ("Evaluate",)

    def n_outputs(self) -> int:
        """Return one."""
        return 1

    def evaluate(self, position: FloatArray) -> FloatArray:
        """Return the log density, shape (1,); minus infinity beyond the bounds."""
        if not ((position > self.lower) & (position < self.upper)).all():
            return np.array([-np.inf])
        return -_first(self.target.value, position)[0]

    def gradient(self, position: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the gradient of the log density, times the only weight."""
        return np.asarray(weights[0] * self._slope(position))

    def apply_jacobian(self, position: FloatArray, vector: FloatArray) -> FloatArray:
        """Return the derivative along a vector, shape (1,)."""
        return np.array([self._slope(position) @ vector])

    def _slope(self, position: FloatArray) -> FloatArray:
        slope: FloatArray = _first(with_gradient(self.target).value_and_gradient, position)[1][0]
        return -slope


@attrs.frozen
class ServedMap:
    """The forward map of a target, in the user's coordinates.

    Parameters
    ----------
    name
        Its name.
    target
        The target, in the user's coordinates.
    somewhere : ndarray of shape (dim,)
        A position at which its outputs can be counted.
    """

    name: str
    target: Potential
    somewhere: FloatArray

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.target.dim

    @property
    def supported(self) -> Sequence[str]:
        """Evaluate, and more with a Jacobian."""
        if can.JACOBIAN in self.target.capabilities:
            return ("Evaluate", "Gradient", "ApplyJacobian")
        return ("Evaluate",)

    def n_outputs(self) -> int:
        """Return the count of outputs, from one evaluation."""
        return len(self.evaluate(self.somewhere))

    def evaluate(self, position: FloatArray) -> FloatArray:
        """Return the outputs, shape (m,)."""
        outputs: FloatArray = _first(with_forward(self.target).forward, position)[0][0]
        return outputs

    def gradient(self, position: FloatArray, weights: FloatArray) -> FloatArray:
        """Return J^T w, shape (dim,)."""
        return self._jacobian(position).T @ weights

    def apply_jacobian(self, position: FloatArray, vector: FloatArray) -> FloatArray:
        """Return J u, shape (m,)."""
        return self._jacobian(position) @ vector

    def _jacobian(self, position: FloatArray) -> FloatArray:
        found: FloatArray = _first(with_forward(self.target).forward_and_jacobian, position)[1][0]
        return found


def serve_parts(target: Potential, name: str) -> tuple[Served, ...]:
    """Return the models of a target: its log density, and its forward map if it has one.

    Parameters
    ----------
    target
        The target.
    name
        Name of the log density; that of the map is ``forward``.

    Raises
    ------
    ConfigurationError
        If the target is in other coordinates than the user's, and does not tell which.
    """
    inner, dim = target, target.dim
    lower, upper, somewhere = np.full(dim, -np.inf), np.full(dim, np.inf), np.zeros(dim)
    if isinstance(target, sk.BoundedPotential):
        inner = target.inner
        lower, upper = target.parameters.bounds()
        somewhere = target.transform.to_bounded(somewhere[None])[0]
    elif hasattr(target, "transform"):
        raise ConfigurationError(
            f"a {type(target).__name__} of bounded parameters cannot be served; serve the target "
            "that it wraps"
        )
    density = ServedDensity(name, inner, lower, upper)
    if can.FORWARD not in inner.capabilities:
        return (density,)
    if name == "forward":
        raise ConfigurationError(
            "the name 'forward' is that of the target's map; give its log density another one"
        )
    return density, ServedMap("forward", inner, somewhere)


def _first(method: Callable[[FloatArray], Any], position: FloatArray) -> tuple[FloatArray, ...]:
    """Return what a method gives at one position, and raise what the target raised there."""
    try:
        results = method(position[None])
    except EvaluationError as error:
        raise error.causes[0] from None
    return results if isinstance(results, tuple) else (results,)
