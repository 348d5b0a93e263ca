"""The verdict on a run: what can go wrong, as findings with advice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from textwrap import shorten
from typing import TypeAlias

import numpy as np

from surrokit.cost.budget import LIMITS
from surrokit.diagnostics import FEWEST_EFFECTIVE
from surrokit.failures import FailureKind, tell_chance, tell_infinite
from surrokit.marginals import heavy_tails
from surrokit.result.advice import (
    FEWEST_ITERATIONS,
    advice,
    advise_mixing,
    chains_named,
    disagreement,
    energy,
    few_effective,
    is_judged,
    slow_tails,
    too_short,
)
from surrokit.result.mode_visits import exchanged, unbelieved, unseen_modes
from surrokit.result.records import Finding, Rescue, Verdict
from surrokit.result.run import Run
from surrokit.surrogate.training import part_beyond

FEWEST_DEGREES = 2.0
"""Degrees of freedom of an error below which it has no variance of its own."""

FEW_BEYOND = 0.01
"""Part of the draws beyond a surrogate's border from which on it is told."""

MOSTLY = 0.9
"""Part of the iterations in which the target failed, from which on a chain that never moved is
taken to fail always."""

_RESAMPLED = 2000  # draws by which quantiles are those of the weights
_FEWEST_SHOWING = 20  # effective draws with fewer of which any tail may seem heavy
_LONGEST = 200  # characters of the message of a failure
_NAMED = 3  # numbers of a position that a finding names

Rule: TypeAlias = tuple[str, bool | Callable[[Run], bool], Callable[[Run], Iterable[str]]]
"""Name of findings, whether they warn, and what yields their messages."""


def judge(run: Run) -> Verdict:
    """Return the verdict on a run.

    Parameters
    ----------
    run
        With any number of draws, even none.
    """
    found = _apply(_OF_ANSWERS, run)
    if run.exact:
        stuck, mixing = _apply(_OF_CHAINS, run), _apply(_OF_MIXING, run)
        slow = not stuck and any(each.warns for each in mixing)
        found += [*stuck, *mixing, *(_apply(_OF_TAILS, run) if slow else [])]
    found += _apply(_OF_COURSE, run)
    return Verdict(tuple(sorted(found, key=lambda each: not each.warns)))


def _apply(rules: Iterable[Rule], run: Run) -> list[Finding]:
    return [
        Finding(name=name, message=message, warns=warns(run) if callable(warns) else warns)
        for name, warns, rule in rules
        for message in rule(run)
    ]


def limit_of(run: Run) -> str:
    """Return the limit that ended a run, in words."""
    return "the default limit on calls" if run.stopped == "default_max_calls" else run.stopped


def _unchecked(run: Run) -> Iterator[str]:
    if run.unchecked is not None:
        yield (
            f"the draws are not exact: {limit_of(run)} ended the run before its first draw, and "
            f"these are {run.unchecked}. The target has not checked them; raise "
            f"{run.stopped.removeprefix('default_')}"
        )


def _endless(run: Run) -> Iterator[str]:
    if run.endless:
        yield (
            f"far from the draws the density does not decay along {', '.join(run.endless)}, or no "
            "faster than 1 / distance, so that no distribution has it, and the draws mean nothing; "
            "declare bounds or a prior"
        )


# --- weighted answers ---


def _refused(run: Run) -> Iterator[str]:
    if run.weights is None or run.answer is not None:
        return
    advised = "raise max_calls, so that the surrogate learns from more, or chains can go on"
    if len(run.kept) and run.unchecked is None:
        advised = "the draws are those of chains on which the exact potential decided"
    yield f"weighted answers are refused: {run.weights.refused}; {advised}"


def _weighted(run: Run) -> Iterator[str]:
    if run.answer is None:
        return
    n, rounds = sum(map(len, run.answer.rounds)), len(run.answer.rounds)
    drawn = sum(each.flat.shape[0] for each in run.answer.rounds)
    yield (
        f"the answers are weighted: {drawn} draws of surrogates in {rounds} "
        f"round{'' if rounds == 1 else 's'}, corrected by the exact potential at {n} of them; "
        f"the draws themselves are the surrogates', with log_weights"
    )


