"""Exact evaluations that a user has already paid for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surrokit.arguments import numbers
from surrokit.bounds import transform_of
from surrokit.errors import ShapeError
from surrokit.protocols import Potential
from surrokit.records import Evaluations
from surrokit.types import FloatArray


def paid_evaluations(
    evaluations: Evaluations | tuple[npt.ArrayLike, ...], exact: Potential
) -> Evaluations:
    """Return evaluations in the sampling coordinates of a target.

    Parameters
    ----------
    evaluations
        In the user's coordinates, U without any Jacobian; or a tuple of positions, potentials and
        perhaps gradients. Rows on or outside the bounds are left out.
    exact
        The target.

    Raises
    ------
    ShapeError
        If the arrays do not fit each other, or the target.
    """
    if not isinstance(evaluations, Evaluations):
        if not isinstance(evaluations, tuple | list) or not 2 <= len(evaluations) <= 3:
            raise ShapeError(
                "evaluations must be (positions, values) or (positions, values, gradients), got "
                f"{_described(evaluations)}"
            )
        names = ("positions", "values", "gradients")
        arrays = {
            name: numbers(f"{name} of evaluations", array)
            for name, array in zip(names, evaluations, strict=False)
            if array is not None
        }
        evaluations = Evaluations(**arrays)
    if evaluations.positions.shape[1] != exact.dim:
        raise ShapeError(
            f"evaluations have positions of {evaluations.positions.shape[1]} numbers, but the "
            f"target has dim {exact.dim}"
        )
    return _in_sampling_coordinates(evaluations, exact)


def _described(evaluations: object) -> str:
    if isinstance(evaluations, tuple | list):
        return f"{len(evaluations)} items"
    return f"a {type(evaluations).__name__}"


def _in_sampling_coordinates(evaluations: Evaluations, exact: Potential) -> Evaluations:
    transform = transform_of(exact)
    z = transform.to_unbounded(evaluations.positions)
    inside = np.asarray(np.isfinite(z).all(axis=1))
    kept = evaluations.take(inside)
    z = z[inside]
    d = transform.derivatives(z)

    def pulled(array: FloatArray | None, by: FloatArray, plus: FloatArray | float):  # type: ignore[no-untyped-def]
        return None if array is None else array * by - plus

    return Evaluations(
        positions=z,
        values=kept.values - transform.log_jacobian(z),
        gradients=pulled(kept.gradients, d.first, d.log_first),
        outputs=kept.outputs,
        jacobians=pulled(kept.jacobians, d.first[:, None, :], 0.0),
    )
