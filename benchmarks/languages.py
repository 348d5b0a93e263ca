"""Models of other libraries by surrokit, beside the libraries' own NUTS, in one run.

    python benchmarks/languages.py --language pymc --model schools

Each model is written down in each language (the folder ``written``), with the same data. For each
it prints, of either sampler, the smallest effective sample size for means of the parameters, the
seconds of warm-up and draws, effective draws a second, and gradients for one effective draw; and
whether means and mean squares are the same within Monte Carlo error, by the least p-value times
their number. Models are sampled whole, not by a few rows. Compilation is not counted. Stan is
compiled by httpstan, which reads the data again at each of surrokit's calls, so that its seconds
there say little. Models with dear gradients have fewer draws.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests"
sys.path[:0] = [str(HERE), str(TESTS / "invariance"), str(TESTS / "plugins" / "stan")]

CHAINS, ACCEPTANCE = 4, 0.9
USUAL = 1000
LENGTHS = {
    ("items", "numpyro"): 300,
    ("items", "pymc"): 300,
    ("items", "stan"): 300,
    ("logistic", "numpyro"): 100,
    ("logistic", "pymc"): 100,
    ("logistic", "stan"): 100,
    ("epidemic", "numpyro"): 300,
    ("epidemic", "pymc"): 100,
    ("epidemic", "stan"): 500,
}
"""Iterations of warm-up, and draws of a chain as well, where they are not the usual ones."""


@attrs.frozen
class Drawn:
    """Draws by name, (chains, draws, ...) each, and what they cost."""

    draws: dict[str, np.ndarray]
    seconds: float
    gradients: float

    def line(self, names: list[str], varies: np.ndarray) -> str:
        """Return the figures as a line."""
        import surrokit as sk

        arrays = [self.draws[name] for name in names]
        flat = [array.reshape(*array.shape[:2], -1) for array in arrays]
        ess = sk.effective_sample_size(np.concatenate(flat, axis=2)[..., varies], "bulk").min()
        return (
            f"ESS {ess:6.0f}, {self.seconds:6.1f} s, {ess / self.seconds:7.1f} ESS/s, "
            f"{self.gradients / ess:6.1f} gradients/ESS"
        )


def by_surrokit(target: Any, length: int) -> tuple[Any, Drawn]:
    """Return a run of NUTS on a target, which has been compiled."""
    import surrokit as sk

    target.value_and_gradient(np.zeros((CHAINS, target.dim)))
    sampler = ("nuts", {"target_acceptance": ACCEPTANCE})
    start = time.perf_counter()
    run = sk.sample(target, sampler=sampler, warmup=length, draws=length, seed=2, progress=False)
    seconds = time.perf_counter() - start
    named = {name: run[name] for name in run.parameters.specs}
    return run, Drawn(named, seconds, run.calls["gradient"])


def pymc(name: str, length: int) -> tuple[Any, Callable[[], Drawn]]:
    """Return a model's target, and PyMC's own NUTS."""
    import pymc as library

    from surrokit_pymc import from_pymc
    from written import in_pymc

    model = in_pymc.model_of(name)

    def sample(n: int) -> Any:
        with model:
            return library.sample(
                n, tune=n, chains=CHAINS, cores=1, random_seed=3, progressbar=False,
                target_accept=ACCEPTANCE, compute_convergence_checks=False, nuts_sampler="pymc",
                discard_tuned_samples=False,
            )  # fmt: skip

    def own() -> Drawn:
        sample(2)  # compiles
        start = time.perf_counter()
        tree = sample(length)
        seconds = time.perf_counter() - start
        steps = sum(
            float(tree[group]["n_steps"].sum()) for group in ("sample_stats", "warmup_sample_stats")
        )
        posterior = tree["posterior"]
        return Drawn({key: posterior[key].values for key in posterior.data_vars}, seconds, steps)

    return from_pymc(model, rows=False), own


def numpyro(name: str, length: int) -> tuple[Any, Callable[[], Drawn]]:
    """Return a model's target, and NumPyro's own NUTS."""
    import jax
    import numpyro as library

    library.enable_x64()
    from surrokit_jax import from_numpyro
    from written import in_numpyro

    model = in_numpyro.MODELS[name]

    def own() -> Drawn:
        kernel = library.infer.NUTS(model, target_accept_prob=ACCEPTANCE)
        chains = library.infer.MCMC(
            kernel, num_warmup=length, num_samples=length, num_chains=CHAINS,
            chain_method="vectorized", progress_bar=False,
        )  # fmt: skip
        fields = ("num_steps",)
        chains.warmup(jax.random.PRNGKey(1), collect_warmup=True, extra_fields=fields)
        chains.run(jax.random.PRNGKey(1), extra_fields=fields)  # both compiled
        start = time.perf_counter()
        chains.post_warmup_state = None
        chains.warmup(jax.random.PRNGKey(3), collect_warmup=True, extra_fields=fields)
        steps = float(chains.get_extra_fields()["num_steps"].sum())
        chains.run(jax.random.PRNGKey(4), extra_fields=fields)
        draws = {k: np.asarray(v) for k, v in chains.get_samples(group_by_chain=True).items()}
        seconds = time.perf_counter() - start
        return Drawn(draws, seconds, steps + float(chains.get_extra_fields()["num_steps"].sum()))

    return from_numpyro(model, rows=False), own


def stan(name: str, length: int) -> tuple[Any, Callable[[], Drawn]]:
    """Return a model's target, and Stan's own NUTS."""
    from served_stan import ServedStan

    from surrokit_stan import from_stan
    from written import in_stan

    served = ServedStan(*in_stan.MODELS[name])
    target = from_stan(served)

    def own() -> Drawn:
        start = time.perf_counter()
        columns = served.sample(length, length, CHAINS, delta=ACCEPTANCE, save_warmup=True)
        seconds = time.perf_counter() - start
        draws = {}
        for key, spec in target.parameters.specs.items():
            numbers = [
                columns[".".join([key, *(str(i + 1) for i in index)])][:, length:]
                for index in np.ndindex(spec.shape)
            ]
            draws[key] = np.stack(numbers, axis=2).reshape(CHAINS, length, *spec.shape)
        return Drawn(draws, seconds, float(columns["n_leapfrog__"].sum()))

    return target, own


def compare(language: str, name: str) -> None:
    """Print how both samplers do on a model."""
    from means import least_p_value

    length = LENGTHS.get((name, language), USUAL)
    target, own = {"pymc": pymc, "numpyro": numpyro, "stan": stan}[language](name, length)
    run, ours = by_surrokit(target, length)
    theirs = own()
    names = list(run.parameters.specs)
    shapes = [{key: np.shape(each.draws[key]) for key in each.draws} for each in (ours, theirs)]
    if shapes[0] != shapes[1]:
        raise SystemExit(f"{name} in {language}: names or shapes differ, {shapes}")
    pairs = [(ours.draws[key], theirs.draws[key]) for key in names]
    p, n = least_p_value(pairs, varies=run.parameters.varies)
    print(f"{name} in {language}, {target.dim} parameters, {length} draws: p * n = {p * n:.2g}")
    print(f"  surrokit  {ours.line(names, run.parameters.varies)}")
    print(f"  its own   {theirs.line(names, run.parameters.varies)}", flush=True)


def main() -> None:
    """Compare what is asked for, or all."""
    models = (
        *("schools", "hierarchical", "grades", "covariance", "mixture"),
        *("items", "garch", "curve", "logistic", "epidemic"),
    )
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--language", choices=("pymc", "numpyro", "stan"), action="append")
    parser.add_argument("--model", choices=models, action="append")
    asked = parser.parse_args()
    for name in asked.model or models:
        for language in asked.language or ("numpyro", "pymc", "stan"):
            compare(language, name)


if __name__ == "__main__":
    main()
