"""The error of means against exact calls: weighted answers, a chain on a surrogate, plain HMC."""

import matplotlib.pyplot as plt
import numpy as np
from style import BLUE, GREY, ORANGE, VERMILION, save

import surrokit as sk

PROBLEMS = {"lynx-hare": "lynx-hare (8 parameters)", "elliptic-pde": "elliptic-pde (20 parameters)"}
LIMITS = {"lynx-hare": (100, 150, 250, 500), "elliptic-pde": (100, 150, 250)}
SEEDS = (1, 2, 3)
CHAIN_CALLS = (250, 500, 1000, 2000, 4000)
HMC_CALLS = (1000, 2000, 4000, 8000)
CHAINS, LONG = 4, 16
STYLES = {
    "plain HMC": ("s-", ORANGE),
    "chain on a surrogate": ("o-", BLUE),
    "weighted answers": ("^-", VERMILION),
    "error that they tell": ("--", GREY),
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


def deviations(draws, reference):
    """Return (mean - reference mean) / reference sd of each number of a position."""
    mean, sd = reference
    return (draws.reshape(-1, draws.shape[-1]).mean(axis=0) - mean) / sd


def blocks(draws, length):
    """Yield disjoint parts of a run, each of four chains and so many draws."""
    for chain in range(0, len(draws), CHAINS):
        for start in range(0, draws.shape[1] - length + 1, length):
            yield draws[chain : chain + CHAINS, start : start + length]


def rms(deviation):
    """Return the root mean square."""
    return float(np.sqrt(np.mean(np.square(deviation))))


def of_blocks(draws, lengths, reference):
    """Return the error of means over so many draws of four chains, for each length."""
    return [rms([deviations(each, reference) for each in blocks(draws, n)]) for n in lengths]


def weighted(name, limit, reference):
    """Return calls, error, and the error that the runs tell."""
    calls, found, told = [], [], []
    for seed in SEEDS:
        # an aim that no run reaches, so that each spends its calls
        correction = ("weights", {"aim": 1e-3})
        run = sk.sample(name, max_calls=limit, correction=correction, seed=seed, **PARTS)
        mean = run.answer.mean()
        calls.append(run.total_calls)
        found.append((mean.value - reference[0]) / reference[1])
        told.append(mean.error / reference[1])
        print(name, limit, seed, run.total_calls, rms(found[-1]), rms(told[-1]))
    return float(np.mean(calls)), rms(found), rms(told)


def exact_run(name):
    """Return a long chain on the surrogate, and the calls that one pays before its first draw."""
    long = sk.sample(name, chains=LONG, draws=4000, seed=100, **PARTS)
    short = sk.sample(name, chains=CHAINS, draws=1, seed=1, **PARTS)
    print(name, "R-hat", long.rhat().max(), "effective draws", long.ess("bulk").min())
    return long.draws, int(short.total_calls) - CHAINS


def plain_hmc(name, reference):
    """Return calls and errors of plain HMC."""
    # where a gradient by the adjoint is to be had, HMC goes by it
    settings = {"outputs": False} if name == "elliptic-pde" else {}
    target = sk.make("potential", name, **settings)
    run = sk.sample(target, sampler="hmc", chains=CHAINS, draws=2000, seed=100, progress=False)
    before = calls_of(run.warmup)[-1]
    each = (run.total_calls - before) / run.draws.shape[1]
    lengths = [int(n / each) for n in HMC_CALLS]
    return before + np.array(HMC_CALLS), of_blocks(run.draws, lengths, reference)


def measure(name):
    """Return calls and errors of each method."""
    draws, before = exact_run(name)
    flat = draws.reshape(-1, draws.shape[2])
    reference = flat.mean(axis=0), flat.std(axis=0)
    lengths = (np.array(CHAIN_CALLS) - before) // CHAINS
    answers = np.array([weighted(name, limit, reference) for limit in LIMITS[name]])
    return {
        "plain HMC": plain_hmc(name, reference),
        "chain on a surrogate": (CHAIN_CALLS, of_blocks(draws, lengths, reference)),
        "weighted answers": (answers[:, 0], answers[:, 1]),
        "error that they tell": (answers[:, 0], answers[:, 2]),
    }


def draw(axes, title, measured):
    """Draw the curves of one problem."""
    for label, (calls, errors) in measured.items():
        style, colour = STYLES[label]
        axes.loglog(calls, errors, style, color=colour, ms=4, lw=1.2, label=label)
        print(
            f"{title:32s} {label:22s}",
            *(f"{n:.0f}: {e:.4f}" for n, e in zip(calls, errors, strict=True)),
        )
    axes.set(xlabel="exact calls, all counted", title=title)
    axes.set_xticks([100, 300, 1000, 3000, 10000], ["100", "300", "1000", "3000", "10,000"])
    axes.set_yticks([0.005, 0.01, 0.02, 0.05], ["0.005", "0.01", "0.02", "0.05"])
    axes.minorticks_off()


def picture(measured):
    """Draw and save the picture."""
    figure, panels = plt.subplots(1, 2, figsize=(7.4, 3.0), layout="constrained", sharey=True)
    for axes, (name, title) in zip(panels, PROBLEMS.items(), strict=True):
        draw(axes, title, measured[name])
    panels[0].set_ylabel("error of means, in posterior sds")
    panels[1].legend(fontsize=8)
    save(figure, "hundred-calls")


if __name__ == "__main__":
    picture({name: measure(name) for name in PROBLEMS})
