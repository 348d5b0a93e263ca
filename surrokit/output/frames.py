"""Draws as data frames."""

from __future__ import annotations

from typing import Any

from surrokit.errors import MissingDependencyError
from surrokit.output.arviz import Draws
from surrokit.output.saving import columns_of


def to_pandas(run: Any) -> Any:
    """Return the draws of a :class:`~surrokit.result.run.Run` as a data frame, one row a draw.

    Parameters
    ----------
    run
        The run.

    Raises
    ------
    MissingDependencyError
        If pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise MissingDependencyError(
            "pandas is needed for a data frame and is not installed; run python -m pip install "
            "'surrokit[pandas]', or use run.draws"
        ) from error
    frame = pandas.DataFrame(columns_of(Draws.of(run)))
    frame.attrs["units"] = run.parameters.units
    return frame
