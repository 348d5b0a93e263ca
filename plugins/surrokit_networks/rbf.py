"""The radial random network as a surrogate."""

from __future__ import annotations

from functools import partial
from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import (
    one_of,
    optional_positive,
    optional_positive_integer,
    positive,
    spread,
)
from surrokit.interfaces import LearningProblem
from surrokit.surrogate.shown import ShownSurrogate
from surrokit.types import FloatArray
from surrokit_networks.draws import Draws, data_rows, normal_rows
from surrokit_networks.learner import NetworkLearner
from surrokit_networks.nodes import Nodes
from surrokit_networks.online import OnlineLearner, learner_of
from surrokit_networks.training import Training, Updates

Centres: TypeAlias = Draws | Literal["data"]
"""How centres are drawn."""

Widths: TypeAlias = Literal["dimension", "chi-square"]
"""How widths are chosen: from the dimension, or drawn with heavy tails as in the authors' code."""

WIDTH_SCALES: dict[Widths, tuple[float, ...]] = {
    "dimension": (1.0, 4.0, 16.0),
    "chi-square": (1.0,),
}
"""Scales of squared widths to choose from."""


@attrs.frozen(kw_only=True)
class Rbf(ShownSurrogate):
    """A network of random radial nodes exp(-|z - c|^2 / (2 l^2)), on a trend.

    The defaults are meant to make a good surrogate of few evaluations: z is the whitened
    position, centres are spread like the training points, widths grow with the root of the
    dimension as distances do. Away from the training points only the trend is left.
    :meth:`paper` returns the settings of the authors' code instead.

    Parameters
    ----------
    n_nodes : int, optional
        s; None to choose from the dimension and the number of points.
    centre_scale
        Centres are c ~ N(0, centre_scale^2 I).
    widths
        ``"dimension"``: l^2 = width_scale * dim for every node; ``"chi-square"``: l^2 =
        width_scale / chi2(1), drawn for each node.
    width_scale : float, optional
        See ``widths``; None to choose one of :data:`WIDTH_SCALES`, which for ``"chi-square"`` is 1.
    draws
        How centres are drawn; ``"data"`` takes training points.
    training
        Trend, ridge and all else that both kinds of network share.

    Raises
    ------
    ConfigurationError
        If a setting makes no sense.
    """

    n_nodes: int | None = attrs.field(default=None, validator=optional_positive_integer)
    centre_scale: float = attrs.field(default=1.0, validator=positive)
    widths: Widths = attrs.field(default="dimension", validator=one_of("dimension", "chi-square"))
    width_scale: float | None = attrs.field(default=None, validator=optional_positive)
    draws: Centres = attrs.field(
        default="gaussian", validator=one_of("gaussian", "orthogonal", "quasi-random", "data")
    )
    training: Training = attrs.field(
        factory=Training, metadata=spread(without=("least_curvature",))
    )

    @classmethod
    def paper(
        cls,
        n_nodes: int = 1000,
        ridge: float = 1e-6,
        width_scale: float = 1.0,
        updates: Updates = "auto",
    ) -> Rbf:
        """Return the scheme of the authors' code.

        Raw coordinates, centres ~ N(0, I), l^2 = width_scale / chi2(1), level by the least U, a
        fixed ridge, every row counted in full.

        Parameters
        ----------
        n_nodes
            At least 1: 1000 for the 32-dimensional Gaussian, 5 for the one-dimensional figure.
        ridge
            Positive: 1e-6 throughout.
        width_scale
            Positive: 1 for the 32-dimensional Gaussian.
        updates
            How what comes after the first fit is taken in.
        """
        return cls(
            n_nodes=n_nodes,
            widths="chi-square",
            width_scale=width_scale,
            training=Training.paper(ridge, updates),
        )

    def learner(
        self, problem: LearningProblem, rng: np.random.Generator
    ) -> NetworkLearner | OnlineLearner:
        """Return a learner for a problem; the seed of its nodes is drawn here."""
        scales = WIDTH_SCALES[self.widths]
        if self.width_scale is not None:
            scales = (self.width_scale,)
        return learner_of(
            problem,
            rng,
            n_nodes=self.n_nodes,
            draws=tuple(partial(self.draw, width_scale=scale) for scale in scales),
            training=self.training,
        )

    def draw(
        self, whitened: FloatArray, size: int, rng: np.random.Generator, *, width_scale: float
    ) -> Nodes:
        """Return nodes for whitened training positions (n, dim).

        The same generator gives a larger network the nodes of a smaller one, and more.
        """
        # From generators of their own, so that neither depends on the size.
        centres, widths = rng.spawn(2)
        if self.widths == "dimension":
            square_widths = np.full(size, width_scale * whitened.shape[1])
        else:
            square_widths = width_scale / np.square(widths.standard_normal(size))
        return Nodes.radial(self._centres(whitened, size, centres), square_widths)

    def _centres(self, whitened: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
        if self.draws == "data":
            return data_rows(whitened, size, rng)
        return normal_rows(self.draws, size, whitened.shape[1], rng) * self.centre_scale
