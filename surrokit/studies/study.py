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

from surrokit.arguments import check_flag, numbers
from surrokit.compose import sample
from surrokit.coordinates.parameters import Bounds, Parameter
from surrokit.errors import ConfigurationError, EvaluationWarning, LedgerError, SamplingWarning
from surrokit.ledger.file import held
from surrokit.ledger.fingerprint import read_parameters
from surrokit.ledger.lock import Lock, made_beside
from surrokit.ledger.store import Store, reading
from surrokit.plan.asked import PARTS
from surrokit.plan.plain import is_data
from surrokit.registry.catalogue import default_catalogue
from surrokit.registry.kinds import Kind
from surrokit.registry.purposes import ANSWERS, DEFAULT, ON_SURROGATE
from surrokit.result.run import Run
from surrokit.sessions import resume
from surrokit.shapes import check_positions
from surrokit.studies.description import Description
from surrokit.studies.told import Told, key_of
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

_PARTS = (*PARTS, "integrator", "metric")
_FACT, _ARRAYS, _TOLD = "study", "study/", "told/"


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
        parts = {name: given.pop(name) for name in _PARTS if name in given}
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
        **_data(data, noise_sd, prior),
    )
    settings = {**({} if any(kind in settings for kind in PURPOSES) else _parts()), **settings}
    target = description.target(Told({}))
    lock = Lock(path)
    try:
        with made_beside(path) as new:
            with _quietly():
                sample(target, path=new, progress=False, **settings)
            with _opened(new, write=True) as store:
                with store.transaction():
                    store.write_facts({_FACT: description.to_dict()})
                    for name, array in description.arrays().items():
                        store.write_array(_ARRAYS + name, array)
                store.gather()
    finally:
        lock.release()
    catalogue = default_catalogue()
    named = {name: settings[name] for name in _PARTS if name in settings}
    return Study(path, {n: part for n, part in named.items() if not is_data(n, part, catalogue)})


class Study:
    """A study; see :func:`study`.

    Parameters
    ----------
    path
        Its file.
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
        if _FACT not in facts:
            raise LedgerError(f"{path} is no study's; give a file that surrokit.study has made")
        with reading(path):
            own = {name.removeprefix(_ARRAYS): array for name, array in arrays.items()}
            self.description = Description.of(parameters, facts[_FACT], own)
            self._told = {
                name.removeprefix(_TOLD): array
                for name, array in arrays.items()
                if name.startswith(_TOLD)
            }
            self._check_told()
        self._pending: FloatArray | None = None
        self.run: Run = self._go_on()

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
            How many at most; None for all that are wanted by now. What is wanted next depends on
            them.

        Raises
        ------
        ConfigurationError
            If ``n`` is not positive.
        """
        if n is not None and n < 1:
            raise ConfigurationError(f"n must be a whole number of at least 1, got {n!r}")
        if self._pending is None:
            return np.empty((0, self.description.parameters.dim))
        return self._pending[:n].copy()

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
            for name, array in joined.items():
                store.write_array(_TOLD + name, array)
        self._told = joined
        known = self._results()
        if self._pending is not None:
            unknown = [key_of(row) not in known for row in self._pending]
            if any(unknown):
                self._pending = self._pending[unknown]
            else:
                self.run = self._go_on()

    def _go_on(self) -> Run:
        """Do the run again with all that was told, up to where it wants to know more."""
        told = Told(self._results())
        with _quietly():
            target = self.description.target(told)
            run = resume(self.path, target, check=False, progress=False, **self._parts)
        self._pending = told.pending
        return run

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
        wanted = {key_of(row) for row in asked} | self._results().keys()
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


def _parts() -> dict[str, str]:
    catalogue = default_catalogue()
    serving = {kind: catalogue.serving(kind, purpose) for kind, purpose in PURPOSES.items()}
    return {str(kind): part.name for kind, part in serving.items() if part is not None}


def _data(data: object, noise_sd: object, prior: object) -> dict[str, Any]:
    """Return the fields of a description that tell of outputs."""
    if (data is None) != (noise_sd is None) or (prior is not None and data is None):
        raise ConfigurationError(
            "data and noise_sd belong together, and a prior to them; where log densities are told, "
            "they hold the prior already"
        )
    if data is None:
        return {}
    if prior is not None and not isinstance(prior, GaussianPrior):
        raise ConfigurationError(
            f"the prior of a study must be surrokit.gaussian_prior(...) or None, got {prior!r}; "
            "tell log densities instead, with any prior in them"
        )
    observed: Any = data
    errors: Any = noise_sd
    return {
        "data": numbers("data", observed),
        "noise_sd": numbers("noise_sd", errors),
        "prior": prior,
    }
