"""The radial random network as a surrogate."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.records import LearningProblem
from surrokit.settings import optional_positive_integer, positive
from surrokit.types import FloatArray
from surrokit_networks.choices import one_of
from surrokit_networks.learner import NetworkLearner
from surrokit_networks.rbf_nodes import RbfNodes
from surrokit_networks.regression import Level, Regression
from surrokit_networks.size import default_size
from surrokit_networks.training_rows import Tail

Widths: TypeAlias = Literal["dimension", "chi-square"]
"""How widths are chosen: from the dimension, or drawn with heavy tails as in the authors' code."""


@attrs.frozen(kw_only=True)
class Rbf:
    """A network of random radial nodes exp(-|z - c|^2 / (2 l^2)), trained on values.

    The defaults are meant to make a good surrogate of few evaluations: z is the whitened
    position, centres are spread like the training points, widths grow with the root of the
    dimension as distances do. Away from the training points the network falls back to its level.
    :meth:`paper` returns the settings of the authors' code instead.

    Parameters
    ----------
    n_nodes : int, optional
        s; None to choose from the dimension and the number of points.
    whiten
        Whether z is the whitened position, or the position itself.
    centre_scale
        Centres are c ~ N(0, centre_scale^2 I).
    widths
        ``"dimension"``: l^2 = width_scale * dim for every node; ``"chi-square"``: l^2 =
        width_scale / chi2(1), drawn for each node.
    width_scale
        See ``widths``.
    level
        ``"trained"``, or ``"minimum"`` for the least training value.
    ridge : float, optional
        lambda in lambda |v|^2 on the sum of squared errors; None for generalised
        cross-validation, 0 for the Moore-Penrose inverse of Algorithm 2.
    tail
        ``"down-weighted"``: rows far above the least U count less; ``"full"``: as any other.

    Raises
    ------
    ConfigurationError
        If a setting makes no sense.
    """

    n_nodes: int | None = attrs.field(default=None, validator=optional_positive_integer)
    whiten: bool = True
    centre_scale: float = attrs.field(default=1.0, validator=positive)
    widths: Widths = attrs.field(default="dimension", validator=one_of("dimension", "chi-square"))
    width_scale: float = attrs.field(default=4.0, validator=positive)
    level: Level = attrs.field(default="trained")
    ridge: float | None = attrs.field(default=None)
    tail: Tail = attrs.field(default="down-weighted", validator=one_of("down-weighted", "full"))

    def __attrs_post_init__(self) -> None:
        Regression(level=self.level, ridge=self.ridge)  # refuses what makes no sense

    @classmethod
    def paper(cls, n_nodes: int = 1000, ridge: float = 1e-6, width_scale: float = 1.0) -> Rbf:
        """Return the scheme of the authors' code.

        Raw coordinates, centres ~ N(0, I), l^2 = width_scale / chi2(1), level by the least U, a
        fixed ridge, every row counted in full.

        Parameters
        ----------
        n_nodes
            1000 for the 32-dimensional Gaussian, 5 for the one-dimensional figure.
        ridge
            1e-6 throughout.
        width_scale
            1 for the 32-dimensional Gaussian.
        """
        return cls(
            n_nodes=n_nodes,
            whiten=False,
            widths="chi-square",
            width_scale=width_scale,
            level="minimum",
            ridge=ridge,
            tail="full",
        )

    def learner(self, problem: LearningProblem, rng: np.random.Generator) -> NetworkLearner:
        """Return a learner for a problem; the seed of its nodes is drawn here."""
        return NetworkLearner.of(self, problem.dim, rng)

    def draw(self, dim: int, n_points: int, rng: np.random.Generator) -> RbfNodes:
        """Return nodes for a dimension and a number of points."""
        size = self.n_nodes or default_size(dim, n_points)
        # Row by row, so that a larger network has the nodes of a smaller one, and more.
        normal = rng.standard_normal((size, dim + 1))
        return RbfNodes(
            centres=normal[:, :dim] * self.centre_scale,
            square_widths=self._square_widths(normal[:, dim], dim),
        )

    def _square_widths(self, normal: FloatArray, dim: int) -> FloatArray:
        if self.widths == "dimension":
            return np.full(len(normal), self.width_scale * dim)
        return np.asarray(self.width_scale / np.square(normal))
