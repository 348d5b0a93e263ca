"""Ten ratios of one run, by which a change of speed or of cost is seen.

    OPENBLAS_NUM_THREADS=1 python benchmarks/watch.py
    OPENBLAS_NUM_THREADS=1 python benchmarks/watch.py --against HEAD~1

prints for each what is compared, both figures and their ratio, and with ``--against`` the ratio
that another commit has, measured in turns with this one. Seconds are of the processor. What a ratio
is divided by is not ours (bare products, scikit-learn's fits, Python's start) or is the paper's
HMC, so that ratios hardly depend on the machine. What a process does once, such as imports, counts
in the two last lines alone. Nothing is asserted: whoever reads it decides.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import numpy as np

from harness import ONE_THREAD, in_turns, measured, table

Figures = tuple[float, float]
"""Ours, and what it is compared with."""


def simulated(n_rows: int, dim: int, step_size: float, n_steps: int) -> Figures:
    """Return effective draws a second of a run as it comes, and of the paper's HMC."""
    import surrokit as sk

    measured(sk.make("potential", "simulated-logistic", n_rows=40_000, dim=5), seed=1, draws=10)
    target = sk.make("potential", "simulated-logistic", n_rows=n_rows, dim=dim)
    ours = measured(target, seed=1, draws=2000)
    path = ("hmc", {"step_size": step_size, "n_steps": n_steps, "metric": "identity"})
    begin = ours.run.draws[0, -1]
    paper = measured(target, sampler=path, chains=1, initial=begin, warmup=0, draws=100, seed=1)
    return ours.ess / ours.processor, paper.ess / paper.processor


def fit(solver: str) -> Figures:
    """Return seconds of 1000 effective draws of a regression, and of scikit-learn's fit."""
    from sklearn.linear_model import LogisticRegression

    from surrokit_sklearn import BayesianLogisticRegression

    rng = np.random.default_rng(1)
    features = rng.standard_normal((100_000, 50))
    chances = 1.0 / (1.0 + np.exp(-0.3 - features @ (0.5 * rng.standard_normal(50))))
    data = features, (rng.random(100_000) < chances).astype(int)
    seeds = itertools.count()  # figures of the same draws are computed once
    calls = {
        "ours": lambda: BayesianLogisticRegression(random_state=next(seeds)).fit(*data),
        "theirs": lambda: LogisticRegression(C=1e3, solver=solver).fit(*data),
    }
    seconds = in_turns(calls, 3, clock=time.process_time)
    return float(np.median(seconds["ours"])), float(np.median(seconds["theirs"]))


def network() -> Figures:
    """Return microseconds of a gradient of 1000 nodes, and of the bare products in it."""
    import surrokit as sk
    from surrokit.interfaces import Evaluations, LearningProblem

    rng = np.random.default_rng(0)
    places = rng.standard_normal((400, 50))
    values = 0.5 * (places**2).sum(axis=1) + np.log1p(places[:, 0] ** 2)
    problem = LearningProblem(dim=50, capabilities=frozenset())
    learner = sk.make("surrogate", "additive", n_nodes=1000).learner(problem, rng)
    learner.observe(Evaluations(positions=places, values=values))
    fitted, positions = learner.fit(), rng.standard_normal((4, 50))
    first, second = rng.standard_normal((50, 1000)), np.asfortranarray(np.ones((1000, 50)))
    hidden, gradient = np.empty((4, 1000)), np.empty((4, 50))

    def bare() -> None:
        np.matmul(positions, first, out=hidden)
        np.tanh(hidden, out=hidden)
        np.matmul(hidden, second, out=gradient)

    calls = {"ours": lambda: fitted.gradient(positions), "bare": bare}
    seconds = in_turns(calls, 50, each=20)
    return 1e6 * float(np.median(seconds["ours"])), 1e6 * float(np.median(seconds["bare"]))


def overhead() -> Figures:
    """Return microseconds of a gradient of one chain in a run of HMC, and in a bare loop.

    All of the run counts: paths of 5.5 steps on average, decisions, records and the verdict.
    """
    import surrokit as sk

    target = sk.potential(
        lambda q: 0.5 * np.square(q).sum(axis=1), lambda q: q, dim=20, batched=True
    )
    path = ("hmc", {"step_size": 0.2, "n_steps": 10, "metric": "identity"})
    runs = [measured(target, sampler=path, warmup=0, draws=n, seed=1) for n in (10, *[2000] * 3)]
    ours = float(np.median([each.processor / each.run.calls["gradient"] for each in runs[1:]]))
    q, p, began = np.ones((4, 20)), np.ones((4, 20)), time.process_time()
    for _ in range(20_000):
        p -= 0.1 * q
        q += 0.2 * p
        p -= 0.1 * q
    return 1e6 * ours, 1e6 * (time.process_time() - began) / 20_000 / 4


