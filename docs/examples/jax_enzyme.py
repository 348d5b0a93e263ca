"""An enzyme's speed, as a log density and as a forward map in JAX; the tutorial includes it."""

import jax
import jax.numpy as jnp
import numpy as np

import surrokit as sk
from surrokit_jax import forward_from_jax, from_jax

jax.config.update("jax_enable_x64", True)  # before any array is made

# [density]
substrate = jnp.array([0.02, 0.06, 0.11, 0.22, 0.56, 1.10])
speed = jnp.array([61.5, 102.0, 131.0, 155.5, 196.0, 203.5])


def log_density(top, half, noise):
    expected = top * substrate / (half + substrate)
    prior = -0.5 * (top / 200) ** 2 - half - noise / 20
    return prior - 0.5 * jnp.sum(((speed - expected) / noise) ** 2) - 6 * jnp.log(noise)


parameters = {"top": (0, None), "half": (0, None), "noise": (0, None)}
target = from_jax(log_density, parameters)

# [sample]
run = sk.sample(target, seed=1)
print(run.summary())
print(run.calls["gradient"], "gradients")

# [tree]
tree = {"layer": {"weights": np.zeros((2, 3)), "bias": np.zeros(3)}}


def of_tree(tree):
    return -0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree_util.tree_leaves(tree))


print(list(from_jax(of_tree, example=tree).parameters.specs))

# [forward]
target = forward_from_jax(
    lambda top, half: top * substrate / (half + substrate),
    {"top": (0, None), "half": (0, None)},
    data=speed,
    noise_sd=10.0,
    prior=sk.gaussian_prior(mean=[200, 0.1], sd=[100, 0.1]),
)
print(", ".join(sorted(target.capabilities)))
