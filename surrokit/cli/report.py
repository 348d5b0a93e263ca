"""Tables of runs for the command line."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from surrokit.errors import SamplingWarning
from surrokit.modes import describe_searches
from surrokit.output.console import plain_table, terminal
from surrokit.result.summary import MISSING

if TYPE_CHECKING:
    from surrokit.result.run import Run

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

_OF_WEIGHTS = {
    "mean": "mean",
    "mcse": "error",
    "sd": "sd",
    "q05": "5 %",
    "q50": "50 %",
    "q95": "95 %",
    "ess": "ESS",
    "rhat": "R-hat",
}


def print_run(run: Run, baseline: Run | None = None, *, wide: bool = False) -> None:
    """Print the summary, the costs and the verdict of a run.

    Parameters
    ----------
    run
        The run.
    baseline
        Another one, whose costs stand beside; None for none.
    wide
        Whether all columns of the summary are printed, instead of those that fit 80 characters.
    """
    console = terminal()
    if run.choice is not None:
        console.print(f"Picked: {run.choice}", soft_wrap=True)
        console.print()
    console.print(_summary_table(run, wide=wide), soft_wrap=True)
    console.print()
    console.print(_cost_table(run, baseline))
    for finding in run.verdict:
        if finding.warns:
            console.print(f"Warning: {finding.message}.", style="yellow", soft_wrap=True)
        else:
            console.print(f"Note: {finding.message}.")
    console.print(describe_searches(run.adaptation.searches), soft_wrap=True)
    for finding in () if baseline is None else baseline.verdict.warnings:
        message = f"Warning, of plain HMC: {finding.message}."
        console.print(message, style="yellow", soft_wrap=True)


def _summary_table(run: Run, *, wide: bool) -> str:
    summary = run.summary(wide=wide)
    titles = _COLUMNS if run.exact else _OF_WEIGHTS
    if wide:
        titles = {name: titles.get(name, name) for name in summary.columns}
    return summary.table(titles, "parameter")


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
    "acceptance rate": lambda run: _figure(float(np.mean(run.acceptance)), 3) if run.exact else "-",
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
    "exact calls ahead, for nothing": lambda run: str(run.vain_calls) if run.vain_calls else "-",
    "exact calls per effective draw": lambda run: _figure(run.calls_per_effective_draw(), 2),
}


@contextmanager
def verdict_once(*, quiet: bool) -> Iterator[list[object]]:
    """Yield observers of a run, by which its verdict comes with its table and not as warnings too.

    What is warned of before the run has ended is shown at once.

    Parameters
    ----------
    quiet
        Whether there is no table, so that the verdict is warned of.
    """
    with warnings.catch_warnings():
        yield [] if quiet else [_VerdictInTable()]


class _VerdictInTable:
    """Observes the end of a run, after which all that is warned of is its verdict."""

    def surrokit_run_finished(self, run: object, outcome: object) -> None:
        """Keep back warnings from here on."""
        del run, outcome
        warnings.simplefilter("ignore", SamplingWarning)
