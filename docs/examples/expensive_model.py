"""The Python part of the tutorial "Sample an expensive simulator"."""

# [sample]
import surrokit as sk

target = sk.make("potential", "lynx-hare")
run = sk.sample(target, surrogate="additive", warmup=500, draws=500, seed=3)
# [draws]
print(run)
print(run["alpha"].shape)
print(run["alpha"].mean(), run["alpha"].std())
# [summary]
print(run.summary())
# [costs]
print({kind: n for kind, n in run.calls.items() if n})
print(run.total_calls, run.calls_per_effective_draw())
print(run.seconds)
print(run.adaptation)
# [outputs]
print(run.outputs.shape)
# [end]