def _one_round(run: Run) -> Iterator[str]:
    if run.answer is not None and len(run.answer.rounds) == 1:
        yield (
            "there was one round of weighted answers alone, so that nothing says whether another "
            "would agree; raise max_calls"
        )


def _by_values(run: Run) -> Iterator[str]:
    kinds = {kind for kind, n in run.calls.items() if n}
    from_values = kinds <= {"value"} and getattr(run.surrogate, "n_gradients", None) == 0
    if run.answer is not None and from_values:
        yield (
            "the surrogates have learnt from values alone, which say nothing of what lies beyond "
            "their points, so that a thin arm or a heavy tail may be missing from the answers and "
            "from their errors; give gradients, or let chains go on (correction='metropolis')"
        )


def _left_out(run: Run) -> Iterator[str]:
    if run.answer is not None and run.weights is not None and run.weights.refused is not None:
        yield f"what earlier rounds say is left out, as {run.weights.refused}"


def _heavy_weights(run: Run) -> Iterator[str]:
    """Yield which moments rest on few draws far out."""
    if run.answer is None or run.weights is None:
        return
    figures = run.weights.figures
    for name, estimate in (("mean", figures.mean), ("standard deviation", figures.sd)):
        few = (estimate.degrees < FEWEST_DEGREES) & (estimate.error > 0.0)
        if few.any():
            which = ", ".join(repr(run.labels[i]) for i in np.flatnonzero(few))
            yield (
                f"the {name} of {which} rests on few draws in a heavy tail, so that its error is "
                "hardly known and its interval wide; go by quantiles, or raise effective= of the "
                "correction 'weights'"
            )


def _few_answers(run: Run) -> Iterator[str]:
    if run.answer is None or np.min(run.ess()) >= FEWEST_EFFECTIVE:
        return
    worst = int(np.argmin(np.nan_to_num(run.ess())))
    yield (
        f"the answers about {run.labels[worst]!r} are worth {run.ess()[worst]:.0f} independent "
        f"draws where {FEWEST_EFFECTIVE} are the least to go by; raise max_calls"
    )


def _heavy_parameters(run: Run) -> Iterator[str]:
    """Yield which parameters seem to have tails that no surrogate learns, where answers are few."""
    shows = run.answer is not None and run.calls.get("gradient", 0)
    if not shows or not _FEWEST_SHOWING <= np.min(run.ess()) < FEWEST_EFFECTIVE:
        return
    heavy = np.flatnonzero(heavy_tails(run.resampled(_RESAMPLED, rng=0)))
    if heavy.size:
        which = ", ".join(repr(run.labels[i]) for i in heavy)
        yield (
            f"{which} seem to have heavy tails on both sides, of which surrogates learn little, so "
            "that more calls help little; use sampler='hmc' without a surrogate and max_calls, "
            "which learns coordinates in which such tails are normal, or give the target such "
            "coordinates"
        )


# --- how the run went ---

_STOPPED = {
    "max_calls": "the run stopped because max_calls was reached",
    "default_max_calls": (
        "the run stopped at the default limit on calls, many times as many as such a run takes; "
        "pass max_calls for another limit, or max_calls=math.inf for none"
    ),
    "max_seconds": "the run stopped because max_seconds was reached",
    "target_ess": "the run stopped because target_ess was reached",
    "target_mcse": "the run stopped because every error is as small as was aimed at",
    "target_rhat": "the run stopped because target_rhat was reached",
    "observer": "an observer stopped the run; these are the draws until then",
    "interrupted": "the run was interrupted; these are the draws until then",
    "error": "the run ended in an error; these are the draws until then",
}


def _ending(run: Run) -> Iterator[str]:
    if run.stopped in LIMITS and run.length == "fixed":
        yield f"{run.stopped} allowed no more draws, as settled before the first"
    elif run.stopped in _STOPPED:
        yield _STOPPED[run.stopped]


