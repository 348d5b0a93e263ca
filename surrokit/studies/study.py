"""Ask and tell: a run whose exact calls somebody else makes, whenever they can."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surrokit.arguments import check_flag, check_positions, numbers
from surrokit.compose import sample
from surrokit.coordinates.parameters import Bounds, Parameter
from surrokit.errors import ConfigurationError, EvaluationWarning, LedgerError, SamplingWarning
from surrokit.interfaces import Evaluations
from surrokit.ledger.file import held
from surrokit.ledger.fingerprint import read_parameters
from surrokit.ledger.store import Lock, Store, made_beside, reading
from surrokit.plan.recipe import PARTS, is_data, split_safety
from surrokit.potentials import Potential
from surrokit.registry.catalogue import default_catalogue
from surrokit.registry.components import ANSWERS, DEFAULT, ON_SURROGATE, Kind
from surrokit.result.run import Run
from surrokit.sessions import open_run, resume
from surrokit.studies.description import (
    ARRAYS,
    FACT,
    PENDING,
    Description,
    Nearest,
    Told,
    key_of,
    observed,
)
from surrokit.studies.design import spread
from surrokit.targets.bounds import transform_of
from surrokit.targets.functions import declare_parameters
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import FloatArray

PURPOSES: dict[Kind, str] = {
    "sampler": ON_SURROGATE,
    "surrogate": DEFAULT,
    "explorer": ON_SURROGATE,
    "correction": ANSWERS,
}
"""What parts of a study serve where none is named: answers from few calls."""

_PARTS = tuple(name for name in PARTS if name != "policy")
_TOLD = "told/"

_MORE, _LEARNT = "more", "learnt"
"""Arrays of a study's file, beside those of its description: positions that were asked for beside
those that the run wanted, and positions that the run had learnt from before it began."""

_PART = 0.5  # of max_calls that positions beside those of the run may take together


def study(
    path: str | os.PathLike[str],
    *,
    parameters: Mapping[str, Parameter | Bounds | None] | None = None,
    dim: int | None = None,
    plausible: Mapping[str, Any] | None = None,
    gradients: bool = False,
    data: npt.ArrayLike | None = None,
    noise_sd: npt.ArrayLike | None = None,
    prior: GaussianPrior | None = None,
    **settings: Any,
) -> Study:
    """Begin a study, or go on with one.

    The model is nowhere to be called: :meth:`Study.ask` says where it is to be evaluated, and
    :meth:`Study.tell` is told what came out, in this process or in a later one. All is kept in a
    file. The draws are those of a run that calls the model itself.

    Parameters
    ----------
    path
        The file of the study. If it is there, everything else is in it and must be left out.
    parameters, dim, plausible
        As for :func:`surrokit.potential`.
    gradients
        Whether a log density is told together with its gradient.
    data, noise_sd, prior
        As for :func:`surrokit.forward_potential`; outputs of the model are told then, and no log
        density. The prior is a :func:`surrokit.gaussian_prior` or None.
    **settings
        As for :func:`surrokit.sample`, such as ``max_calls`` and ``seed``. Where no part is named,
        they are those of weighted answers, which need the fewest calls. Parts that no file may
        hold, such as an estimator, are given again to go on.

    Raises
    ------
    ConfigurationError
        If a description is missing, cannot be one, or is given though the file has one.
    LedgerError
        If the file cannot be read or written, or is no study's.
    """
    path = Path(path).absolute()
    given = {
        "parameters": parameters,
        "dim": dim,
        "plausible": plausible,
        "data": data,
        "noise_sd": noise_sd,
        "prior": prior,
        **settings,
    }
    if path.exists():
        parts = _given_parts({name: given.pop(name) for name in _PARTS if name in given})
        told = [name for name, value in given.items() if value is not None]
        if told := told + ["gradients"] * gradients:
            raise ConfigurationError(
                f"{path} is there, and holds the {', '.join(told)} of its study; leave them out, "
                "or give a new path"
            )
        return Study(path, parts)
    check_flag("gradients", gradients)
    description = Description(
        parameters=declare_parameters(dim, parameters),
        plausible=plausible,
        gradients=gradients,
        **observed(data, noise_sd, prior),
    )
    settings = {**({} if any(kind in settings for kind in PURPOSES) else _parts()), **settings}
    lock = Lock(path)
    try:
        with made_beside(path) as new:
            _write(new, description, Told({}), settings, settings.get("max_calls"), {})
    finally:
        lock.release()
    catalogue = default_catalogue()
    named = _given_parts(settings)
    return Study(path, {n: part for n, part in named.items() if not is_data(n, part, catalogue)})


class Study:
    """A study; see :func:`study`.

    Parameters
    ----------
    parts
        Kind to the parts that the file cannot hold.

    Attributes
    ----------
    description
        The target, without its model.
    run
        The run as far as it came.

    Raises
    ------
    LedgerError
        If the file cannot be read, or is no study's.
    """

    def __init__(self, path: Path, parts: Mapping[str, Any] | None = None) -> None:
        self.path, self._parts = path, dict(parts or {})
        with _opened(path, write=False) as store:
            facts, arrays, (parameters, _) = store.facts(), store.arrays(), read_parameters(store)
        if FACT not in facts:
            raise LedgerError(f"{path} is no study's; give a file that surrokit.study has made")
        with reading(path):
            own = {name.removeprefix(ARRAYS): array for name, array in arrays.items()}
            self.description = Description.of(parameters, facts[FACT], own)
            self._max_calls = facts[FACT].get("max_calls")
            self._told = {
                name.removeprefix(_TOLD): array
                for name, array in arrays.items()
                if name.startswith(_TOLD)
            }
            self._check_told()
            self._more = own.get(_MORE, np.empty((0, parameters.dim)))
            self._learnt = own.get(_LEARNT, np.empty((0, parameters.dim)))
        self._pending: FloatArray | None = None
        self.run: Run = open_run(path)
        self.run = self._go_on()

    @property
    def done(self) -> bool:
        """Whether nothing is left to be evaluated."""
        return self._pending is None

    def ask(self, n: int | None = None) -> FloatArray:
        """Return positions at which the model is to be evaluated, shape (k, dim).

        They are in the parameters' own coordinates. Where some of them were told of, the others
        are returned again; none where the study is done.

        Parameters
        ----------
        n
            How many; None for all that the run wants by now. What it wants next depends on them.
            Where it wants fewer, and explores with a surrogate, positions are added that are spread
            where the density is high by what was told, so that as many evaluations as you like may
            go on side by side. The surrogate learns from them. Together they take half of
            ``max_calls`` at most.

        Raises
        ------
        ConfigurationError
            If ``n`` is not positive.
        LedgerError
            If the file cannot be written.
        """
        if n is not None and n < 1:
            raise ConfigurationError(f"n must be a whole number of at least 1, got {n!r}")
        if self._pending is None:
            return np.empty((0, self.description.parameters.dim))
        wanted = self._pending[:n]
        if n is None or len(wanted) == n or not self._explores:
            return wanted.copy()
        return np.concatenate([wanted, self._beside(n - len(wanted))])

    @property
    def _explores(self) -> bool:
        """Whether a surrogate still learns before the first draw."""
        learns = (self.run.asked or {}).get("surrogate") not in (None, "none")
        return learns and not len(self.run.kept) and self.run.answer is None

    def _beside(self, n: int) -> FloatArray:
        """Return positions beside those that the run wants, at most n, shape (k, dim)."""
        results = self._results()
        untold = self._more[[key_of(row) not in results for row in self._more]]
        limit, fresh = self._max_calls, n - len(untold)
        if limit is not None:
            fresh = min(fresh, int(_PART * limit) - len(results) - len(untold))
        if fresh > 0:
            assert self._pending is not None
            told = self._told.get("positions", self._pending[:0])
            rng = np.random.default_rng([len(told), len(self._more)])
            found = spread(self._target_told(), told, self._pending, fresh, rng)
            self._more = np.concatenate([self._more, found])
            untold = np.concatenate([untold, found])
            self._keep(_MORE, self._more)
        return untold[:n]

    def tell(
        self,
        positions: npt.ArrayLike,
        log_density: npt.ArrayLike | None = None,
        *,
        gradients: npt.ArrayLike | None = None,
        outputs: npt.ArrayLike | None = None,
    ) -> None:
        """Take in what the model returned, and go on with the run if that was all that it wants.

        NaN tells that the model has failed at a position.

        Parameters
        ----------
        positions : array_like of shape (k, dim)
            Positions that were asked for, to the last bit; any of them, in any order.
        log_density : array_like of shape (k,), optional
            Log density, up to a constant.
        gradients : array_like of shape (k, dim), optional
            Of the log density.
        outputs : array_like of shape (k, m), optional
            Outputs of the model, where the study has data.

        Raises
        ------
        ConfigurationError
            If something else was asked for, or at other positions.
        ShapeError
            If shapes do not fit.
        LedgerError
            If the file cannot be written.
        """
        at = check_positions(numbers("positions", positions), self.description.parameters.dim)
        results = {"log_density": log_density, "gradients": gradients, "outputs": outputs}
        found = self.description.check(results, len(at))
        self._check_asked(at)
        fresh = {"positions": at, **found}
        joined = {
            name: np.concatenate([self._told[name], array]) if self._told else array.copy()
            for name, array in fresh.items()
        }
        with _opened(self.path, write=True) as store, store.transaction():
            store.write_facts({_TOLD + name: array for name, array in joined.items()})
        self._told = joined
        known = self._results()
        if self._pending is not None:
            unknown = [key_of(row) not in known for row in self._pending]
            if any(unknown):
                self._pending = self._pending[unknown]
                self._keep(PENDING, self._pending)
            else:
                self.run = self._go_on()

    def _go_on(self) -> Run:
        """Do the run again with all that was told, up to where it wants to know more."""
        told = Told(self._results())
        learnt = {key_of(row) for row in self._learnt}
        beside = [key_of(row) in told for row in self._more]
        if any(key_of(row) not in learnt for row in self._more[beside]) and self._explores:
            self._begin_again(told)
        with _quietly():
            target = self.description.target(told)
            run = resume(self.path, target, check=False, progress=False, **self._parts)
        self._pending = told.pending
        self._keep(PENDING, told.pending if told.pending is not None else self._more[:0])
        return run

    def _target_told(self) -> Potential:
        """Return the target at what was told, to be evaluated there alone."""
        if not self._told:
            return self.description.target(Told({}))
        results = [self._told[name] for name in self.description.names]
        return self.description.target(Nearest(self._told["positions"], results))

    def _begin_again(self, told: Told) -> None:
        """Begin the run anew with all that was told, of which its surrogate then learns first.

        Nothing was drawn yet, and nothing is evaluated again that is known.
        """
        positions, target = self._told["positions"], self._target_told()
        line = transform_of(target)
        z = line.to_unbounded(positions)
        with np.errstate(all="ignore"):
            values = target.value(z) + line.log_jacobian(z)  # in the parameters' own coordinates
        rows = np.isfinite(values)
        gradients, outputs = (self._told.get(name) for name in ("gradients", "outputs"))
        asked, parts = self.run.asked or {}, dict(self._parts)
        if "schedule" in parts and (safety := split_safety(asked.get("schedule")).get("safety")):
            parts["schedule"] = (parts["schedule"], safety)
        settings = {
            **{name: given for name, given in asked.items() if given is not ...},
            **parts,
            "warm_start": Evaluations(
                positions=positions[rows],
                values=values[rows],
                gradients=None if gradients is None else -gradients[rows],
                outputs=None if outputs is None else outputs[rows],
            ),
        }
        if self._max_calls is not None:
            settings["max_calls"] = max(self._max_calls - int(rows.sum()), 1)
        self._learnt = positions
        lock = Lock(self.path)
        try:
            with made_beside(self.path.with_name(f"{self.path.name}.again")) as new:
                arrays = {ARRAYS + _MORE: self._more, ARRAYS + _LEARNT: positions}
                arrays |= {_TOLD + name: array for name, array in self._told.items()}
                _write(new, self.description, told, settings, self._max_calls, arrays)
            os.replace(self.path.with_name(f"{self.path.name}.again"), self.path)
        finally:
            lock.release()

    def _keep(self, name: str, array: FloatArray) -> None:
        with _opened(self.path, write=True) as store, store.transaction():
            store.write_facts({ARRAYS + name: array})

    def _results(self) -> dict[bytes, tuple[FloatArray, ...]]:
        if not self._told:
            return {}
        parts = [self._told[name] for name in self.description.names]
        rows = zip(*parts, strict=True)
        return {key_of(at): row for at, row in zip(self._told["positions"], rows, strict=True)}

    def _check_told(self) -> None:
        """Raise unless what is told fits the description."""
        if self._told:
            self.description.check(
                {name: self._told[name] for name in self.description.names},
                len(self._told["positions"]),
            )

    def _check_asked(self, positions: FloatArray) -> None:
        asked = self.ask()
        wanted = {key_of(row) for row in (*asked, *self._more)} | self._results().keys()
        for i, row in enumerate(positions):
            if key_of(row) in wanted:
                continue
            near = ""
            if len(asked):
                apart = np.abs(asked - row).max(axis=1)
                near = f"; the nearest one that was differs by {apart.min():.2g}"
            raise ConfigurationError(
                f"position {i} was not asked for{near}; evaluate the model at what ask() returns, "
                "and pass that on with all its digits"
            )


def _given_parts(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts among settings; a file holds what else stands with a schedule."""
    named = {name: settings[name] for name in _PARTS if name in settings}
    schedule = split_safety(named.pop("schedule", None)).get("schedule")
    return named if schedule is None else {**named, "schedule": schedule}


