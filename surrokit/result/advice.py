"""What can be wrong with the chains of a run, and with the modes that they visit, with advice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.cost.budget import LIMITS, count_calls, length_bias
from surrokit.diagnostics import (
    FEWEST_EFFECTIVE,
    LARGEST_RHAT,
    LEAST_INFORMATION,
    MIN_DRAWS,
    energy_information,
)
from surrokit.interfaces import Status
from surrokit.kernel.jumps import jumps_of
from surrokit.marginals import heavy_tails
from surrokit.modes import Modes, describe_searches
from surrokit.result.records import Finding, note, warning
from surrokit.result.run import Run
from surrokit.types import IntArray

FEWEST_ITERATIONS = 20  #: Fewest kept iterations for advice on acceptance and on paths.

_LITTLE = 0.05  # acceptance where paths work, or part of moves where they fail


def advice(run: Run) -> list[str]:
    """Return complaints about the kept draws, each with what to do about it."""
    found = [*_broken_gradients(run)]
    if late := run.adaptation.deployed_though_frozen:
        frozen = run.adaptation.frozen_before_draws
        harm = (
            "kept draws are not touched by that" if frozen else "draws were kept under adaptation"
        )
        found.append(
            f"schedule {run.parts['schedule']!r} deployed {len(late)} more surrogates after it "
            f"was frozen, the first after iteration {late[0]}: {harm}. Correct the schedule"
        )
    found += [*separate_modes(run), *_cut(run), *_at_bounds(run)]
    if len(run.kept) >= FEWEST_ITERATIONS:
        rejected = [*_rejected(run)]
        found += [*(rejected or _stuck(run)), *_failed_paths(run, also_diverged=not rejected)]
    return found


def _broken_gradients(run: Run) -> Iterator[str]:
    """Yield a complaint if paths ended at a position that draws might have reached."""
    broken = run.broken_gradients
    if run.recheck.worked or any(kind.cured for kind in run.failure_kinds.values()):
        return  # it is chance, and not the position
    if broken.position is None or run.surrogate is not None or GRADIENT not in run.sampler.needs:
        return
    reached = np.max(run.kept.values, initial=-np.inf) + 2.0  # nats
    # else searches went there and no path, or it is an overflow far out, without probability
    if run.kept.divergent.any() and broken.value <= reached:
        pairs = zip(run.labels, broken.position, strict=True)
        yield (
            f"the gradient is not finite at {broken.count} positions where the potential is, the "
            f"likeliest of them {', '.join(f'{label} = {x:.6g}' for label, x in pairs)}, so that "
            "draws miss this region. Correct the gradient, or do without it by "
            "surrogate='additive' or sampler='random-walk'"
        )


def _at_bounds(run: Run) -> Iterator[str]:
    steps = 1000  # floating-point numbers; a finite density leaves no draws so close to a bound
    columns = run.draws.reshape(-1, run.draws.shape[2])
    for bounds in run.parameters.bounds():
        for i, bound in enumerate(bounds):
            close = np.abs(columns[:, i] - bound) <= steps * np.spacing(np.abs(bound))
            if np.isfinite(bound) and close.any():
                yield (
                    f"{close.sum()} of {len(columns)} draws of {run.labels[i]!r} lie within "
                    f"{steps} floating-point numbers of its bound {bound:g}: any probability "
                    "closer still is lost. Move the bound to 0 (1 - p in place of p), or sample "
                    "a logarithm"
                )


def _cut(run: Run) -> Iterator[str]:
    """Yield by how much a limit has biased means, where the cost of an iteration depends on it."""
    if run.length != "cut" or run.stopped not in LIMITS:
        return
    few, costs = False, np.diff(run.kept.seconds)
    if run.stopped == "max_seconds":
        few = 0 < len(run.kept) < FEWEST_ITERATIONS
    else:
        rows = zip(*run.kept.calls.values(), strict=True)
        used = [
            count_calls(dict(zip(run.kept.calls, row, strict=True)), run.n_rows) for row in rows
        ]
        costs = np.diff(np.array(used, dtype=np.float64))
    bias = length_bias(costs)  # in Monte Carlo errors of a mean; NaN where too few draws tell
    if few or bias > 0.1:
        part = "a part" if few else f"up to about {bias:.2f}"
        yield (
            f"{run.stopped} cut the draws off after {len(run.kept)} of each chain, and an "
            f"iteration costs more in some places: means are biased by {part} of their Monte "
            f"Carlo error{', unknown from so few' if few else ''}. Ask for a number of draws, or "
            "allow for more of them"
        )


def _rejected(run: Run) -> Iterator[str]:
    nothing = 0.02  # path acceptance, or part of moves
    moves = float(run.kept.accepted.mean())
    # NaN without any iteration that had something to decide, which is less than nothing else
    paths, exact = (
        float(each[~np.isnan(each)].mean()) if not np.isnan(each).all() else np.nan
        for each in (run.kept.path_acceptance, run.kept.acceptance)
    )
    others = "another sampler" if run.surrogate is None else "another surrogate or sampler"
    step, tuned = run.kept.step_size[-1], "step_size" in run.sampler.tunes
    if paths < nothing and moves < _LITTLE:
        advised = (
            "warm-up found no steps that work where the chains are. Compare gradients with "
            "values there (surrokit.check_gradient), start elsewhere with initial=..., warm up "
            f"for longer, or use {others}"
        )
        if not tuned and not np.isnan(step):
            advised = (
                f"the step size of {step:.3g} is too large. Give the sampler a smaller step_size, "
                "or none, so that warm-up finds one"
            )
        elif tuned and not len(run.warmup):
            advised = (
                f"no warm-up tuned the step size of {step:.3g}. Pass warmup=..., or give the "
                "sampler a step_size"
            )
        yield (
            "nearly all proposals were rejected, as the paths themselves fail (path acceptance "
            f"{paths:.3f}): {advised}"
        )
    elif run.surrogate is not None and exact < _LITTLE and paths > 0.2:  # steps are not to blame
        yield (
            f"nearly all proposals were rejected (acceptance {exact:.3f}, of the paths alone "
            f"{paths:.3f}): the surrogate is wrong where the chains are. Explore for longer, "
            "learn for longer with schedule='greville', use another surrogate, or "
            f"{advise_mixing(run.adaptation.mix)}"
        )
    elif moves < nothing:
        yield (
            f"nearly all proposals were rejected: chains moved in {moves:.3f} of the kept "
            f"iterations. Start elsewhere with initial=..., warm up for longer, or use {others}"
        )


def advise_mixing(mix: float) -> str:
    """Return the advice to mix in exact transitions, more than a run had."""
    if mix == 0.0:
        return "mix in exact transitions with schedule=surrokit.Safety(mix=0.1)"
    more = min(2.0 * mix, 0.5 * (1.0 + mix))
    return f"mix in more exact transitions with schedule=surrokit.Safety(mix={more:.2g})"


def _stuck(run: Run) -> Iterator[str]:
    accepted = run.kept.accepted
    ends = [np.flatnonzero(np.concatenate([[True], moved, [True]])) for moved in accepted]
    longest = np.array([np.diff(each).max() - 1 for each in ends])
    chain = int(longest.argmax())
    usual = float(accepted.mean(axis=1).max())  # the best chain's, as others may stand, too
    chance = accepted.size * (1.0 - usual) ** int(longest[chain])  # anywhere in the run
    if longest[chain] >= 50 and chance <= 1e-3:
        yield (
            f"chain {chain} did not move for {longest[chain]} kept iterations, though up to "
            f"{usual:.2f} of a chain's proposals were accepted: draws miss part of the target. "
            f"Warm up for longer, start elsewhere, or {advise_mixing(run.adaptation.mix)}"
        )


def _failed_paths(run: Run, *, also_diverged: bool) -> Iterator[str]:
    status, many = run.kept.status, 0.05
    failed = {each: int((status == each).sum()) for each in Status}
    # on a surrogate more may diverge: the target need not bend where its surrogate does
    unmentioned = 1e-3 if run.surrogate is None else many
    diverged = int((run.kept.divergent & (status == Status.OK)).sum())
    for n, least, reported in (
        (
            failed[Status.NOT_CONVERGED],
            many,
            "were rejected, as their implicit equations were not solved; lower step_size, or let "
            "the integrator make more iterations",
        ),
        (
            failed[Status.NOT_REVERSIBLE],
            many,
            "did not lead back to where they began, and were rejected; lower step_size",
        ),
        (
            failed[Status.NOT_FINITE] * also_diverged,
            many,
            "met a position, momentum or gradient that is not finite, and were rejected: draws may "
            "miss what lies behind; mend its gradient, declare bounds, or lower step_size",
        ),
        (
            failed[Status.NO_DENSITY] * also_diverged,
            many,
            "ended where the target has no density or gradient, and were rejected: draws may miss "
            "what lies behind; declare bounds, or mend its gradient",
        ),
        (
            diverged * also_diverged,
            unmentioned,
            "diverged: the potential bends too sharply there for the step, or ends at a bound, and "
            "draws may miss the region; declare bounds, use sampler='walnuts', raise "
            "target_acceptance of the sampler, or give other parameters, such as logarithms",
        ),
    ):
        if n > least * status.size:
            yield f"{n} of {status.size} kept paths {reported}"


# --- how chains mix ---


def is_judged(run: Run) -> bool:
    """Whether draws are as many as were asked for, or few because of a limit."""
    return len(run.kept) >= FEWEST_ITERATIONS or run.stopped in LIMITS  # nobody asked for so few


def mixing(run: Run, effective: float) -> Iterator[Finding]:
    """Yield each finding about how chains mix, with so many effective draws known to be there."""
    least, judged = MIN_DRAWS if len(run.draws) > 1 else 2 * MIN_DRAWS, is_judged(run)
    if len(run.kept) >= least:
        found = warning if judged else note
        yield from (found("r_hat", message) for message in _disagreement(run))
        enough = effective >= FEWEST_EFFECTIVE
        ess = np.full(1, np.nan) if enough or not judged else run.ess()
        if not np.isnan(ess).all() and np.nanmin(ess) < FEWEST_EFFECTIVE:
            worst = int(np.nanargmin(ess))
            yield warning(
                "effective_draws",
                f"the draws of {run.labels[worst]!r} are worth {ess[worst]:.0f} effective ones, "
                f"and at least {FEWEST_EFFECTIVE} are needed. Draw more",
            )
    elif len(run.kept):
        found = warning if run.stopped in LIMITS else note
        message = f"R-hat is missing, as it needs {least} draws of each chain; draw more"
        yield found("r_hat", message)
    if len(run.kept) < FEWEST_ITERATIONS:
        return
    fractions = energy_information(run.kept.energy)
    moving = run.kept.accepted.mean(axis=1) >= 0.5  # else rejections are to blame
    low = np.flatnonzero((fractions < LEAST_INFORMATION) & moving)
    if low.size:
        yield warning(
            "energy",
            f"the energy fraction of missing information is {np.nanmin(fractions):.2g} in "
            f"{chains_named(low)}, where {LEAST_INFORMATION} is the least to go by: tails and "
            "funnels are visited too rarely; give the target coordinates in which its scales are "
            "alike everywhere",
        )


def _disagreement(run: Run) -> Iterator[str]:
    rhat = run.rhat()
    if (over := np.flatnonzero(rhat > LARGEST_RHAT)).size:
        worst = over[np.argsort(-rhat[over], kind="stable")]
        which = _first_named([f"{run.labels[i]!r} {rhat[i]:.4g}" for i in worst])
        yield (
            f"R-hat is above {LARGEST_RHAT} for {which}: chains do not agree on these yet. Draw "
            "more; where it stays, look for separate modes, or for starts too far out"
        )
    missing = np.isnan(rhat) & run.parameters.varies
    if missing.any():
        still = ", ".join(label for label, one in zip(run.labels, missing, strict=True) if one)
        yield f"R-hat is missing for {still}: chains did not move, or rarely. Draw more"


def _first_named(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def slow_tails(run: Run) -> Iterator[Finding]:
    """Yield which tails chains go through slowly, where they learn no warp for them."""
    learns = run.surrogate is None and run.sampler.tunes & {"warp", "heavy_warp"}
    heavy = np.flatnonzero(heavy_tails(run.draws.reshape(-1, run.draws.shape[2])))
    followed = GRADIENT in run.sampler.needs or run.calls.get("gradient", 0) > 0
    if learns or not heavy.size or not followed:
        return
    learnt = "without a surrogate, which cannot learn such tails, "
    yield warning(
        "heavy_tails",
        f"draws of {_first_named([repr(run.labels[i]) for i in heavy])} have heavy tails on both "
        f"sides, where chains move slowly. Use sampler='hmc' {learnt if run.surrogate else ''}and "
        "leave its settings to be tuned: it learns coordinates in which such tails are normal",
    )


def chains_named(which: IntArray) -> str:
    """Return some chains in words."""
    return f"{'chain' if which.size == 1 else 'chains'} {', '.join(map(str, which))}"


# --- modes ---

LEAST_MASS, UNSURE = 0.01, 0.3
"""Mass of a mode that is looked at, and nats up to which its log evidence is known well enough."""


def separate_modes(run: Run) -> Iterator[str]:
    """Yield that draws miss modes, or that chains hardly go between them, if so."""
    if run.modes is None or not len(run.kept) or len(run.modes) < 2:
        return
    if run.by_mode is not None:  # each mode counts by its mass
        return
    visits = run.visits
    if not visits.joined:
        missed = "; draws miss modes altogether" if visits.missed.any() else ""
        yield (
            f"the target has {len(visits.modes)} modes, and chains went from one to another "
            f"{visits.moves} times{missed}, so that each mode's share of the draws is that of the "
            f"starts{_doubt(run.modes)}. Begin chains at every mode with initial=..., or find "
            f"coordinates in which they are one; {visits.tell(run.labels, run.draws)}"
        )


def _doubt(modes: Modes) -> str:
    """Return why draws are not weighed by the evidences of modes."""
    why = None if modes.evidences is None else modes.evidences.doubt
    return "" if why is None else f", and they are not weighed by mode: {why}"


def modes_left(run: Run) -> Iterator[Finding]:
    """Yield what is left open about modes."""
    if run.by_mode is not None:
        errors = run.by_mode.errors[run.by_mode.masses > LEAST_MASS]
        yield note(
            "mode_weights",
            f"chains stay at {len(errors)} modes, so that draws are weighted by mode: log_weights "
            "have the masses of the modes, by their evidences, and answers their errors",
        )
        if np.nanmax(errors) > UNSURE:
            yield warning(
                "mode_weights",
                f"the log evidence of a mode is known to {np.nanmax(errors):.2g} nats only, so "
                "that its mass is uncertain. Draw more",
            )
    if run.exchange is not None:
        one, other = (", ".join(map(repr, each)) for each in (run.exchange.one, run.exchange.other))
        yield warning(
            "exchange",
            f"the density stays the same where {one} and {other} are exchanged, so that each side "
            f"has half of the mass, but one has {run.exchange.part:.0%} of the draws. Read "
            "results up to this exchange, or declare an order, such as surrokit.ordered(2)",
        )
    searches = describe_searches(run.adaptation.searches)
    left = None if run.modes is None or not run.modes.reliable else _unseen(run, run.modes)
    if left is not None:
        yield left
    elif searches is not None:
        yield note("searches", searches)
    if run.modes is not None and not run.modes.reliable:
        yield note(
            "modes_left",
            "searches for modes ended in a funnel or another place with little mass (least "
            f"potential {run.modes.values[0]:.6g}), so that chains began at their starts. If they "
            "mix badly, use other coordinates, such as non-centred ones of a hierarchical model",
        )


HIDDEN = 0.1
"""Expected number of modes that no search has ended at, above which they are warned of."""


def _unseen(run: Run, modes: Modes) -> Finding | None:
    """Return that searches kept ending in new places, or that hardly any ended in one."""
    if modes.concave or not len(run.kept):
        return None
    # chains that jump go to the modes that are known, and speak for no other
    jumps = run.adaptation.jumps or jumps_of(run.surrogate) is not None
    joined = not jumps and run.visits.joined
    # what Modes.unseen says where modes that draws join count as one
    part, bound = modes.unseen(modes.matters if joined else None)
    most = int(modes.ended[modes.matters].sum() if joined else modes.ended.max())
    hidden = 0.0 if joined else modes.hidden
    rare = np.zeros(len(modes), dtype=bool) if joined else modes.rare
    unseen = modes.doubtful
    unseen[run.visits.rows] = False
    doubtful = int(np.count_nonzero(unseen))
    alarming = hidden > HIDDEN or rare.any() or doubtful
    if part == 0.0 and most >= 3 and not alarming:  # little for others
        return None
    ends = list(zip(modes.ended, modes.values, strict=True))
    heights = ", ".join(f"{ended} at potential {value:.6g}" for ended, value in ends[:6])
    what = (
        f"searches for modes ended in {'one place' if len(modes) == 1 else f'{len(modes)} places'}"
        f" ({heights}{', ...' if len(ends) > 6 else ''}), and {part:.0%} of further ones would end "
        f"at a new mode of unknown mass (Good and Turing; at most {bound:.0%}, probability 0.95)"
    )
    if hidden > HIDDEN:
        what += (
            f"; so few searches miss {hidden:.2g} modes, if others are found as easily, and these "
            f"may have {hidden / (hidden + len(modes)):.0%} of the mass if they are alike"
        )
    if rare.any():
        what += (
            f"; {rare.sum()} of these places, of {modes.masses[rare].sum():.0%} of the mass, were "
            "found less than a tenth as often as another, so that others as rare may have as much"
        )
    if doubtful:
        what += (
            f"; {doubtful} of these places, nearly as high as the highest, were neglected for "
            "their volumes, which few gradients leave unknown in so many dimensions"
        )
    if modes.ended.sum() == 1:
        what = (
            f"a single search for modes of {modes.searches} ended, so that other modes of unknown "
            "mass may exist"
        )
    budget = "Raise max_calls. " * (run.stopped == "max_calls")
    return warning(
        "unseen_modes",
        f"{what}. {budget}Begin in more places with initial=..., let the explorer make more "
        "searches, or give the region to search by plausible=",
    )
