"""Regressions with draws of their posteriors inside, as estimators of scikit-learn.

Rows become distinct ones with weights, features standardised columns, and the sum over rows that
:func:`surrokit.rows_potential` makes of a family is sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, Self, TypeAlias

import attrs
import numpy as np
from scipy.special import expit, log_expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from surrokit import rows_potential
from surrokit.arguments import is_number
from surrokit.compose import sample
from surrokit.errors import ConfigurationError
from surrokit.mode.search import find_mode
from surrokit.potentials import Potential
from surrokit.predictive.families import ResponseFamily, read_name, response_family, suggest
from surrokit.tables.priors import check_rank
from surrokit.targets.functions import NamedPotential
from surrokit.targets.gaussian import GaussianPrior, gaussian_prior
from surrokit.targets.scaling import scaled, scaling_of
from surrokit.types import FloatArray
from surrokit_sklearn.design import Columns, Rows
from surrokit_sklearn.laplace import MANY, ROUGH, Laplace, parts_near
from surrokit_sklearn.normal_errors import NormalErrors

_FAMILIES = (
    *("gaussian", "student", "poisson", "negative-binomial"),
    *("gamma", "exponential", "weibull"),
)

_PRECISIONS = [np.float64, np.float32]

Summary: TypeAlias = Callable[[FloatArray], FloatArray]


@attrs.define(slots=False, eq=False, repr=False, kw_only=True)
class PosteriorEstimator(BaseEstimator):  # type: ignore[misc]
    """A regression that keeps draws from the posterior of its coefficients.

    See :class:`BayesianLogisticRegression` for the parameters.
    """

    prior_scale: float | None = 2.5
    intercept_scale: float | None = 10.0
    fit_intercept: bool = True
    standardize: bool = True
    chains: int = 4
    target_ess: float = 1000.0
    sampling: Mapping[str, Any] | None = None
    random_state: int | np.random.RandomState | None = None

    def _columns(
        self, rows: Rows, n_predictors: int = 1, centre: float = 0.0, unit: float = 1.0
    ) -> tuple[Columns, GaussianPrior]:
        """Return columns, and the prior of all coefficients, intercepts first.

        Intercepts have priors about ``centre``; ``unit`` is that of all priors' scales.
        """
        columns = Columns.of(rows, intercept=self.fit_intercept, standardize=self.standardize)
        sd = np.full(columns.count, _positive("prior_scale", self.prior_scale) * unit)
        mean = np.zeros(columns.count)
        if columns.intercept:
            sd[0] = _positive("intercept_scale", self.intercept_scale) * unit
            mean[0] = centre
        if np.isinf(sd).any():
            names = ["the intercept"] * columns.intercept + self._feature_names
            check_rank(columns.design(rows.inputs), names, np.isinf(sd))
        prior = gaussian_prior(np.tile(mean, n_predictors), np.tile(sd, n_predictors))
        return columns, prior

    @property
    def _feature_names(self) -> list[str]:
        """Names of features; x0, x1, ... where they have none, as scikit-learn calls them."""
        unnamed = [f"x{k}" for k in range(self.n_features_in_)]
        return list(map(str, self.__dict__.get("feature_names_in_", unnamed)))

    def _sample(
        self,
        family: str,
        rows: Rows,
        settings: Mapping[str, Any] = MappingProxyType({}),
        *,
        n_predictors: int = 1,
        start: float = 0.0,
        **about: float,
    ) -> tuple[FloatArray, FloatArray]:
        """Return draws of intercepts (n_draws, n_predictors) and coefficients (..., n_features).

        Intercepts are searched for from ``start``.
        """
        columns, prior = self._columns(rows, n_predictors, **about)
        names = ["Intercept"] * self.fit_intercept + self._feature_names
        if n_predictors > 1:
            names = [f"{label}: {column}" for label in self.classes_[1:] for column in names]
        # of many rows no copy is made, unless digits would be lost without one
        copied = len(rows) < MANY or (np.abs(columns.centre) > 1e3 * columns.scale).any()
        known = {"prior": prior, "columns": None if copied else columns.of_features}

        def potential(some: Rows) -> Potential:
            data = columns.design(some.inputs) if copied else some.inputs
            weights = some.weights
            return rows_potential(family, data, some.response, weights=weights, **known, **settings)

        target: Potential = NamedPotential.of(potential(rows), unlike(names))
        position = np.zeros(columns.count * n_predictors)
        if self.fit_intercept:
            position[:: columns.count] = start
        rng, scaling, normal = _generator(self.random_state), scaling_of(target), None
        few = target
        if scaling is not None:
            few = target = scaled(target, scaling)
            position = scaling.to_unbounded(position[None])[0]
        elif len(rows) >= MANY and n_predictors == 1:
            some = rows.pick(max(10_000, 200 * len(position)), rng)
            few, fewer = potential(some), potential(some.pick(len(some) // 5, rng))
            near = find_mode(fewer, position, tolerance=ROUGH).position
            normal = Laplace.by_few(target, few, prior, near)
        normal = normal or Laplace.of(target, position)
        self._run(target, parts_near(normal, target, few, len(rows), self._n_chains, rng), rng)
        return columns.undo(self.run_.draws.reshape(-1, n_predictors, columns.count))

    def _run(self, target: Potential, parts: Mapping[str, Any], rng: np.random.Generator) -> None:
        """Sample by some parts; settings of the user take their place."""
        if not is_number(self.target_ess) or not 0.0 < self.target_ess < np.inf:
            raise ValueError(f"target_ess must be a positive number, got {self.target_ess!r}")
        shared: dict[str, Any] = {
            "chains": self._n_chains,
            "target_ess": float(self.target_ess),
            "warmup": 200,
            "draws": int(np.ceil(40 * self.target_ess / self._n_chains)),  # at most
            "seed": rng,
            "progress": False,
        }
        self.run_ = sample(target, **{**shared, **parts, **(self.sampling or {})})

    @property
    def _n_chains(self) -> int:
        if not isinstance(self.chains, int | np.integer) or self.chains < 1:
            raise ValueError(f"chains must be a whole number of at least 1, got {self.chains!r}")
        return int(self.chains)

    def _summarise(self, X: Any, by_draws: Summary, summary: Summary) -> FloatArray:
        """Return a summary over axis 1 of what ``by_draws`` makes of inputs, block by block."""
        check_is_fitted(self)
        inputs = validate_data(self, X, reset=False, dtype=np.float64)
        size = max(1, 4_000_000 // self.intercept_draws_.size)
        blocks = (inputs[first : first + size] for first in range(0, len(inputs), size))
        return np.concatenate([summary(by_draws(block)) for block in blocks])

    def _interval(self, X: Any, level: Any, by_draws: Summary) -> FloatArray:
        """Return the ends of an interval with a share of the posterior, as a last axis."""
        if not is_number(level) or not 0.0 < level < 1.0:
            raise ValueError(f"level must be between 0 and 1, got {level!r}")
        tail = 0.5 * (1.0 - float(level))
        ends = (tail, 1.0 - tail)
        return self._summarise(
            X, by_draws, lambda found: np.moveaxis(np.quantile(found, ends, axis=1), 0, -1)
        )


@attrs.define(slots=False, eq=False, repr=False, kw_only=True)
class BayesianLogisticRegression(ClassifierMixin, PosteriorEstimator):  # type: ignore[misc]
    """Logistic regression with draws from the exact posterior of its coefficients.

    With more than two classes it is multinomial: the first class is the reference, whose predictor
    is 0. Priors are independent and normal, of the coefficients of features about their means in
    units of their standard deviations. All that is reported is in units of the features.

    Findings on the draws come as :class:`surrokit.errors.SamplingWarning`.

    Parameters
    ----------
    prior_scale : float, optional
        Standard deviation of the prior of each coefficient; None for a flat one.
    intercept_scale : float, optional
        That of the intercept, where all features are at their means; None for a flat one.
    standardize
        Whether the prior is that of standardised features; else of the features as they are.
    target_ess
        Effective draws of every coefficient, at which a fit ends.
    sampling : mapping, optional
        Settings of :func:`surrokit.sample` in place of those that the fit chooses.
    random_state : int, RandomState or None
        From which random numbers are drawn.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (1, n_features) and (1,), or (n_classes, ...)
        Posterior means; one row for two classes, as in scikit-learn.
    coef_draws_, intercept_draws_ : ndarray of shape (n_draws, ...)
        Draws of both, all chains one after another.
    run_ : surrokit.Run
        The run, with its verdict: of coefficients of standardised features, called by these.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw from the posterior of the coefficients.

        ``X`` has shape (n_samples, n_features), ``y`` the classes, shape (n_samples,), and
        ``sample_weight (n_samples,)`` says how often each row counts. ValueError is raised if rows
        or a parameter cannot be used.
        """
        inputs, labels = validate_data(self, X, y, dtype=_PRECISIONS)
        check_classification_targets(labels)
        counting = Rows.of(inputs, labels, sample_weight)
        self.classes_, numbers = np.unique(counting.response, return_inverse=True)
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes, got one class, "
                f"{self.classes_[0]}"
            )
        rows = attrs.evolve(counting, response=numbers.astype(np.float64))
        rows = rows if len(rows) >= MANY else rows.merge()
        intercepts, coefficients = self._sample(
            "logistic" if n_classes == 2 else "multinomial", rows, n_predictors=n_classes - 1
        )
        if n_classes > 2:
            intercepts = np.pad(intercepts, ((0, 0), (1, 0)))
            coefficients = np.pad(coefficients, ((0, 0), (1, 0), (0, 0)))
        self.intercept_draws_, self.coef_draws_ = intercepts, coefficients
        self.intercept_, self.coef_ = intercepts.mean(axis=0), coefficients.mean(axis=0)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return posterior means of classes' probabilities, shape (n_samples, n_classes)."""
        return self._summarise(X, self._probabilities, lambda found: found.mean(axis=1))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of :meth:`predict_proba`."""
        return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> Any:
        """Return the class of the largest probability, shape (n_samples,)."""
        chances = self.predict_proba(X)
        return self.classes_[chances.argmax(axis=1)]

    def predict_interval(self, X: Any, level: float = 0.9) -> FloatArray:
        """Return an interval of each class's probability, shape (n_samples, n_classes, 2).

        It has a share of ``level`` of the posterior, and as much below it as above.
        """
        return self._interval(X, level, self._probabilities)

    def _probabilities(self, inputs: FloatArray) -> FloatArray:
        """Return probabilities by each draw, shape (n, n_draws, n_classes)."""
        predictors = np.einsum("nd,skd->nsk", inputs, self.coef_draws_, optimize=True)
        predictors = predictors + self.intercept_draws_
        if len(self.classes_) > 2:
            return np.asarray(softmax(predictors, axis=2))
        return np.concatenate([np.exp(log_expit(-predictors)), expit(predictors)], axis=2)


@attrs.define(slots=False, eq=False, repr=False, kw_only=True)
class BayesianGLMRegressor(RegressorMixin, PosteriorEstimator):  # type: ignore[misc]
    """A generalised linear model with draws from the exact posterior of its coefficients.

    Priors are independent and normal, of the coefficients of features about their means in units of
    their standard deviations; for ``gaussian`` and ``student`` also in units of the response's
    standard deviation. All that is reported is in units of features and response.

    Findings on the draws come as :class:`surrokit.errors.SamplingWarning`.

    Parameters
    ----------
    family
        ``"gaussian"``, ``"student"`` and ``"cauchy"`` with means x . b; ``"poisson"``,
        ``"negative-binomial"`` and ``"gamma"`` with means exp(x . b); ``"exponential"`` and
        ``"weibull"`` times with hazards in proportion to exp(x . b). Names of other libraries do as
        well, as in :func:`surrokit.rows_potential`.
    settings : mapping, optional
        Known numbers of the family: ``scale``, ``degrees``, ``size`` and ``shape``, as in
        :func:`surrokit.rows_potential`. The scale of ``"gaussian"`` is inferred unless given, with
        half of Student's t with 3 degrees of freedom as prior, whose scale is 2.5 standard
        deviations of the response, and hardly any mass below a thousandth of that.
    prior_scale, intercept_scale, fit_intercept, standardize
        See :class:`BayesianLogisticRegression`; the prior of the intercept of ``"gaussian"`` and
        ``"student"`` is about the response's mean.
    chains, target_ess, sampling, random_state
        See :class:`BayesianLogisticRegression`.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,) and float
        Posterior means.
    coef_draws_, intercept_draws_ : ndarray of shape (n_draws, n_features) and (n_draws,)
        Draws of both, all chains one after another.
    scale_, scale_draws_ : float and ndarray of shape (n_draws,)
        Posterior mean and draws of the scale of ``"gaussian"`` errors, or what it is known to be.
    run_ : surrokit.Run
        The run, with its verdict: of coefficients of standardised features, or where the scale of
        ``"gaussian"`` is inferred of its logarithm, given which coefficients are normal.
    """

    family: str = "gaussian"
    settings: Mapping[str, Any] | None = None

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: which responses there may be."""
        tags = super().__sklearn_tags__()
        name = read_name(self.family, {})[0]
        family = response_family(name) if name in _FAMILIES else None
        tags.target_tags.positive_only = not (family is None or family.of_errors or family.binary)
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw from the posterior of the coefficients.

        ``X`` has shape (n_samples, n_features), ``y`` responses of the family's kind, shape
        (n_samples,), and ``sample_weight (n_samples,)`` says how often each row counts. ValueError
        is raised if rows or a parameter cannot be used.
        """
        inputs, response = validate_data(
            self, X, y, dtype=_PRECISIONS, y_numeric=True, ensure_min_samples=2
        )
        rows = Rows.of(inputs, np.asarray(response, dtype=np.float64), sample_weight)
        rows = rows if len(rows) >= MANY else rows.merge()
        self._family, settings = _read_family(self.family, self.settings)
        mean = rows.mean()
        about: dict[str, Any] = {}
        if self._family.of_errors:
            start, about = mean, {"centre": mean, "unit": rows.spread()}
        else:
            start = float(np.log(max(mean, 0.5 / len(rows))) / self._family.log_mean)
        scales = None
        if self._family.name == "gaussian" and "scale" not in settings:
            self.intercept_draws_, self.coef_draws_, scales = self._sample_with_scale(rows, about)
        else:
            intercepts, coefficients = self._sample(
                self._family.name, rows, settings, start=start, **about
            )
            self.intercept_draws_, self.coef_draws_ = intercepts[:, 0], coefficients[:, 0]
            if "scale" in settings:
                scales = np.full(len(intercepts), float(settings["scale"]))
        self.intercept_ = float(self.intercept_draws_.mean())
        self.coef_ = self.coef_draws_.mean(axis=0)
        for name in ("scale_", "scale_draws_"):
            self.__dict__.pop(name, None)
        if scales is not None:
            self.scale_, self.scale_draws_ = float(scales.mean()), scales
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the posterior mean of the mean response, shape (n_samples,)."""
        check_is_fitted(self)
        if self._family.of_errors:  # linear in the coefficients
            return self._summarise(
                X, lambda block: block @ self.coef_ + self.intercept_, np.asarray
            )
        return self._summarise(X, self._means, lambda found: found.mean(axis=1))

    def predict_interval(
        self,
        X: Any,
        level: float = 0.9,
        kind: Literal["mean", "response"] = "mean",
        random_state: int | np.random.RandomState | None = None,
    ) -> FloatArray:
        """Return an interval of the mean response, or of a new one, shape (n_samples, 2).

        It has a share of ``level`` of the posterior, and as much below it as above. For ``kind`` of
        ``"response"`` one new response is drawn for each draw, from ``random_state``.
        """
        if kind not in ("mean", "response"):
            raise ValueError(f"kind must be 'mean' or 'response', got {kind!r}")
        check_is_fitted(self)
        if kind == "mean":
            return self._interval(X, level, self._means)
        rng = _generator(random_state)
        scales = self.__dict__.get("scale_draws_", np.ones(1))
        return self._interval(
            X, level, lambda inputs: self._family.draw(rng, self._predictors(inputs), scales)
        )

    def _means(self, inputs: FloatArray) -> FloatArray:
        return self._family.mean(self._predictors(inputs))

    def _predictors(self, inputs: FloatArray) -> FloatArray:
        """Return linear predictors by each draw, shape (n, n_draws)."""
        return np.asarray(inputs @ self.coef_draws_.T + self.intercept_draws_)

    def _sample_with_scale(
        self, rows: Rows, about: Mapping[str, Any]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return draws of intercept, coefficients, and the scale, given which they are drawn."""
        columns, prior = self._columns(rows, **about)
        design = columns.design(rows.inputs)
        # the scale of the errors' prior is 2.5 standard deviations of the response
        target = NormalErrors.of(design, rows, prior=prior, scale=2.5 * about["unit"])
        rng = _generator(self.random_state)
        starts = target.draw_starts(self._n_chains, rng)
        self._run(target, {"sampler": "hmc", "initial": starts}, rng)
        logs = self.run_.draws.reshape(-1)
        return *columns.undo(target.draw_coefficients(logs, rng)), np.exp(logs)


def _read_family(
    name: object, given: Mapping[str, Any] | None
) -> tuple[ResponseFamily, dict[str, Any]]:
    """Return a family and its settings that are not None."""
    known, settings = read_name(name, given or {})
    settings = {key: value for key, value in settings.items() if value is not None}
    if known not in _FAMILIES:
        raise ConfigurationError(
            f"family must be one of {', '.join(_FAMILIES)}, got {name!r}{suggest(name, _FAMILIES)}"
        )
    family = response_family(known, settings)
    if known == "student" and "scale" not in settings:
        raise ConfigurationError(
            f"the family {name!r} needs scale, that of its errors, which is not inferred; give "
            "settings={'scale': ...}, such as the residuals' standard deviation"
        )
    return family, settings


def unlike(names: Iterable[str]) -> list[str]:
    """Return distinct names: a later one of two that are alike is numbered."""
    found: list[str] = []
    for name in names:
        again, k = name, 2
        while again in found:
            again, k = f"{name} ({k})", k + 1
        found.append(again)
    return found


def _generator(random_state: int | np.random.RandomState | None) -> np.random.Generator:
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def _positive(name: str, given: Any) -> float:
    """Return a prior's scale; infinite for None."""
    if given is None:
        return np.inf
    if not is_number(given) or not given > 0.0:
        raise ValueError(f"{name} must be a positive number, or None for a flat prior, got {given}")
    return float(given)
