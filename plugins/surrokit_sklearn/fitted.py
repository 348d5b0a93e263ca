"""A fitted scikit-learn regressor as a potential: predictions and their gradients.

Gradients of sums of kernels sum_j w_j k(x, c_j) are analytic, as differences of predictions take 2
to 100 times as long. A regressor of one's own has ``predict_gradient``. All others have central
differences.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias

import attrs
import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVR, NuSVR

from surrokit.arguments import check_positions
from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.errors import SurrogateFitError
from surrokit.surrogate.quality import FitQuality
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, Capabilities, FloatArray

Gradient: TypeAlias = Callable[[FloatArray], FloatArray]
"""Derivatives of the prediction, shape (n, n_features), at inputs of shape (n, n_features)."""

NARROW = 1e-4
"""Step of differences of a smooth prediction, in units of z."""

WIDE = 0.3
"""Step where the prediction is constant in pieces, as of trees and neighbours.

Measured with forests, boosted trees and neighbours on logistic and banana targets, with 300 and
1500 points: gradients come out best with steps of 0.2 to 0.5.
"""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class FittedRegressor:
    """V(q) = level + curvature |z|^2 / 2 + scale f(z), in nats, with f what a regressor predicts.

    Frozen; every array it returns is new. Methods raise :class:`~surrokit.errors.ShapeError`
    unless positions are rows of ``dim`` numbers. Positions whose z is not finite or beyond 1e8 have
    V = inf and a gradient of NaN, so that a path that goes there is rejected: trees count in single
    precision, and powers overflow.

    Parameters
    ----------
    slope
        The gradient of f, shape (n, dim), at whitened positions of shape (n, dim).
    n_points
        Distinct points that it was fitted to.
    quality
        Error at points held out from a second fit; None where none were.
    """

    dim: int
    regressor: Any
    slope: Gradient
    whitening: Whitening
    level: float
    curvature: float
    scale: float
    n_points: int
    quality: FitQuality | None = None

    capabilities: ClassVar[Capabilities] = frozenset({GRADIENT, GRADIENT_ALONE})
    """What every one offers."""

    @property
    def gradient_kind(self) -> Literal["analytic", "differences"]:
        """Where gradients come from."""
        return "differences" if isinstance(self.slope, CentralDifferences) else "analytic"

    def __repr__(self) -> str:
        variance = "none" if self.quality is None else f"{self.quality.variance:.3g}"
        return (
            f"FittedRegressor(dim={self.dim}, regressor={type(self.regressor).__name__}, "
            f"n_points={self.n_points}, gradient_kind={self.gradient_kind!r}, "
            f"held_out_variance={variance})"
        )

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        z, inside = self._inside(positions)
        value = np.full(len(inside), np.inf)
        if len(z):
            found = self.scale * predicted(self.regressor, z)
            found += self.level + 0.5 * self.curvature * np.square(z).sum(axis=1)
            value[inside] = np.where(np.isnan(found), np.inf, found)
        return value

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of V, shape (n, dim), at positions of shape (n, dim)."""
        z, inside = self._inside(positions)
        gradient = np.full((len(inside), self.dim), np.nan)
        if len(z):
            slopes = self.scale * self.slope(z) + self.curvature * z
            gradient[inside] = self.whitening.pull(slopes)
        return gradient

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient, shape (n, dim)."""
        return self.value(positions), self.gradient(positions)

    def _inside(self, positions: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return the whitened positions within reach of the regressor, and which these are."""
        with np.errstate(over="ignore", invalid="ignore"):
            z = self.whitening.apply(check_positions(positions, self.dim))
            inside = np.asarray((np.abs(z) <= 1e8).all(axis=1))
        return z[inside], inside


def predicted(regressor: Any, inputs: FloatArray) -> FloatArray:
    """Return the predictions, shape (n,), at inputs of shape (n, dim).

    SurrogateFitError is raised if the regressor returns another shape.
    """
    # Inputs are checked already, and scikit-learn's checks cost more than a small prediction.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        found = np.asarray(regressor.predict(inputs), dtype=np.float64)
    n = len(inputs)
    if found.shape not in ((n,), (n, 1)):
        raise SurrogateFitError(
            f"{type(regressor).__name__}.predict must return one number for each of {n} rows, got "
            f"shape {found.shape}; use a regressor for a single target"
        )
    return found.reshape(n)


