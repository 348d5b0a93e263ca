"""The networks of random nodes as scikit-learn regressors."""

from __future__ import annotations

from typing import Any, Literal

import attrs
import numpy as np

from surrokit.contracts.learner import Evaluations
from surrokit_sklearn.regressors.regressor import DeviatingRegressor, Variance


@attrs.define(slots=False, eq=False, repr=False, kw_only=True)
class NetworkRegressor(DeviatingRegressor):
    """What both kinds of network have; see :class:`AdditiveNetworkRegressor` for the parameters.

    Standard deviations are those of the posterior of the weights, given the nodes. The first time
    they are asked for after a fit they take another one.
    """

    n_nodes: int | None = None
    trend: Literal["auto", "constant", "linear", "quadratic", "laplace"] = "constant"
    train_on: Literal["auto", "values", "gradients", "values-and-gradients"] = "auto"
    gradient_weight: float = 1.0
    whiten: bool = True
    level: Literal["trained", "minimum"] = "trained"
    ridge: float | None = None
    choose_ridge: Literal["gcv", "held-out"] = "gcv"
    tail: Literal["down-weighted", "full"] = "full"
    hold_out: float = 0.1
    learns: Literal["auto", "potential", "outputs"] = "auto"
    laplace: Any = None
    updates: Literal["auto", "refit", "greville"] = "auto"
    random_state: int | np.random.RandomState | None = None

    def _variances(self) -> list[Variance]:
        if self._goes_on is not None:
            raise ValueError(
                f"return_std needs the rows of the fit, which updates={self.updates!r} does not "
                "keep; use updates='refit'"
            )
        if self._unsure is None:
            self._unsure = [self._posterior(rows) for rows in self._rows]
        return self._unsure

    def _posterior(self, rows: Evaluations) -> Variance:
        learner: Any = self._learner(self._seed)
        learner.observe(rows)
        variance: Variance = learner.posterior().variance
        return variance


@attrs.define(slots=False, eq=False, repr=False, kw_only=True)
class AdditiveNetworkRegressor(NetworkRegressor):
    """A network of random additive nodes a(w . z + b): the surrogate ``additive``.

    Zhang, Shahbaba and Zhao (2017), section 3.1. The weights of the nodes are the solution of a
    ridge regression, so a fit needs no iterations.

    Parameters
    ----------
    n_nodes : int, optional
        How many nodes; None to choose from the dimension and the number of equations.
    activation
        ``"softplus"``, ``"tanh"``, ``"cosine"`` or an
        :class:`surrokit_networks.activations.Activation`.
    weight_scale : float, optional
        Directions are w ~ N(0, weight_scale^2 I / dim); None to choose from a few.
    bias_scale
        Biases are b ~ N(0, bias_scale^2).
    draws
        How directions are drawn: ``"gaussian"``, ``"orthogonal"`` or ``"quasi-random"``.
    trend
        The polynomial under the network: ``"constant"``, ``"linear"``, ``"quadratic"`` or
        ``"auto"``. A quadratic is kept convex, as suits a potential.
    train_on
        ``"values"``, ``"gradients"``, ``"values-and-gradients"``, or ``"auto"`` for what there is.
    gradient_weight
        What the squared error of a gradient counts.
    whiten
        Whether z is the whitened input, or the input itself.
    level
        ``"trained"``, or ``"minimum"`` for the least training target.
    ridge : float, optional
        The ridge; None to choose it from the data.
    choose_ridge
        How: ``"gcv"`` for generalised cross-validation, or ``"held-out"``.
    tail
        ``"full"``, or ``"down-weighted"`` for less weight where the target is far above its least.
    hold_out
        Part of the points at which a second fit is judged, for ``surrogate_.quality``.
    learns
        What is learnt of a forward potential; of no effect here.
    laplace : Laplace, optional
        Mode and Hessian of the target, where they are known.
    updates
        How ``partial_fit`` takes in rows. ``"refit"``: all rows are kept and fitted afresh;
        ``"greville"``: the first fit fixes coordinates and nodes, and later rows go into
        recursive least squares and are not kept.
        ``"auto"`` is ``"refit"`` here.
    random_state : int, RandomState or None
        From which the nodes are drawn.
    """

    _surrogate = "additive"

    activation: Any = "softplus"
    weight_scale: float | None = None
    bias_scale: float = 1.0
    draws: Literal["gaussian", "orthogonal", "quasi-random"] = "orthogonal"


@attrs.define(slots=False, eq=False, repr=False, kw_only=True)
class RBFNetworkRegressor(NetworkRegressor):
    """A network of random radial nodes exp(-|z - c|^2 / (2 l^2)): the surrogate ``rbf``.

    Zhang, Shahbaba and Zhao (2017), section 3.1. The weights of the nodes are the solution of a
    ridge regression, so a fit needs no iterations. Far from the training inputs predictions fall
    back to the trend.

    Parameters
    ----------
    n_nodes : int, optional
        How many nodes; None to choose from the dimension and the number of equations.
    centre_scale
        Centres are c ~ N(0, centre_scale^2 I).
    widths
        ``"dimension"`` for l^2 = width_scale * dim, or ``"chi-square"`` for widths that are drawn.
    width_scale : float, optional
        See ``widths``; None to choose from a few.
    draws
        How centres are drawn: ``"gaussian"``, ``"orthogonal"``, ``"quasi-random"``, or ``"data"``
        for training inputs.
    trend, train_on, gradient_weight, whiten, level, ridge, choose_ridge, tail, hold_out, learns
        See :class:`AdditiveNetworkRegressor`.
    laplace, updates, random_state
        See :class:`AdditiveNetworkRegressor`.
    """

    _surrogate = "rbf"

    centre_scale: float = 1.0
    widths: Literal["dimension", "chi-square"] = "dimension"
    width_scale: float | None = None
    draws: Literal["gaussian", "orthogonal", "quasi-random", "data"] = "gaussian"
