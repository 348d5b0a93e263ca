"""Riemannian manifold HMC: metrics that change with position, and integrators that follow them."""

from surrokit import Component, Part, hookimpl

_PAPER = "Zhang, Shahbaba and Zhao (2017), arXiv:1506.05555"
_GIROLAMI = "Girolami and Calderhead (2011), doi:10.1111/j.1467-9868.2010.00765.x"
_SOFTABS = "Betancourt (2013), arXiv:1212.4693"

_COMPONENTS = (
    Component(
        kind="sampler",
        name="rmhmc",
        factory="surrokit_riemannian.rmhmc:RMHMC",
        summary="Riemannian manifold HMC: a mass matrix that changes with position",
        references=(f"{_PAPER}, section 2.2", _GIROLAMI),
        parts={
            "integrator": Part("integrator", "generalized-leapfrog"),
            "metric": Part("metric", "softabs"),
        },
        examples=({"n_steps": 1},),  # implicit steps of 20000 chains take long
    ),
    Component(
        kind="integrator",
        name="generalized-leapfrog",
        factory="surrokit_riemannian.generalized_leapfrog:GeneralizedLeapfrog",
        summary="Generalized leapfrog, for rmhmc: implicit steps solved and tried back",
        references=(f"{_PAPER}, equations (7) to (9)", _GIROLAMI),
    ),
    Component(
        kind="integrator",
        name="implicit-midpoint",
        factory="surrokit_riemannian.implicit_midpoint:ImplicitMidpoint",
        summary="Implicit midpoint rule, for rmhmc: steadier and costlier",
        references=("Brofos and Lederman (2021), arXiv:2102.07139",),
    ),
    Component(
        kind="metric",
        name="fisher",
        factory="surrokit_riemannian.softabs:OwnMetric",
        summary="For rmhmc: the Fisher information of the target, with its prior",
        references=(_GIROLAMI, f"{_PAPER}, section 5.1"),
    ),
    Component(
        kind="metric",
        name="gauss-newton",
        factory="surrokit_riemannian.softabs:OwnMetric",
        summary="For rmhmc: the Gauss-Newton matrix of a target with a forward map",
        references=(_GIROLAMI, f"{_PAPER}, section 5.2"),
    ),
    Component(
        kind="metric",
        name="hessian",
        factory="surrokit_riemannian.softabs:HessianMetric",
        summary="For rmhmc: the Hessian as it is, of a convex potential",
        references=(f"{_PAPER}, section 3.4",),
    ),
    Component(
        kind="metric",
        name="hessian-diagonal",
        factory="surrokit_riemannian.softabs:DiagonalMetric",
        summary="For rmhmc: the diagonal of the Hessian, made positive by softabs",
        references=(f"{_PAPER}, section 5.2", _SOFTABS),
    ),
    Component(
        kind="metric",
        name="softabs",
        factory="surrokit_riemannian.softabs:SoftAbsMetric",
        summary="For rmhmc: the Hessian with smooth absolute eigenvalues, positive everywhere",
        references=(_SOFTABS,),
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer rmhmc, its integrators, and metrics that change with position."""
    return _COMPONENTS
