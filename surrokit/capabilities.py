"""What potentials can do, by name, and how a part asks for it.

A wrapper passes its target's ``capabilities`` on unchanged, while an ``isinstance`` test on a
wrapper always passes; so parts ask by name, and the functions here give the type that goes with
the name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from surrokit.errors import CapabilityError

if TYPE_CHECKING:
    from surrokit.protocols import (
        ForwardPotential,
        GradientAlonePotential,
        GradientPotential,
        HessianDerivativePotential,
        HessianPotential,
        MetricPotential,
        Potential,
    )
    from surrokit.types import Capabilities

GRADIENT = "gradient"
"""``value_and_gradient(positions) -> (n,), (n, dim)``."""

GRADIENT_ALONE = "gradient-alone"
"""``gradient(positions) -> (n, dim)``, cheaper than with the value."""

HESSIAN = "hessian"
"""``hessian(positions) -> (n, dim, dim)``: second derivatives of the potential."""

HESSIAN_DERIVATIVE = "hessian-derivative"
"""``hessian_trace_gradient(positions, matrices (n, dim, dim)) -> (n, dim)``, and
``hessian_form_gradient(positions, vectors (n, dim)) -> (n, dim)``: two contractions of the third
derivatives, never the whole of them."""

METRIC = "metric"
"""``metric(positions) -> (n, dim, dim)``: Fisher or Gauss-Newton matrix of the target."""

FORWARD = "forward"
"""``forward(positions) -> (n, m)``, and ``energy`` of outputs and positions."""

JACOBIAN = "jacobian"
"""``forward_and_jacobian(positions) -> (n, m), (n, m, dim)``."""

VARIANCE = "variance"
"""``variance(positions) -> (n,)``: how unsure a fitted surrogate is, in nats squared."""

INITIAL = "initial"
"""``initial(rng, n) -> (n, dim)``: positions from which chains may start."""

KNOWN = frozenset(
    {
        GRADIENT,
        GRADIENT_ALONE,
        HESSIAN,
        HESSIAN_DERIVATIVE,
        METRIC,
        FORWARD,
        JACOBIAN,
        VARIANCE,
        INITIAL,
    }
)
"""All names above."""


def require(who: str, needs: Capabilities, offered: Capabilities, whose: str, advice: str) -> None:
    """Raise unless everything that a part needs is offered.

    Parameters
    ----------
    who
        The part that needs, as the message shall name it.
    needs, offered
        Capability names.
    whose
        The potential that offers, as the message shall name it.
    advice
        What the user can do about it.

    Raises
    ------
    CapabilityError
        If something is missing.
    """
    missing = sorted(needs - offered)
    if missing:
        raise CapabilityError(
            f"{who} needs {', '.join(missing)} from {whose}, which offers "
            f"{', '.join(sorted(offered)) or 'values only'}; {advice}"
        )


def _require(potential: Potential, name: str) -> None:
    require(
        "this computation",
        frozenset({name}),
        potential.capabilities,
        type(potential).__name__,
        "use a potential that has it",
    )


def with_gradient(potential: Potential) -> GradientPotential:
    """Return the potential, typed as one that gives gradients.

    Raises
    ------
    CapabilityError
        If it does not.
    """
    _require(potential, GRADIENT)
    return cast("GradientPotential", potential)


def with_gradient_alone(potential: Potential) -> GradientAlonePotential:
    """Return the potential, typed as one that gives gradients without values.

    Raises
    ------
    CapabilityError
        If it does not.
    """
    _require(potential, GRADIENT_ALONE)
    return cast("GradientAlonePotential", potential)


def with_hessian(potential: Potential) -> HessianPotential:
    """Return the potential, typed as one that gives Hessians.

    Raises
    ------
    CapabilityError
        If it does not.
    """
    _require(potential, HESSIAN)
    return cast("HessianPotential", potential)


def with_hessian_derivative(potential: Potential) -> HessianDerivativePotential:
    """Return the potential, typed as one that gives contractions of its Hessian's derivative.

    Raises
    ------
    CapabilityError
        If it does not.
    """
    _require(potential, HESSIAN_DERIVATIVE)
    return cast("HessianDerivativePotential", potential)


def with_metric(potential: Potential) -> MetricPotential:
    """Return the potential, typed as one that gives its Fisher or Gauss-Newton matrix.

    Raises
    ------
    CapabilityError
        If it does not.
    """
    _require(potential, METRIC)
    return cast("MetricPotential", potential)


def with_forward(potential: Potential) -> ForwardPotential:
    """Return the potential, typed as one with a forward map.

    Raises
    ------
    CapabilityError
        If it has none.
    """
    _require(potential, FORWARD)
    return cast("ForwardPotential", potential)
