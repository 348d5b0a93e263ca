"""Corrections: how the exact potential decides on proposals."""

from surrokit import Component, hookimpl

_COMPONENTS = (
    Component(
        kind="correction",
        name="metropolis",
        default=True,
        factory="surrokit_corrections.metropolis:Metropolis",
        summary="Metropolis-Hastings with the full exact potential: one value a proposal",
        references=("Zhang, Shahbaba and Zhao (2017), arXiv:1506.05555, appendix A",),
    ),
    Component(
        kind="correction",
        name="weights",
        serves=("answers",),
        factory="surrokit_corrections.weights:Weights",
        summary="Answers from draws of the surrogate, corrected by exact potentials at a few",
        references=(
            "Vehtari, Simpson, Gelman, Yao and Gabry (2024), arXiv:1507.02646, for the weights",
            "Owen and Zhou (2019), arXiv:1901.02976, for the rounds",
        ),
    ),
    Component(
        kind="correction",
        name="subsampled",
        serves=("rows",),
        factory="surrokit_corrections.subsampled:Subsampled",
        summary="Exact, by a few rows of a sum over data (capability rows) a proposal",
        references=(
            "Cornish, Vanetti, Bouchard-Cote, Deligiannidis and Doucet (2019), arXiv:1901.09881",
        ),
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer corrections."""
    return _COMPONENTS