def _parts() -> dict[str, str]:
    catalogue = default_catalogue()
    serving = {kind: catalogue.serving(kind, purpose) for kind, purpose in PURPOSES.items()}
    return {str(kind): part.name for kind, part in serving.items() if part is not None}


def _write(
    new: Path,
    description: Description,
    told: Told,
    settings: Mapping[str, Any],
    max_calls: int | None,
    arrays: Mapping[str, FloatArray],
) -> None:
    """Write the file of a study whose run begins, with arrays beside those of its description."""
    with _quietly():
        sample(description.target(told), path=new, progress=False, **settings)
    own = {ARRAYS + name: array for name, array in description.arrays().items()}
    with _opened(new, write=True) as store:
        with store.transaction():
            told_of = {FACT: {**description.to_dict(), "max_calls": max_calls}}
            store.write_facts({**told_of, **own, **arrays})
        store.gather()


@contextmanager
def _opened(path: Path, *, write: bool) -> Iterator[Store]:
    """Yield a ledger that nobody else has meanwhile."""
    with held(path, partial(Store.open, write=write)) as (store, lock):
        yield store
        store.close()
        lock.release()


@contextmanager
def _quietly() -> Iterator[None]:
    """Leave out what a run warns of that is not at its end; its verdict has all of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        warnings.simplefilter("ignore", EvaluationWarning)
        yield
