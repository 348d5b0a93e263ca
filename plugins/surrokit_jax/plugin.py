"""The components of surrokit_jax."""

from surrokit import Component, hookimpl

_JAX = "https://docs.jax.dev"

_COMPONENTS = (
    Component(
        kind="potential",
        name="jax",
        factory="surrokit_jax.density:from_jax",
        summary="A log density written in JAX, with derivatives up to the third",
        references=(_JAX,),
        examples=(),  # JAX may be absent
    ),
    Component(
        kind="potential",
        name="jax-forward",
        factory="surrokit_jax.forward:forward_from_jax",
        summary="A forward map written in JAX, with Jacobian, adjoint and second derivatives",
        references=(_JAX,),
        examples=(),
    ),
    Component(
        kind="potential",
        name="numpyro",
        factory="surrokit_jax.numpyro_model:target_of",
        summary="A model written down with NumPyro, with draws by its names",
        references=("Phan, Pradhan and Jankowiak 2019, arXiv:1912.11554", "https://num.pyro.ai"),
        examples=(),
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer targets written in JAX and with NumPyro."""
    return _COMPONENTS
