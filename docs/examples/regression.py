"""Snippets of the guide "Regressions from tables"."""

# [table]
import numpy as np
import pandas as pd

import surrokit as sk

rng = np.random.default_rng(1)
n = 500
frame = pd.DataFrame(
    {
        "age": rng.uniform(20.0, 80.0, n).round(),
        "clinic": rng.choice(["a", "b", "c"], n),
        "income": np.exp(rng.normal(10.0, 0.5, n)).round(),
        "years": rng.uniform(0.5, 3.0, n).round(1),
    }
)
rate = np.exp(-3.0 + 0.02 * frame.age + 0.5 * (frame.clinic == "b") + 0.2 * np.log(frame.income))
frame["visits"] = rng.poisson(frame.years * rate)
frame["often"] = np.where(frame.visits > 3, "yes", "no")
frame["log_years"] = np.log(frame.years)

# [counts]
target = sk.glm(
    "visits ~ age + C(clinic) + np.log(income)",
    data=frame,
    family="poisson",
    prior=2.5,
    offset="log_years",
)
run = sk.sample(target, seed=1)
for name, row in run.summary().rows():
    print(f"{name:15} {row['mean']:8.3f} {row['sd']:7.3f}")

# [ratio]
ratio = np.exp(run["C(clinic)[T.b]"])
print(f"clinic b to clinic a: {ratio.mean():.2f}")

# [levels]
target = sk.glm("often ~ age + years", frame, "logistic", prior={"age": 0.1, "years": (1.0, 2.0)})
print(target.parameters.labels)

# [ordered]
frame["use"] = np.array(["never", "some", "much"])[np.digitize(frame.visits, [1, 4])]
ordered = sk.glm("use ~ age", frame, "ordinal", levels=["never", "some", "much"], prior=2.5)
draws = sk.sample(ordered, seed=1)
print(draws.parameters.labels)
chances = draws.predict_proba({"age": [30.0, 70.0]})  # of two people
print(chances.round(2))

# [missing]
holes = frame.copy()
holes.loc[[3, 8], "age"] = np.nan
try:
    sk.glm("visits ~ age", holes, "poisson")
except ValueError as error:
    print(error)

# [tied]
try:
    sk.glm("visits ~ age + months", frame.assign(months=12 * frame.age), "poisson")
except ValueError as error:
    print(error)

# [end]
