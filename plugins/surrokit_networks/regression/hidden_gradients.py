"""Squared errors of a network, and how they change with its hidden parameters."""

from __future__ import annotations

import numpy as np

from surrokit.types import FloatArray
from surrokit_networks.nodes.additive import AdditiveNodes
from surrokit_networks.nodes.rbf import RbfNodes
from surrokit_networks.solving.equations import Equations


def additive_gradient(
    nodes: AdditiveNodes, weights: FloatArray, rows: Equations
) -> tuple[float, FloatArray]:
    """Return the weighted sum of squared errors, and its gradient in directions and biases.

    With x = w_i . z + b_i, r the error of a value and e that of a gradient, both times twice
    their weight, the derivative in x is a'(x) v_i r + a''(x) v_i (e . w_i).

    Parameters
    ----------
    nodes
        The network's nodes.
    weights : ndarray of shape (s, m)
        Their output weights v.
    rows
        Positions, with what is left of values and gradients after level and trend.

    Returns
    -------
    squares
        Errors of values and of gradients together.
    gradient : ndarray of shape (s * dim + s,)
        Directions first, then biases; the weights are held.
    """
    z = rows.whitened
    features, slopes = nodes.features_and_slopes(z)
    squares, errors = _value_errors(features, weights, rows)
    by_arguments = slopes * (errors @ weights.T)
    by_directions = np.zeros_like(nodes.directions)
    if rows.gradients is not None:
        fitted = (slopes[:, None, :] * weights.T) @ nodes.directions
        more, pulls = _gradient_errors(fitted, rows)
        squares += more
        along = np.einsum("nms,sm->ns", pulls @ nodes.directions.T, weights)
        by_arguments += nodes.activation.second(nodes.arguments(z)) * along
        by_directions += _through_outputs(slopes, pulls, weights)
    by_directions += by_arguments.T @ z
    return squares, np.concatenate([by_directions.ravel(), by_arguments.sum(axis=0)])


def rbf_gradient(nodes: RbfNodes, weights: FloatArray, rows: Equations) -> tuple[float, FloatArray]:
    """Return the weighted sum of squared errors, and its gradient in centres and log l^2.

    With d = z - c_i, grad phi_i = -phi_i d / l_i^2; so with r and e as in
    :func:`additive_gradient` the derivative in phi_i is v_i r - v_i (e . d) / l_i^2, and what is
    left acts on d and l_i^2 directly.

    Parameters
    ----------
    nodes, weights, rows
        As in :func:`additive_gradient`.

    Returns
    -------
    squares
        Errors of values and of gradients together.
    gradient : ndarray of shape (s * dim + s,)
        Centres first, then logarithms of squared widths; the weights are held.
    """
    z, centres = rows.whitened, nodes.centres
    heights = nodes.features(z)
    squares, errors = _value_errors(heights, weights, rows)
    by_heights = errors @ weights.T
    by_centres, by_logs = np.zeros_like(centres), np.zeros(len(nodes))
    scaled = heights / nodes.square_widths
    if rows.gradients is not None:
        weighted = scaled[:, None, :] * weights.T
        fitted = weighted @ centres - weighted.sum(axis=2)[:, :, None] * z[:, None, :]
        more, pulls = _gradient_errors(fitted, rows)
        squares += more
        along = np.einsum("nmd,nd->nm", pulls, z)[:, :, None] - pulls @ centres.T
        stretch = np.einsum("nms,sm->ns", along, weights)
        by_heights -= stretch / nodes.square_widths
        by_centres += _through_outputs(scaled, pulls, weights)
        by_logs += np.einsum("ns,ns->s", stretch, scaled)
    pushed = by_heights * scaled
    by_centres += pushed.T @ z - pushed.sum(axis=0)[:, None] * centres
    distances = np.einsum("nd,nd->n", z, z)[:, None] - 2.0 * (z @ centres.T)
    distances += np.einsum("sd,sd->s", centres, centres)
    by_logs += 0.5 * np.einsum("ns,ns->s", pushed, distances)
    return squares, np.concatenate([by_centres.ravel(), by_logs])


def _value_errors(
    features: FloatArray, weights: FloatArray, rows: Equations
) -> tuple[float, FloatArray]:
    """Return the weighted squares of value errors, and the errors (n, m) times twice the weight."""
    errors = features @ weights - rows.targets
    squares = float(rows.value_weights @ np.square(errors).sum(axis=1))
    return squares, errors * (2.0 * rows.value_weights)[:, None]


def _gradient_errors(fitted: FloatArray, rows: Equations) -> tuple[float, FloatArray]:
    """Return as :func:`_value_errors` does, for gradients (n, m, dim)."""
    assert rows.gradients is not None
    errors = fitted - rows.gradients
    squares = float(rows.gradient_weights @ np.square(errors).sum(axis=(1, 2)))
    return squares, errors * (2.0 * rows.gradient_weights)[:, None, None]


def _through_outputs(factors: FloatArray, pulls: FloatArray, weights: FloatArray) -> FloatArray:
    """Return sum_nm f_ni v_im e_nm, shape (s, dim)."""
    by_output = factors.T @ pulls.transpose(1, 0, 2)
    return np.asarray(np.einsum("msd,sm->sd", by_output, weights))
