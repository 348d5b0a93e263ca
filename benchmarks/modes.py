"""Targets with several modes: are these weighed rightly, and if not, does the verdict say so?

    python benchmarks/modes.py --only two --seeds 3 --methods surrokit nautilus dynesty

Each line is a run, of surrokit with the parts that expensive calls get (with ``--calls`` those that
it picks), or of nested sampling by a peer from a uniform prior on a box: exact calls (a gradient is
one), effective draws, R-hat, the largest error of a mode's share, also in Monte Carlo errors, the
error of log Z with the standard error that the run tells, and what the verdict warns of. A run is
right if each share is within four Monte Carlo errors, R-hat is below 1.01, and no draws are so few
that this says nothing: no error of a share may be above 0.1. Else it is told of by a warning, or
noted: a note alone says how far searches for modes speak against others.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
import warnings
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from mode_cases import CASES, Case
from surrokit.diagnostics import mean_error, r_hat
from surrokit.errors import SurrokitError
from surrokit.types import FloatArray


@attrs.frozen(kw_only=True)
class Row:
    """What came of a run."""

    calls: float
    effective: float
    rhat: float
    shares: FloatArray
    errors: FloatArray
    log_z: float = np.nan
    log_z_error: float = np.nan
    warned: tuple[str, ...] = ()
    noted: bool = False


def judge(case: Case, run: sk.Run) -> Row:
    """Return effective draws and R-hat of modes and numbers, and the shares of the modes."""
    modes = np.arange(len(case.shares))

    def at(rows: FloatArray) -> FloatArray:
        return np.asarray(case.kinds(rows)[:, None] == modes, dtype=float)

    chains, draws, dim = run.draws.shape
    if run.log_weights is not None:
        answer = run.expectation(at, batched=True)
        shares, errors = answer.value, answer.error
        effective, rhat = float(np.min(run.ess())), float(np.max(run.rhat()))
    else:
        here = at(run.draws.reshape(-1, dim)).reshape(chains, draws, -1)
        both = np.concatenate([run.draws, here], axis=2)
        with np.errstate(all="ignore"):
            rhat = float(np.nanmax(r_hat(both)))
            every = mean_error(both)
            effective = float(np.nanmin(both.var(axis=(0, 1)) / np.square(every)))
        shares, errors = here.mean(axis=(0, 1)), every[dim:]
    log_z, log_z_error = np.nan, np.nan
    try:
        found = run.log_evidence()
        log_z, log_z_error = float(found.value), float(found.error)
    except SurrokitError:
        pass
    return Row(
        calls=run.total_calls,
        effective=effective,
        rhat=rhat,
        shares=shares,
        errors=errors,
        log_z=log_z,
        log_z_error=log_z_error,
        warned=tuple(sorted({each.name for each in run.verdict.warnings})),
        noted=bool(run.verdict.named("searches")),
    )


def by_surrokit(case: Case, seed: int, args: argparse.Namespace) -> Row:
    """Run surrokit."""
    options: dict[str, Any] = {"dim": case.dim}
    if case.bounded:
        ends = sk.interval(*case.box, shape=case.dim)
        options = {"parameters": {"q": ends}}
    if case.gradient is not None and not args.values:
        options["gradient"] = case.gradient
    target = sk.potential(log_density=case.log_density, **options)
    settings = {"max_calls": args.calls, "draws": args.draws, "correction": args.correction}
    if args.calls is None:
        settings |= {"sampler": "sub-chain", "surrogate": args.surrogate, "explorer": "rounds"}
    given: dict[str, Any] = {key: value for key, value in settings.items() if value is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return judge(case, sk.sample(target, seed=seed, progress=False, **given))


class Counted:
    """A log density on the unit cube, which counts its calls; zero density is very low."""

    def __init__(self, case: Case) -> None:
        self.case, self.calls = case, 0
        self.low, self.high = (np.broadcast_to(end, case.dim) for end in case.box)

    def place(self, unit: FloatArray) -> FloatArray:
        """Return the position of a point of the unit cube."""
        return np.asarray(self.low + unit * (self.high - self.low))

    def value(self, position: FloatArray) -> float:
        """Return the log density at a position."""
        self.calls += 1
        return max(self.case.log_density(position), -1e100)

    def row(self, draws: FloatArray, log_weights: FloatArray, log_z: float, error: float) -> Row:
        """Return what came of weighted draws (n, dim), and of log Z under the uniform prior."""
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        shares = np.bincount(self.case.kinds(draws), weights, len(self.case.shares))
        effective = 1.0 / np.square(weights).sum()
        return Row(
            calls=self.calls,
            effective=float(effective),
            rhat=1.0,
            shares=shares,
            errors=np.sqrt(self.case.shares * (1.0 - self.case.shares) / effective),
            log_z=log_z + float(np.log(self.high - self.low).sum()),
            log_z_error=error,
        )


LIVE = 500
"""Live points of nested sampling."""


def by_nautilus(case: Case, seed: int, args: argparse.Namespace) -> Row:
    """Run importance nested sampling with the default networks, to 2000 effective draws."""
    from nautilus import Sampler

    counted = Counted(case)
    sampler = Sampler(counted.place, counted.value, n_dim=case.dim, n_live=LIVE, seed=seed)
    sampler.run(n_eff=2000)
    draws, log_weights, _ = sampler.posterior()
    return counted.row(draws, log_weights, float(sampler.log_z), 1.0 / np.sqrt(sampler.n_eff))


def by_dynesty(case: Case, seed: int, args: argparse.Namespace) -> Row:
    """Run nested sampling with default settings."""
    from dynesty import NestedSampler

    counted, rng = Counted(case), np.random.default_rng(seed)
    sampler = NestedSampler(counted.value, counted.place, case.dim, nlive=LIVE, rstate=rng)
    sampler.run_nested(print_progress=False)
    found = sampler.results
    return counted.row(
        found.samples, found.logwt - found.logz[-1], found.logz[-1], found.logzerr[-1]
    )


METHODS: dict[str, Callable[[Case, int, argparse.Namespace], Row]] = {
    "surrokit": by_surrokit,
    "nautilus": by_nautilus,
    "dynesty": by_dynesty,
}


def line(name: str, method: str, seed: int, args: argparse.Namespace) -> str:
    """Return the line of a run."""
    case, began = CASES[name](), time.process_time()
    try:
        row = METHODS[method](case, seed, args)
    except ImportError as error:
        return f"{name:11s} {method:8s} {seed} skipped: {error}"
    seconds, off = time.process_time() - began, np.abs(row.shares - case.shares)
    with np.errstate(all="ignore"):
        z = float(np.nan_to_num(off / np.maximum(row.errors, 1e-6), nan=np.inf).max())
    precise = bool(np.max(row.errors) <= 0.1)
    right = z < 4.0 and row.rhat < 1.01 and precise
    said = "right" if right else "told " if row.warned else "noted" if row.noted else "WRONG"
    return (
        f"{name:11s} {method:8s} {seed} {said} calls {row.calls:6.0f} ess {row.effective:6.0f} "
        f"calls/ess {row.calls / row.effective:6.2f} rhat {row.rhat:6.3f} share off {off.max():.3f}"
        f" z {z:5.1f} log Z off {row.log_z - case.log_z:6.3f} +- {row.log_z_error:.3f} "
        f"{seconds:5.1f} s {','.join(row.warned)}"
    )


def show(*of: Any) -> None:
    """Print the line of a run."""
    print(line(*of), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", help="parts of names")
    parser.add_argument("--methods", nargs="*", default=["surrokit"], choices=METHODS)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--values", action="store_true", help="without gradients")
    parser.add_argument("--surrogate", default="additive")
    parser.add_argument("--correction")
    parser.add_argument("--draws", type=int)
    parser.add_argument("--calls", type=int)
    parser.add_argument("--patience", type=float, default=600.0, help="seconds for a run")
    args = parser.parse_args()
    for name in [name for name in CASES if any(part in name for part in args.only or [""])]:
        for method in args.methods:
            for seed in range(args.seeds):
                run = multiprocessing.Process(target=show, args=(name, method, seed, args))
                run.start()
                run.join(args.patience)
                if run.is_alive():
                    run.terminate()
                    print(f"{name:11s} {method:8s} {seed} over time", flush=True)
