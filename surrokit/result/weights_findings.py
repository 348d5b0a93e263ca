"""What a reader must know of weighted answers, and of draws that are not exact."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from surrokit.marginals.fit import heavy_tails
from surrokit.result.finding import FEWEST_EFFECTIVE, Finding

if TYPE_CHECKING:
    from surrokit.result.run import Run


FEWEST_DEGREES = 2.0
"""Degrees of freedom of an error below which it has no variance of its own."""

_RESAMPLED = 2000  # draws by which quantiles are those of the weights
_FEWEST_SHOWING = 20  # effective draws with fewer of which any tail may seem heavy


def weights_findings(run: Run) -> Iterator[Finding]:
    """Yield findings about weighted answers, or why there are none."""
    weights, answer = run.weights, run.answer
    if weights is None:
        return
    if answer is None:
        yield Finding(name="weights", message=_refusal(run), warns=True)
        return
    n, rounds = sum(map(len, answer.rounds)), len(answer.rounds)
    drawn = sum(each.flat.shape[0] for each in answer.rounds)
    message = (
        f"the answers are weighted: {drawn} draws of surrogates in {rounds} "
        f"round{'' if rounds == 1 else 's'}, corrected by the exact potential at {n} of them; "
        f"the draws themselves are the surrogates', with log_weights"
    )
    yield Finding(name="weights", message=message, warns=False)
    if rounds == 1:
        message = (
            "there was one round of weighted answers alone, so that nothing says whether another "
            "would agree; raise max_calls"
        )
        yield Finding(name="one_round", message=message, warns=True)
    if _learns_from_values(run):
        message = (
            "the surrogates have learnt from values alone, which say nothing of what lies beyond "
            "their points, so that a thin arm or a heavy tail may be missing from the answers and "
            "from their errors; give gradients, or let chains go on (correction='metropolis')"
        )
        yield Finding(name="by_values", message=message, warns=True)
    if weights.refused is not None:
        message = f"what earlier rounds say is left out, as {weights.refused}"
        yield Finding(name="weights", message=message, warns=True)
    yield from _heavy_tails(run)
    ess = run.ess()
    if not np.min(ess) >= FEWEST_EFFECTIVE:
        worst = int(np.argmin(np.nan_to_num(ess)))
        message = (
            f"the answers about {run.labels[worst]!r} are worth {ess[worst]:.0f} independent draws "
            f"where {FEWEST_EFFECTIVE} are the least to go by; raise max_calls"
        )
        yield Finding(name="effective_draws", message=message, warns=True)
        yield from _heavy_parameters(run)


def limit_of(run: Run) -> str:
    """Return the limit that ended a run, in words."""
    return "the default limit on calls" if run.stopped == "default_max_calls" else run.stopped


def unchecked_findings(run: Run) -> Iterator[Finding]:
    """Yield that the draws are none of the target, if so."""
    if run.unchecked is None:
        return
    message = (
        f"the draws are not exact: {limit_of(run)} ended the run before its first draw, and these "
        f"are {run.unchecked}. The target has not checked them; raise "
        f"{run.stopped.removeprefix('default_')}"
    )
    yield Finding(name="unchecked", message=message, warns=True)


def endless_findings(run: Run) -> Iterator[Finding]:
    """Yield that no distribution has such a density, if so."""
    if run.endless:
        message = (
            f"far from the draws the density does not decay along {', '.join(run.endless)}, or no "
            "faster than 1 / distance, so that no distribution has it, and the draws mean nothing; "
            "declare bounds or a prior"
        )
        yield Finding(name="improper", message=message, warns=True)


def _heavy_tails(run: Run) -> Iterator[Finding]:
    """Yield which moments rest on few draws far out, if any do."""
    assert run.weights is not None
    figures = run.weights.figures
    for name, estimate in (("mean", figures.mean), ("standard deviation", figures.sd)):
        few = (estimate.degrees < FEWEST_DEGREES) & (estimate.error > 0.0)
        if few.any():
            which = ", ".join(repr(run.labels[i]) for i in np.flatnonzero(few))
            message = (
                f"the {name} of {which} rests on few draws in a heavy tail, so that its error is "
                "hardly known and its interval wide; go by quantiles, or raise effective= of the "
                "correction 'weights'"
            )
            yield Finding(name="heavy_tails", message=message, warns=True)


def _heavy_parameters(run: Run) -> Iterator[Finding]:
    """Yield which parameters seem to have tails that no surrogate learns, by weighted draws."""
    if not (np.min(run.ess()) >= _FEWEST_SHOWING and run.calls.get("gradient", 0)):
        return
    heavy = np.flatnonzero(heavy_tails(run.resampled(_RESAMPLED, rng=0)))
    if not heavy.size:
        return
    which = ", ".join(repr(run.labels[i]) for i in heavy)
    message = (
        f"{which} seem to have heavy tails on both sides, of which surrogates learn little, so "
        "that more calls help little; use sampler='hmc' without a surrogate and max_calls, which "
        "learns coordinates in which such tails are normal, or give the target such coordinates"
    )
    yield Finding(name="heavy_tails", message=message, warns=True)


def _learns_from_values(run: Run) -> bool:
    """Return whether the surrogate knows neither gradients nor outputs of the target."""
    kinds = {kind for kind, n in run.calls.items() if n}
    return kinds <= {"value"} and getattr(run.surrogate, "n_gradients", None) == 0


def _refusal(run: Run) -> str:
    assert run.weights is not None
    message = f"weighted answers are refused: {run.weights.refused}"
    if len(run.kept) and run.unchecked is None:
        return f"{message}; the draws are those of chains on which the exact potential decided"
    return (
        f"{message}; raise max_calls, so that the surrogate learns from more, or chains can go on"
    )
