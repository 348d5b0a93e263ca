"""Hidden parameters trained by gradient descent, where the others leave them as they were drawn.

Section 3.3 of the paper mentions it as the costly alternative; it shows what randomness gives
away. Output weights, level and trend are linear in the loss, so they are solved for at every step
and the descent runs over directions and biases, or centres and widths, alone: variable projection
(Golub and Pereyra 1973, doi:10.1137/0710036). Where the linear part is at its minimum, the loss
changes with a hidden parameter as if the linear part stood still.
"""

from __future__ import annotations

from typing import TypeVar

import attrs
import numpy as np

from surrokit.limits.deadline import check_deadline
from surrokit.types import FloatArray
from surrokit_networks.nodes.additive import AdditiveNodes
from surrokit_networks.nodes.nodes import Nodes
from surrokit_networks.nodes.rbf import RbfNodes
from surrokit_networks.regression.hidden_gradients import additive_gradient, rbf_gradient
from surrokit_networks.solving.basis import Basis
from surrokit_networks.solving.design import Solution
from surrokit_networks.solving.equations import Equations
from surrokit_networks.solving.normal_equations import blocks, normal_equations
from surrokit_networks.solving.spectrum import Projected
from surrokit_networks.solving.trend import TrendFeatures

Trainable = TypeVar("Trainable", bound=AdditiveNodes | RbfNodes)
"""The kinds of node that can be trained; each comes back as what it was."""

_LEAST_RIDGE = 1e-10
"""Least ridge, in units of the mean square of a feature at the start: keeps the linear part
well-posed, and with it the gradient of the loss."""

_FAILED = 1e6
"""Relative loss at which the descent turns round where the true one is not a number."""

_LOG_WIDTH_RANGE = 10.0
"""How far the logarithm of a squared width may go from where it started."""


def train_on(
    nodes: Trainable,
    equations: Equations,
    trend: TrendFeatures,
    *,
    ridge: float,
    max_iterations: int,
) -> Trainable:
    """Train the hidden parameters of nodes on equations, with a trend under them.

    Parameters
    ----------
    nodes
        The start.
    equations
        What to satisfy.
    trend
        Fitted along, free of the ridge.
    ridge
        lambda in lambda |v|^2, on the sum of squared errors.
    max_iterations
        Iterations of L-BFGS, at most; with 0 nothing is trained.

    Returns
    -------
    AdditiveNodes or RbfNodes
        Nodes of the same kind whose loss is no larger; the start itself where the loss is not a
        number there, or cannot be lowered.
    """
    from scipy.optimize import minimize

    if max_iterations == 0 or len(nodes) == 0:
        return nodes
    with np.errstate(all="ignore"):
        loss = HiddenLoss.of(nodes, equations, trend, ridge)
        start = pack(nodes)
        first = loss.value_and_gradient(start)[0]
        if not 0.0 < first < np.inf:
            return nodes
        descent = _Descent(loss, scale=first)
        minimize(
            descent.step,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=_bounds(nodes),
            options={"maxiter": max_iterations, "ftol": 1e-12, "gtol": 1e-10},
        )
    return nodes if descent.best is None else unpack(descent.best, nodes)


