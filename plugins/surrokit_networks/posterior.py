"""The posterior of a network's linear layer, given its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_networks.equations import Equations, write_out
from surrokit_networks.least_squares import triangle_of
from surrokit_networks.regression import Frame


@attrs.frozen(kw_only=True, eq=False)
class LinearPosterior:
    """How unsure the weights of a network are, once its nodes are drawn.

    With normal errors of variance s^2 / w of an equation of weight w, and weights of nodes
    v ~ N(0, s^2 / lambda), the coefficients of level, trend and nodes have the covariance
    s^2 (H^T W H + lambda I_v)^-1 about the ridge solution; level and trend have flat priors. s^2 is
    the sum of squared residuals over the weight of all equations less the effective number of
    parameters.

    Parameters
    ----------
    frame
        Coordinates and columns.
    root : ndarray of shape (k, k)
        R, with R^T R = H^T W H + lambda I_v.
    leads
        Whether the level is the first coefficient.
    noise
        s^2.
    """

    frame: Frame
    root: FloatArray
    leads: bool
    noise: float

    @classmethod
    def of(cls, frame: Frame, equations: Equations, degrees: float) -> Self:
        """Return the posterior after the equations that a network was fitted to.

        Parameters
        ----------
        frame
            Of the fit.
        equations
            Less the frame's origin.
        degrees
            Effective number of parameters of the fit.
        """
        left, basis, ridge = frame.less(equations), frame.basis, frame.ridge
        lead = int(left.trains_level)
        n_free, k = lead + basis.n_trend, lead + len(basis)

        def rows() -> Iterator[FloatArray]:
            bottom = np.zeros((basis.n_nodes, k + 1))
            bottom[:, n_free:k] = np.sqrt(ridge) * np.eye(basis.n_nodes)
            yield bottom
            yield np.zeros((k + 1, k + 1))  # never fewer rows than columns
            yield from write_out(basis, left)

        triangle = triangle_of(rows())
        root = triangle[:k, :k]
        solution = np.linalg.lstsq(root, triangle[:k, k], rcond=None)[0]
        squares = float(
            np.square(triangle[k:, k]).sum() - ridge * np.square(solution[n_free:]).sum()
        )
        spare = max(left.total_weight - degrees, 1.0)
        return cls(frame=frame, root=root, leads=bool(lead), noise=max(squares, 0.0) / spare)

    def variance(self, positions: FloatArray) -> FloatArray:
        """Return the variance of the network's value, shape (n,), at ``positions (n, dim)``."""
        features = self.frame.basis.features(self.frame.whitening.apply(positions))
        if self.leads:
            features = np.column_stack([np.ones(len(features)), features])
        # a root may be singular where the ridge is zero: then least squares takes its range
        turned = np.linalg.lstsq(self.root.T, features.T, rcond=None)[0]
        return np.asarray(self.noise * np.square(turned).sum(axis=0))
