"""The verdict on a run: what can go wrong, as findings with advice."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import shorten

import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.cost.budget import LIMITS
from surrokit.diagnostics import MIN_DRAWS, energy_information
from surrokit.failures import FailureKind, tell_chance, tell_infinite
from surrokit.marginals import heavy_tails
from surrokit.result.advice import FEWEST_ITERATIONS, advice, advise_mixing
from surrokit.result.mode_visits import mode_findings
from surrokit.result.records import FEWEST_EFFECTIVE, Adaptation, Finding, Stray, Verdict
from surrokit.result.run import Run
from surrokit.surrogate.training import part_beyond
from surrokit.types import FloatArray

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
    yield from _heavy_weights(run)
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


def _heavy_weights(run: Run) -> Iterator[Finding]:
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


LARGEST_RHAT = 1.01
"""R-hat above which chains disagree (Vehtari et al. 2021, doi:10.1214/20-BA1221)."""

LEAST_INFORMATION = 0.3
"""Energy fraction of missing information below which tails are not reached (Betancourt 2016,
arXiv:1604.00695)."""

FEW_BEYOND = 0.01
"""Part of the draws beyond a surrogate's border from which on it is told."""

MOSTLY = 0.9
"""Part of the iterations in which the target failed, from which on a chain that never moved is
taken to fail always."""

_LONGEST = 200  # characters of the message of a failure
_NAMED = 3  # numbers of a position that a finding names


def judge(run: Run) -> Verdict:
    """Return the verdict on a run.

    Parameters
    ----------
    run
        With any number of draws, even none.
    """
    found = [*unchecked_findings(run), *endless_findings(run), *weights_findings(run)]
    if run.exact:
        stuck = [Finding(name="draws", message=message, warns=True) for message in advice(run)]
        mixing = [*_mixing(run), *_energy(run)] if len(run.kept) else []
        slow = any(each.warns for each in mixing) and not stuck
        found += [*stuck, *mixing, *(_heavy_tails(run) if slow else [])]
    found += [
        *_ending(run),
        *(_note("noticed", each) for each in run.noticed),
        *_failures(run),
        *_adaptation(run.adaptation),
        *_replaced(run),
        *_divergences(run),
        *_recalled(run),
        *mode_findings(run),
    ]
    found += [*_border(run), *_missed(run)] if run.exact else []
    return Verdict(tuple(sorted(found, key=lambda each: not each.warns)))


def _mixing(run: Run) -> list[Finding]:
    """Return what R-hat and effective sample sizes say."""
    limited = run.stopped in LIMITS  # nobody asked for so few
    fewest = MIN_DRAWS if len(run.draws) > 1 else 2 * MIN_DRAWS
    if len(run.kept) < fewest:
        message = f"R-hat is missing, as it needs {fewest} draws of each chain; draw more"
        return [Finding(name="r_hat", message=message, warns=limited)]
    warns = limited or len(run.kept) >= FEWEST_ITERATIONS
    found = _disagreement(run, run.rhat(), warns=warns)
    return found + (_few_effective(run) if warns else [])


def _disagreement(run: Run, rhat: FloatArray, *, warns: bool) -> list[Finding]:
    missing = np.isnan(rhat) & run.parameters.varies
    found = []
    if (over := np.flatnonzero(rhat > LARGEST_RHAT)).size:
        worst = over[np.argsort(-rhat[over], kind="stable")]
        which = ", ".join(f"{run.labels[i]!r} {rhat[i]:.4g}" for i in worst[:_NAMED])
        more = f" and {over.size - _NAMED} more" if over.size > _NAMED else ""
        message = (
            f"R-hat is above {LARGEST_RHAT} for {which}{more}: chains do not agree on these "
            "yet; draw more, and where it stays look at the chains one by one: they may sit in "
            "modes of their own, or have begun too far out"
        )
        found.append(Finding(name="r_hat", message=message, warns=warns))
    if missing.any():
        still = ", ".join(label for label, one in zip(run.labels, missing, strict=True) if one)
        message = f"R-hat is missing for {still}: the chains hardly moved there, or never"
        found.append(Finding(name="r_hat", message=message, warns=warns))
    return found


def _few_effective(run: Run) -> list[Finding]:
    ess = run.ess()
    if np.isnan(ess).all() or not (least := float(np.nanmin(ess))) < FEWEST_EFFECTIVE:
        return []
    message = (
        f"the draws of {run.labels[int(np.nanargmin(ess))]!r} are worth {least:.0f} effective "
        f"ones where {FEWEST_EFFECTIVE} are the least to go by; draw more"
    )
    return [Finding(name="effective_draws", message=message, warns=True)]


