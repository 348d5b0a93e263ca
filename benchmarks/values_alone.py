"""Values alone, beside peers: how many until R-hat is below 1.01 and 400 draws are effective.

Every value of the log density counts: searches, exploration, warm-up and draws. A result is right
if it agrees with the reference as ``real_posteriors.judging`` has it; 400 independent draws of one
parameter miss that once in 60 times.

- ours: the default, a sub-chain, and one after an active exploration, with ``target_ess=400``,
  which is the least of three kinds, so more than is asked of the others. Given ``target_rhat``
  beside it, a run would end at the first of the two; so where R-hat is too large yet, the same run
  is made again and goes on for longer.
- emcee: max(32, 4 dim) walkers from uniform(-2, 2) on the line, where surrokit's starts come from,
  the first half left out; R-hat of four groups of walkers, ESS by its own autocorrelation time.
- nautilus and pocoMC: 400 effective draws, by their weights. Their prior is uniform within ten
  standard deviations of the mean, both of the reference: generous, as surrokit is not told these.
  Defaults are made for more draws; ``small`` has 500 live points, or 128 active particles. There
  is no R-hat; pocoMC's evidence, and correlations of its particles, are left out.

Peers may have an interpreter of their own, to which PYTHONPATH shows surrokit:

    python benchmarks/values_alone.py --data path/to/posteriordb --peers-python path/to/python
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from compare import HERE, ONE_THREAD
from posteriors import matching
from real_posteriors.cases import CASES
from real_posteriors.judging import Judgement, judge
from real_posteriors.samplers.ours import Ours
from real_posteriors.samplers.outcome import Drawn
from real_posteriors.samplers.value_peers import Looking, nautilus_nested, pocomc_particles
from real_posteriors.targets import Posterior

LARGEST_RHAT, EFFECTIVE, LONGER = 1.01, 400.0, 1.1  # the last while R-hat is too large
WIDTH_OF_STARTS, GROUPS = 2.0, 4
BLOCK, LATER = 50, 0.05  # steps before the first look at emcee; part of the steps so far later
SHOWN = ("kilpisjarvi", "hmm", "logearn_height_male", "arma11")
COLUMNS = ("posterior", "method", "values", "effective", "R-hat", "seconds", "came out")


def judged(posterior: Posterior, drawn: Drawn) -> Judgement:
    """Judge draws against the reference."""
    how: dict[str, Any] = {"chains": drawn.chains, "ess": drawn.ess}
    return judge(posterior.case.name_draws(drawn.draws), posterior.reference, **how)


def is_reached(found: Judgement, chains: bool = True) -> bool:
    """Return whether there are enough effective draws, and R-hat is small where there is one."""
    mixed = not chains or (found.rhat or np.inf) < LARGEST_RHAT
    return mixed and (found.ess or 0.0) >= EFFECTIVE


def of_ours(posterior: Posterior, seed: int, limit: int, **settings: Any) -> Drawn:
    """Return draws of ours; a longer run begins with the shorter one, so only the last counts."""
    goal = EFFECTIVE
    while True:
        drawn = Ours(settings={**settings, "target_ess": goal}, gradients=False)(posterior, seed)
        ended = drawn.extra["stopped"] != "target_ess" or drawn.calls["value"] >= limit
        if ended or is_reached(judged(posterior, drawn)):
            return drawn
        goal *= LONGER


def of_emcee(posterior: Posterior, seed: int, limit: int) -> Drawn:
    """Return draws of emcee's ensemble with its own moves."""
    import emcee

    look, dim = Looking.at(posterior), posterior.case.dim
    walkers = max(32, 4 * dim)
    rng = np.random.default_rng(seed)
    state: Any = rng.uniform(-WIDTH_OF_STARTS, WIDTH_OF_STARTS, (walkers, dim))
    began = time.perf_counter()
    sampler = emcee.EnsembleSampler(walkers, dim, look.density, vectorize=True)
    sampler.random_state = np.random.RandomState(seed).get_state()
    while True:
        state = sampler.run_mcmc(state, max(BLOCK, int(LATER * sampler.iteration)))
        z = sampler.get_chain(discard=sampler.iteration // 2)
        ess = z[..., 0].size / float(np.max(emcee.autocorr.integrated_time(z, tol=0, quiet=True)))
        groups = z.reshape(len(z), GROUPS, -1, dim).swapaxes(0, 1).reshape(GROUPS, -1, dim)
        drawn = look.hand_over(groups, 0, began, ess=ess)
        # R-hat takes a while, and is of no use before there are draws enough
        enough = ess >= EFFECTIVE and is_reached(judged(posterior, drawn))
        if enough or drawn.calls["value"] >= limit:
            return drawn


def of_nautilus(posterior: Posterior, seed: int, limit: int, **made: Any) -> Drawn:
    """Return points of nautilus."""
    return nautilus_nested(posterior, seed, made, n_eff=EFFECTIVE, n_like_max=limit)


def of_pocomc(posterior: Posterior, seed: int, limit: int, **made: Any) -> Drawn:
    """Return particles of pocoMC; it knows no limit, so its time is the limit."""
    return pocomc_particles(posterior, seed, made, n_total=int(EFFECTIVE), n_evidence=0)


OURS: dict[str, Callable[..., Drawn]] = {
    "default": of_ours,
    "sub-chain": partial(of_ours, sampler="sub-chain", surrogate="additive", explorer="rounds"),
    "active": partial(of_ours, sampler="sub-chain", surrogate="quadratic-gp", explorer="active"),
}
PEERS: dict[str, Callable[..., Drawn]] = {
    "emcee": of_emcee,
    "nautilus": of_nautilus,
    "nautilus-small": partial(of_nautilus, n_live=500),
    "pocomc": of_pocomc,
    "pocomc-small": partial(of_pocomc, n_effective=256, n_active=128),
}


def row_of(posterior: Posterior, method: str, seed: int, limit: int) -> dict[str, Any]:
    """Return what came of a method, as plain data."""
    try:
        drawn = {**OURS, **PEERS}[method](posterior, seed, limit)
    except ImportError as error:
        return {"came out": f"not installed, skipped: {error}"}
    found = judged(posterior, drawn)
    reached = is_reached(found, drawn.chains) and drawn.calls["value"] <= limit
    kind = "wrong, warned" if drawn.warnings else "wrong"
    said = f"{kind}: {'; '.join(found.wrong)}" if found.wrong else "right"
    row = {"values": drawn.calls["value"], "effective": found.ess, "R-hat": found.rhat}
    came_out = said if reached else f"not reached, {said}"
    return {**row, "seconds": drawn.seconds, "came out": came_out}


def run_apart(python: str, patience: float, *arguments: str) -> dict[str, Any]:
    """Run a method in a process of its own, and return its row or why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "row.json"
        command = [python, str(HERE / "values_alone.py"), *arguments, "--result", str(result)]
        how: dict[str, Any] = {"env": {**os.environ, **ONE_THREAD}, "timeout": patience}
        try:
            ended = subprocess.run(command, capture_output=True, text=True, **how)
        except subprocess.TimeoutExpired:
            return {"came out": f"over time, {patience:.0f} s"}
        if ended.returncode:
            return {"came out": f"failed: {(ended.stderr.splitlines() or ['no word'])[-1]}"}
        return dict(json.loads(result.read_text(encoding="utf-8")))


def tell(*cells: Any) -> None:
    """Print a line of the table."""
    words = (f"{x:.4g}" if isinstance(x, float) else str(x or "") for x in cells)
    click.echo(f"| {' | '.join(words)} |")


def tell_ratios(rows: dict[str, dict[str, Any]]) -> None:
    """Print values of ours for one of the best peer, where both are right."""
    right = {name: row["values"] for name, row in rows.items() if row["came out"] == "right"}
    best = min((name for name in PEERS if name in right), key=right.__getitem__, default=None)
    for name in OURS:
        if name in right and best is not None:
            click.echo(f"  {name} / best peer ({best}): {right[name] / right[best]:.3f}")
        elif name in rows:
            why = "no peer is right" if best is None else f"{name} is not right"
            click.echo(f"  {name} / best peer: none, as {why}")


@click.command(help=__doc__.partition("\n")[0])
@click.option("--data", required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--only", multiple=True, default=SHOWN, show_default=True, help="Part of a name.")
@click.option("--methods", multiple=True, type=click.Choice([*OURS, *PEERS]))
@click.option("--seed", default=1, show_default=True)
@click.option("--limit", default=300_000, show_default=True, help="Values of each run.")
@click.option("--patience", default=120.0, show_default=True, help="Seconds of each run.")
@click.option("--peers-python", default=sys.executable, help="Interpreter that has the peers.")
@click.option("--result", type=click.Path(path_type=Path), hidden=True)
def main(data: Path, only: tuple[str, ...], methods: tuple[str, ...], **how: Any) -> None:
    """Run each method on each posterior and print the table; for a result, run one."""
    if how["result"]:
        row = row_of(Posterior.read(only[0], data), methods[0], how["seed"], how["limit"])
        how["result"].write_text(json.dumps(row), encoding="utf-8")
        return
    click.echo(f"| {' | '.join(COLUMNS)} |\n{'| --- ' * len(COLUMNS)}|")
    for name in matching(CASES, only):
        rows: dict[str, dict[str, Any]] = {}
        for method in methods or (*OURS, *PEERS):
            python = how["peers_python"] if method in PEERS else sys.executable
            same = {key: how[key] for key in ("seed", "limit")}
            asked = {"data": data, "only": name, "methods": method, **same}
            words = [str(word) for key, x in asked.items() for word in (f"--{key}", x)]
            rows[method] = run_apart(python, how["patience"], *words)
            tell(name, method, *(rows[method].get(column) for column in COLUMNS[2:]))
        tell_ratios(rows)


if __name__ == "__main__":
    main()
