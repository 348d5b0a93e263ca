"""The error of means against exact calls: weighted answers, chains, plain HMC, and PyVBMC.

An interpreter that has PyPI's ``pyvbmc`` and surrokit may be named for the latter. Curves are kept
in a file, and are not measured again. It takes an hour and a half.

    python docs/pictures/hundred_calls.py --pyvbmc path/to/python
"""

import json
import subprocess
from pathlib import Path

import click
import matplotlib.pyplot as plt
import numpy as np
from style import BLUE, GREEN, GREY, ORANGE, VERMILION, save

import surrokit as sk

BENDS, NARROW = np.array([0.5, -0.3, 0.2]), 0.5


def banana():
    """Return a normal number, and three that lie about multiples of its square."""

    def both(q):
        away = (q[:, 1:] - BENDS * (np.square(q[:, :1]) - 1.0)) / NARROW**2
        slopes = np.hstack([q[:, :1] * (1.0 - 2.0 * away @ BENDS[:, None]), away])
        return 0.5 * (np.square(q[:, 0]) + np.square(NARROW * away).sum(axis=1)), slopes

    return sk.potential(value_and_gradient=both, dim=4, batched=True)


def of_banana():
    """Return its means and standard deviations."""
    return np.zeros(4), np.array([1.0, *np.sqrt(NARROW**2 + 2.0 * BENDS**2)])


TITLES = {
    "lynx-hare": "lynx-hare (8 parameters)",
    "elliptic-pde": "elliptic-pde (20 parameters)",
    "logistic": "logistic regression (20 parameters)",
    "banana": "three curved arms (4 parameters)",
}
TARGETS = {
    "lynx-hare": lambda: sk.make("potential", "lynx-hare"),
    "elliptic-pde": lambda: sk.make("potential", "elliptic-pde"),
    "logistic": lambda: sk.make("potential", "simulated-logistic", n_rows=20_000, dim=20),
    "banana": banana,
}
LIMITS = {
    "lynx-hare": (100, 150, 250, 500),
    "elliptic-pde": (100, 150, 250, 400),
    "logistic": (100, 150, 250),
    "banana": (100, 200, 300, 500),
}
SEEDS = (1, 2, 3)
CHAIN_CALLS = (250, 500, 1000, 2000, 4000)
HMC_CALLS = (1000, 2000, 4000, 8000)
CHAINS, LONG = 4, 16
PEER_VALUES = (100, 200, 300, 400)
HALF_WIDTH, PATIENCE = 4.0, 1500.0
WEIGHTED, STATED = "weighted answers", "stated error"
CHAIN, HMC, PEER = "chain on a surrogate", "plain HMC", "PyVBMC, values alone"
STYLES = {
    HMC: ("s-", ORANGE),
    CHAIN: ("o-", BLUE),
    PEER: ("D-", GREEN),
    WEIGHTED: ("^-", VERMILION),
    STATED: ("--", GREY),
}
PARTS = {
    "sampler": "sub-chain",
    "surrogate": "additive",
    "explorer": "rounds",
    "schedule": "once",
    "progress": False,
}


def calls_of(trace):
    """Return the exact calls of a trace, shape (iterations,), counted from the run's start."""
    return sum(np.asarray(calls) for kind, calls in trace.calls.items() if kind != "rows")


def blocks(draws, length):
    """Yield disjoint parts of a run, each of four chains and so many draws."""
    for chain in range(0, len(draws), CHAINS):
        for start in range(0, draws.shape[1] - length + 1, length):
            yield draws[chain : chain + CHAINS, start : start + length].reshape(-1, draws.shape[2])


def rms(deviations):
    """Return the root mean square."""
    return float(np.sqrt(np.mean(np.square(deviations))))


def of_blocks(draws, lengths, truth):
    """Return the error of means over so many draws of four chains, for each length."""
    mean, sd = truth
    return [rms([(each.mean(axis=0) - mean) / sd for each in blocks(draws, n)]) for n in lengths]


