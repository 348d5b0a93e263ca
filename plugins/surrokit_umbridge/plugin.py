"""The component of surrokit_umbridge."""

from surrokit import Component, hookimpl

_COMPONENTS = (
    Component(
        kind="potential",
        name="umbridge",
        factory="surrokit_umbridge.client:potential",
        summary="A model behind a server that speaks UM-Bridge, as log density or forward map",
        references=(
            "Seelinger and others (2023), doi:10.21105/joss.04748",
            "https://um-bridge-benchmarks.readthedocs.io",
        ),
        examples=(),  # there is no server to ask
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer models behind servers as targets."""
    return _COMPONENTS
