"""Sums over rows of data, by the family of a regression or by a function."""

from __future__ import annotations

from typing import Any, cast

from surrokit.errors import ConfigurationError
from surrokit.potentials import SummedPotential
from surrokit.predictive.families import read_name
from surrokit.registry.catalogue import Composer, default_catalogue
from surrokit.registry.components import OWN_SUMS, PARTITIONED_SUMS, SUMS_OF_ROWS


def rows_potential(terms: Any, data: Any, response: Any = None, **settings: Any) -> SummedPotential:
    """Return a target for a likelihood that sums over rows of data.

    Exact decisions may then be made by a few rows (correction ``subsampled``), and surrogates may
    copy the rows that matter (surrogate ``rows``).

    Parameters
    ----------
    terms
        The family of a regression: ``"gaussian"``, ``"student"``, ``"logistic-errors"``,
        ``"logistic"``, ``"probit"``, ``"multinomial"``, ``"ordinal"``, ``"poisson"``,
        ``"negative-binomial"``, ``"gamma"``, ``"exponential"`` or ``"weibull"``, or an object that
        the part for regressions takes. Names of other libraries do as well, such as
        ``"binomial"``, ``"bernoulli"`` and ``"normal"``; ``"cauchy"`` is ``"student"`` with one
        degree of freedom. Or a function ``terms(q, rows)`` that returns the log
        likelihood of each of m rows at one position, shape (m,).
    data : array_like or SciPy sparse matrix of shape (n_rows, dim), or path
        Covariates of a regression, a column of ones included for an intercept (not of an ordinal
        one). For a function: an array with a row for each term, or several by name or place.
    response : array_like of shape (n_rows,), or path
        Of a regression, one for each row.
    **settings
        ``prior``: a normal one as :func:`gaussian_prior` makes it, or the standard deviation of all
        coefficients; flat unless given. Of regressions: ``offset`` and ``weights``, one for each
        row; ``event``, whether each time of a survival model is that of an event; ``scale``,
        ``degrees``, ``size`` and ``shape`` of the family. Of functions: ``dim``; ``gradient`` and
        ``hessian`` of the terms, or ``derivatives="jax"``; ``bound`` of third derivatives, without
        which all rows decide. ``surrokit plugins regression`` and ``row-terms`` say more.

    Raises
    ------
    ConfigurationError
        If there is no such family or setting, or numbers make no sense; or if no plugin offers such
        targets.
    ShapeError
        If shapes do not agree.
    TargetError
        If a file cannot be read, or something is not numbers.
    """
    terms, settings = read_name(terms, settings)
    if callable(terms):
        given, purpose = {"data": data, "terms": terms}, OWN_SUMS
        if response is not None:
            raise ConfigurationError(
                "response goes with the family of a regression, got it beside a function of terms; "
                "put all that the function needs into data"
            )
    else:
        given, purpose = {"design": data, "response": response, "family": terms}, SUMS_OF_ROWS
    if hasattr(data, "__dask_graph__"):
        purpose = PARTITIONED_SUMS
    catalogue = default_catalogue()
    part = catalogue.serving("potential", purpose)
    if part is None:
        raise ConfigurationError(
            f"rows_potential needs a plugin with a potential that serves {purpose!r}, got none "
            "that is switched on; install one, or give the target by surrokit.potential"
        )
    made = Composer(catalogue).make("potential", (part.name, {**given, **settings}))
    return cast(SummedPotential, made)
