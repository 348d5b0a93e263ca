"""The loop of a run: the choice of parts, then its phases in order, under one guard."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NoReturn

import attrs
import numpy as np

from surrokit.capabilities import ROWS, reasons_of, require
from surrokit.cost.budget import LIMITS, Budget
from surrokit.cost.measuring import Costs, measure_starts
from surrokit.errors import (
    ConfigurationError,
    EvaluationWarning,
    SamplingWarning,
    TargetError,
)
from surrokit.interfaces import Evaluations, weighs
from surrokit.ledger.file import RunFile
from surrokit.limits import deadline, one_thread
from surrokit.model.source import as_failure
from surrokit.plan.plan import Plan, check_plan, make_plan
from surrokit.plan.recipe import WARMUP, Extension, Policy, Recipe
from surrokit.plan.stopping import reason_of
from surrokit.registry.catalogue import Composer
from surrokit.registry.components import NO_LEARNING
from surrokit.result.run import Run
from surrokit.result.verdict import limit_of
from surrokit.run.approximate import Approximation
from surrokit.run.attempt import Attempt
from surrokit.run.book import ENDS, Book, Observers


def choose(asked: Recipe, composer: Composer, book: Book, rng: np.random.Generator) -> Plan:
    """Return the plan of a run; a few calls are timed if parts are open.

    Parameters
    ----------
    book
        The run's; if timing is cut short, it goes by a plain one, and nothing is drawn.

    Raises
    ------
    UnknownComponentError
        If a name is not registered.
    CapabilityError
        If a part needs what the target or the surrogate does not offer.
    ConfigurationError
        If settings cannot work.
    """
    if not asked.is_open:
        if asked.policy is not None:
            raise ConfigurationError(
                "a policy picks the surrogate, but a surrogate is named; leave one of them out"
            )
        return check_plan(make_plan(composer, asked, rng))
    _check_given(composer, asked)
    policy: Policy = composer.make("policy", asked.policy or composer.catalogue.pick("policy"))
    try:
        with book.clock.phase("warmup"):
            picked, evaluated = _measure_and_pick(policy, composer, asked, book, rng)
    except ENDS as end:
        bare = attrs.evolve(asked, schedule=None, explorer=None, correction=None)
        reason = f"nothing was measured, {reason_of(end)} came first"
        book.begin(make_plan(composer, policy.plain(composer, bare, reason), rng))
        raise
    plan = check_plan(make_plan(composer, picked, rng))
    blocks = [rows for rows in (picked.evaluations, evaluated) if rows is not None and len(rows)]
    if plan.learner is None or not blocks:
        return plan
    known = Evaluations.join(blocks, picked.exact.dim)
    return attrs.evolve(plan, recipe=attrs.evolve(plan.recipe, evaluations=known))


def _measure_and_pick(
    policy: Policy, composer: Composer, asked: Recipe, book: Book, rng: np.random.Generator
) -> tuple[Recipe, Evaluations]:
    """Return the recipe that the policy picks, and the evaluations made for that."""
    most = None if asked.budget.calls is not None else asked.budget.max_seconds
    if asked.timed is None:
        starts, costs = measure_starts(
            book.target, asked.initial, asked.chains, rng, book.clock.with_saved, left=most
        )
    else:
        starts, costs = None, Costs.of_calls(*asked.timed, asked.chains)
    timed = costs.a_position(asked.chains, asked.workers)
    recipe = attrs.evolve(asked, initial=starts, exact=book.target.target, timed=timed)
    if most is not None:
        left = most - book.clock.elapsed()
        recipe = attrs.evolve(recipe, budget=_in_calls(recipe, costs, left, book.target.n_calls))
    # a generator of its own: what it tries, and so what it uses up, may go by the clock
    picked = policy.choose(composer, recipe, book.target, costs, rng.spawn(1)[0])
    return _tell_of_rows(_tell_of_stairs(picked, costs)), book.target.drain()


def _in_calls(recipe: Recipe, costs: Costs, left: float, made: float) -> Budget:
    """Return the budget with the calls that the seconds left suffice for, where these are few.

    By them explorations are planned, and whether answers are weighted; the clock ends the run.
    """
    seconds = min(costs.value, costs.values / recipe.chains)
    calls = max(int(made + left / seconds), 1)
    if calls >= recipe.chains * (WARMUP + recipe.wanted_draws):
        return recipe.budget
    return attrs.evolve(recipe.budget, max_calls=calls)


def _tell_of_stairs(picked: Recipe, costs: Costs) -> Recipe:
    """Return a recipe that notes along which numbers the density is constant but for steps."""
    if not costs.stairs:
        return picked
    which = ", ".join(costs.stairs)
    note = (
        f"the density is constant but for steps along {which}, so that differences of values tell "
        "nothing; values alone decide"
    )
    return attrs.evolve(picked, noticed=(*picked.noticed, note))


def _tell_of_rows(picked: Recipe) -> Recipe:
    """Return a recipe whose choice says why its target is no sum over rows, as far as it knows."""
    why = reasons_of(picked.exact).get(ROWS)
    if why is None or picked.chosen is None:
        return picked
    return attrs.evolve(picked, chosen=picked.chosen.because(why))


def _check_given(composer: Composer, asked: Recipe) -> None:
    """Raise, before the first call, if given settings cannot work."""
    pick = composer.catalogue.pick
    sampler = composer.make("sampler", pick("sampler"))
    correction = composer.make("correction", asked.correction or pick("correction"))
    offered, advice = asked.exact.capabilities, "name another correction, or leave it out"
    why = reasons_of(asked.exact)
    require("the correction", correction.needs, offered, "the target", advice, why)
    composer = composer.with_own({"sampler": sampler, "correction": correction})
    composer.make("schedule", asked.schedule or pick("schedule", NO_LEARNING))
    if asked.explorer is not None:
        composer.make("explorer", asked.explorer)


_VALUED = ("value", "gradient", "forward", "jacobian", "vjp")  # calls that give U


def run(
    asked: Recipe,
    composer: Composer,
    rng: np.random.Generator,
    observers: Observers,
    file: RunFile | None = None,
    extensions: Sequence[Extension] = (),
) -> Run:
    """Return the run that a recipe asks for.

    If the budget is spent, or at an interrupt (Ctrl-C), the run ends with the draws so far. Any
    exception after the first call, and any warning that a filter makes an exception, carries a run
    with the draws so far as its attribute ``partial``.

    Parameters
    ----------
    asked
        A recipe of names and objects; parts may be open.
    file
        Keeps what happens; what it holds already is done again first, without exact calls.
    extensions
        Sessions of a run that has a file already, with the one that begins now.

    Raises
    ------
    UnknownComponentError, CapabilityError, ConfigurationError
        If the recipe cannot work.
    TargetError
        If no chain can start, or the target raises and ``on_error`` lets it. Also if a limit ends
        the run before the target was finite anywhere.
    """
    book, attempt = Book(asked, observers, file, extensions), None
    try:
        with one_thread(), deadline(book.stopping.check_time):
            plan = choose(asked, composer, book, rng)
            book.begin(plan)
            attempt = Attempt(plan, book, rng)
            found = attempt.explore()
            if weighs(plan.correction):  # its rounds may use up all calls
                book.look_again()
            weighed = attempt.weigh(found)
            while not weighed:
                complaint = attempt.begin_warmup(found) or attempt.warm_up()
                if complaint is None:
                    break
                found, plan = attempt.export_state(), attempt.plan.drop_surrogate(complaint)
                book.begin(plan)
                attempt = Attempt(plan, book, rng)
            if not weighed:
                book.look_again()
                attempt.draw()
            book.look_again()
            book.look_at_noise(attempt.surrogate)
            book.look_beyond()
        attempt.weigh_modes(calls=True)
    except (*ENDS, SystemExit) as end:
        if book.plan is None:  # the recipe cannot work
            _reject(end)
        attempt = attempt or Attempt(book.plan, book, rng)
        _end(end, attempt, book)
    finally:
        book.close()
    with one_thread():
        outcome = attempt.outcome(_approximate(attempt, book))
        book.finish(outcome)
    _raise_if_nowhere_finite(outcome, book)
    _warn(outcome)
    return outcome


def _warn(outcome: Run) -> None:
    """Warn of what the verdict warns of; an error that a filter makes of it carries the run."""
    try:
        for finding in outcome.verdict.warnings:
            kind = EvaluationWarning if finding.name == "failures" else SamplingWarning
            warnings.warn(finding.message, kind, stacklevel=4)  # the caller of sample
    except Warning as warning:
        _carry(warning, outcome)
        raise


def _end(end: BaseException, attempt: Attempt, book: Book) -> None:
    """End a run by an exception, and raise it unless it is a limit or an interrupt."""
    error = as_failure(end) if isinstance(end, SystemExit) else end
    if isinstance(end, MemoryError):
        error = _too_large(end)
    book.stopping.cut(reason_of(error))
    book.note_failures()
    by_default = not isinstance(error, Exception) and book.stopping.stopped == "default_max_calls"
    if by_default:
        book.target.guard(None)
    book.look_at_noise(attempt.surrogate)
    attempt.weigh_modes(calls=False)
    if by_default:
        book.look_beyond()
    if not isinstance(error, Exception):
        return
    _carry(error, attempt.outcome())
    if error is end:
        raise error
    raise error from end


def _reject(end: BaseException) -> NoReturn:
    """Raise what ended a run before it began."""
    if isinstance(end, MemoryError):
        raise _too_large(end) from end
    raise end


def _too_large(end: MemoryError) -> ConfigurationError:
    """Return what is said of a run that needs more memory than there is."""
    return ConfigurationError(
        f"the run needs more memory than there is ({end or 'MemoryError'}). Choose smaller sizes "
        "of its parts, or fewer chains or draws"
    )


def _carry(error: Exception, outcome: Run) -> None:
    """Let an exception carry what was drawn."""
    error.partial = outcome  # type: ignore[attr-defined]
    error.add_note("What was drawn until then is in this exception's attribute 'partial'.")


def _raise_if_nowhere_finite(outcome: Run, book: Book) -> None:
    """Raise if a limit ended a run that has nothing, as its target was finite nowhere."""
    tried = sum(outcome.calls[kind] for kind in _VALUED)
    if book.has_draws or outcome.stopped not in LIMITS or not tried or len(book.warmup):
        return
    if np.isfinite(book.target.lowest().values).any():
        return
    why = "".join(f" (it {each.message})" for each in [*outcome.failure_kinds.values()][:1])
    error = TargetError(
        f"{limit_of(outcome)} ended the run after {tried} exact calls, and the target was finite "
        f"at none of them{why}. Start inside its support with initial=..., or mend the target"
    )
    _carry(error, outcome)
    raise error


def _approximate(attempt: Attempt, book: Book) -> Approximation | None:
    """Return draws that are not exact, if a limit ended the run before its first draw."""
    if book.has_draws or book.stopping.stopped not in LIMITS:
        return None
    book.stopping.hold_back(False)
    with deadline(book.stopping.check_time):
        return attempt.approximate()
