"""Further questions to one model: whether intervals of a few new calls hold, and how many runs.

A repeat asks a first question with another seed, and then each further one of a copy of the store
as the first has left it: no question finds what another has evaluated. Of lynx and hare these are
the last five years left out, Student's t errors, priors twice as wide, and counts that were
simulated one posterior sd away in each of eight directions. Of the elliptic PDE they are data from
another truth, and errors half as large. The truth is that of long runs of sub-chains, on each draw
of which the exact potential decides. It asserts nothing.

    python benchmarks/ask_again.py lynx-hare --repeats 40 --folder again

With ``--calls 0`` old evaluations are all there is. Repeats and long runs are kept in the folder,
and are not done again.
"""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import click
import numpy as np

import surrokit as sk
from intervals import LONG_SEED, PARTS, Truth, of_exact_draws, outcome_of, tell
from surrokit.model.calls import Memo
from surrokit.shared import SharedModel
from surrokit_problems.lynx_hare import COUNTS, LynxHare

NORMAL = np.array([1.0, 0.05, 1.0, 0.05]), np.array([0.5, 0.05, 0.5, 0.05])
LOG_MEDIANS = np.log([10.0, 10.0]), np.array([-1.0, -1.0])
OTHERS = 4  # sets of other data, of which repeats take one after another


@attrs.frozen(eq=False)
class Pelts:
    """U of log counts (years, 2) of which the first ones are seen, with errors and priors."""

    logs: np.ndarray
    years: int = 21
    degrees: float | None = None
    widths: float = 1.0
    capabilities = frozenset()

    def value(self, outputs, positions):
        """Return U (n,)."""
        return self.value_and_gradients(outputs, positions)[0]

    def value_and_gradients(self, outputs, positions):
        """Return U (n,) and its gradients in outputs (n, 42) and positions (n, 8)."""
        sigma, nu = positions[:, None, 6:], self.degrees
        apart = outputs.reshape(-1, *self.logs.shape)[:, : self.years] - self.logs[: self.years]
        r = apart / sigma
        if nu is None:
            terms, slopes = 0.5 * r**2, r
        else:
            terms, slopes = 0.5 * (nu + 1) * np.log1p(r**2 / nu), (nu + 1) * r / (nu + r**2)
        value = (terms + np.log(sigma)).sum(axis=(1, 2))
        by_outputs = np.zeros((len(positions), *self.logs.shape))
        by_outputs[:, : self.years] = slopes / sigma
        by_positions = np.empty_like(positions)
        by_positions[:, 6:] = ((1.0 - r * slopes) / sigma).sum(axis=1)
        (mean, sd), low = NORMAL, positions[:, :4]
        by_positions[:, :4] = (low - mean) / (self.widths * sd) ** 2
        value += 0.5 * (((low - mean) / (self.widths * sd)) ** 2).sum(axis=1)
        high = np.log(positions[:, 4:])
        scaled = (high - np.concatenate(LOG_MEDIANS)) / self.widths
        value += (high + 0.5 * scaled**2).sum(axis=1)
        by_positions[:, 4:6] = 0.0
        by_positions[:, 4:] += (1.0 + scaled / self.widths) / positions[:, 4:]
        return value, by_outputs.reshape(outputs.shape), by_positions


def lynx_hare() -> SharedModel:
    """Return the map from eight parameters to log populations, without evaluations."""
    source = LynxHare()
    guess = np.mean([source.initial(np.random.default_rng(i), 200) for i in range(5)], axis=(0, 1))
    return sk.model(
        source.forward,
        lambda q: source.forward_and_jacobian(q)[1],
        parameters=dict.fromkeys(LynxHare.parameters.specs, (0.0, None)),
        plausible={
            name: (0.9 * at, 1.1 * at)
            for name, at in zip(LynxHare.parameters.specs, guess, strict=True)
        },
        batched=True,
    )


def elliptic_pde() -> SharedModel:
    """Return the map from twenty weights of modes to 121 pressures, without evaluations."""
    source = sk.make("potential", "elliptic-pde")
    return sk.model(
        source.forward,
        lambda q: source.forward_and_jacobian(q)[1],
        parameters={"q": sk.real(20)},
        plausible={"q": (np.full(20, -0.5), np.full(20, 0.5))},
        batched=True,
    )


Question = dict[str, Any]
"""What a posterior is made of."""


@attrs.frozen
class Problem:
    """A model, its first question, and further ones by name, of which there are several sets.

    ``simulate`` makes data from a position and a generator, and ``of_data`` a question of these.
    """

    declare: Callable[[], SharedModel]
    first: Question
    others: dict[str, Question]
    of_data: Callable[[np.ndarray], Question]
    simulate: Callable[[np.ndarray, np.random.Generator], np.ndarray]
    calls: int


def _pde(data: np.ndarray | None = None, sd: float = 0.1) -> Question:
    data = sk.make("potential", "elliptic-pde").energy.data if data is None else data
    return {"data": data, "noise_sd": sd, "prior": sk.gaussian_prior(0.0, 0.5)}


