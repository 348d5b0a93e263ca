"""The component of surrokit_stan."""

from surrokit import Component, hookimpl

_COMPONENTS = (
    Component(
        kind="potential",
        name="stan",
        factory="surrokit_stan.target:from_stan",
        summary="A model written down in Stan, by BridgeStan, with draws by its names",
        references=(
            "Roualdes and others (2023), doi:10.21105/joss.05236",
            "Carpenter and others (2017), doi:10.18637/jss.v076.i01",
        ),
        examples=(),  # BridgeStan may be absent
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer models in Stan as targets."""
    return _COMPONENTS
