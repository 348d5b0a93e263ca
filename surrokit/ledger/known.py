"""Evaluations of earlier runs, which teach a new one and are not paid for again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import attrs
import numpy as np

from surrokit.contracts.explorer import Past
from surrokit.contracts.learner import Evaluations
from surrokit.contracts.potential import Potential
from surrokit.cost.recording import RecordingPotential
from surrokit.diagnostics import MIN_DRAWS, effective_sample_size, r_hat
from surrokit.errors import ConfigurationError, LedgerError
from surrokit.ledger.events import APART, DONE, Event
from surrokit.ledger.fingerprint import check_fingerprint, check_row
from surrokit.ledger.reader import Ledger
from surrokit.ledger.store import reading
from surrokit.model.journal import Call, NoJournal
from surrokit.model.model import from_model
from surrokit.model.outcome import Answer, stack
from surrokit.plan.parts import is_ready
from surrokit.plan.recipe import Recipe
from surrokit.result.finding import FEWEST_EFFECTIVE
from surrokit.result.verdict import LARGEST_RHAT
from surrokit.targets.differences import Differences, with_slopes
from surrokit.types import FloatArray

WarmStart: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""One ledger or several."""

_Row = tuple[FloatArray, ...]


class Known:
    """Looks evaluations up by what was evaluated and where, to the bit.

    Parameters
    ----------
    events
        Batches of exact calls; those that failed are left out.

    Attributes
    ----------
    seconds
        What the calls took that were looked up.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.seconds = 0.0
        self._rows: dict[tuple[str, bytes], tuple[_Row, float]] = {}
        for event in events:
            if event.results is not None and event.outcome in (DONE, APART):
                self._add(event, event.results)

    def _add(self, event: Event, results: tuple[FloatArray, ...]) -> None:
        share = event.seconds / max(len(event.positions), 1)
        for i, position in enumerate(event.positions):
            row = tuple(array[i] for array in results)
            if not any(np.isnan(part).any() for part in row):
                self._rows[event.kind, position.tobytes()] = row, share

    def __len__(self) -> int:
        return len(self._rows)

    def complete(self, call: Call) -> Answer:
        """Return the answer to a call, of which only unknown rows are evaluated."""
        positions, evaluate = call.positions, call.evaluate
        keys = [(call.what, row.tobytes()) for row in positions] if self._rows else []
        found = {i: self._rows[key] for i, key in enumerate(keys) if key in self._rows}
        if not found:
            return evaluate(positions)
        rows = {i: row for i, (row, _) in found.items()}
        self.seconds += sum(seconds for _, seconds in found.values())
        unknown = [i for i in range(len(positions)) if i not in found]
        fresh = evaluate(positions[unknown]) if unknown else None
        if fresh is None:
            return Answer(results=tuple(stack(rows, len(positions))))
        if (paid := fresh.results) is not None:
            rows |= {i: tuple(array[k] for array in paid) for k, i in enumerate(unknown)}
        causes = {unknown[k]: cause for k, cause in fresh.causes.items()}
        results = tuple(stack(rows, len(positions)))
        return attrs.evolve(fresh, results=results, causes=causes)


class LookUp(NoJournal):
    """Keeps nothing, and pays for no known evaluation.

    Parameters
    ----------
    known
        The evaluations.
    """

    def __init__(self, known: Known) -> None:
        self._known = known

    @property
    def saved(self) -> float:  # type: ignore[override]
        """Seconds that calls would have taken whose results were known."""
        return self._known.seconds

    def answer(self, call: Call) -> Answer:
        """Return the answer to a call, of which only unknown rows are evaluated."""
        return call.make() if call.what == "rows" or call.aside else self._known.complete(call)


def read_known(
    warm_start: WarmStart, exact: Potential, version: str | None
) -> tuple[Known, Evaluations, Past | None]:
    """Return the evaluations of ledgers, by position and for a learner, and draws.

    Draws are those of the ledger that has most, if its chains agree and nothing was adapted under
    them; None where there is none.

    Parameters
    ----------
    warm_start
        The ledgers.
    exact
        The target.
    version
        The user's version of it; None does not compare versions.

    Raises
    ------
    LedgerError
        If one cannot be read, or is another target's.
    ConfigurationError
        If no path is given.
    """
    events: list[Event] = []
    pasts: list[Past] = []
    for path in _paths(warm_start):
        with Ledger(path) as ledger:
            check_fingerprint(ledger.store, exact, version)
            check_row(ledger.store, exact)
            events += ledger.events()
            pasts += [past] if (past := _past(ledger)) is not None else []
    past = max(pasts, key=len, default=None)
    return Known(events), _evaluations(events, exact), past


def add_known(asked: Recipe, known: Evaluations, past: Past | None = None) -> Recipe:
    """Return a recipe with more evaluations, and draws, if anything may learn from them.

    Whoever gives starts wants chains to begin there.
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


def _paths(warm_start: object) -> list[str | os.PathLike[str]]:
    if isinstance(warm_start, str | os.PathLike):
        return [warm_start]
    paths = list(warm_start) if isinstance(warm_start, Iterable) else []
    if not paths or not all(isinstance(path, str | os.PathLike) for path in paths):
        raise ConfigurationError(
            f"warm_start must be the path of a ledger, or a list of such, got {warm_start!r}"
        )
    return paths


def _past(ledger: Ledger) -> Past | None:
    """Return the draws of a run whose chains agree; None of another one."""
    account = ledger.account or {}
    with reading(ledger.path):
        frozen = account.get("adaptation", {}).get("frozen_before_draws", False)
    kept = ledger.traces()[1]
    weighted = account.get("weights") is not None
    if weighted or not frozen or len(kept) < MIN_DRAWS or not np.isfinite(kept.values).all():
        return None
    positions = kept.positions
    agree = np.max(r_hat(positions)) <= LARGEST_RHAT
    if not (agree and np.min(effective_sample_size(positions)) >= FEWEST_EFFECTIVE):
        return None
    return Past(positions=positions.reshape(-1, positions.shape[2]), values=kept.values.ravel())


class _Told(NoJournal):
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
        return self._event.answer


_BY_EVENT: dict[str, Callable[[RecordingPotential, FloatArray], object]] = {
    "value": lambda target, at: target.value(at),
    "value_and_gradient": lambda target, at: target.value_and_gradient(at),
    "forward": lambda target, at: target.value(at),
    "forward_and_jacobian": lambda target, at: target.forward_and_jacobian(at),
    "forward_and_gradient": lambda target, at: target.value_and_gradient(at),
}


def _evaluations(events: Iterable[Event], exact: Potential) -> Evaluations:
    """Return what a learner learns from events, as if they were evaluated now."""
    by_differences = isinstance(exact, Differences)
    target = RecordingPotential(exact.inner if by_differences else exact, keep=True)
    target.rejections.log.waits = True
    found: list[Evaluations] = []
    for event in events:
        method = _BY_EVENT.get(event.kind)
        if method is None or event.results is None:
            continue
        target.keep_evaluations(True, jacobians=event.kind == "forward_and_jacobian")
        target.guard(None, _Told(event))
        with np.errstate(all="ignore"):
            method(target, from_model(exact, event.positions))
        rows = target.drain()
        found.append(with_slopes(rows) if by_differences else rows)
    rows = Evaluations.join(found, exact.dim)
    return rows.take(np.isfinite(rows.values))
