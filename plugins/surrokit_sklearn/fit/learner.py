"""The learner of a scikit-learn regressor."""

from __future__ import annotations

import attrs

from surrokit.surrogate.keeping import KeepingLearner
from surrokit.types import Capabilities
from surrokit_sklearn.fit.fit_settings import FitSettings
from surrokit_sklearn.fit.fitted import FittedRegressor
from surrokit_sklearn.fit.fitting import fit_regressor

_NEEDS = frozenset({"value"})
_USES = frozenset({"value", "gradient"})


@attrs.define(kw_only=True, eq=False)
class EstimatorLearner(KeepingLearner):
    """Fits a copy of the regressor to all that was observed; the seed draws its random states.

    Parameters
    ----------
    settings
        How to fit.
    """

    settings: FitSettings

    @property
    def needs(self) -> frozenset[str]:
        """Values."""
        return _NEEDS

    @property
    def uses(self) -> frozenset[str]:
        """Values to learn from; gradients, where there are any, to judge the fit."""
        return _USES

    @property
    def provides(self) -> Capabilities:
        """What a fitted regressor can do."""
        return self.settings.provides

    def fit(self) -> FittedRegressor:
        """Return the regressor fitted to everything observed.

        Raises
        ------
        SurrogateFitError
            If there are too few points with a finite value, or they cannot be fitted.
        """
        return fit_regressor(self.settings, self.join_observed(), self.seed)
