"""Eight schools, written down with NumPyro; the tutorial includes it."""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist

import surrokit as sk
from surrokit_jax import from_numpyro

numpyro.enable_x64()  # before any array is made

# [model]
effects = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
errors = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools(errors, effects=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", len(errors)):
        eta = numpyro.sample("eta", dist.Normal(0, 1))
        theta = numpyro.deterministic("theta", mu + tau * eta)
        numpyro.sample("effects", dist.Normal(theta, errors), obs=effects)


target = from_numpyro(schools, errors, effects=effects)

# [sample]
run = sk.sample(target, sampler="nuts", seed=1)
print(run["theta"].shape, f"tau = {run['tau'].mean():.2f}")
print(run.summary())

# [initial]
start = {"mu": 4.0, "tau": 3.0, "eta": np.zeros(8)}
run = sk.sample(target, sampler="nuts", initial=start, seed=1)

# [predictive]
names = ("mu", "tau", "eta")
draws = {name: run[name].reshape(-1, *run[name].shape[2:]) for name in names}
predictive = numpyro.infer.Predictive(schools, posterior_samples=draws)
drawn = predictive(jax.random.PRNGKey(2), errors)
print(drawn["effects"].shape)
