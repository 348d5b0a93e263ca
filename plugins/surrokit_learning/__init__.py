"""Learning schedules and explorers."""

from surrokit import Component, Part, hookimpl

_PAPER = "Zhang, Shahbaba and Zhao (2017), arXiv:1506.05555"

_HMC = {"sampler": "hmc", "correction": "metropolis", "iterations": 30}
_WALK = {"sampler": "random-walk", "correction": "metropolis"}
_ROUNDS = {"sampler": "hmc", "tuned": "hmc"}
"""Settings of the examples."""

_COMPONENTS = (
    Component(
        kind="policy",
        name="automatic",
        default=True,
        factory="surrokit_learning.automatic:Automatic",
        summary="Plain HMC where calls are cheap, else the surrogate that needs the fewest",
        references=("Gelman, Roberts and Gilks (1996), for what a random walk is worth",),
        examples=({}, {"cheap": 0.0}),
    ),
    Component(
        kind="schedule",
        name="never",
        serves=("no-learning",),
        factory="surrokit_learning.schedules:Never",
        summary="Learn nothing: plain HMC and its kin",
        references=(f"{_PAPER}, Algorithm 1",),
    ),
    Component(
        kind="schedule",
        name="once",
        default=True,
        factory="surrokit_learning.schedules:Once",
        summary="Fit once when the exploration ends, then freeze",
        references=(f"{_PAPER}, Algorithm 3",),
    ),
    Component(
        kind="schedule",
        name="greville",
        factory="surrokit_learning.schedules:Greville",
        summary="Learn all along, deploy with a probability that vanishes",
        references=(
            f"{_PAPER}, Algorithm 4",
            "Roberts and Rosenthal (2007), Coupling and ergodicity of adaptive MCMC",
        ),
        examples=(
            {},
            {"freeze_after": 200, "kappa": 1.0, "learn_from": "states"},
            {"freeze_after": None, "derivatives": "never"},
            {"freeze_after": None, "rate": "logarithmic"},
        ),
    ),
    Component(
        kind="explorer",
        name="sampler",
        default=True,
        factory="surrokit_learning.sampler_explorer:SamplerExplorer",
        summary="The exact sampler's own burn-in",
        references=(f"{_PAPER}, Algorithm 3",),
        parts={
            "sampler": Part("sampler"),
            "correction": Part("correction"),
            "approach": Part("explorer", "approach"),
        },
        examples=(
            _HMC,
            {**_WALK, "evaluations": 40, "learn_from": "states"},
            {**_HMC, "discard": 5, "learn_from": "accepted"},
        ),
    ),
    Component(
        kind="explorer",
        name="approach",
        serves=("starts",),
        factory="surrokit_learning.approach:Approach",
        summary="Searches for modes, then chains spread about them: how exact samplers begin",
        references=("Zhang, Carpenter, Gelman and Vehtari (2022), arXiv:2108.03782",),
    ),
    Component(
        kind="explorer",
        name="rounds",
        serves=("surrogate", "differences"),
        factory="surrokit_learning.rounds:Rounds",
        summary="A search for the mode, then rounds of evaluations where the surrogate points",
        references=("Liu (1996), Metropolized independent sampling, doi:10.1007/BF00162521",),
        parts={
            "sampler": Part("sampler"),
            "correction": Part("correction", "metropolis"),
            "tuned": Part("sampler"),
        },
        examples=(
            _ROUNDS,
            {
                **_ROUNDS,
                "tuned": "random-walk",
                "gradients": False,
                "acceptance": 0.99,
                "evaluations": 150,
            },
        ),
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer schedules, explorers, and the policy that picks parts."""
    return _COMPONENTS
