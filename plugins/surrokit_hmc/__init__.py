"""Hamiltonian Monte Carlo with a constant mass matrix, and a random walk beside it."""

from surrokit import Component, Part, hookimpl

_PAPER = "Zhang, Shahbaba and Zhao (2017), arXiv:1506.05555"
_WALNUTS = "Bou-Rabee, Carpenter, Kleppe and Liu (2025), arXiv:2506.18746"
_NEAL = "Neal (2011), arXiv:1206.1901"

_COMPONENTS = (
    Component(
        kind="sampler",
        name="hmc",
        default=True,
        serves=("gradients",),
        factory="surrokit_hmc.hmc:HMC",
        summary="Hamiltonian Monte Carlo: Algorithm 1, and with a surrogate RNS-HMC",
        references=(f"{_PAPER}, Algorithms 1 and 3", _NEAL),
        parts={"integrator": Part("integrator", "leapfrog"), "metric": Part("metric", "dense")},
        examples=(
            {"step_size": 0.5, "n_steps": 4},
            {"step_size": 0.4, "n_steps": 3, "randomize": False, "metric": "identity"},
            {"step_size": 0.5, "n_steps": 4, "metric": "diagonal"},
            {"n_steps": 4, "warp": True},
            {},
        ),
    ),
    Component(
        kind="sampler",
        name="random-walk",
        serves=("values",),
        factory="surrokit_hmc.independent:RandomWalk",
        summary="Random-walk Metropolis, for targets without a gradient",
        references=("Roberts, Gelman and Gilks (1997), doi:10.1214/aoap/1034625254",),
        examples=({"step_size": 0.8}, {}),
    ),
    Component(
        kind="sampler",
        name="nuts",
        factory="surrokit_hmc.nuts:NUTS",
        summary="No-U-turn sampler: Hamiltonian paths of their own length, none to choose",
        references=(
            "Hoffman and Gelman (2014), arXiv:1111.4246",
            "Betancourt (2017), arXiv:1701.02434, appendix A",
        ),
        parts={"integrator": Part("integrator", "leapfrog"), "metric": Part("metric", "dense")},
        examples=({"step_size": 0.9, "max_depth": 2},),
    ),
    Component(
        kind="sampler",
        name="walnuts",
        factory="surrokit_hmc.nuts:NUTS",
        summary="NUTS with steps that are halved where the curvature is high, as in funnels",
        references=(_WALNUTS,),
        parts={
            "integrator": Part("integrator", "adaptive-leapfrog"),
            "metric": Part("metric", "dense"),
        },
        examples=(
            {
                "step_size": 1.2,
                "max_depth": 2,
                "integrator": ("adaptive-leapfrog", {"max_halvings": 4}),
            },
        ),
    ),
    Component(
        kind="sampler",
        name="gaussian",
        serves=("normal",),
        factory="surrokit_hmc.independent:GaussianMoves",
        summary="Independent draws from a normal surrogate, or shorter moves",
        references=(
            "Cotter, Roberts, Stuart and White (2013), arXiv:1202.0709",
            "Neal (1999), Regression and classification using Gaussian process priors",
        ),
        examples=({"step_size": 1.0}, {}),
    ),
    Component(
        kind="sampler",
        name="sub-chain",
        serves=("surrogate",),
        factory="surrokit_hmc.sub_chain:SubChain",
        summary="Many transitions on the surrogate for one exact call",
        references=(
            "Liu (2001), Monte Carlo Strategies in Scientific Computing, section 9.4.3",
            "Christen and Fox (2005), doi:10.1198/106186005X76983",
        ),
        parts={"kernel": Part("sampler", "hmc")},
        examples=(
            {"kernel": ("hmc", {"step_size": 0.7, "n_steps": 2}), "length": 2},
            {"kernel": "random-walk"},
        ),
    ),
    Component(
        kind="integrator",
        name="leapfrog",
        default=True,
        factory="surrokit_hmc.leapfrog:Leapfrog",
        summary="Leapfrog with merged half steps: one gradient a step",
        references=(f"{_PAPER}, Algorithm 1",),
    ),
    Component(
        kind="integrator",
        name="adaptive-leapfrog",
        factory="surrokit_hmc.adaptive:AdaptiveLeapfrog",
        summary="Leapfrog steps that are halved where the energy errs, undone by the same rule",
        references=(_WALNUTS,),
        examples=({}, {"max_error": 0.1}),
    ),
    Component(
        kind="metric",
        name="identity",
        factory="surrokit_hmc.metrics:IdentityMetric",
        summary="Unit masses, as in the paper's experiments",
        references=(f"{_PAPER}, section 2.1",),
    ),
    Component(
        kind="metric",
        name="diagonal",
        factory="surrokit_hmc.metrics:DiagonalMetric",
        summary="A diagonal mass matrix, tuned in warm-up unless given",
        examples=({}, {"inverse_mass": (0.5, 2.0)}),
        references=(f"{_NEAL}, section 5.4.1",),
    ),
    Component(
        kind="metric",
        name="dense",
        default=True,
        factory="surrokit_hmc.metrics:DenseMetric",
        summary="A full mass matrix, tuned in warm-up unless given",
        examples=({}, {"inverse_mass": ((1.0, 0.3), (0.3, 2.0))}),
        references=(f"{_NEAL}, section 5.4.1",),
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer samplers, the leapfrog integrator and constant metrics."""
    return _COMPONENTS