def sub_chain() -> Figures:
    """Return calls an effective draw of the lynx-hare posterior as it comes, and of plain HMC."""
    ours = measured("lynx-hare", seed=1, draws=300)
    plain = measured("lynx-hare", sampler="hmc", seed=1, warmup=300, draws=100)
    return ours.run.total_calls / ours.ess, plain.run.total_calls / plain.ess


def paths() -> Figures:
    """Return gradients an effective draw of a correlated normal as it comes, and of NUTS."""
    import surrokit as sk

    shape = 0.5 ** np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
    target = sk.make("potential", "gaussian", mean=np.zeros(20), covariance=shape)
    runs = [measured(target, seed=1), measured(target, sampler="nuts", seed=1)]
    ours, nuts = (each.run.total_calls / each.ess for each in runs)
    return ours, nuts


def start(*command: str) -> Figures:
    """Return processor seconds of a command, and of a process that imports NumPy."""

    def seconds(*words: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    pairs = [(seconds("-m", "surrokit", *command), seconds("-c", "import numpy")) for _ in range(4)]
    ours, bare = np.median(pairs[1:], axis=0)
    return float(ours), float(bare)


WATCHED: dict[str, tuple[str, Callable[[], Figures]]] = {
    "rows 10^5 x 50": ("ESS/s, paper's HMC", lambda: simulated(100_000, 50, 0.045, 6)),
    "rows 10^6 x 20": ("ESS/s, paper's HMC", lambda: simulated(1_000_000, 20, 0.0142, 6)),
    "price of a fit, lbfgs": ("s, lbfgs", lambda: fit("lbfgs")),
    "price of a fit, newton": ("s, newton-cholesky", lambda: fit("newton-cholesky")),
    "network's gradient": ("us, bare products", network),
    "a gradient in a run": ("us a chain, bare leapfrog", overhead),
    "lynx and hare": ("calls/ESS, plain HMC", sub_chain),
    "normal, 20": ("gradients/ESS, nuts", paths),
    "surrokit --help": ("s, import numpy", lambda: start("--help")),
    "surrokit sample": ("s, import numpy", lambda: start("sample", "gaussian", "--draws", "500")),
}


def measure(names: list[str]) -> Iterator[tuple[str, Figures]]:
    """Yield figures by name, as they are there."""
    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield name, WATCHED[name][1]()


def elsewhere(folder: Path, name: str) -> Figures:
    """Return the figures that the code in another folder has."""
    path = os.pathsep.join(map(str, (folder, folder / "plugins", folder / "benchmarks")))
    command = [sys.executable, str(Path(__file__).resolve()), "--json", "--only", name]
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": path}
    found = subprocess.run(command, check=True, capture_output=True, env=environment, text=True)
    ours, other = json.loads(found.stdout)[name]
    return ours, other


@click.command(help=__doc__)
@click.option("--only", multiple=True, help="Names of ratios; all by default.")
@click.option("--against", metavar="COMMIT", help="A commit to compare with.")
@click.option("--json", "as_json", is_flag=True, help="Print figures alone.")
def main(only: tuple[str, ...], against: str | None, as_json: bool) -> None:
    """Print the table."""
    names = list(only or WATCHED)
    if as_json:
        click.echo(json.dumps(dict(measure(names))))
        return
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder) / "there"
        if against is not None:
            subprocess.run(["git", "worktree", "add", "-q", "-d", there, against], check=True)
        for name in names:
            ours, other = elsewhere(Path(__file__).parents[1], name)
            cells = [name, WATCHED[name][0], f"{ours:.3g}", f"{other:.3g}", f"{ours / other:.2f}"]
            if against is not None:
                before, bare = elsewhere(there, name)
                cells.append(f"{before / bare:.2f}")
            click.echo(" ".join(cells), err=True)
            lines.append(cells)
        if against is not None:
            subprocess.run(["git", "worktree", "remove", "--force", there], check=True)
    heads = ["what", "unit, compared with", "ours", "theirs", "ratio"]
    click.echo("\n".join(table([*heads, "there"] if against else heads, lines)))


if __name__ == "__main__":
    main()
