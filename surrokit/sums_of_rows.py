"""Targets that are sums over rows of data."""

from __future__ import annotations

from typing import Any, cast

from surrokit.contracts.rows import SummedPotential
from surrokit.errors import ConfigurationError
from surrokit.registry.catalogue import default_catalogue
from surrokit.registry.composer import Composer
from surrokit.registry.purposes import SUMS_OF_ROWS


def rows_potential(family: Any, design: Any, response: Any, **settings: Any) -> SummedPotential:
    """Return a target for a likelihood that sums over rows of data: a regression by its family.

    Exact decisions may then be made by a few rows (correction ``subsampled``), and surrogates may
    copy the rows that matter (surrogate ``rows``).

    Parameters
    ----------
    family
        ``"gaussian"``, ``"student"``, ``"logistic-errors"``, ``"logistic"``, ``"probit"``,
        ``"multinomial"``, ``"poisson"``, ``"negative-binomial"``, ``"gamma"``, ``"exponential"`` or
        ``"weibull"``; or an object that says what the terms are, as the part that makes regressions
        takes it.
    design : array_like or SciPy sparse matrix of shape (n_rows, dim), or path
        Covariates, a column of ones included where an intercept is wanted.
    response : array_like of shape (n_rows,), or path
        One for each row.
    **settings
        ``prior``: a normal one as :func:`gaussian_prior` makes it, or the standard deviation of all
        coefficients; flat unless given. ``offset`` and ``weights``, one for each row. ``event``:
        whether each time of a survival model is that of an event. ``scale``, ``degrees``, ``size``
        and ``shape`` of the family. ``surrokit plugins regression`` says more.

    Raises
    ------
    ConfigurationError
        If there is no such family or setting, or numbers make no sense; or if no plugin offers
        regressions.
    ShapeError
        If shapes do not agree.
    TargetError
        If a file cannot be read, or something is not numbers.
    """
    catalogue = default_catalogue()
    part = catalogue.serving("potential", SUMS_OF_ROWS)
    if part is None:
        raise ConfigurationError(
            f"rows_potential needs a plugin with a potential that serves {SUMS_OF_ROWS!r}, and none "
            "is installed or all are switched off; install one, or give the target by "
            "surrokit.potential"
        )
    given = {"family": family, "design": design, "response": response, **settings}
    return cast(SummedPotential, Composer(catalogue).make("potential", (part.name, given)))
