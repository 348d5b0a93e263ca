"""The frame of implicit integrators: settings, and the start of a path."""

from __future__ import annotations

from typing import ClassVar

import attrs

from surrokit.capabilities import GRADIENT
from surrokit.contracts.dynamics import Hamiltonian
from surrokit.kernel.hamiltonian import position_metric
from surrokit.settings import positive, positive_integer
from surrokit.types import Cache, Capabilities, FloatArray
from surrokit_riemannian.integrators.kick import evaluate


@attrs.frozen(kw_only=True)
class ImplicitIntegrator:
    """An integrator of implicit steps in a metric that changes with position.

    Parameters
    ----------
    tolerance
        Of the implicit equations: norm of the residual relative to that of the momentum.
    max_iterations
        Passes in each of them at most.
    check_reversal
        Whether to try each step back.
    reversal_tolerance
        How far from its start, relative to the momentum, the step back may end.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    name: ClassVar[str]
    """As it is registered, for messages."""

    tolerance: float = attrs.field(default=1e-10, validator=positive)
    max_iterations: int = attrs.field(default=20, validator=positive_integer)
    check_reversal: bool = True
    reversal_tolerance: float = attrs.field(default=1e-8, validator=positive)

    by_position: ClassVar[bool] = True
    """Always: it follows metrics that change with position."""

    needs: ClassVar[Capabilities] = frozenset({GRADIENT})
    """Gradients; the metric has needs of its own."""

    def cache(self, hamiltonian: Hamiltonian, positions: FloatArray) -> Cache:
        """Return value, gradient, the metric and the gradient of its log determinant.

        Raises
        ------
        ConfigurationError
            If the metric does not change with position.
        """
        metric = position_metric(hamiltonian.metric, self.name)
        return evaluate(hamiltonian.potential, metric, positions)
