"""A record of short seeded runs: a refactoring changes no draw, and this shows it.

Each run is written down as hashes of its draws, of its exact calls by kind and of its statistics,
never of its seconds. Before a refactoring and after it::

    python benchmarks/record_of_runs.py --out before.json
    python benchmarks/record_of_runs.py --compare before.json

The second names every run that differs, and in what, and then ends with status 1. Hashes are for
one machine, one set of versions, and one thread: the script starts itself again with one where need
be. Clocks tick by a step at each reading, so what is picked by measured times is the same again,
too. Only the public face of the package is used: whatever moves inside, this runs unchanged.
``--only nuts`` does the runs of that name alone.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path
from typing import Any

import click
import numpy as np

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}

Runs = Mapping[str, Callable[[], Any]]


@contextmanager
def ticking() -> Iterator[None]:
    """Have the standard library's clocks tick at each reading, from surrokit's import on."""
    real = time.perf_counter, time.process_time
    for name, tick in (("perf_counter", 1e-6), ("process_time", 1e-3)):
        readings = itertools.count()
        setattr(time, name, lambda readings=readings, tick=tick: tick * next(readings))
    try:
        yield
    finally:
        time.perf_counter, time.process_time = real


# --- targets ---

PRECISION = np.array([[1.6, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.8]])
TIMES = np.linspace(0.2, 3.0, 6)


def bent(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """U of a density that is no Gaussian, and its gradient, at positions (..., 3)."""
    value = 0.5 * np.einsum("...i,ij,...j->...", q, PRECISION, q)
    value = value + np.log1p(np.exp(1.5 * q[..., 0])) + 0.1 * q[..., 1] ** 4
    gradient = q @ PRECISION
    gradient[..., 0] += 1.5 / (1.0 + np.exp(-1.5 * q[..., 0]))
    gradient[..., 1] += 0.4 * q[..., 1] ** 3
    return value, gradient


def failing(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same, with a corner where it raises."""
    if q[0] > 0.4 and q[2] > 0.0:
        raise ValueError("no luck in the corner")
    return bent(q)


def decay(q: np.ndarray) -> np.ndarray:
    """Amplitude and log rate (n, 2) to readings (n, 6)."""
    return q[:, :1] * np.exp(-np.exp(q[:, 1:]) * TIMES)


def decay_jacobian(q: np.ndarray) -> np.ndarray:
    rate = np.exp(q[:, 1:])
    fall = np.exp(-rate * TIMES)
    return np.stack([fall, -q[:, :1] * rate * TIMES * fall], axis=-1)


def targets() -> dict[str, Any]:
    """Return targets by name, made afresh."""
    import surrokit as sk

    rng = np.random.default_rng(12)
    design = rng.standard_normal((400, 4))
    design[:, 0] = 1.0
    linear = design @ np.linspace(-0.8, 0.9, 4)
    seen = linear + rng.logistic(size=400)
    observed = decay(np.array([[2.0, -0.3]]))[0] + 0.1 * np.cos(7.0 * TIMES)
    of_map = {
        "data": observed,
        "noise_sd": 0.15,
        "prior": sk.gaussian_prior((1.5, 0.0), (1.0, 0.7)),
    }
    bounds = {"above": (-2.0, None), "below": (None, 2.5), "between": (-3.0, 3.0)}
    return {
        "smooth": sk.potential(value_and_gradient=bent, dim=3, batched=True),
        "values": sk.potential(lambda q: bent(q)[0], dim=3, batched=True),
        "failing": sk.potential(value_and_gradient=failing, dim=3),
        "bounded": sk.potential(value_and_gradient=bent, parameters=bounds),
        "banana": sk.make("potential", "banana"),
        "gaussian": sk.make("potential", "gaussian", covariance=np.linalg.inv(PRECISION)),
        "map": sk.forward_potential(decay, decay_jacobian, dim=2, batched=True, **of_map),
        "map-values": sk.forward_potential(decay, dim=2, batched=True, **of_map),
        "logistic": sk.make("potential", "logistic", design=design, response=seen > 0.0),
        "student": sk.rows_potential("student", design, seen, prior=10.0),
        "pde": sk.make("potential", "elliptic-pde", mesh=5, modes=3, observations=3),
    }


# --- runs ---

