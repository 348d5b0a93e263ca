"""A mode and the Hessian there, where they are known beforehand."""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.errors import ConfigurationError, ShapeError
from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray


def _array(value: npt.ArrayLike) -> FloatArray:
    array = np.array(value, dtype=np.float64)
    array.setflags(write=False)
    return array


@attrs.frozen(kw_only=True, eq=False)
class Laplace:
    """The normal density with the mode and the curvature of a target, in sampling coordinates.

    Parameters
    ----------
    mode : array_like of shape (dim,)
        Where U is least.
    hessian : array_like of shape (dim, dim)
        Second derivatives of U there; positive definite.

    Raises
    ------
    ShapeError
        If the shapes do not go together.
    ConfigurationError
        If the Hessian is not positive definite.
    """

    mode: FloatArray = attrs.field(converter=_array)
    hessian: FloatArray = attrs.field(converter=_array)
    whitening: Whitening = attrs.field(init=False, repr=False)

    @whitening.default
    def _whitening_of_both(self) -> Whitening:
        dim = len(self.mode) if self.mode.ndim == 1 else -1
        if self.hessian.shape != (dim, dim):
            raise ShapeError(
                "mode and hessian must have shapes (dim,) and (dim, dim), got "
                f"{self.mode.shape} and {self.hessian.shape}"
            )
        try:
            turned = np.linalg.cholesky(self.hessian[::-1, ::-1])
        except np.linalg.LinAlgError as error:
            raise ConfigurationError(
                f"hessian must be positive definite, but has no Cholesky factor ({error}); give "
                "the Hessian at a mode"
            ) from error
        # H = U U^T with U upper triangular, the factor of H turned round; L = U^-T then is lower
        # triangular, and L L^T = H^-1.
        inverse = np.asarray(turned[::-1, ::-1].T, dtype=np.float64)
        factor = np.asarray(np.linalg.solve(inverse, np.eye(dim)), dtype=np.float64)
        return Whitening(mean=self.mode, factor=factor, inverse=inverse)
