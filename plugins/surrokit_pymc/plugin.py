"""The components of surrokit_pymc."""

from surrokit import Component, hookimpl

_COMPONENTS = (
    Component(
        kind="potential",
        name="pymc",
        factory="surrokit_pymc.target:from_pymc",
        summary="A model written down with PyMC, with draws by its names",
        references=("Abril-Pla and others (2023), doi:10.7717/peerj-cs.1516",),
        examples=(),  # PyMC may be absent
    ),
    Component(
        kind="potential",
        name="bambi",
        factory="surrokit_pymc.bambi_model:from_bambi",
        summary="A regression written down as a formula with Bambi, with draws by its names",
        references=("Capretto and others (2022), doi:10.18637/jss.v103.i15",),
        examples=(),
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer models of PyMC and Bambi as targets."""
    return _COMPONENTS
