"""Parts compared over targets and seeds, each run against a long exact run of the same target."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, product
from typing import Any

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.compose import make, sample
from surrokit.errors import EvaluationWarning, SamplingWarning, SurrokitError
from surrokit.registry.catalogue import default_catalogue, name_and_settings
from surrokit.registry.components import GRADIENTS, VALUES
from surrokit.result.run import Run
from surrokit.types import FloatArray


@attrs.frozen(kw_only=True)
class Outcome:
    """What one run found, beside a long exact run of the same target."""

    target: str
    parts: str
    seed: int
    right: bool | None = None  # do means and sds agree, as far as both errors tell? None if failed
    warned: bool = False  # by the verdict
    error: float = np.nan  # largest difference of a mean or sd, in posterior sds
    calls: float = np.nan  # of all kinds, exploration and training included
    ess: float = np.nan  # the smallest
    seconds: float = np.nan
    failure: str | None = None  # message of the error that ended it


def exact_run(target: Any, draws: int) -> Run:
    """Return a run of a plain exact sampler, with so many draws of each of four chains."""
    spec = name_and_settings(target)
    exact = target if spec is None else make("potential", spec[0], **spec[1])
    purpose = GRADIENTS if GRADIENT in exact.capabilities else VALUES
    sampler = default_catalogue().pick("sampler", purpose)
    return _quietly(exact, sampler=sampler, draws=draws, seed=0)


def compare(
    targets: Mapping[str, Any],
    parts: Mapping[str, Mapping[str, Any]],
    seeds: Sequence[int],
    references: Mapping[str, Run],
    **sizes: Any,
) -> Iterator[Outcome]:
    """Yield the outcome of each run, of all parts on all targets with all seeds.

    Parts are keywords of :func:`surrokit.sample` by name, to which ``sizes`` are added; targets and
    their exact runs are by name, too.
    """
    for (target, exact), (name, given), seed in product(targets.items(), parts.items(), seeds):
        about: dict[str, Any] = {"target": target, "parts": name, "seed": seed}
        try:
            run = _quietly(exact, **given, seed=seed, **sizes)
        except SurrokitError as error:
            yield Outcome(**about, failure=str(error))
        else:
            yield Outcome(**about, **_judged(run, references[target]))


def rows_of(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    """Return a row for each target and parts, over all seeds: counts, and medians of figures."""
    rows = []
    for (target, parts), group in groupby(outcomes, lambda each: (each.target, each.parts)):
        runs = [*group]
        figures = [(r.error, r.calls, r.calls / r.ess, r.seconds) for r in runs if not r.failure]
        medians = np.median(figures, axis=0).tolist() if figures else [np.nan] * 4
        row = {
            "target": target,
            "parts": parts,
            "runs": len(runs),
            "right": sum(bool(each.right) for each in runs),
            "warned": sum(each.warned for each in runs),
            "silently_wrong": sum(each.right is False and not each.warned for each in runs),
            **dict(zip(("error", "calls", "calls_per_ess", "seconds"), medians, strict=True)),
            "failure": next((each.failure for each in runs if each.failure), None),
        }
        rows.append(row)
    return rows


def _quietly(target: Any, **settings: Any) -> Run:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)  # the verdict has it
        warnings.simplefilter("ignore", EvaluationWarning)
        return sample(target, progress=False, **settings)


def _judged(run: Run, exact: Run) -> dict[str, Any]:
    from scipy.stats import norm

    figures, known = run.summary(), exact.summary()
    scale = known["sd"]
    apart = np.array([figures["mean"] - known["mean"], figures["sd"] - scale]) / scale
    errors = np.hypot(_errors(run, exact), _errors(exact, exact)) / scale
    # one run in a hundred is called wrong by chance
    likely = norm.isf(0.01 / (2 * apart.size))
    return {
        "right": bool(np.isfinite(apart).all() and (np.abs(apart) <= likely * errors).all()),
        "warned": bool(run.verdict.warnings),
        "error": float(np.abs(apart).max()),
        "calls": float(run.total_calls),
        "ess": float(np.min(run.ess())),
        "seconds": float(sum(run.seconds.values())),
    }


def _errors(run: Run, exact: Run) -> FloatArray:
    """Return Monte Carlo errors of means and standard deviations, shape (2, d)."""
    found = run.summary()
    if run.answer is not None:
        return np.array([found["mcse"], found["mcse_sd"]])
    away = exact.draws - exact.draws.mean(axis=(0, 1))
    tails = (away**4).mean(axis=(0, 1)) / (away**2).mean(axis=(0, 1)) ** 2
    return np.array([found["mcse"], found["sd"] * np.sqrt((tails - 1) / 4 / found["ess_square"])])
