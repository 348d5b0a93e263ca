"""The fingerprint of a target, by which its runs are known."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from surrokit.capabilities import ALL_BY_NAME
from surrokit.coordinates.constraints import CoordinateMap, from_plain, to_plain
from surrokit.coordinates.models import ModelMap
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.coordinates.transforms import Scaled, Scaling, from_line_of, map_of
from surrokit.errors import LedgerError
from surrokit.ledger.store import Store, reading
from surrokit.ledger.tape import DONE, Event, read_events
from surrokit.model.model import from_model, model_of
from surrokit.model.outcome import Results
from surrokit.plan.recipe import is_bounded
from surrokit.potentials import Potential
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
        "scaling": [of.scaling.shift, of.scaling.matrix] if isinstance(of, Scaled) else None,
        REPORTED: line.reported.labels if isinstance(line, ModelMap) else None,
    }


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
        facts = store.facts_of_run()
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


def of_file(store: Store, target: Potential) -> Potential:
    """Return a target as the run of a file has it, or raise and say what differs."""
    with reading(store.path):
        facts = store.facts_of_run()
        scaling, differences = _scaling(facts), facts["settings"]["differences"]
    exact = target if scaling is None else scaled(target, scaling)
    if differences and not isinstance(exact, Differences):
        exact = Differences(exact)  # which the run made, not the user
    check_fingerprint(store, exact)
    return exact


def check_fingerprint(store: Store, exact: Potential) -> None:
    """Raise, and say what differs, unless a run is a target's by all that is known beforehand."""
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
    if differences:
        raise LedgerError(
            f"{store.path} is the ledger of another target: {'; '.join(differences)}; give the "
            "target that it was made with, or another file"
        )


def check_row(store: Store, exact: Potential) -> None:
    """Evaluate one position of a run again, and check that the target gives the same.

    It is one where data, noise and priors tell, unless outputs of a map are all that the file has.
    """
    event = _latest(store, _OF_DATA) or _latest(store, OF_MAPS)
    if event is None or event.results is None:
        return
    n = len(ALL_BY_NAME[event.kind].gives)  # of quantities behind it only names are compared
    position, held = event.positions[:1], _joined(event.results[:n])
    model = model_of(exact)
    event.fix(model.layout)

    def evaluate() -> FloatArray:
        # again where it fails, as it may by chance: in a tenth of calls, one in 10^5 fails them all
        for _ in range(4):
            with suppress(Exception):
                found = _joined(model.evaluate(event.kind, position))
                if not np.isnan(found).any():
                    return found
        return _joined(model.evaluate(event.kind, position))

    with np.errstate(all="ignore"):
        where = describe_position(exact, from_model(exact, position)[0])
        try:
            now = evaluate()
            said = f"returned {_words(now)}"
        except (Exception, SystemExit) as error:
            now, said = np.array(np.nan), f"raised {type(error).__name__}: {error}"
    if np.shape(now) != np.shape(held) or not np.allclose(now, held, _CLOSE, _CLOSE):
        raise LedgerError(
            f"{store.path} is the ledger of another target: at ({where}) it holds {_words(held)}, "
            f"but the target {said}. Give the target that it was made with, or another file, or "
            "check=False for a target that is no function of its position"
        )


OF_MAPS = ("forward", "forward_and_jacobian", "forward_to_second_order")
"""What does not depend on data, noise and priors."""

_OF_DATA = ("value", "value_and_gradient", "gradient", "forward_and_gradient")


def _latest(store: Store, kinds: tuple[str, ...]) -> Event | None:
    """Return the last batch of some kinds whose first position can be checked."""
    last = (
        f"AND id IN (SELECT id FROM events WHERE kind IN {kinds} AND outcome = '{DONE}' AND notes "
        "IS NULL ORDER BY id DESC LIMIT 20)"
    )
    for event in reversed([*read_events(store, last)]):
        if event.results and np.isfinite(event.results[0][:1]).all():
            return event
    return None


def _joined(results: Results) -> FloatArray:
    """Return all numbers of the first row."""
    return np.concatenate([np.ravel(array[0]) for array in results])


def _words(value: FloatArray) -> str:
    reported = ", ".join(f"{number:.9g}" for number in np.ravel(value)[:3])
    return f"({reported}{', ...' if np.size(value) > 3 else ''})"
