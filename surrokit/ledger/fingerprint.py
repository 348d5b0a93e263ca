"""The fingerprint of a target, by which its runs are known."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from surrokit.coordinates.constraints import CoordinateMap, from_plain, to_plain
from surrokit.coordinates.models import ModelMap
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.coordinates.transforms import Scaled, Scaling, from_line_of, map_of
from surrokit.errors import LedgerError
from surrokit.ledger.store import Store, reading
from surrokit.ledger.tape import DONE, Event, read_events
from surrokit.model.model import Wrapper, from_model, model_of
from surrokit.plan.recipe import is_bounded
from surrokit.potentials import Potential, observed_data_of
from surrokit.targets.bounds import describe_position, parameters_of, transform_of
from surrokit.targets.differences import Differences
from surrokit.targets.scaling import scaled
from surrokit.types import FloatArray

REPORTED = "reported"
"""The fact that names what a model reports, where its map is another library's."""

_CLOSE = 1e-6  # relative: more than rounding, less than another target


def describe_target(exact: Potential) -> dict[str, Any]:
    """Return the facts that a target is known and read by."""
    of = transform_of(exact)
    line = from_line_of(of)
    parameters = line.line if isinstance(line, ModelMap) else parameters_of(exact)
    return {
        "target": {
            "dim": exact.dim,
            "parameters": {
                name: [list(spec.shape), spec.lower, spec.upper, to_plain(spec.constraint)]
                for name, spec in parameters.specs.items()
            },
            "capabilities": sorted(exact.capabilities),
        },
        "observed": _observed(exact),
        "scaling": [of.scaling.shift, of.scaling.matrix] if isinstance(of, Scaled) else None,
        REPORTED: line.reported.labels if isinstance(line, ModelMap) else None,
    }


def _observed(exact: Potential) -> dict[str, list[float]]:
    """Return some figures of data, noise and priors, which differ where the numbers do."""
    found: dict[str, list[float]] = {}
    inner = exact
    while isinstance(inner, Wrapper):
        inner = inner.inner
    for name in ("priors", "energy"):
        _add_figures(name, getattr(inner, name, None), found)
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
    if isinstance(of, np.ndarray | np.generic | float | int):
        flat = np.ravel(of)
        if flat.size and flat.dtype.kind in "biuf":
            flat, places = flat.astype(np.float64), np.linspace(0.5, 1.0, flat.size)
            figures = [np.sqrt(np.mean(flat**2)), flat.mean(), np.mean(places * flat)]
            found[name] = [float(flat.size), *map(float, figures)]


def _scaling(facts: Mapping[str, Any]) -> Scaling | None:
    if facts["scaling"] is None:
        return None
    scaling = Scaling(*facts["scaling"])
    if scaling.matrix.shape != 2 * scaling.shift.shape:
        raise ValueError("the coordinates of like scale do not fit one another")
    return scaling


def read_parameters(store: Store) -> tuple[Parameters, CoordinateMap]:
    """Return names and bounds of a run's target, and the map to the user's coordinates."""
    with reading(store.path):
        facts = store.facts()
        held = facts["target"]
        if not is_bounded([held["dim"], held["parameters"]]):
            raise LedgerError(
                f"{store.path} names a target of more numbers than a file may. Begin a new run"
            )
        named = {
            name: Parameter(tuple(shape), lower=lower, upper=upper, constraint=from_plain(tie))
            for name, (shape, lower, upper, tie) in held["parameters"].items()
        }
        parameters = Parameters(named)
        if parameters.free != held["dim"]:
            raise ValueError("the parameters do not have as many numbers as the target")
        transform, scaling = map_of(parameters), _scaling(facts)
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
            with reading(path):
                facts = store.facts()
                scaling, differences = _scaling(facts), facts["settings"]["differences"]
            exact = target if scaling is None else scaled(target, scaling)
            if differences and not isinstance(exact, Differences):
                exact = Differences(exact)  # which the run made, not the user
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


def check_fingerprint(store: Store, exact: Potential, *, data: bool = True) -> None:
    """Raise, and say what differs, unless a run is a target's, on the same data if ``data``."""
    words = {"dim": "dim is", "parameters": "parameters are", "capabilities": "it offers"}
    here = describe_target(exact)
    with reading(store.path):
        facts = store.facts()
        differences = [
            f"{words[name]} {facts['target'][name]!r} there, {value!r} here"
            for name, value in here["target"].items()
            if facts["target"][name] != value
        ]
        there, own = _scaling(facts), _scaling(here)
        if there is None or own is None:
            alike = there is own
        else:  # but for rounding
            most = np.abs(own.matrix).max()
            alike = np.allclose(there.matrix, own.matrix, _CLOSE, _CLOSE * most)
            alike = alike and np.allclose(there.shift, own.shift, _CLOSE, 0.0)
        if not alike:
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
        there = store.facts()["observed"]
        return there.keys() == here.keys() and all(
            np.allclose(there[name], figures, _CLOSE, _CLOSE * figures[1], equal_nan=True)
            for name, figures in here.items()
        )


def check_row(store: Store, exact: Potential) -> None:
    """Evaluate one position of a run again, and check that the target gives the same."""
    event = _latest(store)
    if event is None or event.results is None:
        return
    position, held = event.positions[:1], event.results[0][0]
    model = model_of(exact)

    def evaluate() -> FloatArray:
        # again where it fails, as it may by chance: in a tenth of calls, one in 10^5 fails them all
        for _ in range(4):
            with suppress(Exception):
                found = model.evaluate(event.kind, position)[0]
                if not np.isnan(found).any():
                    return found
        return model.evaluate(event.kind, position)[0]

    with np.errstate(all="ignore"):
        where = describe_position(exact, from_model(exact, position)[0])
        try:
            now = evaluate()[0]
            said = f"returned {_words(now)}"
        except (Exception, SystemExit) as error:
            now, said = np.array(np.nan), f"raised {type(error).__name__}: {error}"
    if np.shape(now) != np.shape(held) or not np.allclose(now, held, _CLOSE, _CLOSE):
        raise LedgerError(
            f"{store.path} is the ledger of another target: at ({where}) it holds {_words(held)}, "
            f"but the target {said}; give the target that it was made with, or another file. If "
            "the target is no function of its position, pass check=False"
        )


def _latest(store: Store) -> Event | None:
    """Return the last batch whose first position can be checked."""
    kinds = (
        *("value", "value_and_gradient", "gradient"),
        *("forward", "forward_and_jacobian", "forward_and_gradient"),
    )
    last = (
        f"AND id IN (SELECT id FROM events WHERE run = {store.run:d} AND kind IN {kinds} AND "
        f"outcome = '{DONE}' AND notes IS NULL ORDER BY id DESC LIMIT 20)"
    )
    for event in reversed([*read_events(store, last)]):
        if event.results and np.isfinite(event.results[0][:1]).all():
            return event
    return None


def _words(value: FloatArray) -> str:
    flat = np.ravel(value)
    told = ", ".join(f"{number:.9g}" for number in flat[:3])
    return told if len(flat) == 1 else f"({told}{', ...' if len(flat) > 3 else ''})"
