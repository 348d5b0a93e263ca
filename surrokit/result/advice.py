"""What can be wrong with the chains of a run, in sentences with advice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.cost.budget import LIMITS, calls_paid, length_bias
from surrokit.diagnostics import (
    FEWEST_EFFECTIVE,
    LARGEST_RHAT,
    LEAST_INFORMATION,
    MIN_DRAWS,
    energy_information,
)
from surrokit.interfaces import Status
from surrokit.marginals import heavy_tails
from surrokit.result.mode_visits import ModeVisits
from surrokit.types import FloatArray, IntArray

if TYPE_CHECKING:
    from surrokit.result.run import Run

FEWEST_ITERATIONS = 20
"""Fewest kept iterations for advice on acceptance and on paths."""

_MOST_NAMED = 3  # numbers that a sentence names
_NOTHING = 0.02  # path acceptance, or part of moves, below which next to nothing is accepted
_LITTLE = 0.05  # the same for acceptance where paths work, and for moves where paths fail
_PATHS_WORK = 0.2  # path acceptance above which the step size is not to blame
_MANY_FAILURES = 0.05  # part of the paths
_CLOSE = 1000  # floating-point numbers from a bound; a finite density leaves no draws so close
_SOME = 1e-3  # part of the target's own paths that may diverge unmentioned
_WITHIN_REACH = 2.0  # nats above the highest potential of the draws
_LONG = 50  # iterations without a move
_BIASED = 0.1  # part of the Monte Carlo error of a mean
_BY_CHANCE = 1e-3  # chance of standing still for that long, somewhere in the run


def advice(run: Run) -> list[str]:
    """Return complaints about the kept draws, each with what to do about it."""
    found = [_broken_gradients(run), _broke_its_word(run), _separate_modes(run), _cut(run)]
    bounds = [*_at_bounds(run)]
    paths: list[str] = []
    if len(run.kept) >= FEWEST_ITERATIONS:
        rejected = _rejected(run)
        found += [*bounds, rejected or _stuck(run)]
        bounds, paths = [], [*_unsolved(run), *(() if rejected else _diverging(run))]
    return [complaint for complaint in (*found, *bounds, *paths) if complaint is not None]


def _broken_gradients(run: Run) -> str | None:
    """Return a complaint if paths ended at a position that draws might have reached."""
    broken = run.broken_gradients
    if run.recheck.worked or any(kind.cured for kind in run.failure_kinds.values()):
        return None  # it is chance, and not the position
    if broken.position is None or run.surrogate is not None or GRADIENT not in run.sampler.needs:
        return None
    if not run.kept.divergent.any():  # searches went there, and no path
        return None
    reached = np.max(run.kept.values, initial=-np.inf) + _WITHIN_REACH
    if broken.value > reached:  # an overflow far out, where there is no probability
        return None
    at = ", ".join(
        f"{label} = {x:.6g}" for label, x in zip(run.labels, broken.position, strict=True)
    )
    return (
        f"at {broken.count} positions, the likeliest of them {at}, the gradient is not finite "
        "though the potential is: paths end there, so that draws miss this region and what lies "
        "behind it; mend the gradient, or do without it there by a surrogate, such as "
        "surrogate='additive', or by sampler='random-walk'"
    )


def _at_bounds(run: Run) -> Iterator[str]:
    """Yield a complaint for each bound that draws come too close to."""
    columns = run.draws.reshape(-1, run.draws.shape[2])
    for bounds in run.parameters.bounds():
        for i, bound in enumerate(bounds):
            close = np.abs(columns[:, i] - bound) <= _CLOSE * np.spacing(np.abs(bound))
            if np.isfinite(bound) and close.any():
                yield (
                    f"{close.sum()} of {len(columns)} draws of {run.labels[i]!r} lie within "
                    f"{_CLOSE} floating-point numbers of its bound {bound:g}: whatever probability "
                    "lies closer still is lost; move the bound to 0, where numbers are dense "
                    "(1 - p in place of p), or sample a logarithm"
                )


def _broke_its_word(run: Run) -> str | None:
    late = run.adaptation.deployed_though_frozen
    if not late:
        return None
    harm = "kept draws are not touched by that"
    if not run.adaptation.frozen_before_draws:
        harm = "draws were kept under adaptation"
    return (
        f"schedule {run.parts['schedule']!r} had said that it was frozen, and yet deployed "
        f"{len(late)} more surrogates, the first after iteration {late[0]}: {harm}; mend the "
        "schedule, whose decision says frozen only where nothing will be deployed from then on"
    )


def _cut(run: Run) -> str | None:
    if run.length != "cut" or run.stopped not in LIMITS:
        return None
    few = run.stopped == "max_seconds" and 0 < len(run.kept) < FEWEST_ITERATIONS
    bias = length_bias(_costs(run))  # NaN where too few draws tell
    if not (few or bias > _BIASED):
        return None
    part = "a part" if few else f"up to about {bias:.2f}"
    return (
        f"{run.stopped} cut the draws off after {len(run.kept)} of each chain; where the cost of "
        f"an iteration depends on position, so does their number, and means are off by {part} of "
        f"their Monte Carlo error{' that so few cannot tell' if few else ''}; ask for a number of "
        "draws, or allow for more of them"
    )


def _costs(run: Run) -> FloatArray:
    """Return the cost of each iteration after the first, in units of the limit that was reached."""
    if run.stopped == "max_seconds":
        return np.diff(run.kept.seconds)
    used = [
        calls_paid(dict(zip(run.kept.calls, row, strict=True)), run.n_rows)
        for row in zip(*run.kept.calls.values(), strict=True)
    ]
    return np.diff(np.array(used, dtype=np.float64))


def _separate_modes(run: Run) -> str | None:
    if run.modes is None or not len(run.kept) or run.modes.matters.sum() < 2:
        return None
    visits = ModeVisits.of(run.modes, run.kept.positions)
    if visits.joined:
        return None
    missed = "; draws miss modes altogether" if visits.missed.any() else ""
    return (
        f"the target has {len(visits.modes)} modes, and chains went from one to another "
        f"{visits.moves} times{missed}: {visits.tell(run.labels, run.draws)}. The draws at each "
        "tell where chains began, and nothing of the target; begin chains at all of them with "
        "initial=..., and weigh each by itself, or find coordinates in which they are one"
    )


def _rejected(run: Run) -> str | None:
    moves = float(run.kept.accepted.mean())
    paths, exact = _mean(run.kept.path_acceptance), _mean(run.kept.acceptance)
    if paths < _NOTHING and moves < _LITTLE:
        return (
            "next to nothing was accepted, for the paths themselves fail (path acceptance "
            f"{paths:.3f}): {_about_steps(run)}"
        )
    if run.surrogate is not None and exact < _LITTLE and paths > _PATHS_WORK:
        return (
            f"next to nothing was accepted (acceptance {exact:.3f}, of the paths alone "
            f"{paths:.3f}): the surrogate is wrong where the chains are; explore for longer, "
            "learn for longer with schedule='greville', use another surrogate, or "
            f"{advise_mixing(run.adaptation.mix)}"
        )
    if moves < _NOTHING:
        return (
            f"next to nothing was accepted: chains moved in {moves:.3f} of the kept iterations; "
            f"start elsewhere with initial=..., warm up for longer, or use {_other_parts(run)}"
        )
    return None


def _mean(acceptance: FloatArray) -> float:
    """Return the mean over iterations that had something to decide; NaN without any."""
    known = acceptance[~np.isnan(acceptance)]
    return float(known.mean()) if known.size else float("nan")


def _about_steps(run: Run) -> str:
    """Return why paths fail, and what the user can change."""
    step = run.kept.step_size[-1]
    if "step_size" not in run.sampler.tunes and not np.isnan(step):
        return (
            f"the step size of {step:.3g} is too large; give the sampler a smaller step_size, or "
            "none, so that warm-up finds one"
        )
    if "step_size" in run.sampler.tunes and not len(run.warmup):
        return (
            f"no warm-up tuned the step size of {step:.3g}; pass warmup=..., or give the sampler a "
            "step_size"
        )
    return (
        "warm-up found no steps that work where the chains are; look at the target there "
        "(surrokit.check_gradient compares its gradient with its value), start elsewhere with "
        f"initial=..., warm up for longer, or use {_other_parts(run)}"
    )


def _other_parts(run: Run) -> str:
    return "another sampler" if run.surrogate is None else "another surrogate or sampler"


def advise_mixing(mix: float) -> str:
    """Return the advice to mix in exact transitions, more than a run had."""
    if mix == 0.0:
        return "mix in exact transitions with schedule=surrokit.Safety(mix=0.1)"
    more = min(2.0 * mix, 0.5 * (1.0 + mix))
    return f"mix in more exact transitions with schedule=surrokit.Safety(mix={more:.2g})"


def _stuck(run: Run) -> str | None:
    kept = run.kept
    longest = np.array([_longest_stand(moves) for moves in kept.accepted])
    chain = int(longest.argmax())
    usual = float(kept.accepted.mean(axis=1).max())  # the best chain's, as others may stand, too
    chance = kept.accepted.size * (1.0 - usual) ** int(longest[chain])
    if longest[chain] < _LONG or chance > _BY_CHANCE:
        return None
    return (
        f"chain {chain} did not move for {longest[chain]} kept iterations, though up to "
        f"{usual:.2f} of a chain's proposals were accepted: this chain sits where they hardly ever "
        "are, and draws miss part of the target; warm up for longer, start elsewhere, or with a "
        f"surrogate {advise_mixing(run.adaptation.mix)}"
    )


def _longest_stand(moved: np.ndarray) -> int:
    ends = np.flatnonzero(np.concatenate([[True], moved, [True]]))
    return int(np.diff(ends).max()) - 1


def _unsolved(run: Run) -> Iterator[str]:
    status = run.kept.status
    unsolved = int((status == Status.NOT_CONVERGED).sum())
    no_return = int((status == Status.NOT_REVERSIBLE).sum())
    if unsolved > _MANY_FAILURES * status.size:
        yield (
            f"the implicit equations of {unsolved} of {status.size} kept paths were not solved, "
            "and these paths were rejected; lower step_size, or let the integrator make more "
            "iterations"
        )
    if no_return > _MANY_FAILURES * status.size:
        yield (
            f"{no_return} of {status.size} kept paths did not lead back to where they began, and "
            "were rejected; lower step_size"
        )


def _diverging(run: Run) -> Iterator[str]:
    status = run.kept.status
    # on a surrogate more may diverge: the target need not bend where its surrogate does
    unmentioned = _SOME if run.surrogate is None else _MANY_FAILURES
    not_finite = int((status == Status.NOT_FINITE).sum())
    diverged = int((run.kept.divergent & (status == Status.OK)).sum())
    if not_finite > _MANY_FAILURES * status.size:
        yield (
            f"{not_finite} of {status.size} kept paths met a position, momentum or gradient that "
            "is not finite, and were rejected: the potential cannot be followed there, and draws "
            "may miss what lies behind; mend its gradient, declare bounds, or lower step_size"
        )
    if diverged > unmentioned * status.size:
        yield (
            f"{diverged} of {status.size} kept paths diverged: the potential bends too sharply "
            "there for the step, and draws may miss the region; raise target_acceptance of the "
            "sampler or lower step_size, or give the target other parameters, such as logarithms"
        )


# --- how chains mix ---


def _least_draws(run: Run) -> int:
    return MIN_DRAWS if len(run.draws) > 1 else 2 * MIN_DRAWS


def too_short(run: Run) -> Iterator[str]:
    """Yield that draws are too few for R-hat, if so."""
    if 0 < len(run.kept) < _least_draws(run):
        n = _least_draws(run)
        yield f"R-hat is missing, as it needs {n} draws of each chain; draw more"


def is_judged(run: Run) -> bool:
    """Whether draws are as many as were asked for, or few because of a limit."""
    return len(run.kept) >= FEWEST_ITERATIONS or run.stopped in LIMITS  # nobody asked for so few


def _first_named(run: Run, places: IntArray, told: Callable[[int], str]) -> str:
    more = f" and {places.size - _MOST_NAMED} more" if places.size > _MOST_NAMED else ""
    return ", ".join(f"{run.labels[i]!r}{told(i)}" for i in places[:_MOST_NAMED]) + more


def disagreement(run: Run) -> Iterator[str]:
    """Yield numbers on which chains disagree, or whose R-hat is missing."""
    if len(run.kept) < _least_draws(run):
        return
    rhat = run.rhat()
    if (over := np.flatnonzero(rhat > LARGEST_RHAT)).size:
        worst = over[np.argsort(-rhat[over], kind="stable")]
        which = _first_named(run, worst, lambda i: f" {rhat[i]:.4g}")
        yield (
            f"R-hat is above {LARGEST_RHAT} for {which}: chains do not agree on these yet; draw "
            "more, and where it stays look at the chains one by one: they may sit in modes of "
            "their own, or have begun too far out"
        )
    missing = np.isnan(rhat) & run.parameters.varies
    if missing.any():
        still = ", ".join(label for label, one in zip(run.labels, missing, strict=True) if one)
        yield f"R-hat is missing for {still}: the chains hardly moved there, or never"


def few_effective(run: Run) -> Iterator[str]:
    """Yield that effective draws are few, if so."""
    if len(run.kept) < _least_draws(run) or not is_judged(run):
        return
    ess = run.ess()
    if not np.isnan(ess).all() and (least := float(np.nanmin(ess))) < FEWEST_EFFECTIVE:
        yield (
            f"the draws of {run.labels[int(np.nanargmin(ess))]!r} are worth {least:.0f} effective "
            f"ones where {FEWEST_EFFECTIVE} are the least to go by; draw more"
        )


def energy(run: Run) -> Iterator[str]:
    """Yield where momenta change the energy too little to reach the tails."""
    if len(run.kept) < FEWEST_ITERATIONS:
        return
    fractions = energy_information(run.kept.energy)
    moving = run.kept.accepted.mean(axis=1) >= 0.5  # else rejections are to blame
    low = np.flatnonzero((fractions < LEAST_INFORMATION) & moving)
    if low.size:
        yield (
            f"the energy fraction of missing information is {np.nanmin(fractions):.2g} in "
            f"{chains_named(low)}, where {LEAST_INFORMATION} is the least to go by: fresh "
            "momenta hardly change the energy, so tails and necks are visited too rarely; give the "
            "target other coordinates, in which its scales are alike everywhere"
        )


def slow_tails(run: Run) -> Iterator[str]:
    """Yield which tails chains go through slowly, where they learn no warp for them."""
    learns = run.surrogate is None and run.sampler.tunes & {"warp", "heavy_warp"}
    heavy = np.flatnonzero(heavy_tails(run.draws.reshape(-1, run.draws.shape[2])))
    followed = GRADIENT in run.sampler.needs or run.calls.get("gradient", 0) > 0
    if learns or not heavy.size or not followed:
        return
    without = (
        ""
        if run.surrogate is None
        else ("without a surrogate, which learns little of such tails, ")
    )
    yield (
        f"draws of {_first_named(run, heavy, lambda _: '')} have heavy tails on both sides, where "
        f"chains go slowly; use sampler='hmc' {without}with all its settings left to be tuned: it "
        "learns coordinates in which such tails are normal"
    )


def chains_named(which: IntArray) -> str:
    """Return some chains in words."""
    return f"{'chain' if which.size == 1 else 'chains'} {', '.join(map(str, which))}"
