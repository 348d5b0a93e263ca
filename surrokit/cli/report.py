"""Tables of runs for the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from surrokit.diagnostics import MIN_DRAWS
from surrokit.output.console import plain_table, terminal
from surrokit.result.advice import advice
from surrokit.result.summary import MISSING, format_figure

if TYPE_CHECKING:
    from surrokit.result.run import Adaptation, Run

_COLUMNS = {
    "mean": "mean",
    "sd": "sd",
    "q05": "5 %",
    "q50": "50 %",
    "q95": "95 %",
    "ess": "ESS",
    "ess_bulk": "of means",
    "rhat": "R-hat",
}


def print_run(run: Run, baseline: Run | None = None) -> None:
    """Print the summary and the costs of a run, next to the costs of a baseline if there is one."""
    console = terminal()
    if run.choice is not None:
        console.print(f"Picked: {run.choice}", soft_wrap=True)
        console.print()
    console.print(_summary_table(run))
    console.print()
    console.print(_cost_table(run, baseline))
    for note in notes(run):
        console.print(f"Note: {note}")


def _summary_table(run: Run) -> Any:
    table = plain_table(["parameter"], list(_COLUMNS.values()))
    for label, row in run.summary().rows():
        table.add_row(label, *(format_figure(column, row[column]) for column in _COLUMNS))
    return table


def _cost_table(run: Run, baseline: Run | None) -> Any:
    runs = [run] if baseline is None else [run, baseline]
    table = plain_table(["cost"], ("this run", "plain HMC")[: len(runs)])
    for title, function in _COSTS.items():
        cells = [function(each) for each in runs]
        if cells[0] != "-":  # nothing was held out, or there is no surrogate
            table.add_row(title, *cells)
    return table


def _figure(value: float, digits: int) -> str:
    return MISSING if np.isnan(value) else f"{value:.{digits}f}"


def _describe_held_out(run: Run, figure: str) -> str:
    quality = run.fit_quality
    value = None if quality is None else getattr(quality, figure)
    return "-" if value is None else f"{value:.3g}"


def _calls(run: Run) -> str:
    return ", ".join(f"{n} {kind}" for kind, n in run.calls.items() if n) or "none"


def _describe_deployments(run: Run) -> str:
    adaptation = run.adaptation
    if adaptation.last_deployment is None:
        return "-"
    return f"{len(adaptation.deployments)}, last after iteration {adaptation.last_deployment}"


def _modes(run: Run) -> str:
    if run.modes is None:
        return "-"
    searches = run.modes.searches
    return f"{len(run.modes)}, by {searches} search{'es' if searches > 1 else ''}"


_COSTS: dict[str, Callable[[Run], str]] = {
    "acceptance rate": lambda run: _figure(float(np.mean(run.acceptance)), 3),
    "surrogate, held-out Var(V - U)": lambda run: _describe_held_out(run, "variance"),
    "surrogate, held-out error of gradients": lambda run: _describe_held_out(run, "gradient_error"),
    "surrogate, predicted acceptance": lambda run: _describe_held_out(run, "acceptance"),
    "seconds, warm-up": lambda run: f"{run.seconds['warmup']:.2f}",
    "seconds, training": lambda run: f"{run.seconds['training']:.2f}",
    "seconds, sampling": lambda run: f"{run.seconds['sampling']:.2f}",
    "modes found": _modes,
    "surrogates deployed": _describe_deployments,
    "draws of each chain": lambda run: "-" if run.stopped == "draws" else str(len(run.kept)),
    "exact calls": _calls,
    "exact calls per effective draw": lambda run: _figure(run.calls_per_effective_draw(), 2),
}


_STOPPED = {
    "max_calls": "the run stopped because max_calls was reached.",
    "max_seconds": "the run stopped because max_seconds was reached.",
    "target_ess": "the run stopped because target_ess was reached.",
    "target_rhat": "the run stopped because target_rhat was reached.",
    "interrupted": "the run was interrupted; these are the draws until then.",
    "error": "the run ended in an error; these are the draws until then.",
}


def notes(run: Run) -> list[str]:
    """Return what a reader of the table must know: interruption, failures, poor mixing."""
    found = []
    if run.stopped in ("max_calls", "max_seconds") and run.length == "fixed":
        found.append(f"{run.stopped} allowed no more draws, as settled before the first.")
    elif run.stopped in _STOPPED:
        found.append(_STOPPED[run.stopped])
    if not len(run.kept):
        found.append("there are no draws.")
    if run.failures:
        found.append(
            f"the target could not be evaluated at {run.failures} positions, which were rejected."
        )
    found += _adaptation_notes(run.adaptation)
    found += [f"{complaint}." for complaint in advice(run)]
    divergences = int(run.divergences.sum())
    if divergences:
        failures = ", ".join(f"{n} {kind}" for kind, n in run.path_failures.items() if n)
        how = f" ({failures})" if failures else ""
        found.append(f"{divergences} paths diverged{how}; {_smaller_steps(run)} would help.")
    return found + (_mixing_notes(run) if len(run.kept) else [])


def _mixing_notes(run: Run) -> list[str]:
    rhat = run.rhat()
    missing = np.isnan(rhat)
    found = []
    if (worst := float(np.max(rhat[~missing], initial=1.0))) >= 1.01:
        found.append(f"R-hat is {worst:.3f} where it should be below 1.01; draw more.")
    fewest = MIN_DRAWS if len(run.draws) > 1 else 2 * MIN_DRAWS
    if len(run.kept) < fewest:
        found.append(f"R-hat is missing, as it needs {fewest} draws of each chain; draw more.")
    elif missing.any():
        still = ", ".join(label for label, one in zip(run.labels, missing, strict=True) if one)
        found.append(f"R-hat is missing for {still}: the chains hardly moved there, or never.")
    return found


def _smaller_steps(run: Run) -> str:
    if "step_size" in run.sampler.tunes:
        return "smaller steps, by a higher target_acceptance of the sampler,"
    return "a smaller step size"


def _adaptation_notes(adaptation: Adaptation) -> list[str]:
    found = []
    if adaptation.rescues:
        last = adaptation.rescues[-1]
        found.append(
            f"the safety net repaired the surrogate {_times(len(adaptation.rescues))} in warm-up, "
            f"the last time after iteration {last.iteration}: {last.reason}."
        )
    if adaptation.restarts:
        last = adaptation.restarts[-1]
        found.append(
            f"draws were thrown back into warm-up {_times(len(adaptation.restarts))}, the last "
            f"time after iteration {last.iteration}: {last.reason}."
        )
    if adaptation.mix:
        found.append(f"kept iterations were exact transitions with probability {adaptation.mix:g}.")
    if not adaptation.frozen_before_draws:
        found.append(
            "the draws are exact only in the limit of a vanishing adaptation: "
            "draws were kept while the surrogate still adapted."
        )
    return found


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"
