"""What surrokit_riemannian offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surrokit.components import Component, Part
from surrokit.markers import hookimpl

if TYPE_CHECKING:
    from surrokit.protocols import Integrator, PositionMetric
    from surrokit_riemannian.definite import HessianMetric, OwnMetric
    from surrokit_riemannian.diagonal import DiagonalMetric
    from surrokit_riemannian.generalized_leapfrog import GeneralizedLeapfrog
    from surrokit_riemannian.implicit_midpoint import ImplicitMidpoint
    from surrokit_riemannian.rmhmc import RMHMC
    from surrokit_riemannian.softabs import SoftAbsMetric

_PAPER = "Zhang, Shahbaba and Zhao (2017), arXiv:1506.05555"
_GIROLAMI = "Girolami and Calderhead (2011), doi:10.1111/j.1467-9868.2010.00765.x"
_SOFTABS = "Betancourt (2013), arXiv:1212.4693"


def rmhmc(
    *,
    integrator: Integrator,
    metric: PositionMetric,
    step_size: float | None = None,
    n_steps: int | None = None,
    randomize: bool = False,
    target_acceptance: float = 0.8,
) -> RMHMC:
    """Make the sampler of section 2.2."""
    from surrokit_riemannian.rmhmc import RMHMC

    return RMHMC(
        integrator=integrator,
        metric=metric,
        step_size=step_size,
        n_steps=n_steps,
        randomize=randomize,
        target_acceptance=target_acceptance,
    )


def generalized_leapfrog(
    *,
    tolerance: float = 1e-10,
    max_iterations: int = 20,
    check_reversal: bool = True,
    reversal_tolerance: float = 1e-8,
) -> GeneralizedLeapfrog:
    """Make the generalized leapfrog integrator."""
    from surrokit_riemannian.generalized_leapfrog import GeneralizedLeapfrog

    return GeneralizedLeapfrog(
        tolerance=tolerance,
        max_iterations=max_iterations,
        check_reversal=check_reversal,
        reversal_tolerance=reversal_tolerance,
    )


def implicit_midpoint(
    *,
    tolerance: float = 1e-10,
    max_iterations: int = 20,
    check_reversal: bool = True,
    reversal_tolerance: float = 1e-8,
) -> ImplicitMidpoint:
    """Make the implicit midpoint rule."""
    from surrokit_riemannian.implicit_midpoint import ImplicitMidpoint

    return ImplicitMidpoint(
        tolerance=tolerance,
        max_iterations=max_iterations,
        check_reversal=check_reversal,
        reversal_tolerance=reversal_tolerance,
    )


def own_metric() -> OwnMetric:
    """Make the metric that is the potential's own."""
    from surrokit_riemannian.definite import OwnMetric

    return OwnMetric()


def hessian(*, trusted: bool = False) -> HessianMetric:
    """Make the metric that is the Hessian as it is."""
    from surrokit_riemannian.definite import HessianMetric

    return HessianMetric(trusted=trusted)


def softabs(*, hardness: float = 30.0) -> SoftAbsMetric:
    """Make the softabs metric."""
    from surrokit_riemannian.softabs import SoftAbsMetric

    return SoftAbsMetric(hardness=hardness)


def hessian_diagonal(*, hardness: float = 30.0) -> DiagonalMetric:
    """Make the softabs metric of the diagonal."""
    from surrokit_riemannian.diagonal import DiagonalMetric

    return DiagonalMetric(hardness=hardness)


@hookimpl
def surrokit_register_samplers() -> list[Component]:
    """Offer the sampler."""
    return [
        Component(
            kind="sampler",
            name="rmhmc",
            factory=rmhmc,
            summary="Riemannian manifold HMC: a mass matrix that changes with position",
            references=(f"{_PAPER}, section 2.2", _GIROLAMI),
            parts={
                "integrator": Part("integrator", "generalized-leapfrog"),
                "metric": Part("metric", "softabs"),
            },
            examples=({"n_steps": 1},),  # implicit steps of 20000 chains take long
        )
    ]


@hookimpl
def surrokit_register_integrators() -> list[Component]:
    """Offer integrators."""
    return [
        Component(
            kind="integrator",
            name="generalized-leapfrog",
            factory=generalized_leapfrog,
            summary="Generalized leapfrog, for rmhmc: implicit steps solved and tried back",
            references=(f"{_PAPER}, equations (7) to (9)", _GIROLAMI),
        ),
        Component(
            kind="integrator",
            name="implicit-midpoint",
            factory=implicit_midpoint,
            summary="Implicit midpoint rule, for rmhmc: steadier and costlier",
            references=("Brofos and Lederman (2021), arXiv:2102.07139",),
        ),
    ]


@hookimpl
def surrokit_register_metrics() -> list[Component]:
    """Offer metrics that change with position."""
    return [
        Component(
            kind="metric",
            name="fisher",
            factory=own_metric,
            summary="For rmhmc: the Fisher information of the target, with its prior",
            references=(_GIROLAMI, f"{_PAPER}, section 5.1"),
        ),
        Component(
            kind="metric",
            name="gauss-newton",
            factory=own_metric,
            summary="For rmhmc: the Gauss-Newton matrix of a target with a forward map",
            references=(_GIROLAMI, f"{_PAPER}, section 5.2"),
        ),
        Component(
            kind="metric",
            name="hessian",
            factory=hessian,
            summary="For rmhmc: the Hessian as it is, of a convex potential",
            references=(f"{_PAPER}, section 3.4",),
        ),
        Component(
            kind="metric",
            name="hessian-diagonal",
            factory=hessian_diagonal,
            summary="For rmhmc: the diagonal of the Hessian, made positive by softabs",
            references=(f"{_PAPER}, section 5.2", _SOFTABS),
        ),
        Component(
            kind="metric",
            name="softabs",
            factory=softabs,
            summary="For rmhmc: the Hessian with smooth absolute eigenvalues, positive everywhere",
            references=(_SOFTABS,),
        ),
    ]
