"""Gradients of sums of scikit-learn's kernel objects, in their first argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels

from surrokit.types import FloatArray

_MATERN = (0.5, 1.5, 2.5, np.inf)


def is_known(kernel: Any) -> bool:
    """Return whether :func:`slope` can differentiate a kernel, parts of it included."""
    kind = type(kernel)
    if kind in (kernels.Sum, kernels.Product):
        return is_known(kernel.k1) and is_known(kernel.k2)
    if kind is kernels.Exponentiation:
        return is_known(kernel.kernel)
    if kind is kernels.Matern:
        return kernel.nu in _MATERN
    return kind in _SLOPES


def slope(kernel: Any, inputs: FloatArray, centres: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the derivatives by x of sum_j w_j k(x, c_j), shape (n, dim).

    Parameters
    ----------
    kernel
        A kernel object of which :func:`is_known` is true.
    inputs : ndarray of shape (n, dim)
        x.
    centres : ndarray of shape (m, dim)
        c_j.
    weights : ndarray of shape (m,) or (n, m)
        w_j, the same at all inputs or not.
    """
    return _SLOPES[type(kernel)](kernel, inputs, centres, weights)


def _sum(kernel: Any, x: FloatArray, c: FloatArray, w: FloatArray) -> FloatArray:
    return slope(kernel.k1, x, c, w) + slope(kernel.k2, x, c, w)


def _product(kernel: Any, x: FloatArray, c: FloatArray, w: FloatArray) -> FloatArray:
    first = slope(kernel.k1, x, c, w * kernel.k2(x, c))
    return first + slope(kernel.k2, x, c, w * kernel.k1(x, c))


def _power(kernel: Any, x: FloatArray, c: FloatArray, w: FloatArray) -> FloatArray:
    exponent, inner = kernel.exponent, kernel.kernel
    return slope(inner, x, c, w * exponent * inner(x, c) ** (exponent - 1.0))


def _nothing(_: Any, x: FloatArray, _c: FloatArray, _w: FloatArray) -> FloatArray:
    return np.zeros(x.shape)


def _dot_product(_: Any, x: FloatArray, c: FloatArray, w: FloatArray) -> FloatArray:
    return np.asarray(np.broadcast_to(w, (len(x), len(c))) @ c)


def _radial(
    kernel: Any, x: FloatArray, c: FloatArray, w: FloatArray, by_square: FloatArray
) -> FloatArray:
    """Return the slope of a function of r^2 = |(x - c) / l|^2, from its derivative by r^2."""
    pulls = w * by_square
    difference = pulls @ c - x * pulls.sum(axis=1, keepdims=True)
    return np.asarray(-2.0 * difference / np.square(kernel.length_scale))


def _squares(kernel: Any, x: FloatArray, c: FloatArray) -> FloatArray:
    from scipy.spatial.distance import cdist

    scale = kernel.length_scale
    return np.asarray(cdist(x / scale, c / scale, metric="sqeuclidean"))


def _squared_exponential(kernel: Any, x: FloatArray, c: FloatArray, w: FloatArray) -> FloatArray:
    return _radial(kernel, x, c, w, -0.5 * np.exp(-0.5 * _squares(kernel, x, c)))


def _matern(kernel: Any, x: FloatArray, c: FloatArray, w: FloatArray) -> FloatArray:
    if kernel.nu == np.inf:
        return _squared_exponential(kernel, x, c, w)
    distances = np.sqrt(2.0 * kernel.nu * _squares(kernel, x, c))
    decay = np.exp(-distances)
    if kernel.nu == 0.5:
        # Has a kink at its centre; the slope there is taken as 0.
        kinked = np.divide(decay, distances, out=np.zeros_like(decay), where=distances > 0.0)
        return _radial(kernel, x, c, w, -0.5 * kinked)
    if kernel.nu == 1.5:
        return _radial(kernel, x, c, w, -1.5 * decay)
    return _radial(kernel, x, c, w, -5.0 / 6.0 * (1.0 + distances) * decay)


def _rational(kernel: Any, x: FloatArray, c: FloatArray, w: FloatArray) -> FloatArray:
    base = 1.0 + _squares(kernel, x, c) / (2.0 * kernel.alpha)
    return _radial(kernel, x, c, w, -0.5 * base ** (-kernel.alpha - 1.0))


def _periodic(kernel: Any, x: FloatArray, c: FloatArray, w: FloatArray) -> FloatArray:
    period, scale = kernel.periodicity, kernel.length_scale
    turns = np.sqrt(_squares(kernel, x, c)) * scale / period
    values = np.exp(-2.0 * (np.sin(np.pi * turns) / scale) ** 2)
    # d/d(r^2) of -2 sin^2(pi d / p) / l^2 with d = l r; sinc keeps it finite where d = 0.
    by_square = -2.0 * (np.pi / period) ** 2 * np.sinc(2.0 * turns)
    return _radial(kernel, x, c, w, values * by_square)


_SLOPES: dict[type, Callable[[Any, FloatArray, FloatArray, FloatArray], FloatArray]] = {
    kernels.Sum: _sum,
    kernels.Product: _product,
    kernels.Exponentiation: _power,
    kernels.ConstantKernel: _nothing,
    kernels.WhiteKernel: _nothing,  # independent noise: k(x, c) = 0 between different samples
    kernels.DotProduct: _dot_product,
    kernels.RBF: _squared_exponential,
    kernels.Matern: _matern,
    kernels.RationalQuadratic: _rational,
    kernels.ExpSineSquared: _periodic,
}