@attrs.frozen(kw_only=True, eq=False)
class HiddenLoss:
    """The loss as a function of hidden parameters, with all that is linear at its minimum.

    Parameters
    ----------
    nodes
        Nodes whose kind, number and activation are kept.
    equations
        What to satisfy.
    trend
        Fitted along, free of the ridge.
    ridge
        lambda, positive.
    """

    nodes: Nodes
    equations: Equations
    trend: TrendFeatures
    ridge: float

    @classmethod
    def of(
        cls, nodes: Nodes, equations: Equations, trend: TrendFeatures, ridge: float
    ) -> HiddenLoss:
        """Return the loss with a ridge that is large enough to compute with.

        Parameters
        ----------
        nodes, equations, trend
            See the class.
        ridge
            Asked for.
        """
        normal = normal_equations(Basis(trend=trend, network=nodes), equations)
        least = _LEAST_RIDGE * float(np.diag(normal.gram)[len(trend) :].mean())
        return cls(nodes=nodes, equations=equations, trend=trend, ridge=max(ridge, least))

    def value_and_gradient(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss, and its gradient, at hidden parameters in the order of ``packed``.

        Both are NaN where the linear part cannot be solved for.
        """
        nodes = unpack(parameters, self.nodes)
        solution = self._solution(nodes)
        gradient = np.zeros_like(parameters)
        if solution is None:
            return float("nan"), np.full_like(parameters, np.nan)
        weights = solution.weights
        loss = self.ridge * float(np.sum(weights**2))
        slope, matrix = self.trend.slope_and_matrix(solution.trend)
        for block in blocks(self.equations, 4 * len(nodes) * self.equations.n_outputs):
            z = block.whitened
            bent = z @ matrix
            value = z @ slope + 0.5 * np.einsum("mnd,nd->nm", bent, z) + solution.level
            left = block.less(value, slope.T + bent.transpose(1, 0, 2))
            if isinstance(nodes, AdditiveNodes):
                squares, part = additive_gradient(nodes, weights, left)
            else:
                squares, part = rbf_gradient(nodes, weights, left)
            loss += squares
            gradient += part
        return loss, gradient

    def _solution(self, nodes: Nodes) -> Solution | None:
        normal = normal_equations(Basis(trend=self.trend, network=nodes), self.equations)
        if not (np.isfinite(normal.gram).all() and np.isfinite(normal.right).all()):
            return None
        try:
            projected = Projected.of(normal, len(self.trend), self.equations.trains_level)
            solution = projected.solution(self.equations, self.ridge)
        except np.linalg.LinAlgError:
            return None
        return solution if solution.finite else None


class _Descent:
    """Loss and gradient in units of the first loss; remembers the least.

    Where there is neither, it gives a wall for the line search to turn round at.
    """

    def __init__(self, loss: HiddenLoss, scale: float) -> None:
        self._loss, self._scale = loss, scale
        self._least = 1.0
        self.best: FloatArray | None = None

    def step(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        check_deadline()
        loss, gradient = self._loss.value_and_gradient(parameters)
        loss, gradient = loss / self._scale, gradient / self._scale
        if not (np.isfinite(loss) and np.isfinite(gradient).all()):
            return _FAILED, np.zeros_like(parameters)
        if loss < self._least:
            self._least, self.best = loss, parameters.copy()
        return loss, gradient


def pack(nodes: Nodes) -> FloatArray:
    """Return all hidden parameters as one array, shape (s * dim + s,).

    Directions and biases, or centres and the logarithms of squared widths.
    """
    if isinstance(nodes, AdditiveNodes):
        return np.concatenate([nodes.directions.ravel(), nodes.biases])
    return np.concatenate([nodes.centres.ravel(), np.log(nodes.square_widths)])


def unpack(parameters: FloatArray, like: Trainable) -> Trainable:
    """Return nodes of the kind and number of others, from what :func:`pack` returns."""
    vectors = parameters[: len(like) * like.dim].reshape(len(like), like.dim)
    numbers = parameters[len(like) * like.dim :]
    if isinstance(like, AdditiveNodes):
        return attrs.evolve(like, directions=vectors.copy(), biases=numbers.copy())
    return attrs.evolve(like, centres=vectors.copy(), square_widths=np.exp(numbers))


def _bounds(nodes: Nodes) -> FloatArray:
    """Return the least and the largest of each parameter, shape (s * dim + s, 2)."""
    start = pack(nodes)
    reach = np.full(len(start), np.inf)
    if isinstance(nodes, RbfNodes):
        reach[-len(nodes) :] = _LOG_WIDTH_RANGE
    return np.column_stack([start - reach, start + reach])
