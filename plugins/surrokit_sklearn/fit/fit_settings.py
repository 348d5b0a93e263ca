"""The settings by which a scikit-learn regressor is fitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from surrokit.capabilities import GRADIENT, GRADIENT_ALONE, VARIANCE
from surrokit.settings import one_of, optional_positive, optional_positive_integer, up_to_half
from surrokit.surrogate.distinct import Tail
from surrokit.types import Capabilities
from surrokit_sklearn.fit.estimator_setting import regressor_given
from surrokit_sklearn.fit.prediction import returns_deviations
from surrokit_sklearn.fit.sample_weights import takes_weights

Trend: TypeAlias = Literal["isotropic", "none"]
"""What is taken off U before the regressor sees it, beside a constant."""

Gradient: TypeAlias = Literal["auto", "differences"]
"""Analytic gradients where they are known, or differences in any case."""


@attrs.frozen(kw_only=True, eq=False)
class FitSettings:
    """The regressor, and how it is fitted.

    :class:`~surrokit_sklearn.surrogate.EstimatorSurrogate` says what each setting means.
    """

    estimator: Any
    parameters: Mapping[str, Any] | None = None
    regressor: Any = attrs.field(init=False, repr=False)
    whiten: bool = True
    trend: Trend = attrs.field(default="isotropic", validator=one_of("isotropic", "none"))
    tail: Tail = attrs.field(default="down-weighted", validator=one_of("down-weighted", "full"))
    gradient: Gradient = attrs.field(default="auto", validator=one_of("auto", "differences"))
    step: float | None = attrs.field(default=None, validator=optional_positive)
    max_points: int | None = attrs.field(default=2000, validator=optional_positive_integer)
    hold_out: float = attrs.field(default=0.1, validator=up_to_half)

    @regressor.default
    def _unfitted(self) -> Any:
        return regressor_given(self.estimator, self.parameters)

    @property
    def takes_weights(self) -> bool:
        """Whether weights can be handed to the regressor."""
        return takes_weights(self.regressor)

    @property
    def provides(self) -> Capabilities:
        """Gradients, and variances where the regressor returns standard deviations."""
        variance = {VARIANCE} if returns_deviations(self.regressor) else set()
        return frozenset({GRADIENT, GRADIENT_ALONE} | variance)
