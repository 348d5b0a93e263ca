"""Settings of training that every network has, and a mode and Hessian that are known beforehand."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import one_of, spread, up_to_half
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.surrogate.training import Tail
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, FloatArray
from surrokit_networks.regression import Regression
from surrokit_networks.training_rows import TrainingRows
from surrokit_networks.trend import Trend, tells_more

Learns: TypeAlias = Literal["auto", "potential", "outputs"]
"""What is learnt of a forward potential: U itself, or the outputs of its map."""

Updates: TypeAlias = Literal["auto", "refit", "greville"]
"""``refit``: everything is kept and fitted anew; ``greville``: row by row (Proposition 1);
``auto``: the former as long as the schedule deploys once or points are few, then the latter."""

_LEAST_HELD, _MOST_HELD = 2, 200
"""Bounds of how many points are held out."""

_LEAST_FOR_HOLDING = 10
"""Points from which on some are held out."""


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


@attrs.frozen(kw_only=True)
class Training:
    """How a network is trained, whatever its nodes.

    Parameters
    ----------
    regression
        How trend and weights are found.
    whiten
        Whether nodes see whitened positions, or the positions themselves.
    hold_out
        Share of the points at which a twin of the fit is judged, 0 for none; the fit itself uses
        all.
    learns
        Of a forward potential: ``"outputs"`` or ``"potential"``; ``"auto"``: outputs where the
        target has a forward map, unless it has gradients of U and no Jacobian.
    laplace : Laplace, optional
        Mode and Hessian, where they are known: they whiten in place of the training points.
    updates
        How a learner takes in what comes after its first fit. ``"refit"``: all rows are kept, and
        every fit is one to all of them. ``"greville"``: the first fit fixes whitening, nodes, the
        trend's matrix and the origin, and its rows and all later ones go into Proposition 1's
        updates, at O(s^2) each, and are not kept (see
        :class:`~surrokit_networks.online.OnlineLearner`). ``"auto"``: refits as long as the
        schedule deploys once or points are few, then Proposition 1.

    Raises
    ------
    ConfigurationError
        If a setting makes no sense.
    """

    regression: Regression = attrs.field(
        factory=lambda: Regression(trend="auto"), metadata=spread()
    )
    whiten: bool = True
    tail: Tail = attrs.field(default="down-weighted", validator=one_of("down-weighted", "full"))
    hold_out: float = attrs.field(default=0.1, validator=up_to_half)
    learns: Learns = attrs.field(default="auto", validator=one_of("auto", "potential", "outputs"))
    laplace: Laplace | None = None
    updates: Updates = attrs.field(default="auto", validator=one_of("auto", "refit", "greville"))

    @classmethod
    def paper(cls, ridge: float, updates: Updates = "auto") -> Training:
        """Return the training of the paper's experiments, with this lambda and these updates.

        Raw coordinates, no trend, level by the least U, values alone, a fixed ridge, every row
        counted in full, nothing held out.
        """
        regression = Regression(level="minimum", trend="constant", train_on="values", ridge=ridge)
        return cls(
            regression=regression,
            whiten=False,
            tail="full",
            hold_out=0.0,
            learns="potential",
            updates=updates,
        )

    @property
    def trend(self) -> Trend:
        """The trend of the regression; where a mode and Hessian are known, theirs by default."""
        trend = self.regression.trend
        return "laplace" if trend == "auto" and self.laplace is not None else trend

    def whitening(self, rows: TrainingRows) -> Whitening:
        """Return the whitening of training rows: by gradients, if they are used and there.

        Raises
        ------
        SurrogateFitError
            If the rows cannot be whitened.
        """
        if self.laplace is not None:
            return self.laplace.whitening
        if not self.whiten:
            return Whitening.identity(rows.positions.shape[1])
        known = rows.with_gradient
        if self.regression.uses_gradients and tells_more(known, rows.positions.shape[1]):
            return Whitening.of_gradients(
                rows.positions[known], rows.gradients[known], rows.weights[known]
            )
        return Whitening.of(rows.positions, rows.weights, drops_noise=True)

    def choose_held_out(self, rows: TrainingRows, rng: np.random.Generator) -> BoolArray | None:
        """Return which rows are held out, shape (n,); None if none are.

        They are drawn among those that are not down-weighted: the sampler will be where they are.
        """
        n_held = round(self.hold_out * len(rows))
        eligible = np.flatnonzero(rows.trust == 1.0)
        n_held = min(max(n_held, _LEAST_HELD), _MOST_HELD)
        if not self.hold_out or len(rows) < _LEAST_FOR_HOLDING or len(eligible) < 2 * n_held:
            return None
        held = np.zeros(len(rows), dtype=bool)
        held[rng.permutation(eligible)[:n_held]] = True
        return held
