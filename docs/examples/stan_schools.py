"""Eight schools, written down in Stan; the tutorial includes it."""

import sys
from pathlib import Path

import bridgestan
import numpy as np

import surrokit as sk
from surrokit_stan import from_stan

places = [Path(folder) / "schools.stan" for folder in sys.path]
program = next(place for place in places if place.is_file())  # it lies beside this script

# [model]
data = {
    "J": 8,
    "effects": [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0],
    "errors": [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0],
}
model = bridgestan.StanModel(program, data)
target = from_stan(model)

# [sample]
run = sk.sample(target, sampler=("nuts", {"target_acceptance": 0.95}), seed=1)
print(run["theta"].shape, run["again"].shape, f"tau = {run['tau'].mean():.2f}")
print(run.labels[:3])

# [initial]
start = {"mu": 4.0, "tau": 3.0, "eta": np.zeros(8)}
again = sk.sample(target, sampler=("nuts", {"target_acceptance": 0.95}), initial=start, seed=1)
