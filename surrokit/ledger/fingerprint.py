"""The fingerprint of a target, by which its ledgers are known."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from surrokit.coordinates.constraints import from_plain, to_plain
from surrokit.coordinates.models import ModelMap
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.coordinates.transforms import (
    Blocks,
    CoordinateMap,
    Scaled,
    Scaling,
    Transform,
    from_line_of,
)
from surrokit.errors import LedgerError
from surrokit.ledger.store import Store, reading
from surrokit.ledger.tape import COLUMNS, DONE, Event, event_of
from surrokit.model.model import from_model, model_of
from surrokit.plan.recipe import is_bounded
from surrokit.potentials import Potential
from surrokit.targets.bounds import describe_position, parameters_of, transform_of
from surrokit.types import FloatArray

REPORTED = "reported"
"""The fact that names what a model reports, where its map is another library's."""

_SHIFT, _MATRIX = SCALING = ("shift", "matrix")
"""Arrays that say in which coordinates of like scale a run moved."""

_UNITS = "units"
"""Fact that holds the units of parameters by name."""

_CLOSE = 1e-6  # relative: more than rounding, less than another target

_TRIES = 5  # of those that fail by chance in a tenth of calls, one in 10^5 fails them all

_CHECKED = (
    "value",
    "value_and_gradient",
    "gradient",
    "forward",
    "forward_and_jacobian",
    "forward_and_gradient",
)
"""What is evaluated once more to compare it with what a file holds."""


def write_fingerprint(store: Store, exact: Potential) -> None:
    """Write what a target is known by.

    Raises
    ------
    LedgerError
        If it cannot be written.
    """
    store.write_facts({"target": _fingerprint(exact)})
    if units := _writable(exact)[0].units:
        store.write_facts({_UNITS: units})  # no part of what the target is known by
    if isinstance(transform := _writable(exact)[1], Transform):
        store.write_array("lower", transform.lower)
        store.write_array("upper", transform.upper)
    if isinstance(of := transform_of(exact), Scaled):
        store.write_array(_SHIFT, of.scaling.shift)
        store.write_array(_MATRIX, of.scaling.matrix)
    if isinstance(line := from_line_of(of), ModelMap):
        store.write_facts({REPORTED: line.reported.labels})


def read_scaling(path: Path) -> Scaling | None:
    """Return the coordinates of like scale that a ledger's run moved in; None for the line's own.

    Raises
    ------
    LedgerError
        If there is no such file, it is no ledger, or it is damaged.
    """
    with closing(Store.open(path)) as store, reading(path):
        return _scaling(store)


def _scaling(store: Store) -> Scaling | None:
    arrays = store.arrays()
    if _MATRIX not in arrays:
        return None
    scaling = Scaling(arrays[_SHIFT], arrays[_MATRIX])
    if scaling.matrix.shape != 2 * scaling.shift.shape:
        raise ValueError("the coordinates of like scale do not fit one another")
    return scaling


def read_parameters(store: Store) -> tuple[Parameters, CoordinateMap]:
    """Return names and bounds of a ledger's target, and the map to the user's coordinates.

    Raises
    ------
    LedgerError
        If they are damaged.
    """
    with reading(store.path):
        facts = store.facts()
        held, units = facts["target"], facts.get(_UNITS, {})
        if not is_bounded([held["dim"], held["parameters"]]):
            raise LedgerError(
                f"{store.path} names a target of more numbers than a file may. Begin a new run"
            )
        named = {
            name: Parameter(
                tuple(shape),
                lower=lower,
                upper=upper,
                constraint=from_plain(tie),
                unit=units.get(name),
            )
            for name, (shape, lower, upper, tie) in held["parameters"].items()
        }
        parameters = Parameters(named)
        if parameters.free != held["dim"]:
            raise ValueError("the parameters do not have as many numbers as the target")
        transform: Transform | Blocks
        if parameters.tied:
            transform = Blocks(parameters)
        else:
            arrays = store.arrays()
            transform = Transform(lower=arrays["lower"], upper=arrays["upper"])
            if transform.n_user != held["dim"]:
                raise ValueError("there are not as many bounds as numbers")
        scaling = _scaling(store)
        return parameters, transform if scaling is None else Scaled(scaling, transform)


