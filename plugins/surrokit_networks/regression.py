"""From nodes and training rows to a fitted network."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit.settings import optional_positive_integer
from surrokit_networks.choices import one_of
from surrokit_networks.design import Design, Solution
from surrokit_networks.fitted import FittedNetwork
from surrokit_networks.nodes import Nodes
from surrokit_networks.orthogonal import solved
from surrokit_networks.spectrum import spectrum
from surrokit_networks.training_rows import TrainingRows
from surrokit_networks.whitening import Whitening

Level: TypeAlias = Literal["trained", "minimum"]
"""Where the output bias comes from: least squares, or the least training value."""


def _check_ridge(_: object, __: object, value: float | None) -> None:
    if value is not None and not 0.0 <= value < np.inf:
        raise ConfigurationError(
            f"ridge must be a finite number that is not negative, or None, got {value!r}; None "
            "chooses it by generalised cross-validation, 0 is the Moore-Penrose inverse"
        )


@attrs.frozen(kw_only=True)
class Regression:
    """How the weights of a network's nodes are found: least squares on values, equation (11).

    With a trained level this is potential matching, equation (15): it minimises Var(V - U).

    Parameters
    ----------
    level
        ``"trained"``: the output bias b of equation (10) is fitted, free of the ridge.
        ``"minimum"``: it is the least training value, as in the authors' code.
    ridge : float, optional
        lambda in lambda |v|^2, on the sum of squared errors; 0 for the Moore-Penrose inverse of
        Algorithm 2; None to choose it by generalised cross-validation.
    block_rows : int, optional
        Rows laid out in memory at a time; None for as many as take a few megabytes.

    Raises
    ------
    ConfigurationError
        If a setting makes no sense.
    """

    level: Level = attrs.field(default="trained", validator=one_of("trained", "minimum"))
    ridge: float | None = attrs.field(default=None, validator=_check_ridge)
    block_rows: int | None = attrs.field(default=None, validator=optional_positive_integer)

    def fitted(self, nodes: Nodes, whitening: Whitening, rows: TrainingRows) -> FittedNetwork:
        """Return the network of these nodes that fits the rows best.

        Raises
        ------
        SurrogateFitError
            If the numbers cannot be handled.
        """
        weights = rows.weights
        trained = self.level == "trained"
        origin = float(np.average(rows.values, weights=weights) if trained else rows.values.min())
        design = Design(
            nodes=nodes,
            whitened=whitening.apply(rows.positions),
            targets=rows.values - origin,
            weights=weights,
            count=float(rows.trust.sum()),
            trains_level=trained,
            block_rows=self.block_rows,
        )
        solution = self._solution(design)
        if not (np.isfinite(solution.weights).all() and np.isfinite(solution.level)):
            raise SurrogateFitError(
                "the least-squares weights of the network are not finite; use whiten=True and "
                "ridge=None, or rescale the parameters"
            )
        return FittedNetwork(
            dim=nodes.dim,
            nodes=nodes.weighted(solution.weights, whitening),
            level=origin + solution.level,
            n_nodes=len(nodes),
            n_points=len(rows),
            ridge=solution.ridge,
            degrees=solution.degrees,
            gcv_error=solution.error,
        )

    def _solution(self, design: Design) -> Solution:
        try:
            if self.ridge is not None:
                return solved(design, self.ridge)
            found = spectrum(design)
            return found.solution(design, found.chosen(design))
        except np.linalg.LinAlgError as error:
            raise SurrogateFitError(
                f"the least-squares problem of the network could not be solved ({error}); use "
                "whiten=True and ridge=None, or rescale the parameters"
            ) from error