def weigh(name, truth):
    """Return curves of weighted answers: calls and error, and the stated error."""
    mean, sd = truth
    curves = []
    for limit in LIMITS[name]:
        calls, found, stated = [], [], []
        for seed in SEEDS:
            # an aim that no run reaches, so that each spends its calls
            options = {"max_calls": limit, "correction": ("weights", {"aim": 1e-3}), **PARTS}
            run = sk.sample(TARGETS[name](), seed=seed, **options)
            if run.answer is None:
                print(name, limit, seed, "rejected", flush=True)
                continue
            answer = run.answer.mean()
            calls.append(run.total_calls)
            found.append((answer.value - mean) / sd)
            stated.append(answer.error / sd)
            print(name, limit, seed, run.total_calls, rms(found[-1]), rms(stated[-1]), flush=True)
        if calls:
            curves.append((float(np.mean(calls)), rms(found), rms(stated)))
    calls, found, stated = zip(*curves, strict=True)
    return {WEIGHTED: (calls, found), STATED: (calls, stated)}


def sample_exactly(name):
    """Return a long chain on the surrogate, and the calls before its first draw."""
    long = sk.sample(TARGETS[name](), chains=LONG, draws=4000, seed=100, **PARTS)
    short = sk.sample(TARGETS[name](), chains=CHAINS, draws=1, seed=1, **PARTS)
    print(name, "R-hat", long.rhat().max(), "effective draws", long.ess("bulk").min(), flush=True)
    return long.draws, int(short.total_calls) - CHAINS


def plain_hmc(name, truth):
    """Return calls and errors of plain HMC."""
    target = TARGETS[name]()
    if name == "elliptic-pde":  # HMC goes by gradients of the adjoint
        target = sk.make("potential", name, outputs=False)
    run = sk.sample(target, sampler="hmc", chains=CHAINS, draws=2000, seed=100, progress=False)
    before = calls_of(run.warmup)[-1]
    each = (run.total_calls - before) / run.draws.shape[1]
    lengths = [int(n / each) for n in HMC_CALLS]
    return [float(before + n) for n in HMC_CALLS], of_blocks(run.draws, lengths, truth)


def of_pyvbmc(name, seed, where):
    """Return the values evaluated and the means of variational posteriors, in the peer's Python."""
    from pyvbmc import VBMC

    target, (low, high) = TARGETS[name](), np.array(where)
    np.random.seed(seed)  # noqa: NPY002 - the package draws from NumPy's global generator
    found = VBMC(
        lambda z: max(-float(target.value(np.atleast_2d(z))[0]), -1e10),
        0.5 * (low + high)[None],
        plausible_lower_bounds=low[None],
        plausible_upper_bounds=high[None],
        options={
            "max_fun_evals": max(PEER_VALUES),
            "min_fun_evals": max(PEER_VALUES),
            "display": "off",
        },
    )
    found.optimize()
    history, back = found.iteration_history, getattr(target, "transform", None)
    rows = []
    for limit in PEER_VALUES:
        done = [k for k, n in enumerate(history["func_count"]) if n <= limit]
        if done:
            draws = history["vp"][done[-1]].sample(100_000)[0]
            draws = draws if back is None else back.to_bounded(draws)
            rows.append((limit, int(history["func_count"][done[-1]]), draws.mean(axis=0).tolist()))
    return rows


