"""The verdict on a run: what can go wrong, as findings with advice."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import shorten

import numpy as np

from surrokit.cost.budget import LIMITS
from surrokit.diagnostics import FEWEST_EFFECTIVE
from surrokit.failures import tell_chance, tell_infinite
from surrokit.marginals import heavy_tails
from surrokit.model.outcome import MINUS_INFINITY
from surrokit.result.advice import (
    FEWEST_ITERATIONS,
    advice,
    advise_mixing,
    chains_named,
    mixing,
    modes_left,
    slow_tails,
)
from surrokit.result.records import Finding, Verdict, note, warning
from surrokit.result.run import Run
from surrokit.surrogate.training import part_beyond
from surrokit.targets.estimates import LARGEST
from surrokit.types import BoolArray


def judge(run: Run, effective: float = 0.0) -> Verdict:
    """Return the verdict on a run with any number of draws, even none; warnings come first.

    Parameters
    ----------
    effective
        Effective draws that each parameter is known to have at least.
    """
    found = [*_of_answers(run)]
    if run.by_chains:
        complaints, mixes = advice(run), [*mixing(run, effective)]
        found += [*(warning("draws", message) for message in complaints), *mixes]
        if not complaints and any(each.warns for each in mixes):
            found += slow_tails(run)
    for others in (modes_left, _of_ending, _of_failures, _of_course, _of_surrogate):
        found += others(run)
    return Verdict(tuple(sorted(found, key=lambda each: not each.warns)))


def limit_of(run: Run) -> str:
    """Return the limit that ended a run, in words."""
    return "the default limit on calls" if run.stopped == "default_max_calls" else run.stopped


def _of_answers(run: Run) -> Iterator[Finding]:
    if run.unchecked is not None:
        why = f"{limit_of(run)} ended the run before its first draw"
        more = f". Raise {run.stopped.removeprefix('default_')}"
        if run.stopped == "max_calls" and run.total_calls:
            more += f" by {run.total_calls:.0f}, to twice as many"
        if run.stopped == "surrogate":
            why, more = str(run.weights and run.weights.reason), ""
        elif run.weights is not None and run.weights.reason is not None:
            why += f", and weighted answers are rejected: {run.weights.reason}"
        yield warning(
            "unchecked",
            f"not verified: the draws are not exact, but {run.unchecked}, which the target has not "
            f"checked: {why}{more}",
        )
    if run.endless:
        yield warning(
            "improper",
            f"far from the draws the density does not decay along {', '.join(run.endless)}, or no "
            "faster than 1 / distance: it has no finite integral, and the draws have no meaning. "
            "Declare bounds or a prior",
        )
    if run.answer is not None:
        yield from _of_weighted(run)
    elif run.weights is not None and run.accepted:
        advised = "raise max_calls, so that the surrogate learns from more, or chains can go on"
        if len(run.kept):
            advised = "the draws are those of chains on which the exact potential decided"
        message = f"weighted answers are rejected: {run.weights.reason}; {advised}"
        yield warning("weights", message)


def _of_weighted(run: Run) -> Iterator[Finding]:
    assert run.answer is not None
    assert run.weights is not None
    rounds, figures = run.answer.rounds, run.weights.figures
    if run.answer.is_of_process:
        yield from _of_few_answers(run)
        return
    yield note(
        "weights",
        f"the answers are weighted: {sum(each.flat.shape[0] for each in rounds)} draws of "
        f"surrogates in {len(rounds)} round{'' if len(rounds) == 1 else 's'}, corrected by the "
        f"exact potential at {sum(map(len, rounds))} of them; the draws themselves are the "
        "surrogates', with log_weights",
    )
    if len(rounds) == 1:
        yield warning(
            "one_round",
            "there was one round of weighted answers alone, and no other to compare it with. "
            "Raise max_calls",
        )
    kinds = {kind for kind, n in run.calls.items() if n}
    if kinds <= {"value"} and getattr(run.surrogate, "n_gradients", None) == 0:
        yield warning(
            "by_values",
            "the surrogates have learnt from values alone, so that a thin arm or a heavy tail may "
            "be missing from the answers and from their errors. Give gradients, or let chains go "
            "on (correction='metropolis')",
        )
    if run.weights.reason is not None:
        message = f"what earlier rounds say is left out, as {run.weights.reason}"
        yield warning("weights", message)
    for name, estimate in (("mean", figures.mean), ("standard deviation", figures.sd)):
        few = (estimate.degrees < 2.0) & (estimate.error > 0.0)  # an error without a variance
        if few.any():
            yield warning(
                "heavy_tails",
                f"the {name} of {_named(run, few)} depends on few draws in a heavy tail, so that "
                "its error is uncertain and its interval wide. Use quantiles, or raise effective= "
                "of the correction 'weights'",
            )
    yield from _of_few_answers(run)


def _of_few_answers(run: Run) -> Iterator[Finding]:
    ess = run.ess()
    if np.min(ess) >= FEWEST_EFFECTIVE:
        return
    worst = int(np.argmin(np.nan_to_num(ess)))
    yield warning(
        "effective_draws",
        f"the answers about {run.labels[worst]!r} are worth {ess[worst]:.0f} independent draws, "
        f"and at least {FEWEST_EFFECTIVE} are needed. Raise max_calls",
    )
    # with fewer effective draws any tail may seem heavy
    tried = run.calls.get("gradient", 0) and np.min(ess) >= 20
    if tried and (heavy := heavy_tails(run.resampled(2000, rng=0))).any():
        yield warning(
            "heavy_tails",
            f"{_named(run, heavy)} seem to have heavy tails on both sides, which surrogates cannot "
            "learn. Use sampler='hmc' without a surrogate and max_calls, or give the target "
            "coordinates in which such tails are normal",
        )


def _named(run: Run, which: BoolArray) -> str:
    return ", ".join(repr(run.labels[i]) for i in np.flatnonzero(which))


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
    "surrogate": "the run stopped because its surrogate can answer nothing, and few calls are left",
    "observer": "an observer stopped the run; these are the draws until then",
    "interrupted": "the run was interrupted; these are the draws until then",
    "error": "the run ended in an error; these are the draws until then",
}


def _of_ending(run: Run) -> Iterator[Finding]:
    if run.stopped in LIMITS and run.length == "fixed":
        message = f"{run.stopped} allowed no more draws, as decided before the first"
        yield note("stopped", message)
    elif run.stopped in _STOPPED:
        yield note("stopped", _STOPPED[run.stopped])
    if not len(run.kept):
        message = "there are no draws"
        if run.stopped in LIMITS and not run.total_calls:
            message += f": {limit_of(run)} allowed not even the starts of the chains; raise it"
        elif run.stopped in LIMITS:
            message += f": all that {limit_of(run)} allowed went into the warm-up; raise it"
        asked = run.stopped in ("interrupted", "observer")
        yield (note if asked else warning)("stopped", message)
    yield from (note("noticed", message) for message in run.noticed)


def _of_failures(run: Run) -> Iterator[Finding]:
    yield from _failing_chains(run)
    cured = sum(kind.cured for kind in run.failure_kinds.values())
    if (chance := tell_chance(run.recheck, cured, run.failures)) is not None:
        doubt, message = chance
        yield warning("fails_by_chance", message) if doubt else note("retried", message)
    if (infinite := tell_infinite(run.recheck)) is not None:
        yield warning("infinite_by_chance", infinite)
    yield from _of_noise(run)
    if n := run.recheck.cheap_failed:
        most = max(run.calls.get("cheap", 0), n)
        yield note(
            "cheap_failed",
            f"the cheap model failed at {n} of {most} positions, where a normal density stands for "
            "it: draws are right, but chains move there slowly. Correct the cheap model there",
        )
    if not run.failures:
        return
    kinds, most = [], 3  # numbers of a position
    somewhere = MINUS_INFINITY in run.failure_kinds or not len(run.kept)
    for name, kind in run.failure_kinds.items():
        place = ""
        if kind.position is not None:
            pairs = [*zip(run.labels, kind.position, strict=True)]
            shown = [f"{label} = {x:.6g}" for label, x in pairs[:most]]
            place = f" at {', '.join([*shown, *['...'] * (len(pairs) > most)])}"
        if kind.count:
            kinds.append(f"{kind.count} by {name} (first{place}: {shorten(kind.message, 200)})")
    message = (
        f"the target could not be evaluated at {run.failures} positions, which were rejected"
        f"{': ' * bool(kinds)}{'; '.join(kinds)}"
    )
    if harms := bool(run.recheck.near) or somewhere:
        message += (
            ", and draws lack the probability there. Let the target return inf where its density "
            'is zero, or correct it (compute=sk.Compute(on_error="raise") stops at a failure)'
        )
    yield (warning if harms else note)("failures", message)


def _of_noise(run: Run) -> Iterator[Finding]:
    """Yield what noise of values makes of the answers."""
    sd, apart = run.recheck.noise_sd, run.recheck.apart
    if sd is None and apart is None:
        return
    size = "" if sd is None or np.isnan(sd) else f" of sd {sd:.2g}"
    if run.answer is not None and run.answer.is_of_process:
        learnt = run.answer.rounds[-1].learnt
        yield note(
            "noisy",
            f"values have noise{size}, so that the answers are those of the expected log density: "
            f"draws of a process about {learnt} values, with what it does not know as errors; no "
            "value corrects them",
        )
        return
    if apart is not None and not run.recheck.unbiased:
        yield warning(
            "noisy",
            f"the target is not a function: at one position its potential was {apart[0]:.10g} and "
            f"then {apart[1]:.10g}, so that draws are those of the mean of exp(-U). Unless this is "
            "the density, fix the seed of a random model, or lower the tolerance of its solver",
        )
    elif run.recheck.unbiased:
        what = f"values are estimates with noise{size}, and chains keep that of their position, so"
        yield note("noisy", f"{what} that draws are those of the mean of exp(-U)")
    elif run.exact:
        yield warning(
            "noisy",
            f"values have noise{size}, and chains keep that of their position, so that draws are "
            "those of the mean of exp(-U), not of the expected log density. Leave correction out, "
            "or declare estimate='unbiased' if this is the density",
        )
    if sd is not None and sd > LARGEST:
        yield warning(
            "large_noise",
            f"the noise of log densities has sd {sd:.2g}, above {LARGEST}, where chains get stuck "
            "at estimates that are too high. Average more per estimate",
        )


def _failing_chains(run: Run) -> Iterator[Finding]:
    trace = run.kept if len(run.kept) >= FEWEST_ITERATIONS else run.warmup
    if len(trace) < FEWEST_ITERATIONS or run.recheck.worked:  # or it is chance
        return
    failed = float(np.mean(np.diff(trace.failures) > 0))
    stood = ~trace.accepted.any(axis=1) & ~(trace.acceptance > 0.0).any(axis=1)
    if failed >= 0.9 and stood.any():
        yield warning(
            "failing_chain",
            f"{chains_named(np.flatnonzero(stood))} never moved in {len(trace)} iterations, and "
            f"the target failed in {failed:.0%} of them. Begin elsewhere with initial=..., or "
            "correct the model there (run.failure_kinds has the first failure of each kind)",
        )


def _of_course(run: Run) -> Iterator[Finding]:
    """Yield what happened in warm-up, and to paths."""
    went = run.adaptation
    if repairs := went.repairs:
        times = "once" if len(repairs) == 1 else f"{len(repairs)} times"
        yield note(
            "repairs",
            f"the surrogate was repaired {times} in warm-up, the last time after "
            f"iteration {repairs[-1].iteration}: {repairs[-1].reason}",
        )
    if went.jumps:
        message = f"half of the iterations were jumps between {went.jumps} modes, decided exactly"
        yield note("jumps", message)
    if went.mix:
        yield note("mix", f"kept iterations were exact transitions with probability {went.mix:g}")
    if not went.frozen_before_draws:
        yield note(
            "adaptation",
            "draws were kept while the surrogate still adapted, so that they are exact only in "
            "the limit of a vanishing adaptation",
        )
    if run.chosen is not None and run.chosen.fallback:
        sampler, reason = run.chosen.fallback
        yield note("fallback", f"{sampler} replaced the surrogate: {reason}")
    if n := int(run.divergences.sum()):
        failures = ", ".join(f"{n} {kind}" for kind, n in run.path_failures.items() if n)
        steps = "a smaller step size"
        if "step_size" in run.sampler.tunes:
            steps = "smaller steps, by a higher target_acceptance of the sampler,"
        message = f"{n} paths diverged{f' ({failures})' if failures else ''}; {steps} would help"
        yield note("divergences", message)
    if went.recalled:
        yield note(
            "recalled",
            "chains continued from draws of an earlier run without exploration, so that a mode "
            "which it missed is missed again. Give initial=... to explore anew",
        )


def _of_surrogate(run: Run) -> Iterator[Finding]:
    if not run.by_chains:
        return
    positions = run.kept.positions
    part = part_beyond(run.surrogate, positions.reshape(-1, positions.shape[2]))
    if part >= 0.01:
        yield note(
            "border",
            f"{part:.2g} of the draws lie beyond the surrogate's training points: they are exact, "
            "but chains move there slowly. A longer exploration would help",
        )
    if run.surrogate is not None and run.adaptation.missed:
        yield warning(
            "missed",
            "the target has mass beyond where the surrogate's ends, and chains may go there too "
            "rarely, all alike. Allow for more, explorer=('rounds', {'evaluations': ...}), or "
            f"{advise_mixing(run.adaptation.mix)}",
        )
