"""What surrokit-toy offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surrokit import Component, hookimpl

if TYPE_CHECKING:
    from surrokit.protocols import Potential, Surrogate


def quadratic(*, floor: float = 1e-3) -> Surrogate:
    """Make the quadratic surrogate; see :func:`surrokit_toy.quadratic.fit`."""
    from functools import partial

    from surrokit import batch_surrogate
    from surrokit_toy.quadratic import fit

    return batch_surrogate(partial(fit, floor=floor))


def rosenbrock(*, stiffness: float = 1.0) -> Potential:
    """Make the target; see :func:`surrokit_toy.rosenbrock.rosenbrock`."""
    from surrokit_toy.rosenbrock import rosenbrock

    return rosenbrock(stiffness)


@hookimpl
def surrokit_register_surrogates() -> list[Component]:
    """Offer the surrogate."""
    return [
        Component(
            kind="surrogate",
            name="toy-quadratic",
            factory=quadratic,
            summary="Least-squares quadratic, kept convex",
            references=("Nocedal and Wright (2006), Numerical Optimization, section 9.2",),
            examples=({}, {"floor": 0.1}),
        )
    ]


@hookimpl
def surrokit_register_potentials() -> list[Component]:
    """Offer the target."""
    return [
        Component(
            kind="potential",
            name="toy-rosenbrock",
            factory=rosenbrock,
            summary="A curved ridge with known moments, in two dimensions",
            references=("Rosenbrock (1960), doi:10.1093/comjnl/3.3.175",),
            examples=({}, {"stiffness": 10.0}),
        )
    ]