def peer(python, name, draws, truth):
    """Return values and errors of PyVBMC with plausible bounds as in the benchmarks."""
    transform = getattr(TARGETS[name](), "transform", None)
    flat = draws.reshape(-1, draws.shape[2])
    flat = flat if transform is None else transform.to_unbounded(flat)
    low, middle, high = np.quantile(flat, [0.16, 0.5, 0.84], axis=0)
    sds, found = 0.5 * (high - low), {}
    for seed in SEEDS:
        off = np.random.default_rng(1000 + seed).uniform(-1.0, 1.0, len(sds))
        where = [(middle + (off + side * HALF_WIDTH) * sds).tolist() for side in (-1, 1)]
        command = [python, __file__, "--here", json.dumps([name, seed, where])]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            print(name, "PyVBMC", seed, f"not over after {PATIENCE:.0f} s", flush=True)
            continue
        if done.returncode:
            print(name, "PyVBMC", seed, done.stderr.strip().splitlines()[-1], flush=True)
            continue
        for limit, values, mean in json.loads(done.stdout.splitlines()[-1]):
            found.setdefault(limit, []).append((values, (np.array(mean) - truth[0]) / truth[1]))
            print(name, "PyVBMC", seed, values, rms(found[limit][-1][1]), flush=True)
    every = found.values()
    return [float(np.mean([n for n, _ in each])) for each in every], [
        rms([off for _, off in each]) for each in every
    ]


def measure(name, python):
    """Return calls and errors of each method."""
    draws, before = sample_exactly(name)
    flat = draws.reshape(-1, draws.shape[2])
    truth = of_banana() if name == "banana" else (flat.mean(axis=0), flat.std(axis=0))
    lengths = [int((n - before) // CHAINS) for n in CHAIN_CALLS if n - before >= 10 * CHAINS]
    calls = [float(before + CHAINS * n) for n in lengths]
    curves = {HMC: plain_hmc(name, truth), CHAIN: (calls, of_blocks(draws, lengths, truth))}
    if python:
        curves[PEER] = peer(python, name, draws, truth)
    return {**curves, **weigh(name, truth)}


def draw(axes, title, measured):
    """Draw the curves of one problem."""
    for label, (calls, errors) in measured.items():
        if not calls:
            continue
        style, colour = STYLES[label]
        axes.loglog(calls, errors, style, color=colour, ms=4, lw=1.2, label=label)
        print(
            f"{title:36s} {label:22s}",
            *(f"{n:.0f}: {e:.4f}" for n, e in zip(calls, errors, strict=True)),
        )
    axes.set_title(title)
    axes.set_xticks([100, 300, 1000, 3000, 10000], ["100", "300", "1000", "3000", "10,000"])
    axes.set_yticks([0.003, 0.01, 0.03, 0.1, 0.3], ["0.003", "0.01", "0.03", "0.1", "0.3"])
    axes.minorticks_off()


def picture(measured):
    """Draw and save the picture."""
    figure, panels = plt.subplots(
        2, 2, figsize=(7.4, 5.6), layout="constrained", sharex=True, sharey=True
    )
    for axes, (name, title) in zip(panels.flat, TITLES.items(), strict=True):
        draw(axes, title, measured[name])
    for axes in panels[:, 0]:
        axes.set_ylabel("error of means, in posterior sds")
    for axes in panels[1]:
        axes.set_xlabel("exact calls, all counted")
    panels[0, 0].legend(fontsize=8)
    save(figure, "hundred-calls")


@click.command(help=__doc__.partition("\n")[0])
@click.option("--pyvbmc", help="Interpreter that has PyVBMC and surrokit.")
@click.option("--kept", default="hundred_calls.json", type=click.Path(path_type=Path))
@click.option("--only", multiple=True, type=click.Choice(list(TARGETS)), default=list(TARGETS))
@click.option("--here", hidden=True)
def main(pyvbmc, kept, only, here):
    """Measure what is not kept yet, and draw the picture once all is there."""
    if here is not None:
        print(json.dumps(of_pyvbmc(*json.loads(here))))
        return
    for name in only:
        measured = json.loads(kept.read_text()) if kept.exists() else {}
        if name not in measured:
            measured[name] = measure(name, pyvbmc)
            kept.write_text(json.dumps(measured, indent=1))
    if measured.keys() >= TARGETS.keys():
        picture(measured)


if __name__ == "__main__":
    main()
