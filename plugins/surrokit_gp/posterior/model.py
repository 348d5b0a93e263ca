"""The models of a full process and of FITC, where they differ."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray, IntArray
from surrokit_gp.data.observations import Observations
from surrokit_gp.data.training_rows import TrainingRows
from surrokit_gp.kernel.hyperparameters import Hyperparameters
from surrokit_gp.posterior.exact import ExactPosterior, exact_likelihood
from surrokit_gp.posterior.inducing import Inducing, inducing_points
from surrokit_gp.posterior.likelihood import Likelihood
from surrokit_gp.posterior.sparse import SparsePosterior, sparse_likelihood

Gradients: TypeAlias = Literal["auto", True, False]
"""Whether gradients are learnt from: where that is cheap, always, never."""

AMPLE_EQUATIONS = 3000
"""Most equations that ``gradients="auto"`` makes, at dim + 1 for a point with its gradient."""

MOST_EQUATIONS = 10_000
"""Most equations that ``gradients=True`` makes: the kernel matrix then takes 800 megabytes."""

_FEWEST_GRADIENTS = 0.05
"""Part of the gradients below which ``gradients="auto"`` uses none."""


@attrs.frozen(kw_only=True)
class ExactModel:
    """A full process, as :class:`~surrokit_gp.fit.training.Training` asks for it.

    Parameters
    ----------
    gradients
        Whether gradients are learnt from.
    """

    gradients: Gradients

    @property
    def moves(self) -> bool:
        """False: it has no inducing points."""
        return False

    def slope_rows(self, rows: TrainingRows, rng: np.random.Generator) -> IntArray:
        """Return the rows whose gradients are used, shape (k,).

        Raises
        ------
        SurrogateFitError
            If all were asked for and there are none, or too many.
        """
        known = np.flatnonzero(rows.with_gradient)
        if self.gradients is False:
            return known[:0]
        if self.gradients is True:
            _demand_gradients(rows, len(known))
            return known
        room = (AMPLE_EQUATIONS - len(rows)) // rows.dim
        if len(known) <= room:
            return known
        if room < _FEWEST_GRADIENTS * len(known):
            return known[:0]
        return rows.draw(room, rng, known)

    def inducing(self, positions: FloatArray, rng: np.random.Generator) -> None:
        """Return None."""
        del positions, rng

    def likelihood(
        self,
        observations: Observations,
        hyperparameters: Hyperparameters,
        inducing: FloatArray | None,
    ) -> Likelihood:
        """Return the log marginal likelihood with its derivatives."""
        del inducing
        return exact_likelihood(observations, hyperparameters)

    def posterior(
        self,
        observations: Observations,
        hyperparameters: Hyperparameters,
        inducing: FloatArray | None,
    ) -> ExactPosterior:
        """Return the process given observations."""
        del inducing
        return ExactPosterior.of(observations, hyperparameters)


def _demand_gradients(rows: TrainingRows, n_known: int) -> None:
    n_equations = len(rows) + n_known * rows.dim
    if n_equations > MOST_EQUATIONS:
        raise SurrogateFitError(
            f"gradients=True makes {n_equations} equations of {len(rows)} points in {rows.dim} "
            f"dimensions, and more than {MOST_EQUATIONS} are too many; use gradients='auto', which "
            "uses those of some points, or explore for fewer"
        )
    if len(rows) and not n_known:
        raise SurrogateFitError(
            f"gradients=True needs gradients, but none of {len(rows)} points has one; use "
            "gradients='auto', or give evaluations with gradients as warm_start"
        )


@attrs.frozen(kw_only=True)
class SparseModel:
    """FITC, as :class:`~surrokit_gp.fit.training.Training` asks for it.

    Parameters
    ----------
    n_inducing : int or None
        M; None to choose it from the number of points.
    kind
        How inducing points are found.
    """

    n_inducing: int | None
    kind: Inducing

    @property
    def moves(self) -> bool:
        """Whether inducing positions are optimised."""
        return self.kind == "optimised"

    def slope_rows(self, rows: TrainingRows, rng: np.random.Generator) -> IntArray:
        """Return no row: it learns from values only."""
        del rows, rng
        return np.empty(0, dtype=np.int64)

    def inducing(self, positions: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return inducing points, shape (M, dim).

        Raises
        ------
        SurrogateFitError
            If there are fewer positions.
        """
        return inducing_points(self.kind, positions, self.n_inducing, rng)

    def likelihood(
        self,
        observations: Observations,
        hyperparameters: Hyperparameters,
        inducing: FloatArray | None,
    ) -> Likelihood:
        """Return the log marginal likelihood with its derivatives."""
        assert inducing is not None
        return sparse_likelihood(observations, hyperparameters, inducing)

    def posterior(
        self,
        observations: Observations,
        hyperparameters: Hyperparameters,
        inducing: FloatArray | None,
    ) -> SparsePosterior:
        """Return the process given observations."""
        assert inducing is not None
        return SparsePosterior.of(observations, hyperparameters, inducing)


Model: TypeAlias = ExactModel | SparseModel
"""A process, as :class:`~surrokit_gp.fit.training.Training` asks for it."""