def _empty(run: Run) -> Iterator[str]:
    if len(run.kept):
        return
    message = "there are no draws"
    if run.stopped in LIMITS and not run.total_calls:
        message += f": {limit_of(run)} allowed not even the starts of the chains; raise it"
    elif run.stopped in LIMITS:
        message += f": all that {limit_of(run)} allowed went into the warm-up; raise it"
    yield message


def _failing_chains(run: Run) -> Iterator[str]:
    """Yield the chains that never moved while the target failed time and again."""
    trace = run.kept if len(run.kept) >= FEWEST_ITERATIONS else run.warmup
    if len(trace) < FEWEST_ITERATIONS or run.recheck.worked:  # or it is chance
        return
    failed = float(np.mean(np.diff(trace.failures) > 0))
    stood = ~trace.accepted.any(axis=1) & ~(trace.acceptance > 0.0).any(axis=1)
    if failed >= MOSTLY and stood.any():
        yield (
            f"{chains_named(np.flatnonzero(stood))} never moved in "
            f"{len(trace)} iterations, in {failed:.0%} of which the target failed: it fails "
            "wherever such a chain would go; begin it elsewhere with initial=..., or mend the "
            "model there (run.failure_kinds has the first failure of each kind)"
        )


def _told_of_chance(doubt: bool) -> Callable[[Run], Iterator[str]]:
    def tell(run: Run) -> Iterator[str]:
        cured = sum(kind.cured for kind in run.failure_kinds.values())
        message = tell_chance(run.recheck, cured, run.failures, doubt=doubt)
        yield from () if message is None else (message,)

    return tell


def _infinite(run: Run) -> Iterator[str]:
    if (message := tell_infinite(run.recheck)) is not None:
        yield message


def _noisy(run: Run) -> Iterator[str]:
    if (apart := run.recheck.apart) is not None:
        yield (
            "the target is not a function: at one position its potential was "
            f"{apart[0]:.10g} and then {apart[1]:.10g}. Acceptance by such values is "
            "not exact; fix the seed of a random model, or ask its solver for smaller errors"
        )


def _failures(run: Run) -> Iterator[str]:
    if run.failures:
        kinds = [_describe_kind(run, *item) for item in run.failure_kinds.items() if item[1].count]
        yield (
            f"the target could not be evaluated at {run.failures} positions, which were rejected"
            f"{': ' * bool(kinds)}{'; '.join(kinds)}"
        )


def _describe_kind(run: Run, name: str, kind: FailureKind) -> str:
    """Return how often the target failed in one way, and the first time in words."""
    first = shorten(kind.message, _LONGEST)
    if kind.position is None:
        return f"{kind.count} by {name} (first: {first})"
    shown = [f"{label} = {x:.6g}" for label, x in zip(run.labels, kind.position, strict=True)]
    more = ["..."] if len(shown) > _NAMED else []
    return f"{kind.count} by {name} (first at {', '.join(shown[:_NAMED] + more)}: {first})"


def _rescues(run: Run) -> Iterator[str]:
    if repairs := run.adaptation.rescues:
        times = _times(repairs)
        yield f"the safety net repaired the surrogate {times} in warm-up, {_last(repairs)}"


def _restarts(run: Run) -> Iterator[str]:
    if restarts := run.adaptation.restarts:
        yield f"draws were thrown back into warm-up {_times(restarts)}, {_last(restarts)}"


def _last(repairs: tuple[Rescue, ...]) -> str:
    return f"the last time after iteration {repairs[-1].iteration}: {repairs[-1].reason}"


def _mix(run: Run) -> Iterator[str]:
    if run.adaptation.mix:
        yield f"kept iterations were exact transitions with probability {run.adaptation.mix:g}"


def _adaptation(run: Run) -> Iterator[str]:
    if not run.adaptation.frozen_before_draws:
        yield (
            "the draws are exact only in the limit of a vanishing adaptation: "
            "draws were kept while the surrogate still adapted"
        )


