"""Snippets of the guide "Use the paper's scheme"."""

# [scheme]
import surrokit as sk

target = sk.make("potential", "simulated-logistic", n_rows=20_000, dim=10)
run = sk.sample(
    target,
    sampler=("hmc", {"step_size": 0.045, "n_steps": 6, "metric": "identity"}),
    surrogate=("additive-paper", {"n_nodes": 200, "ridge": 1e-6}),
    schedule="once",
    explorer=("sampler", {"iterations": 250, "discard": 50, "learn_from": "states"}),
    chains=1,
    warmup=300,
    draws=500,
    seed=1,
)
print(run.acceptance, run.ess("paper"))
# [rbf]
paper_rbf = ("rbf-paper", {"n_nodes": 200, "ridge": 1e-6, "width_scale": 1.0})
# [fixed]
fixed = {"step_size": 0.045, "n_steps": 6, "metric": "identity", "randomize": False}
run = sk.sample(target, sampler=("hmc", fixed), warmup=100, draws=100, seed=1)
# [end]
