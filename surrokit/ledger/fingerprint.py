"""The fingerprint of a target, by which its runs are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from surrokit.coordinates.constraints import CoordinateMap, from_plain, to_plain
from surrokit.coordinates.models import ModelMap
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.coordinates.transforms import Blocks, Scaled, Scaling, Transform, from_line_of
from surrokit.errors import LedgerError
from surrokit.ledger.store import Store, reading
from surrokit.ledger.tape import COLUMNS, DONE, Event, event_of
from surrokit.model.model import Wrapper, from_model, model_of
from surrokit.plan.recipe import is_bounded
from surrokit.potentials import Potential, observed_data_of
from surrokit.targets.bounds import describe_position, parameters_of, transform_of
from surrokit.targets.differences import Differences
from surrokit.targets.scaling import scaled
from surrokit.types import FloatArray

REPORTED = "reported"
"""The fact that names what a model reports, where its map is another library's."""

_OBSERVED, _UNITS = "observed", "units"

_SHIFT, _MATRIX = SCALING = ("shift", "matrix")
"""Arrays that say in which coordinates of like scale a run moved."""

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


def describe_target(exact: Potential) -> dict[str, Any]:
    """Return the facts and arrays that a target is known and read by."""
    facts: dict[str, Any] = {"target": _fingerprint(exact), _OBSERVED: _observed(exact)}
    parameters, of = _writable(exact)[0], transform_of(exact)
    if parameters.units:
        facts[_UNITS] = parameters.units
    if isinstance(of, Scaled):
        facts |= {_SHIFT: of.scaling.shift, _MATRIX: of.scaling.matrix}
    if isinstance(line := from_line_of(of), ModelMap):
        facts[REPORTED] = line.reported.labels
    return facts


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


def _observed(exact: Potential) -> dict[str, list[float]]:
    """Return some figures of data, noise and priors, which differ where the numbers do."""
    found: dict[str, list[float]] = {}
    inner = exact
    while isinstance(inner, Wrapper):
        inner = inner.inner
    _add_figures("priors", getattr(inner, "priors", None), found)
    _add_figures("energy", getattr(inner, "energy", None), found)
    _add_figures("data", observed_data_of(exact), found)
    return found


def _add_figures(name: str, of: Any, found: dict[str, list[float]]) -> None:
    """Add figures of all numbers that a record holds, wherever they are in it."""
    parts: Mapping[Any, Any] = {}
    if attrs.has(type(of)):
        parts = {each.name: getattr(of, each.name) for each in attrs.fields(type(of))}
    elif isinstance(of, Mapping):
        parts = of
    elif isinstance(of, tuple | list):
        parts = dict(enumerate(of))
    elif hasattr(of, "kwds") and hasattr(of, "args"):  # a distribution of SciPy's
        parts = {**dict(enumerate(of.args)), **of.kwds}
    for part, value in parts.items():
        _add_figures(f"{name}.{part}", value, found)
    if not isinstance(of, np.ndarray | np.generic | float | int):
        return
    array = np.asarray(of)
    if array.size and array.dtype.kind in "biuf":
        flat = array.ravel().astype(np.float64)
        places = np.linspace(0.5, 1.0, flat.size)
        figures = [np.sqrt(np.mean(flat**2)), flat.mean(), np.mean(places * flat)]
        found[name] = [float(flat.size), *map(float, figures)]


def _writable(exact: Potential) -> tuple[Parameters, CoordinateMap]:
    """Return parameters and map as a file can hold them: of another library's, the line's own."""
    transform = from_line_of(transform_of(exact))
    if isinstance(transform, ModelMap):
        return transform.line, Transform.of(transform.line)
    return parameters_of(exact), transform


def _scaling(store: Store) -> Scaling | None:
    arrays = store.arrays()
    if _MATRIX not in arrays:
        return None
    scaling = Scaling(arrays[_SHIFT], arrays[_MATRIX])
    if scaling.matrix.shape != 2 * scaling.shift.shape:
        raise ValueError("the coordinates of like scale do not fit one another")
    return scaling


def read_parameters(store: Store) -> tuple[Parameters, CoordinateMap]:
    """Return names and bounds of a run's target, and the map to the user's coordinates."""
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
            lower, upper = (np.array(held[name], np.float64) for name in ("lower", "upper"))
            if not lower.shape == upper.shape == (held["dim"],):
                raise ValueError("there are not as many bounds as numbers")
            transform = Transform(lower=lower, upper=upper)
        scaling = _scaling(store)
        return parameters, transform if scaling is None else Scaled(scaling, transform)


# --- whose a run is ---