def _counts(q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    logs = LynxHare().forward(q[None]).reshape(-1, 2)
    return logs + q[6:] * rng.standard_normal(logs.shape)


def _pressures(q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    outputs = sk.make("potential", "elliptic-pde").forward(q[None])[0]
    return outputs + 0.1 * rng.standard_normal(outputs.shape)


LOGS = np.log(COUNTS)
PROBLEMS = {
    "lynx-hare": Problem(
        lynx_hare,
        {"energy": Pelts(LOGS)},
        {
            "years": {"energy": Pelts(LOGS, years=16)},
            "student": {"energy": Pelts(LOGS, degrees=4.0)},
            "priors": {"energy": Pelts(LOGS, widths=2.0)},
        },
        lambda logs: {"energy": Pelts(logs)},
        _counts,
        20,
    ),
    "elliptic-pde": Problem(
        elliptic_pde,
        _pde(),
        {"noise": _pde(sd=0.15)},
        _pde,
        _pressures,
        40,
    ),
}
"""By name."""


def questions(problem: Problem, name: str, exact: int, folder: Path) -> dict[str, Question]:
    """Return all further questions; other data are ``data-0`` and so on."""
    _, mean, factor = truth_of(problem, name, "first", problem.first, exact, folder)
    found = dict(problem.others)
    for i in range(OTHERS):
        rng = np.random.default_rng([LONG_SEED, i])
        away = factor @ rng.choice([-1.0, 1.0], len(mean))
        line = np.log(mean) if name == "lynx-hare" else mean
        q = np.exp(line + away / mean) if name == "lynx-hare" else line + away
        found[f"data-{i}"] = problem.of_data(problem.simulate(q, rng))
    return found


def truth_of(
    problem: Problem, name: str, of: str, question: Question, exact: int, folder: Path
) -> tuple[Truth, np.ndarray, np.ndarray]:
    """Return what exact draws say: figures with errors, means, and a factor of the covariance."""
    path = folder / f"{name}-{of}-truth-{exact}.npz"
    if not path.exists():
        target = problem.declare().posterior(**question)
        many = {"chains": 32, "draws": exact // 8}  # which move together
        run = sk.sample(target, surrogate="additive", seed=LONG_SEED, **many, **PARTS)
        flat = run.draws.reshape(-1, run.draws.shape[2])
        said = "; ".join(each.message for each in run.verdict.warnings) or "no warning"
        click.echo(f"{name}, {of}: R-hat {run.rhat().max():.4f}, ESS {run.ess().min():.0f}, {said}")
        factor = np.linalg.cholesky(np.cov(flat, rowvar=False))
        np.savez(path, figures=of_exact_draws(run), mean=flat.mean(axis=0), factor=factor)
    with np.load(path) as kept:
        values, errors = kept["figures"]
        return (values, errors), kept["mean"], kept["factor"]


def ask(problem: Problem, store: Memo, question: Question, calls: int, seed: int, parts: Any):
    """Return figures and half intervals of a question to a copy of a store; none where refused."""
    began = time.process_time()
    memo = Memo(grows=True)
    memo.update(store)
    target = attrs.evolve(problem.declare(), memo=memo).posterior(**question)
    try:
        run = sk.sample(target, max_calls=calls, seed=seed, progress=False, **parts)
    except sk.errors.ConfigurationError as error:
        return {"calls": np.array(0), "warned": np.array([str(error)]), "seconds": np.array(0.0)}
    return outcome_of(run, time.process_time() - began)


def first_of(problem: Problem, seed: int, path: Path, parts: dict[str, Any]) -> Memo:
    """Return what the first question evaluates, from the folder if it is there."""
    if not path.exists():
        model, aim = problem.declare(), sk.Budget(target_mcse=0.001)  # all calls are used
        target = model.posterior(**problem.first)
        sk.sample(target, max_calls=250, seed=seed, progress=False, budget=aim, **parts)
        path.write_bytes(pickle.dumps(model.memo))
    store: Memo = pickle.loads(path.read_bytes())
    return store


@click.command()
@click.argument("name", type=click.Choice(list(PROBLEMS)))
@click.option("--repeats", default=40, show_default=True)
@click.option("--begin", default=1, show_default=True, help="The first repeat's seed.")
@click.option("--folder", default="again", show_default=True, type=click.Path(path_type=Path))
@click.option("--exact", default=2500, show_default=True, help="Draws of each of four chains.")
@click.option("--calls", type=int, help="New calls of each question; those of the issue at most.")
@click.option("--effective", default=24_000, show_default=True, help="Draws of each surrogate.")
@click.option("--nodes", type=int, help="Of the surrogates; as many as they choose by default.")
@click.option("--only", multiple=True, help="Questions to ask; all by default.")
def main(
    name: str,
    repeats: int,
    begin: int,
    folder: Path,
    exact: int,
    calls: int | None,
    effective: int,
    nodes: int | None,
    only: tuple[str, ...],
) -> None:
    """Print how often intervals of further questions hold."""
    warnings.simplefilter("ignore", sk.errors.SamplingWarning)
    folder.mkdir(exist_ok=True)
    problem = PROBLEMS[name]
    calls = problem.calls if calls is None else calls
    lengths = {"effective": effective, "warmup": 300 if effective > 10_000 else 150}
    parts: dict[str, Any] = {"correction": ("weights", lengths)}
    parts |= {"surrogate": ("additive", {} if nodes is None else {"n_nodes": nodes})}
    parts |= {"sampler": "sub-chain", "explorer": "rounds"}
    few = {**parts, "correction": ("weights", {"effective": min(effective, 2000), "warmup": 150})}
    further = questions(problem, name, exact, folder)
    found: dict[str, list[Any]] = {}
    for seed in range(begin, begin + repeats):
        store = None
        for of, question in further.items():
            group = of.split("-")[0]
            is_other = group == "data" and of != f"data-{seed % OTHERS}"
            if is_other or (only and group not in only):
                continue
            path = folder / f"{name}-{of}-{calls}-{seed}.npz"
            if not path.exists():
                store = store or first_of(problem, seed, folder / f"{name}-{seed}.pickle", few)
                np.savez(path, **ask(problem, store, question, calls, seed, parts))
            with np.load(path) as kept:
                found.setdefault(of, []).append(dict(kept))
    for of, each in found.items():
        tell(f"{name}, {of}", truth_of(problem, name, of, further[of], exact, folder)[0], each)


if __name__ == "__main__":
    main()