def _heavy_tails(run: Run) -> list[Finding]:
    """Return whether chains that mix slowly do so in heavy tails, and learn no warp for them."""
    learns = run.surrogate is None and run.sampler.tunes & {"warp", "heavy_warp"}
    heavy = np.flatnonzero(heavy_tails(run.draws.reshape(-1, run.draws.shape[2])))
    followed = GRADIENT in run.sampler.needs or run.calls.get("gradient", 0) > 0
    if learns or not heavy.size or not followed:
        return []
    which = ", ".join(repr(run.labels[i]) for i in heavy[:_NAMED])
    more = f" and {heavy.size - _NAMED} more" if heavy.size > _NAMED else ""
    without = "without a surrogate, which learns little of such tails, " * (
        run.surrogate is not None
    )
    message = (
        f"draws of {which}{more} have heavy tails on both sides, where chains go slowly; use "
        f"sampler='hmc' {without}with all its settings left to be tuned: it learns coordinates in "
        "which such tails are normal"
    )
    return [Finding(name="heavy_tails", message=message, warns=True)]


def _energy(run: Run) -> list[Finding]:
    """Return whether momenta change the energy too little to reach the tails."""
    fractions = energy_information(run.kept.energy)
    moving = run.kept.accepted.mean(axis=1) >= 0.5  # else rejections are to blame
    low = np.flatnonzero((fractions < LEAST_INFORMATION) & moving)
    if len(run.kept) < FEWEST_ITERATIONS or not low.size:
        return []
    which = "chain" if low.size == 1 else "chains"
    message = (
        f"the energy fraction of missing information is {np.nanmin(fractions):.2g} in {which} "
        f"{', '.join(map(str, low))}, where {LEAST_INFORMATION} is the least to go by: fresh "
        "momenta hardly change the energy, so tails and necks are visited too rarely; give the "
        "target other coordinates, in which its scales are alike everywhere"
    )
    return [Finding(name="energy", message=message, warns=True)]


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


def _ending(run: Run) -> list[Finding]:
    """Return why the run ended."""
    found = []
    if run.stopped in LIMITS and run.length == "fixed":
        message = f"{run.stopped} allowed no more draws, as settled before the first"
        found.append(_note("stopped", message))
    elif run.stopped in _STOPPED:
        found.append(_note("stopped", _STOPPED[run.stopped]))
    if not len(run.kept):
        found.append(_empty(run))
    return found


def _failures(run: Run) -> list[Finding]:
    """Return where the target failed, and whether that depends on chance."""
    found = [*_failing_chains(run), *_chance(run)]
    if run.failures:
        kinds = [_describe_kind(run, *item) for item in run.failure_kinds.items() if item[1].count]
        message = (
            f"the target could not be evaluated at {run.failures} positions, which were rejected"
            f"{': ' * bool(kinds)}{'; '.join(kinds)}"
        )
        found.append(_note("failures", message))
    return found


def _describe_kind(run: Run, name: str, kind: FailureKind) -> str:
    """Return how often the target failed in one way, and the first time in words."""
    first = shorten(kind.message, _LONGEST)
    if kind.position is None:
        return f"{kind.count} by {name} (first: {first})"
    shown = [f"{label} = {x:.6g}" for label, x in zip(run.labels, kind.position, strict=True)]
    more = ["..."] if len(shown) > _NAMED else []
    return f"{kind.count} by {name} (first at {', '.join(shown[:_NAMED] + more)}: {first})"


def _failing_chains(run: Run) -> list[Finding]:
    """Return the chains that never moved while the target failed time and again."""
    trace = run.kept if len(run.kept) >= FEWEST_ITERATIONS else run.warmup
    if len(trace) < FEWEST_ITERATIONS or run.recheck.worked:  # or it is chance
        return []
    failed = float(np.mean(np.diff(trace.failures) > 0))
    stood = ~trace.accepted.any(axis=1) & ~(trace.acceptance > 0.0).any(axis=1)
    if failed < MOSTLY or not stood.any():
        return []
    which = np.flatnonzero(stood)
    message = (
        f"{'chain' if which.size == 1 else 'chains'} {', '.join(map(str, which))} never moved in "
        f"{len(trace)} iterations, in {failed:.0%} of which the target failed: it fails wherever "
        "such a chain would go; begin it elsewhere with initial=..., or mend the model there "
        "(run.failure_kinds has the first failure of each kind)"
    )
    return [Finding(name="failing_chain", message=message, warns=True)]


def _chance(run: Run) -> list[Finding]:
    """Return what positions say that were evaluated again."""
    found, again = [], run.recheck
    cured = sum(kind.cured for kind in run.failure_kinds.values())
    for name, doubt in (("fails_by_chance", True), ("retried", False)):
        message = tell_chance(again, cured, run.failures, doubt=doubt)
        if message is not None:
            found.append(Finding(name=name, message=message, warns=doubt))
    if (message := tell_infinite(again)) is not None:
        found.append(Finding(name="infinite_by_chance", message=message, warns=True))
    if again.apart is not None:
        message = (
            "the target is not a function: at one position its potential was "
            f"{again.apart[0]:.10g} and then {again.apart[1]:.10g}. Acceptance by such values is "
            "not exact; fix the seed of a random model, or ask its solver for smaller errors"
        )
        found.append(Finding(name="noisy", message=message, warns=True))
    return found