FIXED = {"step_size": 0.4, "n_steps": 4}
BURN_IN = ("sampler", {"evaluations": 300, "discard": 5, "learn_from": "states"})
NEVER_FROZEN = ("greville", {"freeze_after": None})
SHORT = {"warmup": 12, "draws": 8, "chains": 2}
RIDGE = {"estimator": "sklearn.linear_model.BayesianRidge"}

OPTIONS: dict[str, dict[str, Any]] = {
    **{f"{kernel} {target}": {"sampler": kernel} for kernel in ("hmc", "nuts")
       for target in ("smooth", "bounded", "banana", "map", "logistic", "failing")},
    "hmc-fixed smooth": {"sampler": ("hmc", {"metric": "identity", "randomize": False, **FIXED})},
    "hmc-diagonal smooth": {"sampler": ("hmc", {"metric": "diagonal"})},
    **{f"rmhmc-{metric} {target}": {"sampler": ("rmhmc", {"metric": metric, "n_steps": 2}), **SHORT}
       for metric, target in (("softabs", "banana"), ("hessian", "logistic"), ("fisher", "banana"),
                              ("gauss-newton", "pde"), ("hessian-diagonal", "logistic"))},
    "random-walk values": {"sampler": "random-walk"},
    "gaussian gaussian": {"sampler": "gaussian"},
    **{f"once-{name} {target}": {"surrogate": name}
       for name, target in (("additive", "smooth"), ("additive", "values"), ("additive", "map"),
                            ("additive", "bounded"), ("additive", "failing"), ("rbf", "banana"),
                            ("quadratic", "smooth"), ("quadratic-gp", "smooth"),
                            ("rows", "student"))},
    **{f"once-{name} smooth": {"surrogate": (name, {"n_nodes": 100}), "explorer": BURN_IN}
       for name in ("additive-paper", "rbf-paper")},
    "once-gp banana": {"surrogate": ("gp", {"n_search": 100})},
    "once-fitc smooth": {"surrogate": ("fitc", {"n_inducing": 25})},
    "once-sklearn smooth": {"surrogate": ("sklearn", RIDGE)},
    "rounds map-values": {"surrogate": "additive", "explorer": "rounds", "warmup": None},
    "active values": {"surrogate": "quadratic-gp", "explorer": "active", "warmup": None},
    **{f"{kernel}-additive {target}": {"sampler": kernel, "surrogate": "additive"}
       for kernel, target in (("nuts", "smooth"), ("sub-chain", "map"), ("sub-chain", "smooth"))},
    "sub-chain-rounds pde": {"sampler": "sub-chain", "surrogate": "additive", "explorer": "rounds",
                             "warmup": None},
    **{f"greville-{name} {target}": {"surrogate": name, "schedule": "greville"}
       for name, target in (("additive", "smooth"), ("additive", "map"), ("rbf", "smooth"))},
    "greville-never-frozen smooth": {"surrogate": "additive", "schedule": NEVER_FROZEN},
    **{f"subsampled-{kernel} {target}": {"sampler": kernel, "surrogate": "quadratic",
                                         "explorer": "rounds", "correction": "subsampled"}
       for kernel, target in (("gaussian", "logistic"), ("gaussian", "student"),
                              ("hmc", "logistic"))},
    **{f"weights {target}": {"correction": "weights", "max_calls": 60}
       for target in ("smooth", "values", "map")},
    **{f"picked {target}": {} for target in ("smooth", "values", "map", "logistic", "banana")},
    "budget smooth": {"sampler": "hmc", "max_calls": 300},
    "ess smooth": {"sampler": "nuts", "target_ess": 60},
}  # fmt: skip
"""Settings of each run, whose last word is its target."""


def all_runs() -> Runs:
    """Return every run by its name."""
    import surrokit as sk

    def run(name: str) -> Any:
        sizes = {"chains": 3, "warmup": 120, "draws": 60, "seed": 14, "progress": False}
        return sk.sample(targets()[name.split()[-1]], **{**sizes, **OPTIONS[name]})

    return {name: lambda name=name: run(name) for name in OPTIONS}


# --- fingerprints ---

