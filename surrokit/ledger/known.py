"""Evaluations of earlier runs, which teach a new one and are not evaluated again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, cast

import attrs
import numpy as np

from surrokit.capabilities import FORWARD, GRADIENT, VJP
from surrokit.cost.recording import RecordingPotential
from surrokit.diagnostics import (
    FEWEST_EFFECTIVE,
    LARGEST_RHAT,
    MIN_DRAWS,
    effective_sample_size,
    r_hat,
)
from surrokit.errors import ConfigurationError, LedgerError
from surrokit.interfaces import Evaluations, Past
from surrokit.ledger.fingerprint import check_fingerprint, check_row
from surrokit.ledger.reader import Ledger
from surrokit.ledger.tape import DONE, Event
from surrokit.model.calls import DRAWN, Call, Memo, NoJournal
from surrokit.model.model import Model, change_model, from_model, model_of
from surrokit.model.outcome import Answer, Results
from surrokit.model.quantities import Layout
from surrokit.plan.plan import is_ready
from surrokit.plan.recipe import Recipe
from surrokit.potentials import Potential
from surrokit.surrogate.training import near_least
from surrokit.targets.differences import Differences, with_slopes
from surrokit.targets.energies import ObservedEnergy
from surrokit.types import FloatArray, IntArray
from surrokit.weighted.round import RESAMPLING_SEED

WarmStart: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""One file or several."""


def read_known(
    paths: Sequence[str | os.PathLike[str]], exact: Potential, *, check: bool = True
) -> tuple[Memo, Evaluations, Past | None]:
    """Return what runs of the target in files evaluated, as a memo and for a learner, and draws.

    Draws are those of the run that has most, if its chains agree, nothing was adapted under them,
    and they are of the same data, noise and priors; None where there is none.
    """
    events: list[Event] = []
    pasts: list[Past] = []
    for path in paths:
        with Ledger(path) as ledger:
            if check:
                check_fingerprint(ledger.store, exact)
                check_row(ledger.store, exact)
            events += ledger.events()
            pasts += [past] if (past := _past(ledger)) is not None else []
    memo = Memo(grows=False)
    fill(memo, events, model_of(exact).columns)
    known = read_evaluations(events, exact)
    pasts = [past for past in pasts if _agrees(past, known)]
    return memo, known, max(pasts, key=len, default=None)


def _past(ledger: Ledger) -> Past | None:
    """Return the draws of a run whose chains agree; None of another one."""
    account, kept = ledger.account, ledger.traces()[1]
    if account is None or account.weights is not None or len(kept) < MIN_DRAWS:
        return None
    if not (account.adaptation.frozen_before_draws and np.isfinite(kept.values).all()):
        return None
    positions = kept.positions
    agree = np.max(r_hat(positions)) <= LARGEST_RHAT
    if not (agree and np.min(effective_sample_size(positions)) >= FEWEST_EFFECTIVE):
        return None
    return Past(positions=positions.reshape(-1, positions.shape[2]), values=kept.values.ravel())


def _agrees(past: Past, known: Evaluations) -> bool:
    """Return whether the last draw has the value that is known there, on the data of now."""
    last, value = past.positions[-1], past.values[-1]
    if not len(known):
        return False
    apart = np.abs(known.positions - last).max(axis=1)
    at = int(np.argmin(apart))
    is_there = apart[at] <= 1e-9 * (1.0 + np.abs(last).max())
    return bool(is_there and np.isclose(known.values[at], value, 1e-6, 1e-6))


def add_known(asked: Recipe, known: Evaluations, past: Past | None = None) -> Recipe:
    """Return a recipe with more evaluations, and draws, if anything may learn from them.

    Starts that are given are where chains begin.
    """
    surrogate = asked.surrogate
    learns = asked.is_open or not (surrogate in (None, "none") or is_ready(surrogate))
    if not learns or not len(known):
        return asked
    given = [] if asked.evaluations is None else [asked.evaluations]
    return attrs.evolve(
        asked,
        evaluations=Evaluations.join([*given, known], asked.exact.dim),
        past=past if asked.initial is None else None,
    )


def with_memo(exact: Potential, memo: Memo) -> Potential:
    """Return a target whose model does not evaluate again what a memo holds."""
    own = model_of(exact).memo
    if own is None:
        return change_model(exact, lambda model: model.remembering(memo))
    own.update(memo)
    return exact


def evaluations_of_model(exact: Potential) -> Evaluations:
    """Return what a target's model has evaluated for other posteriors, as this target's own.

    Rows far above the least of them are left out: no weight makes up for outputs so far away.
    Scales that are parameters of this target alone are drawn by the residuals: U is exact there.
    """
    model = model_of(exact)
    if model.memo is None or not model.shared:
        return Evaluations.join([], exact.dim)
    batches, layout = model.memo.batches(), model.memo.layout
    events = (event_with(layout, *rows) for rows in batches)
    events = (_with_scales(each, model) for each in events)
    drawn = model.memo.log_densities if model.memo.has_drawn and model.columns is None else None
    return near_least(read_evaluations(events, exact, drawn))


