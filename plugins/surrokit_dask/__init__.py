"""Sums over rows of Dask collections: rows stay where they are, and sums travel."""

from surrokit import Component, hookimpl

_COMPONENTS = (
    Component(
        kind="potential",
        name="dask-regression",
        serves=("partitioned-rows",),
        factory="surrokit_dask.regression:dask_regression",
        summary="Regression on a Dask array or dataframe: rows stay where they are",
        references=(
            "Rocklin (2015), Dask: parallel computation with blocked algorithms",
            "Cornish, Vanetti, Bouchard-Cote, Deligiannidis and Doucet (2019), arXiv:1901.09881",
        ),
        examples=(),
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer the target."""
    return _COMPONENTS