OF_ITERATIONS = ("draws", "values", "outputs", "accepted", "acceptance", "path_acceptance")
OF_ITERATIONS += ("divergent", "n_steps", "step_size")
"""Arrays that a run keeps of each iteration, beside calls and seconds."""


def digest(array: Any) -> str | None:
    """Return a hash of the numbers of an array, to the last bit, and of its shape."""
    if array is None:
        return None
    numbers = np.asarray(array, dtype=np.float64)
    numbers = np.where(np.isnan(numbers), np.nan, numbers)
    return "#" + hashlib.sha256(repr(numbers.shape).encode() + numbers.tobytes()).hexdigest()[:16]


def fingerprint_of(run: Callable[[], Any]) -> dict[str, Any]:
    """Do a run, and return what it was; an exception is one, with what was drawn before it."""
    found: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = run()
        except Exception as error:
            outcome, found["raised"] = getattr(error, "partial", None), type(error).__name__
    found["warnings"] = dict(Counter(warning.category.__name__ for warning in caught))
    if outcome is None:
        return found
    for phase, trace in (("kept", outcome.kept), ("warmup", outcome.warmup)):
        found |= {f"{phase} {name}": digest(getattr(trace, name)) for name in OF_ITERATIONS}
        found |= {f"{phase} {kind} calls": digest(n) for kind, n in trace.calls.items()}
    adaptation = outcome.adaptation
    found |= {f"{kind} calls": int(number) for kind, number in outcome.calls.items()}
    found |= {name: len(getattr(adaptation, name)) for name in ("deployments", "repairs")}
    parts = {kind: name.partition("(")[0] for kind, name in outcome.parts.items()}
    return {**found, "stopped": outcome.stopped, "training": adaptation.training_rows, **parts}


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], *, all_of_them: bool = True
) -> list[str]:
    """Return a line for each run that differs, with the names of what differs in it."""
    found = []
    for name in dict.fromkeys([*before, *after]):
        if name not in after:
            found += [f"{name}: only before"] if all_of_them else []
        elif name not in before:
            found.append(f"{name}: only after")
        elif before[name] != after[name]:
            keys = dict.fromkeys([*before[name], *after[name]])
            pairs = {key: (before[name].get(key), after[name].get(key)) for key in keys}
            told = [
                key if str(was).startswith("#") else f"{key} {was} -> {now}"
                for key, (was, now) in pairs.items()
                if was != now
            ]
            found.append(f"{name}: {', '.join(told)}")
    return found


def record(only: tuple[str, ...] = ()) -> dict[str, Any]:
    """Do the runs whose names match, and return their record; a line for each as it is done."""
    stopwatch = time.process_time
    with ticking():
        runs = all_runs()
        chosen = [n for n in runs if not only or any(fnmatch(n, f"*{each}*") for each in only)]
        if not chosen:
            raise click.ClickException(f"no run is named like {', '.join(only)}")
        found = {}
        for name in chosen:
            began = stopwatch()
            found[name] = fingerprint_of(runs[name])
            click.echo(f"{stopwatch() - began:6.2f} s  {name}")
    versions = {name: metadata.version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"made_with": {"python": sys.version.split()[0], **versions}, "runs": found}


@click.command(help=__doc__.partition("\n")[0])
@click.option("--out", type=click.Path(path_type=Path), help="Write the record here.")
@click.option(
    "--compare",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Tell what differs from this record; status 1 if anything does.",
)
@click.option("--only", multiple=True, metavar="PATTERN", help="Part of a name, or a pattern.")
def main(out: Path | None, compare: Path | None, only: tuple[str, ...]) -> None:
    """Do the runs, and write or compare them."""
    before = None if compare is None else json.loads(compare.read_text("utf-8"))
    after = json.loads(json.dumps(record(only)))
    if out is not None:
        out.write_text(json.dumps(after, indent=1) + "\n", encoding="utf-8")
    if before is not None:
        if before["made_with"] != after["made_with"]:
            click.echo("made with other versions, so hashes may differ")
        found = differences(before["runs"], after["runs"], all_of_them=not only)
        click.echo("\n".join(f"DIFFERS  {line}" for line in found) or "all runs are equal")
        sys.exit(bool(found))


if __name__ == "__main__":
    # libraries read the number of threads once, when loaded
    if any(os.environ.get(name) != number for name, number in ONE_THREAD.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    main()
