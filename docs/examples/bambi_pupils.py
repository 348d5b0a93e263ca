"""Marks of pupils in twelve rooms, as a formula of Bambi; the tutorial includes it."""

import bambi as bmb
import numpy as np
import pandas as pd

import surrokit as sk
from surrokit_pymc import from_bambi

# [model]
rng = np.random.default_rng(1)
rooms, hours = np.repeat(list("abcdefghijkl"), 10), rng.uniform(0, 10, 120)
level = np.repeat(rng.normal(0, 1.5, 12), 10)
mark = 5.0 + 0.8 * hours + level + rng.normal(0, 1, 120)
pupils = pd.DataFrame({"mark": mark, "hours": hours, "room": pd.Categorical(rooms)})

marks = bmb.Model("mark ~ hours + (1|room)", pupils)
target = from_bambi(marks)

# [sample]
run = sk.sample(target, sampler=("nuts", {"target_acceptance": 0.95}), seed=1)
tree = run.to_arviz()
print(tree["posterior"].data_vars)
new = pd.DataFrame({"hours": [2.0, 8.0], "room": pd.Categorical(["a", "l"])})
marks.predict(tree, kind="response_params", data=new)
print(tree["posterior"]["mu"].mean(("chain", "draw")).round(1).values)
