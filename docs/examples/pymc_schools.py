"""Eight schools, written down with PyMC; the tutorial includes it."""

import numpy as np
import pymc as pm

import surrokit as sk
from surrokit_pymc import from_pymc

# [model]
effects = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
errors = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
names = ["Choate", "Deerfield", "Andover", "Exeter", "Hotchkiss", "Lawrence", "Paul", "Hermon"]

with pm.Model(coords={"school": names}) as schools:
    mu = pm.Normal("mu", 0, 5)
    tau = pm.HalfCauchy("tau", 5)
    eta = pm.Normal("eta", 0, 1, dims="school")
    theta = pm.Deterministic("theta", mu + tau * eta, dims="school")
    pm.Normal("effects", theta, errors, observed=effects, dims="school")

target = from_pymc(schools)

# [sample]
nuts = ("nuts", {"target_acceptance": 0.95})
run = sk.sample(target, sampler=nuts, seed=1)
print(run["theta"].shape, f"tau = {run['tau'].mean():.2f}")
print(run.summary())

# [initial]
start = {"mu": 4.0, "tau": 3.0, "eta": np.zeros(8)}
again = sk.sample(target, sampler=nuts, initial=start, seed=1)

# [predictive]
tree = run.to_arviz()
with schools:
    drawn = pm.sample_posterior_predictive(tree, random_seed=2, progressbar=False)
choate = drawn["posterior_predictive"]["effects"].sel(school="Choate")
print(choate.shape, f"{float((choate > 28.0).mean()):.2f}")