def find_run(
    path: Path, target: Potential, run: int | None, *, check: bool
) -> tuple[int, Potential]:
    """Return the number of a target's latest run in a file, and the target as that run has it.

    With ``check`` a position is evaluated to tell runs of targets apart that look the same.
    """
    fitting: list[tuple[int, Potential]] = []
    trouble: list[LedgerError] = []
    with closing(Store.open(path, run=run)) as store:
        for number in [store.run] if run is not None else store.runs[::-1]:
            store.run = number
            exact = _as_in_run(store, target)
            try:
                check_fingerprint(store, exact)
                fitting.append((number, exact))
            except LedgerError as error:
                trouble.append(error)
        if not fitting:
            raise trouble[0]
        for number, exact in fitting if check and len(fitting) > 1 else ():
            store.run = number
            with suppress(LedgerError):
                check_row(store, exact)
                return number, exact
    return fitting[0]


def _as_in_run(store: Store, target: Potential) -> Potential:
    """Return a target in the coordinates of a run, with differences where the run made them."""
    with reading(store.path):
        scaling, by_differences = _scaling(store), store.facts()["settings"]["differences"]
    exact = target if scaling is None else scaled(target, scaling)
    made = by_differences and not isinstance(exact, Differences)  # by the run, not the user
    return Differences(exact) if made else exact


def check_fingerprint(store: Store, exact: Potential, *, data: bool = True) -> None:
    """Raise, and say what differs, unless a run is a target's, on the same data if ``data``."""
    mine = _fingerprint(exact)
    with reading(store.path):
        facts = store.facts()
        held = facts["target"]
        differences = [
            f"{_WORDS[name]} {held[name]!r} there, {value!r} here"
            for name, value in mine.items()
            if held[name] != value
        ]
        if not _alike(_scaling(store), transform_of(exact)):
            differences.append("its parameters or columns are of another scale")
        if data and not same_data(store, exact):
            differences.append("its data, noise or priors are others")
    if differences:
        raise LedgerError(
            f"{store.path} is the ledger of another target: {'; '.join(differences)}; give the "
            "target that it was made with, or another file"
        )


def same_data(store: Store, exact: Potential) -> bool:
    """Return whether a run is on the data, noise and priors of a target, as far as is known."""
    here = _observed(exact)
    with reading(store.path):
        there = store.facts().get(_OBSERVED, here)
        return there.keys() == here.keys() and all(
            np.allclose(there[name], figures, _CLOSE, _CLOSE * figures[1], equal_nan=True)
            for name, figures in here.items()
        )


def _alike(there: Scaling | None, here: CoordinateMap) -> bool:
    """Return whether a file's coordinates are a target's, but for rounding."""
    own = here.scaling if isinstance(here, Scaled) else None
    if there is None or own is None:
        return there is own
    matrix = np.allclose(there.matrix, own.matrix, _CLOSE, _CLOSE * np.abs(own.matrix).max())
    return matrix and np.allclose(there.shift, own.shift, _CLOSE, 0.0)


_WORDS = {
    "dim": "dim is",
    "parameters": "parameters are",
    "lower": "lower bounds are",
    "upper": "upper bounds are",
    "capabilities": "it offers",
}


def check_row(store: Store, exact: Potential) -> None:
    """Evaluate one position of a run again, and check that the target gives the same."""
    event = _latest(store)
    if event is None or event.results is None:
        return
    position, held = event.positions[:1], event.results[0][0]
    model = model_of(exact)
    with np.errstate(all="ignore"):
        where = f"at ({describe_position(exact, from_model(exact, position)[0])})"
    other = f"{store.path} is the ledger of another target: {where} it holds {_words(held)}, but"
    try:
        with np.errstate(all="ignore"):
            now = _insist(lambda q: model.evaluate(event.kind, q)[0], position)[0]
    except (Exception, SystemExit) as error:
        raise LedgerError(
            f"{other} the target raised {type(error).__name__}: {error}; give the target that it "
            "was made with, or pass check=False"
        ) from error
    if np.shape(now) != np.shape(held) or not np.allclose(now, held, _CLOSE, _CLOSE):
        raise LedgerError(
            f"{other} the target returned {_words(now)}; give the target that it was made with, or "
            "another file. If the target is no function of its position, pass check=False"
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
        f"SELECT id, {COLUMNS} FROM events WHERE run = ? AND kind IN ({kinds}) AND "
        f"outcome = '{DONE}' AND notes IS NULL AND shapes IS NOT NULL ORDER BY id DESC LIMIT 20"
    )
    with reading(store.path):
        for number, *row in store.rows(query, (store.run,)):
            event = event_of(number, row)
            if event.results and np.isfinite(event.results[0][:1]).all():
                return event
    return None


def _words(value: FloatArray) -> str:
    flat = np.ravel(value)
    told = ", ".join(f"{number:.9g}" for number in flat[:3])
    return told if len(flat) == 1 else f"({told}{', ...' if len(flat) > 3 else ''})"
