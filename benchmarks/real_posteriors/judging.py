"""Right or wrong, and warned or not: draws of a run against the reference."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from real_posteriors.cases import Named, Reference
from surrokit.diagnostics import effective_sample_size, r_hat

LARGEST_RHAT, OFF_MEAN, OFF_SD = 1.02, 0.12, 0.12
"""R-hat must be below the first; means within so many reference sds, sds within such a part."""

NAMED_REASONS = 3
"""The worst parameters that a reason names."""


@attrs.frozen(kw_only=True)
class Judgement:
    """What came of a run."""

    # the largest R-hat, distance of a mean in reference sds, and relative error of an sd;
    # None where it cannot be told
    rhat: float | None
    mean: float | None
    sd: float | None
    ess: float | None  # the least effective sample size of a reference parameter
    wrong: tuple[str, ...]  # what is not as it must be, in words; empty if the run is right

    @property
    def right(self) -> bool:
        """Whether there is nothing wrong."""
        return not self.wrong


def judge(named: Named, reference: Reference) -> Judgement:
    """Judge draws by the reference's names."""
    if set(named) != set(reference):
        odd = ", ".join(sorted(set(named) ^ set(reference)))
        raise ValueError(f"draws and reference must have the same names, got different {odd}")
    names = list(reference)
    draws = np.stack([named[name] for name in names], axis=-1)
    mean, sd = (np.array([reference[name][key] for name in names]) for key in ("mean", "sd"))
    # in the reference's units, squares of draws are ordinary numbers
    scaled = (draws - mean) / sd
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(scaled.mean(axis=(0, 1)))
        ratio = np.abs(scaled.std(axis=(0, 1)) - 1.0)
    rhat = r_hat(scaled)
    return Judgement(
        rhat=_finite(rhat.max()),
        mean=_finite(off.max()),
        sd=_finite(ratio.max()),
        ess=_finite(np.min(effective_sample_size(scaled))),
        wrong=(
            *complaints(names, rhat, LARGEST_RHAT, "R-hat of {name} is {value:.4g}"),
            *complaints(names, off, OFF_MEAN, "mean of {name} is off by {value:.2g} sd"),
            *complaints(names, ratio, OFF_SD, "sd of {name} is off by {value:.0%}"),
        ),
    )


def complaints(names: list[str], values: Any, limit: float, words: str) -> tuple[str, ...]:
    """Return the worst values that are not below a limit, in words for name and value."""
    # what is not a number is not below a limit either
    bad = [i for i in np.argsort(-np.nan_to_num(values, nan=np.inf)) if not values[i] < limit]
    said = [words.format(name=names[i], value=values[i]) for i in bad[:NAMED_REASONS]]
    more = len(bad) - NAMED_REASONS
    return (*said, f"and {more} more") if more > 0 else tuple(said)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def verdict(row: dict[str, Any]) -> str:
    """Return in a word or two what came of a run, from its row.

    ``right``; ``wrong, warned``; ``wrong, silent``; or why there are no draws: ``failed``, ``over
    time``, ``not installed``.
    """
    if row["status"] != "done":
        return str(row["status"])
    if not row["wrong"]:
        return "right"
    return "wrong, warned" if row["warnings"] else "wrong, silent"