@attrs.frozen(kw_only=True, eq=False)
class CentralDifferences:
    """Slopes of a fitted regressor's prediction between two points, ``step`` to each side."""

    regressor: Any
    step: float

    @classmethod
    def of(cls, regressor: Any, inputs: FloatArray) -> CentralDifferences:
        """Return them with a narrow step, or a wide one if predictions at inputs are constant."""
        narrow = cls(regressor=regressor, step=NARROW)
        constant = np.median(np.abs(narrow(inputs)).max(axis=1)) == 0.0
        return cls(regressor=regressor, step=WIDE) if constant else narrow

    def __call__(self, inputs: FloatArray) -> FloatArray:
        """Return the slopes, shape (n, dim), at inputs of shape (n, dim)."""
        n, dim = inputs.shape
        slopes = np.empty((n, dim))
        size = max(1, 1_000_000 // (2 * dim * dim))  # rows whose inputs go into one prediction
        for start in range(0, n, size):
            block = inputs[start : start + size, None, :]
            steps = self.step * np.eye(dim)
            around = np.stack([block + steps, block - steps])
            values = predicted(self.regressor, around.reshape(-1, dim)).reshape(2, -1, dim)
            # The distance as it is after rounding.
            ahead, behind = np.einsum("snkk->snk", around)
            slopes[start : start + size] = (values[0] - values[1]) / (ahead - behind)
        return slopes


def gradient_of(regressor: Any, inputs: FloatArray) -> Gradient:
    """Return the gradient of what a regressor fitted to inputs (n, n_features) predicts."""
    own: Gradient | None = getattr(regressor, "predict_gradient", None)
    if own is not None:
        return own
    found = None
    if type(regressor) in (KernelRidge, SVR, NuSVR):
        found = _of_kernels(regressor)
    elif type(regressor) is GaussianProcessRegressor and _is_known(regressor.kernel_):
        # The scale that normalize_y divides by has no public name; 1 without.
        weights = np.ravel(regressor.alpha_) * float(np.ravel(regressor._y_train_std)[0])
        found = partial(_slope, regressor.kernel_, np.asarray(regressor.X_train_), weights)
    return found or CentralDifferences.of(regressor, inputs)


def _of_kernels(regressor: Any) -> Gradient | None:
    """Return the gradient of kernel ridge or support vector regression."""
    of_vectors = isinstance(regressor, SVR | NuSVR)
    centres = regressor.support_vectors_ if of_vectors else regressor.X_fit_
    # The fitted gamma, which for "scale" depends on the data, has no public name.
    gamma = regressor._gamma if of_vectors else regressor.gamma
    gamma = 1.0 / regressor.n_features_in_ if gamma is None else float(gamma)
    if regressor.kernel != "rbf" or not gamma > 0.0 or issparse(centres):
        return None
    kernel = kernels.RBF(1.0 / np.sqrt(2.0 * gamma))
    return partial(_slope, kernel, centres, np.ravel(regressor.dual_coef_))


def _is_known(kernel: Any) -> bool:
    if type(kernel) in (kernels.Sum, kernels.Product):
        return _is_known(kernel.k1) and _is_known(kernel.k2)
    if type(kernel) is kernels.Matern:
        return kernel.nu in (1.5, 2.5, np.inf)
    return type(kernel) in (kernels.ConstantKernel, kernels.WhiteKernel, kernels.RBF)


def _slope(kernel: Any, c: FloatArray, w: FloatArray, x: FloatArray) -> FloatArray:
    """Return the derivatives by x of sum_j w_j k(x, c_j), shape (n, dim).

    ``x (n, dim)`` are inputs, ``c (m, dim)`` centres, and ``w`` weights, shape (m,), or (n, m)
    within a product.
    """
    if type(kernel) is kernels.Sum:
        return _slope(kernel.k1, c, w, x) + _slope(kernel.k2, c, w, x)
    if type(kernel) is kernels.Product:
        first = _slope(kernel.k1, c, w * kernel.k2(x, c), x)
        return first + _slope(kernel.k2, c, w * kernel.k1(x, c), x)
    if type(kernel) not in (kernels.RBF, kernels.Matern):  # constant, or noise of each sample
        return np.zeros(x.shape)
    scale, nu = kernel.length_scale, getattr(kernel, "nu", np.inf)
    squares = cdist(x / scale, c / scale, metric="sqeuclidean")
    # The derivative of the kernel by r^2 = |(x - c) / l|^2.
    if nu == np.inf:
        by_square = -0.5 * np.exp(-0.5 * squares)
    else:
        r = np.sqrt(2.0 * nu * squares)
        by_square = -np.exp(-r) * (1.5 if nu == 1.5 else 5.0 / 6.0 * (1.0 + r))
    pulls = w * by_square
    difference = pulls @ c - x * pulls.sum(axis=1, keepdims=True)
    return np.asarray(-2.0 * difference / np.square(scale))