def check_fingerprint(store: Store, exact: Potential) -> None:
    """Check that a ledger is a target's.

    Raises
    ------
    LedgerError
        If it is another target's; the message says what differs.
    """
    mine = _fingerprint(exact)
    with reading(store.path):
        held = store.facts()["target"]
        differences = [
            f"{_WORDS[name]} {held[name]!r} there, {value!r} here"
            for name, value in mine.items()
            if held[name] != value
        ]
        if not _alike(_scaling(store), transform_of(exact)):
            differences.append("its parameters or columns are of another scale")
    if differences:
        raise LedgerError(
            f"{store.path} is the ledger of another target: {'; '.join(differences)}; give the "
            "target that it was made with, or another file"
        )


def _alike(there: Scaling | None, here: CoordinateMap) -> bool:
    """Return whether a file's coordinates are a target's, but for rounding."""
    own = here.scaling if isinstance(here, Scaled) else None
    if there is None or own is None:
        return there is own
    matrix = np.allclose(there.matrix, own.matrix, _CLOSE, _CLOSE * np.abs(own.matrix).max())
    return matrix and np.allclose(there.shift, own.shift, _CLOSE, 0.0)


def check_row(store: Store, exact: Potential) -> None:
    """Evaluate one position of a ledger again, and check that the target gives the same.

    Raises
    ------
    LedgerError
        If it gives something else.
    """
    event = _latest(store)
    if event is None or event.results is None:
        return
    position, held = event.positions[:1], event.results[0][0]
    model = model_of(exact)
    with np.errstate(all="ignore"):
        where = f"at ({describe_position(exact, from_model(exact, position)[0])})"
    try:
        with np.errstate(all="ignore"):
            now = _insist(lambda q: model.evaluate(event.kind, q)[0], position)[0]
    except (Exception, SystemExit) as error:
        raise LedgerError(
            f"{store.path} is the ledger of another target: {where} it holds {_words(held)}, but "
            f"the target raised {type(error).__name__}: {error}; give the target that it was made "
            "with, or pass check=False"
        ) from error
    if np.shape(now) != np.shape(held) or not np.allclose(now, held, _CLOSE, _CLOSE):
        raise LedgerError(
            f"{store.path} is the ledger of another target: {where} it holds {_words(held)}, but "
            f"the target returned {_words(now)}; give the target that it was made with, or another "
            "file. If the target is no function of its position, pass check=False"
        )


def _insist(evaluate: Callable[[FloatArray], FloatArray], position: FloatArray) -> FloatArray:
    """Evaluate a position again where it fails, as it may by chance."""
    for _ in range(_TRIES - 1):
        with suppress(Exception):
            found = evaluate(position)
            if not np.isnan(found).any():
                return found
    return evaluate(position)


def _latest(store: Store) -> Event | None:
    """Return the last batch whose first position can be checked."""
    kinds = ", ".join(f"'{kind}'" for kind in _CHECKED)
    query = (
        f"SELECT id, {COLUMNS} FROM events WHERE kind IN ({kinds}) AND outcome = '{DONE}' "
        "AND notes IS NULL AND shapes IS NOT NULL ORDER BY id DESC LIMIT 20"
    )
    with reading(store.path):
        for number, *row in store.rows(query):
            event = event_of(number, row)
            if event.results and np.isfinite(event.results[0][:1]).all():
                return event
    return None


def _fingerprint(exact: Potential) -> dict[str, Any]:
    parameters, transform = _writable(exact)
    plain = transform if isinstance(transform, Transform) else None
    return {
        "dim": exact.dim,
        "parameters": {
            name: [list(spec.shape), spec.lower, spec.upper, to_plain(spec.constraint)]
            for name, spec in parameters.specs.items()
        },
        "lower": None if plain is None else plain.lower.tolist(),
        "upper": None if plain is None else plain.upper.tolist(),
        "capabilities": sorted(exact.capabilities),
    }


def _writable(exact: Potential) -> tuple[Parameters, CoordinateMap]:
    """Return parameters and map as a file can hold them.

    The map of a model of another library cannot be written; a file has the line's own numbers.
    """
    transform = from_line_of(transform_of(exact))
    if isinstance(transform, ModelMap):
        return transform.line, Transform.of(transform.line)
    return parameters_of(exact), transform


_WORDS = {
    "dim": "dim is",
    "parameters": "parameters are",
    "lower": "lower bounds are",
    "upper": "upper bounds are",
    "capabilities": "it offers",
}


def _words(value: FloatArray) -> str:
    flat = np.ravel(value)
    told = ", ".join(f"{number:.9g}" for number in flat[:3])
    return told if len(flat) == 1 else f"({told}{', ...' if len(flat) > 3 else ''})"