def _empty(run: Run) -> Finding:
    """Return the finding that there are no draws, with what would give some."""
    message = "there are no draws"
    if run.stopped in LIMITS and not run.total_calls:
        message += f": {limit_of(run)} allowed not even the starts of the chains; raise it"
    elif run.stopped in LIMITS:
        message += f": all that {limit_of(run)} allowed went into the warm-up; raise it"
    return Finding(
        name="stopped", message=message, warns=run.stopped not in ("interrupted", "observer")
    )


def _recalled(run: Run) -> list[Finding]:
    """Return that nothing was explored, if so."""
    if not run.adaptation.recalled:
        return []
    message = (
        "chains went on from draws of an earlier run, and nothing was explored: a mode that it has "
        "missed is missed again; give initial=... to explore afresh"
    )
    return [_note("recalled", message)]


def _replaced(run: Run) -> list[Finding]:
    """Return why a surrogate or a sampler was given up, if it was."""
    replaced = () if run.chosen is None else run.chosen.replaced
    return [
        _note("fallback", f"the {what} was given up for {each.new}: {each.reason}")
        for each in replaced
        for what in [each.kind if each.old is None else f"{each.kind} {each.old}"]
    ]


def _border(run: Run) -> list[Finding]:
    """Return how many draws lie where the surrogate had learnt nothing."""
    positions = run.kept.positions
    part = part_beyond(run.surrogate, positions.reshape(-1, positions.shape[2]))
    if part < FEW_BEYOND:
        return []
    message = (
        f"{part:.2g} of the draws lie beyond all that the surrogate has learnt from; they are "
        "exact, but chains go there and back slowly: a longer exploration would help"
    )
    return [_note("border", message)]


def _missed(run: Run) -> list[Finding]:
    """Return whether the exploration ended before it had found all of the target's mass."""
    if run.surrogate is None or not run.adaptation.missed:
        return []
    message = (
        "the exploration ended while the target still went on where the surrogate's mass ends: "
        "draws may come there too rarely, in all chains alike; let it pay for more, "
        "explorer=('rounds', {'evaluations': ...}), or "
        f"{advise_mixing(run.adaptation.mix)}"
    )
    return [Finding(name="missed", message=message, warns=True)]


def _adaptation(adaptation: Adaptation) -> list[Finding]:
    found = []
    if adaptation.rescues:
        last = adaptation.rescues[-1]
        message = (
            f"the safety net repaired the surrogate {_times(len(adaptation.rescues))} in warm-up, "
            f"the last time after iteration {last.iteration}: {last.reason}"
        )
        found.append(_note("rescues", message))
    if adaptation.restarts:
        last = adaptation.restarts[-1]
        message = (
            f"draws were thrown back into warm-up {_times(len(adaptation.restarts))}, the last "
            f"time after iteration {last.iteration}: {last.reason}"
        )
        found.append(_note("restarts", message))
    found += _strays(adaptation.strays)
    if adaptation.mix:
        message = f"kept iterations were exact transitions with probability {adaptation.mix:g}"
        found.append(_note("mix", message))
    if not adaptation.frozen_before_draws:
        message = (
            "the draws are exact only in the limit of a vanishing adaptation: "
            "draws were kept while the surrogate still adapted"
        )
        found.append(_note("adaptation", message))
    return found


def _strays(strays: tuple[Stray, ...]) -> list[Finding]:
    """Return what became of chains that were far above the others in warm-up."""
    found = []
    again = [stray for stray in strays if stray.begun_again]
    if again:
        last = again[-1]
        message = (
            f"chains were begun again where others were {_times(len(again))} in warm-up, the last "
            f"time chain {last.chain} after iteration {last.iteration}: it was {last.above:.4g} "
            "nats above them; give initial= nearer to the mass, or look whether there is a mode "
            "that the others miss"
        )
        found.append(Finding(name="begun_again", message=message, warns=True))
    if stayed := [stray for stray in strays if not stray.begun_again]:
        which = ", ".join(
            f"chain {stray.chain} ({stray.above:.4g} nats above the others)" for stray in stayed
        )
        message = f"modes of their own hold {which}; draws do not tell how much they weigh"
        found.append(Finding(name="own_modes", message=message, warns=True))
    return found


def _divergences(run: Run) -> list[Finding]:
    divergences = int(run.divergences.sum())
    if not divergences:
        return []
    failures = ", ".join(f"{n} {kind}" for kind, n in run.path_failures.items() if n)
    how = f" ({failures})" if failures else ""
    message = f"{divergences} paths diverged{how}; {_smaller_steps(run)} would help"
    return [_note("divergences", message)]


def _smaller_steps(run: Run) -> str:
    if "step_size" in run.sampler.tunes:
        return "smaller steps, by a higher target_acceptance of the sampler,"
    return "a smaller step size"


def _note(name: str, message: str) -> Finding:
    return Finding(name=name, message=message, warns=False)


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"
