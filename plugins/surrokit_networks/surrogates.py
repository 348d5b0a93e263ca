"""The random networks, and the trend alone, as surrogates."""

from __future__ import annotations

from functools import partial
from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import (
    one_of,
    optional_positive,
    optional_positive_integer,
    spread,
)
from surrokit.errors import ConfigurationError
from surrokit.interfaces import LearningProblem
from surrokit.types import Capabilities
from surrokit_networks.learner import Draw, NetworkLearner, OnlineLearner
from surrokit_networks.nodes import Nodes
from surrokit_networks.potentials import FIRST_ORDER
from surrokit_networks.training import Training, Updates

Widths: TypeAlias = Literal["dimension", "chi-square"]
"""How widths are chosen: from the dimension, or drawn with heavy tails as in the authors' code."""


@attrs.frozen(kw_only=True)
class Additive:
    """A network of random additive nodes softplus(w . z + b) (section 3.1) on a trend.

    By default z is the whitened position, directions are short, gradients are trained on where
    there are any, and the ridge comes from the data.

    Parameters
    ----------
    n_nodes : int, optional
        s; None to choose from the dimension and the number of equations.
    weight_scale : float, optional
        Directions are w ~ N(0, weight_scale^2 I / dim), or have that spread; None to choose 0.3,
        1 or 2: smooth potentials want the least, sharp ones the others.
    training
        Trend, ridge and all else that both kinds of network share.
    """

    n_nodes: int | None = attrs.field(default=None, validator=optional_positive_integer)
    weight_scale: float | None = attrs.field(default=None, validator=optional_positive)
    training: Training = attrs.field(
        factory=Training, metadata=spread(without=("least_curvature",))
    )

    @classmethod
    def paper(cls, n_nodes: int = 1000, ridge: float = 1e-6, updates: Updates = "auto") -> Additive:
        """Return the scheme of the paper's experiments (:meth:`Training.paper`).

        w ~ N(0, I / dim), b ~ N(0, 1), softplus.

        Parameters
        ----------
        n_nodes
            At least 1: 2000 for the simulated logistic regression, 2500 for a9a, 1000 for bank
            marketing and the elliptic PDE, 40 for the banana.
        ridge
            Positive: 1e-6 for the simulated data and the banana, 1e-9 for a9a, 1e-7 for bank
            marketing and the elliptic PDE.
        updates
            How what comes after the first fit is taken in.
        """
        training = Training.paper(ridge, updates)
        return cls(n_nodes=n_nodes, weight_scale=1.0, training=training)

    def learner(
        self, problem: LearningProblem, rng: np.random.Generator
    ) -> NetworkLearner | OnlineLearner:
        """Return a learner for a problem; the seed of its nodes is drawn here."""
        scales = (0.3, 1.0, 2.0) if self.weight_scale is None else (self.weight_scale,)
        draws: list[Draw] = [partial(self.draw, weight_scale=scale) for scale in scales]
        return _learner_of(problem, rng, self, draws)

    def draw(self, dim: int, size: int, rng: np.random.Generator, *, weight_scale: float) -> Nodes:
        """Return so many nodes, a smaller network's first."""
        # From generators of their own, so that neither depends on the size.
        directions, biases = rng.spawn(2)
        return Nodes.additive(
            directions=directions.standard_normal((size, dim)) * (weight_scale / np.sqrt(dim)),
            biases=biases.standard_normal(size),
            activation="softplus",
        )


@attrs.frozen(kw_only=True)
class Rbf:
    """A network of random radial nodes exp(-|z - c|^2 / (2 l^2)), on a trend.

    By default z is the whitened position, centres are spread like the training points, and widths
    grow with the root of the dimension as distances do. Away from the training points only the
    trend is left. It has gradients and no Hessians.

    Parameters
    ----------
    n_nodes : int, optional
        s; None to choose from the dimension and the number of points.
    widths
        ``"dimension"``: l^2 = width_scale * dim for every node; ``"chi-square"``: l^2 =
        width_scale / chi2(1), drawn for each node.
    width_scale : float, optional
        See ``widths``; None to choose 1, 4 or 16, or for ``"chi-square"`` 1.
    training
        Trend, ridge and all else that both kinds of network share.
    """

    n_nodes: int | None = attrs.field(default=None, validator=optional_positive_integer)
    widths: Widths = attrs.field(default="dimension", validator=one_of("dimension", "chi-square"))
    width_scale: float | None = attrs.field(default=None, validator=optional_positive)
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
        """Return the scheme of the authors' code (:meth:`Training.paper`).

        Centres ~ N(0, I), l^2 = width_scale / chi2(1).

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
        training = Training.paper(ridge, updates)
        return cls(n_nodes=n_nodes, widths="chi-square", width_scale=width_scale, training=training)

    def learner(
        self, problem: LearningProblem, rng: np.random.Generator
    ) -> NetworkLearner | OnlineLearner:
        """Return a learner for a problem; the seed of its nodes is drawn here."""
        scales = (1.0, 4.0, 16.0) if self.widths == "dimension" else (1.0,)
        scales = scales if self.width_scale is None else (self.width_scale,)
        draws: list[Draw] = [partial(self.draw, width_scale=scale) for scale in scales]
        return _learner_of(problem, rng, self, draws, most=FIRST_ORDER)

    def draw(self, dim: int, size: int, rng: np.random.Generator, *, width_scale: float) -> Nodes:
        """Return so many nodes, a smaller network's first."""
        # From generators of their own, so that neither depends on the size.
        of_centres, widths = rng.spawn(2)
        if self.widths == "dimension":
            square_widths = np.full(size, width_scale * dim)
        else:
            square_widths = width_scale / np.square(widths.standard_normal(size))
        return Nodes.radial(of_centres.standard_normal((size, dim)), square_widths)


@attrs.frozen(kw_only=True)
class Quadratic:
    """A positive definite quadratic: the normal density that fits the evaluations best.

    Parameters
    ----------
    training
        All that a network's training has, too; no node is trained. With trend ``"quadratic"``
        the fitted potential is known to be ``convex`` and ``gaussian``.
    """

    training: Training = attrs.field(
        factory=lambda: Training(trend="quadratic", updates="refit"),
        metadata=spread("trend", "train_on", "whiten", "tail", "hold_out", "learns"),
    )

    def learner(self, problem: LearningProblem, rng: np.random.Generator) -> NetworkLearner:
        """Return a learner for a problem."""
        return NetworkLearner.of(problem, rng, training=self.training)


def _learner_of(
    problem: LearningProblem,
    rng: np.random.Generator,
    settings: Additive | Rbf,
    draws: list[Draw],
    most: Capabilities | None = None,
) -> NetworkLearner | OnlineLearner:
    """Return a learner; one of a forward map, or of a schedule that deploys once, refits."""
    training = settings.training
    learner = NetworkLearner.of(
        problem, rng, training=training, n_nodes=settings.n_nodes, draws=tuple(draws), most=most
    )
    if learner.energy is not None and training.updates == "greville":
        raise ConfigurationError(
            "updates='greville' is for networks that learn the potential, but this one learns "
            "the outputs of a forward map; use learns='potential', or updates='refit'"
        )
    once = learner.energy is not None or problem.deployment_rate == 0.0
    if training.updates == "refit" or (training.updates == "auto" and once):
        return learner
    return OnlineLearner(refits=learner, updates=training.updates)
