"""The additive random network as a surrogate."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.records import LearningProblem
from surrokit.settings import optional_positive_integer, positive
from surrokit_networks.activations import SOFTPLUS, Activation, named
from surrokit_networks.additive_nodes import AdditiveNodes
from surrokit_networks.choices import one_of
from surrokit_networks.learner import NetworkLearner
from surrokit_networks.regression import Level, Regression
from surrokit_networks.size import default_size
from surrokit_networks.training_rows import Tail


@attrs.frozen(kw_only=True)
class Additive:
    """A network of random additive nodes a(w . z + b), trained on values (section 3.1).

    The defaults are meant to make a good surrogate of few evaluations: z is the whitened
    position, directions are short, the level is trained and the ridge comes from the data.
    :meth:`paper` returns the settings of the authors' code instead.

    Parameters
    ----------
    n_nodes : int, optional
        s; None to choose from the dimension and the number of points.
    activation
        ``"softplus"``, ``"tanh"``, ``"cosine"`` or an
        :class:`~surrokit_networks.activations.Activation`.
    whiten
        Whether z is the whitened position, or the position itself.
    weight_scale
        Directions are w ~ N(0, weight_scale^2 I / dim).
    bias_scale
        Biases are b ~ N(0, bias_scale^2).
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
    activation: Activation = attrs.field(default=SOFTPLUS, converter=named)
    whiten: bool = True
    weight_scale: float = attrs.field(default=0.3, validator=positive)
    bias_scale: float = attrs.field(default=1.0, validator=positive)
    level: Level = attrs.field(default="trained")
    ridge: float | None = attrs.field(default=None)
    tail: Tail = attrs.field(default="down-weighted", validator=one_of("down-weighted", "full"))

    def __attrs_post_init__(self) -> None:
        Regression(level=self.level, ridge=self.ridge)  # refuses what makes no sense

    @classmethod
    def paper(cls, n_nodes: int = 1000, ridge: float = 1e-6) -> Additive:
        """Return the scheme of the paper's experiments.

        Raw coordinates, w ~ N(0, I / dim), b ~ N(0, 1), softplus, level by the least U, a fixed
        ridge, every row counted in full.

        Parameters
        ----------
        n_nodes
            2000 for the simulated logistic regression, 2500 for a9a, 1000 for bank marketing and
            the elliptic PDE, 40 for the banana.
        ridge
            1e-6 for the simulated data and the banana, 1e-9 for a9a, 1e-7 for bank marketing and
            the elliptic PDE.
        """
        return cls(
            n_nodes=n_nodes,
            whiten=False,
            weight_scale=1.0,
            level="minimum",
            ridge=ridge,
            tail="full",
        )

    def learner(self, problem: LearningProblem, rng: np.random.Generator) -> NetworkLearner:
        """Return a learner for a problem; the seed of its nodes is drawn here."""
        return NetworkLearner.of(self, problem.dim, rng)

    def draw(self, dim: int, n_points: int, rng: np.random.Generator) -> AdditiveNodes:
        """Return nodes for a dimension and a number of points.

        The same generator gives a larger network the nodes of a smaller one, and more.
        """
        size = self.n_nodes or default_size(dim, n_points)
        # Row by row, so that a larger network has the nodes of a smaller one, and more.
        normal = rng.standard_normal((size, dim + 1))
        return AdditiveNodes(
            directions=normal[:, :dim] * (self.weight_scale / np.sqrt(dim)),
            biases=normal[:, dim] * self.bias_scale,
            activation=self.activation,
        )
