"""What came of a trial: right or wrong, with a warning or without."""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from harness import Row
from real_posteriors.judging import LARGEST_RHAT, OFF_MEAN, OFF_SD, complaints
from surrokit.errors import SurrokitError
from surrokit.potentials import Potential
from user_trials.references import Moments

AT_ONCE = 2.0
"""Seconds within which a target that cannot be one must be refused."""

GRACE = 30.0
"""Seconds after its limit at which a run is interrupted, as one call of its target does not end."""

RIGHT, RIGHT_WARNED = "right, silent", "right, warned"
WRONG_WARNED, WRONG_SILENT = "wrong, warned", "wrong, silent"
NO_END = "no end"
OUTCOMES = (RIGHT, RIGHT_WARNED, WRONG_WARNED, WRONG_SILENT, NO_END)


@attrs.frozen(kw_only=True)
class Trial:
    """A target, how it is sampled, and when the result is right."""

    name: str  # what the table calls it
    variant: str
    target: Callable[[int], Potential]  # from a seed to the target, as some fail by chance
    # means and standard deviations; None for a target that must be refused
    truth: Callable[[], Moments] | None
    settings: Mapping[str, Any] = attrs.field(factory=dict)  # of :func:`surrokit.sample`
    # from a generator to starts; None for the default
    start: Callable[[np.random.Generator], Any] | None = None
    seeds: int = 10  # how many by default
    # R-hat must be below the first; means within so many standard deviations, standard
    # deviations within such a part
    rhat: float = LARGEST_RHAT
    off_mean: float = OFF_MEAN
    off_sd: float = OFF_SD
    # monte Carlo errors, as the run tells them, by which means may be off all the same
    errors: float = 0.0

    def row(self, seed: int, seconds: float) -> Row:
        """Return what comes of one run, as plain data."""
        settings: dict[str, Any] = {"seed": seed, "progress": False, "max_seconds": seconds}
        if self.start is not None:
            settings["initial"] = self.start(np.random.default_rng(seed))
        kept: Row = {"posterior": self.name, "method": self.variant, "seed": seed}
        target, began = self.target(seed), time.perf_counter()
        try:
            with warnings.catch_warnings(), interrupted_after(seconds + GRACE):
                warnings.simplefilter("ignore")
                run = sk.sample(target, **settings, **self.settings)
        except KeyboardInterrupt:
            found = {"status": NO_END, "wrong": ["interrupted"], "warnings": [], "message": ""}
        except Exception as error:
            known = isinstance(error, SurrokitError)
            found = {
                "status": "refused" if known else "failed",
                "wrong": [] if known and self.truth is None else ["no draws"],
                "warnings": [type(error).__name__],
                "message": str(error),
            }
        else:
            status = NO_END if run.stopped == "interrupted" else "done"
            found = {"status": status, **self.figures(run)}
        took = time.perf_counter() - began
        if self.truth is None and took > AT_ONCE:
            found["wrong"].append(f"it took {took:.1f} s")
        return {**kept, **found, "seconds": took}

    def figures(self, run: sk.Run) -> Row:
        """Return what is kept of a run that ended."""
        return {
            "wrong": [*self.wrong(run), *moved_by_word_only(run)],
            "warnings": [finding.name for finding in run.verdict.warnings],
            "message": str(run.verdict),
            "calls": float(run.total_calls),
            "failures": run.failures,
            "stopped": run.stopped,
            "exact": run.exact,
            "draws": list(run.draws.shape),
            "acceptance": run.acceptance.tolist(),
            "choice": run.choice,
            "rhat": np.nan_to_num(run.rhat(), nan=np.inf).max(initial=-np.inf).item(),
        }

    def wrong(self, run: sk.Run) -> tuple[str, ...]:
        """Return what is not as it must be, in words."""
        if self.truth is None:
            return ("it was not refused",)
        if not len(run.kept):
            return ("no draws",)
        summary, (mean, sd) = run.summary(), self.truth()
        errors = self.errors * np.nan_to_num(summary["mcse"] / sd)
        off = np.abs(summary["mean"] - mean) / sd
        ratio = np.abs(summary["sd"] / sd - 1.0)
        beyond = np.where(off <= errors, 0.0, off)
        return (
            *complaints(run.labels, run.rhat(), self.rhat, "R-hat of {name} is {value:.4g}"),
            *complaints(
                run.labels, beyond, self.off_mean, "mean of {name} is off by {value:.2g} sd"
            ),
            *complaints(run.labels, ratio, self.off_sd, "sd of {name} is off by {value:.0%}"),
        )


def moved_by_word_only(run: sk.Run) -> list[str]:
    """Return the complaint about an acceptance of 1 in chains that never moved, if there is one."""
    if run.draws.shape[1] < 2:
        return []
    still = (np.ptp(run.draws, axis=1) == 0.0).all(axis=1)
    return ["acceptance is 1, and yet a chain never moved"] * bool(
        (still & (run.acceptance == 1)).any()
    )


def outcome(row: Row) -> str:
    """Return which of the outcomes it is."""
    if row["status"] == NO_END:
        return NO_END
    if row["wrong"]:
        return WRONG_WARNED if row["warnings"] else WRONG_SILENT
    return RIGHT_WARNED if row["warnings"] else RIGHT


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Interrupt what is done inside as a user would who has waited for so long."""

    def interrupt(*_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 1.0)  # a call may take it for its own failure
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