def _fallback(run: Run) -> Iterator[str]:
    if run.chosen is not None and run.chosen.fallback:
        sampler, reason = run.chosen.fallback
        yield f"the surrogate was given up for {sampler}: {reason}"


def _divergences(run: Run) -> Iterator[str]:
    if not (n := int(run.divergences.sum())):
        return
    failures = ", ".join(f"{n} {kind}" for kind, n in run.path_failures.items() if n)
    steps = "a smaller step size"
    if "step_size" in run.sampler.tunes:
        steps = "smaller steps, by a higher target_acceptance of the sampler,"
    yield f"{n} paths diverged{f' ({failures})' if failures else ''}; {steps} would help"


def _recalled(run: Run) -> Iterator[str]:
    if run.adaptation.recalled:
        yield (
            "chains went on from draws of an earlier run, and nothing was explored: a mode that it "
            "has missed is missed again; give initial=... to explore afresh"
        )


def _border(run: Run) -> Iterator[str]:
    """Yield how many draws lie where the surrogate had learnt nothing."""
    positions = run.kept.positions
    part = part_beyond(run.surrogate, positions.reshape(-1, positions.shape[2])) if run.exact else 0
    if part >= FEW_BEYOND:
        yield (
            f"{part:.2g} of the draws lie beyond all that the surrogate has learnt from; they are "
            "exact, but chains go there and back slowly: a longer exploration would help"
        )


def _missed(run: Run) -> Iterator[str]:
    """Yield that the exploration ended before it had found all of the target's mass."""
    if run.exact and run.surrogate is not None and run.adaptation.missed:
        yield (
            "the exploration ended while the target still went on where the surrogate's mass ends: "
            "draws may come there too rarely, in all chains alike; let it pay for more, "
            "explorer=('rounds', {'evaluations': ...}), or "
            f"{advise_mixing(run.adaptation.mix)}"
        )


def _times(things: Iterable[object]) -> str:
    n = len(list(things))
    return "once" if n == 1 else f"{n} times"


_OF_ANSWERS: tuple[Rule, ...] = (
    ("unchecked", True, _unchecked),
    ("improper", True, _endless),
    ("weights", True, _refused),
    ("weights", False, _weighted),
    ("one_round", True, _one_round),
    ("by_values", True, _by_values),
    ("weights", True, _left_out),
    ("heavy_tails", True, _heavy_weights),
    ("effective_draws", True, _few_answers),
    ("heavy_tails", True, _heavy_parameters),
)
_OF_CHAINS: tuple[Rule, ...] = (("draws", True, advice),)
_OF_MIXING: tuple[Rule, ...] = (
    ("r_hat", lambda run: run.stopped in LIMITS, too_short),
    ("r_hat", is_judged, disagreement),
    ("effective_draws", True, few_effective),
    ("energy", True, energy),
)
_OF_TAILS: tuple[Rule, ...] = (("heavy_tails", True, slow_tails),)
_OF_COURSE: tuple[Rule, ...] = (
    ("stopped", False, _ending),
    ("stopped", lambda run: run.stopped not in ("interrupted", "observer"), _empty),
    ("noticed", False, lambda run: run.noticed),
    ("failing_chain", True, _failing_chains),
    ("fails_by_chance", True, _told_of_chance(doubt=True)),
    ("retried", False, _told_of_chance(doubt=False)),
    ("infinite_by_chance", True, _infinite),
    ("noisy", True, _noisy),
    ("failures", False, _failures),
    ("rescues", False, _rescues),
    ("restarts", False, _restarts),
    ("mix", False, _mix),
    ("adaptation", False, _adaptation),
    ("fallback", False, _fallback),
    ("divergences", False, _divergences),
    ("recalled", False, _recalled),
    ("exchange", True, exchanged),
    ("unseen_modes", True, unseen_modes),
    ("modes_left", False, unbelieved),
    ("border", False, _border),
    ("missed", True, _missed),
)
