"""The leapfrog integrator of Algorithm 1, with merged half steps."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.arguments import all_finite
from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.interfaces import Hamiltonian, Phase, Status
from surrokit.kernel.hamiltonian import constant_metric, put_rows, take_rows
from surrokit.limits import check_deadline
from surrokit.potentials import with_gradient, with_gradient_alone
from surrokit.types import Cache, Capabilities, FloatArray, IntArray


@attrs.frozen
class Leapfrog:
    """Half a kick, then drift and kick in turn, then half a kick; all chains as one batch.

    The two half kicks between drifts are merged, and the gradient at the start comes from the
    cache, so a path of L steps costs L gradients. (Written as in Algorithm 1 of Zhang, Shahbaba
    and Zhao (2017) it would cost 2 L.) Values are evaluated only where a path ends, if the
    potential can give gradients by themselves.

    A chain whose position or gradient stops being finite drops out with ``NOT_FINITE``; its
    reverse path would meet the same point.
    """

    @property
    def needs(self) -> Capabilities:
        """Gradients."""
        return frozenset({GRADIENT})

    def cache(self, hamiltonian: Hamiltonian, positions: FloatArray) -> Cache:
        """Return value, shape (n,), and gradient, shape (n, dim), at positions (n, dim)."""
        value, gradient = with_gradient(hamiltonian.potential).value_and_gradient(positions)
        return {"value": value, "gradient": gradient}

    def advance(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> tuple[Phase, IntArray]:
        """Follow each chain's path for its number of steps; see the protocol.

        Raises
        ------
        ConfigurationError
            If the metric changes with position.
        """
        n, potential = len(n_steps), hamiltonian.potential
        value_and_gradient = with_gradient(potential).value_and_gradient
        velocity = constant_metric(hamiltonian.metric, "leapfrog").velocity
        end = Phase(  # of chains that are lost
            positions=phase.positions.copy(),
            momenta=phase.momenta.copy(),
            cache={
                "value": np.full(n, np.inf),
                "gradient": np.full_like(phase.positions, np.nan),
            },
        )
        rows, steps = np.arange(n), step_size[:, None]
        # momenta are kept times the step size, which saves a product in every drift
        positions, squares = phase.positions, steps * steps
        momenta = phase.momenta * steps - 0.5 * squares * phase.cache["gradient"]
        for done in range(1, int(n_steps.max(initial=0)) + 1):
            check_deadline()
            positions = positions + velocity(momenta)
            going = None if all_finite(positions) else np.isfinite(positions).all(axis=1)
            if going is not None:
                rows, steps, squares = rows[going], steps[going], squares[going]
                positions, momenta = positions[going], momenta[going]
            arrived = n_steps[rows] == done
            if not arrived.any():
                if not len(rows):
                    break
                if GRADIENT_ALONE in potential.capabilities:
                    gradient = with_gradient_alone(potential).gradient(positions)
                else:
                    gradient = value_and_gradient(positions)[1]
                momenta = momenta - squares * gradient
                continue
            value, gradient = value_and_gradient(positions)
            kicked = (momenta - 0.5 * squares * gradient) / steps
            ends = Phase(
                positions=positions, momenta=kicked, cache={"value": value, "gradient": gradient}
            )
            if len(rows) == n and arrived.all():
                end = ends
                break
            momenta, going = momenta - squares * gradient, ~arrived
            put_rows(end, rows[arrived], take_rows(ends, np.flatnonzero(arrived)))
            rows, steps, squares = rows[going], steps[going], squares[going]
            positions, momenta = positions[going], momenta[going]
        finite = np.isfinite(end.cache["value"]) & np.isfinite(end.momenta).all(axis=1)
        return end, np.where(finite, int(Status.OK), int(Status.NOT_FINITE))
