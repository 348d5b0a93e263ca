"""What a run cost: exact calls and seconds, and what it did with them."""

from __future__ import annotations

from functools import partial
from typing import Any

import attrs
import numpy as np

from surrokit.plots.panel import Panel
from surrokit.plots.style import BLUE, CYCLE, GREEN, GREY, INK, VERMILION
from surrokit.types import FloatArray

MOST_POINTS = 300
WINDOW = 20
"""Iterations over which acceptance is averaged, at least."""


@attrs.frozen(kw_only=True, eq=False)
class _Course:
    """All iterations of a run, warm-up first; arrays have shape (n,)."""

    seconds: FloatArray
    calls: dict[str, FloatArray]
    acceptance: FloatArray
    warmup: int
    deployed: FloatArray
    repaired: FloatArray

    @classmethod
    def of(cls, run: Any) -> _Course:
        both = (run.warmup, run.kept)
        seconds = np.concatenate([trace.seconds for trace in both])
        kinds = [kind for kind, n in run.calls.items() if n]
        moves = np.concatenate([trace.acceptance for trace in both], axis=1)
        known = ~np.isnan(moves)
        with np.errstate(invalid="ignore"):
            mean = np.where(known, moves, 0.0).sum(axis=0) / known.sum(axis=0)
        adaptation = run.adaptation
        repairs = [*adaptation.rescues, *adaptation.restarts]
        return cls(
            seconds=seconds,
            calls={k: np.concatenate([trace.calls[k] for trace in both]) for k in kinds},
            acceptance=mean,
            warmup=len(run.warmup),
            deployed=_at(seconds, adaptation.deployments),
            repaired=_at(seconds, [each.iteration for each in repairs]),
        )


def _at(seconds: FloatArray, iterations: Any) -> FloatArray:
    """Return when iterations, counted from 1, were done."""
    known = [i for i in iterations if 0 < i <= len(seconds)]
    return seconds[np.array(known, dtype=np.int64) - 1]


def cost_panels(run: Any) -> list[Panel]:
    """Return panels of exact calls over time, acceptance, and seconds by phase.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    """
    course = _Course.of(run)
    panels = []
    told = ", ".join(f"{n} {kind}" for kind, n in run.calls.items() if n) or "none"
    marks = (
        f"surrogates were deployed {_times(len(course.deployed))}, and repaired "
        f"{_times(len(course.repaired))}"
    )
    if len(course.seconds) and course.calls:
        text = f"Exact calls over time, by kind: {told} at the end; {marks}."
        draw = partial(_draw_calls, course=course)
        panels.append(Panel(title="exact calls", text=text, draw=draw))
    if run.exact and np.isfinite(course.acceptance).any():
        last = float(np.nanmean(course.acceptance[course.warmup :])) if len(run.kept) else np.nan
        text = f"Acceptance over the iterations: {last:.3f} on average after warm-up; {marks}."
        draw = partial(_draw_acceptance, course=course)
        panels.append(Panel(title="acceptance", text=text, draw=draw))
    seconds = {phase: float(value) for phase, value in run.seconds.items()}
    text = f"Seconds by phase: {', '.join(f'{k} {v:.3g}' for k, v in seconds.items())}."
    draw = partial(_draw_seconds, seconds=seconds)
    return [*panels, Panel(title="seconds", text=text, draw=draw)]


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"


def _mark(axes: Any, deployed: FloatArray, repaired: FloatArray) -> None:
    for places, colour, style, label in (
        (deployed, GREEN, "--", "surrogate deployed"),
        (repaired, VERMILION, ":", "repaired"),
    ):
        for i, place in enumerate(places[:: max(-(-len(places) // 30), 1)]):
            axes.axvline(
                place, color=colour, linestyle=style, linewidth=1.0, label=None if i else label
            )


def _draw_calls(axes: Any, *, course: _Course) -> None:
    seconds = course.seconds
    if course.warmup:
        axes.axvspan(0.0, seconds[course.warmup - 1], color=GREY, alpha=0.15, linewidth=0)
    step = -(-len(seconds) // MOST_POINTS)
    places = np.unique([*range(0, len(seconds), step), len(seconds) - 1])
    for colour, (kind, counts) in zip(CYCLE, course.calls.items(), strict=False):
        x, y = np.append(0.0, seconds[places]), np.append(0.0, counts[places])
        axes.plot(x, y, color=colour, label=kind)
    _mark(axes, course.deployed, course.repaired)
    axes.set(xlabel="seconds (warm-up is grey)", title="exact calls so far", xlim=(0.0, None))
    axes.set_ylim(bottom=0.0)
    axes.legend()


def _draw_acceptance(axes: Any, *, course: _Course) -> None:
    n = len(course.acceptance)
    size = max(WINDOW, n // 100)
    edges = np.arange(0, n + size, size)
    known = np.isfinite(course.acceptance)
    sums = np.add.reduceat(np.where(known, course.acceptance, 0.0), edges[:-1][edges[:-1] < n])
    counts = np.add.reduceat(known.astype(float), edges[:-1][edges[:-1] < n])
    with np.errstate(invalid="ignore"):
        means = sums / counts
    centres = np.minimum(edges[: len(means)] + 0.5 * size, n)
    if course.warmup:
        axes.axvspan(0, course.warmup, color=GREY, alpha=0.15, linewidth=0)
    axes.plot(centres, means, color=BLUE, marker="o", markersize=2.5)
    order: FloatArray = 1.0 + np.searchsorted(
        course.seconds, [*course.deployed, *course.repaired]
    ).astype(np.float64)
    cut = len(course.deployed)
    _mark(axes, order[:cut], order[cut:])
    axes.set(xlabel="iteration (warm-up is grey)", title="acceptance", ylim=(0.0, 1.03))
    if cut or len(course.repaired):
        axes.legend(loc="lower right")


def _draw_seconds(axes: Any, *, seconds: dict[str, float]) -> None:
    rows = np.arange(len(seconds))
    axes.barh(rows, list(seconds.values()), color=BLUE, height=0.6)
    for row, value in enumerate(seconds.values()):
        axes.text(value, row, f" {value:.3g}", va="center", fontsize=8, color=INK)
    axes.set_yticks(rows, list(seconds))
    axes.invert_yaxis()
    axes.set_xlim(right=1.2 * max([*seconds.values(), 1e-9]))
    axes.set(xlabel="seconds", title="seconds by phase")
