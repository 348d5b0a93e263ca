"""The Python part of the tutorial "First run"."""

# [check]
from coffee import smooth, target

import surrokit as sk

print(sk.check_gradient(smooth, [0.07, 22.0, 0.8]))
# [sample]
initial = {"rate": 0.05, "room": 20, "noise": 1}
run = sk.sample(smooth, surrogate="additive", initial=initial, warmup=600, draws=500, seed=3)
print(run.summary())
print({kind: n for kind, n in run.calls.items() if n})
# [without]
plain = sk.sample(target, surrogate="additive", initial=initial, warmup=2000, draws=500, seed=1)
print(plain.acceptance, plain.calls["value"])
# [end]