def _with_scales(event: Event, model: Model) -> Event:
    """Return an event at whole positions, of a map that takes some columns of them."""
    if model.columns is None or event.results is None:
        return event
    positions = np.zeros((len(event.positions), model.dim))
    positions[:, model.columns] = event.positions
    energy: ObservedEnergy = cast(Any, model.source).energy  # which alone has such columns
    energy.draw_scales(np.random.default_rng(RESAMPLING_SEED), event.results[0], positions)
    return attrs.evolve(event, positions=positions)


def timed_by_model(exact: Potential) -> tuple[float, float | None] | None:
    """Return the seconds of a value and a gradient, as far as a target's model was called before.

    None where either is not known.
    """
    model, offered = model_of(exact), exact.capabilities
    if model.memo is None or not model.shared or isinstance(exact, Differences) or VJP in offered:
        return None
    whole = "forward_and_jacobian" if FORWARD in offered else "value_and_gradient"
    alone = model.memo.seconds_of("forward" if FORWARD in offered else "value")
    gradient = model.memo.seconds_of(whole) if GRADIENT in offered else None
    value = gradient if alone is None else alone
    if value is None or (gradient is None and GRADIENT in offered):
        return None
    return value, gradient


def event_with(
    layout: Layout, what: str, rows: FloatArray, results: Results, seconds: float = 0.0
) -> Event:
    """Return a batch of calls as an event that belongs to no run."""
    found = tuple(np.ascontiguousarray(array, dtype=np.float64) for array in results)
    names = () if what == DRAWN else layout.names(what, found)
    return Event(kind=what, positions=rows, results=found, quantities=names, seconds=seconds)


def split_known(warm_start: Any) -> tuple[list[str | os.PathLike[str]], Any]:
    """Return the paths in what was given as warm start, or the evaluations; None for none."""
    if warm_start is None or isinstance(warm_start, Evaluations):
        return [], warm_start
    given = [*warm_start] if isinstance(warm_start, list | tuple) else [warm_start]
    are_paths = [isinstance(each, str | os.PathLike) for each in given]
    if given and all(are_paths):
        return given, None
    if isinstance(warm_start, tuple) and not any(are_paths):
        return [], warm_start
    raise ConfigurationError(
        "warm_start must be the path of a run's file, a list of such, an Evaluations, or a tuple "
        f"(positions, values) or (positions, values, gradients), got {warm_start!r}"
    )


def fill(memo: Memo, events: Iterable[Event], columns: IntArray | None = None) -> None:
    """Add what events hold to a memo, by those columns of positions that the model takes."""
    for event in events:
        if event.results is not None and event.outcome == DONE:
            event.fix(memo.layout)
            at = event.positions if columns is None else event.positions[:, columns]
            if event.kind == DRAWN:
                memo.add_drawn(np.ascontiguousarray(at), event.results[0])
                continue
            memo.add(event.kind, np.ascontiguousarray(at), event.results, event.seconds)


class _Replay(NoJournal):
    """Gives what one event holds."""

    def __init__(self, event: Event) -> None:
        self._event = event

    def answer(self, call: Call) -> Answer:
        """Return the answer of the event, and call nothing."""
        if (call.what, len(call.positions)) != (self._event.kind, len(self._event.positions)):
            raise LedgerError(
                f"the target would evaluate {call.what} in the place of {self._event.kind}; give "
                "the target that the file was made with"
            )
        self._event.fix(call.layout)
        return self._event.answer


_BY_EVENT: dict[str, Callable[[RecordingPotential, FloatArray], object]] = {
    "value": lambda target, at: target.value(at),
    "value_and_gradient": lambda target, at: target.value_and_gradient(at),
    "forward": lambda target, at: target.value(at),
    "forward_and_jacobian": lambda target, at: target.forward_and_jacobian(at),
    "forward_and_gradient": lambda target, at: target.value_and_gradient(at),
}


def read_evaluations(
    events: Iterable[Event],
    exact: Potential,
    drawn: Callable[[FloatArray], FloatArray] | None = None,
) -> Evaluations:
    """Return what a learner learns from events, as if they were evaluated now.

    Parameters
    ----------
    drawn
        Returns the log densities by which positions (n, width) of the model were drawn.
    """
    by_differences = isinstance(exact, Differences)
    valued = exact.inner if isinstance(exact, Differences) else exact
    target = RecordingPotential(valued, keep=True)
    found: list[Evaluations] = []
    for event in events:
        method = _BY_EVENT.get(event.kind)
        if method is None or event.results is None:
            continue
        target.keep_evaluations(True, jacobians=event.kind == "forward_and_jacobian")
        target.guard(None, _Replay(event))
        at = from_model(exact, event.positions)
        with np.errstate(all="ignore"):
            method(target, at)
        rows = target.drain()
        if drawn is not None and not by_differences:
            volumes = target.transform.log_jacobian(at)
            rows = attrs.evolve(rows, log_densities=drawn(event.positions) + volumes)
        found.append(with_slopes(rows) if by_differences else rows)
    rows = Evaluations.join(found, exact.dim)
    return rows.take(np.isfinite(rows.values))
