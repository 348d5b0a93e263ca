"""Ask and tell: a run whose exact calls somebody else makes, whenever they can.

A study is a run that is done again with all that was reported, up to where it wants to know more;
its file holds the run, what was reported, and the positions that it waits for.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import check_flag, check_positions, numbers
from surrokit.compose import sample
from surrokit.coordinates.parameters import Declared, Parameters
from surrokit.errors import (
    ConfigurationError,
    EvaluationWarning,
    LedgerError,
    SamplingWarning,
    ShapeError,
)
from surrokit.ledger.file import held
from surrokit.ledger.fingerprint import read_parameters
from surrokit.ledger.reader import Ledger
from surrokit.ledger.store import Lock, Store, made_beside, reading
from surrokit.model.quantities import NAMED, Layout, read_quantities
from surrokit.plan.recipe import PARTS, is_data, split_safety
from surrokit.potentials import Potential
from surrokit.registry.catalogue import default_catalogue
from surrokit.registry.components import ANSWERS, DEFAULT, ON_SURROGATE, Kind
from surrokit.result.run import Run
from surrokit.sessions import open_run, resume
from surrokit.targets.forward import forward_potential
from surrokit.targets.functions import declare_parameters, potential
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
_FACT, _ARRAYS, _PENDING, _RESULTS = "study", "study/", "study/pending", "results/"


# --- the target ---


class Pending(KeyboardInterrupt):
    """Ends a run at positions whose results are not reported yet."""


class Results:
    """A function of rows that knows results by :func:`key_of` positions, and else ends the run.

    Its ``pending`` (n, dim) are positions where a result is wanted; None as long as none is. The
    last results have names if they are ``quantities``.
    """

    def __init__(
        self, results: Mapping[bytes, tuple[FloatArray, ...]], quantities: tuple[str, ...] = ()
    ) -> None:
        self.pending: FloatArray | None = None
        self._results, self._names = results, quantities

    def __call__(self, positions: FloatArray) -> Any:
        """Return the results at positions (n, dim), each stacked; Pending if one is unknown.

        Quantities are in a dictionary at the end. One result alone is in no tuple.
        """
        keys = [key_of(row) for row in positions]
        unknown = [key not in self._results for key in keys]
        if any(unknown):
            self.pending = np.array(positions[unknown])
            raise Pending
        rows = [self._results[key] for key in keys]
        found = [np.stack(each) for each in zip(*rows, strict=True)]
        n = len(found) - len(self._names)
        last = [dict(zip(self._names, found[n:], strict=True))] if self._names else []
        return (*found[:n], *last) if n + len(last) > 1 else found[0]


def key_of(position: FloatArray) -> bytes:
    """Return by what a position (dim,) is known: all of its bits, and no sign of zero."""
    return np.ascontiguousarray(position + 0.0, dtype=np.float64).tobytes()


@attrs.frozen(kw_only=True, eq=False)
class Description:
    """A target without its model.

    ConfigurationError is raised if something is missing, or no file can hold it.
    """

    parameters: Parameters
    plausible: Mapping[str, Any] | None = None  # name to a range in which it is likely to be
    gradients: bool = False  # whether a log density comes with its gradient
    data: FloatArray | None = None  # observed outputs (m,); None where log densities are reported
    noise_sd: FloatArray | None = None  # their errors (m,)
    prior: GaussianPrior | None = None  # of the parameters of such a model; None for a flat one

    def __attrs_post_init__(self) -> None:
        beside = [name for name, spec in self.parameters.specs.items() if spec.prior is not None]
        if beside:
            raise ConfigurationError(
                f"the file of a study holds no prior of {beside[0]!r}; leave it out, and add it to "
                "the log densities"
            )
        has_data, has_prior = self.data is not None, self.prior is not None
        if has_data != (self.noise_sd is not None) or (has_prior and not has_data):
            raise ConfigurationError(
                "data and noise_sd belong together, and a prior to them; log densities hold "
                "the prior already"
            )
        if has_data and self.gradients:
            raise ConfigurationError(
                "outputs are learnt without their derivatives in a study, but data and gradients "
                "are both given; leave gradients out"
            )
        if has_prior and not isinstance(self.prior, GaussianPrior):
            raise ConfigurationError(
                "the prior of a study must be surrokit.gaussian_prior(...) or None, got "
                f"{self.prior!r}; tell log densities instead, with any prior in them"
            )

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name of what is reported of a position to its shape."""
        if self.data is not None:
            return {"outputs": self.data.shape}
        gradients = {"gradients": (self.parameters.dim,)} if self.gradients else {}
        return {"log_density": (), **gradients}

    def check(self, results: Mapping[str, Any], n: int) -> dict[str, FloatArray]:
        """Return what is reported of n positions as arrays, if all of it is there in its shape."""
        given = {name: array for name, array in results.items() if array is not None}
        if given.keys() != self.shapes.keys():
            raise ConfigurationError(
                f"this study needs {' and '.join(self.shapes)}, got "
                f"{' and '.join(given) or 'nothing'}"
            )
        found = {name: numbers(name, given[name]) for name in self.shapes}
        for name, shape in self.shapes.items():
            if found[name].shape != (n, *shape):
                raise ShapeError(
                    f"{name} of {n} positions must have shape {(n, *shape)}, got "
                    f"{found[name].shape}; pass one row for each position"
                )
        return found

    def target(self, reported: Results) -> Potential:
        """Return the target, whose model is what was reported."""
        named: dict[str, Any] = {
            "parameters": dict(self.parameters.specs),
            "plausible": self.plausible,
            "batched": True,
        }
        if self.data is not None:
            given: dict[str, Any] = {"noise_sd": self.noise_sd, "prior": self.prior}
            return forward_potential(reported, data=self.data, **given, **named)
        if self.gradients:

            def negative(at: FloatArray) -> Any:
                return tuple(each if isinstance(each, dict) else -each for each in reported(at))

            return potential(value_and_gradient=negative, **named)
        return potential(log_density=reported, **named)

    def facts(self) -> dict[str, Any]:
        """Return what a ledger does not say by itself, by the names of its facts."""
        plausible = self.plausible
        if plausible is not None:
            plausible = {name: np.asarray(part).tolist() for name, part in plausible.items()}
        arrays: dict[str, Any] = {"data": self.data, "noise_sd": self.noise_sd}
        if self.prior is not None:
            arrays |= {"prior_mean": self.prior.mean, "prior_sd": self.prior.sd}
        given = {_ARRAYS + name: np.asarray(x) for name, x in arrays.items() if x is not None}
        return {_FACT: {"plausible": plausible, "gradients": self.gradients}, **given}

    @classmethod
    def of(
        cls, parameters: Parameters, fact: Mapping[str, Any], arrays: Mapping[str, FloatArray]
    ) -> Description:
        """Return what :meth:`facts` made, with the ledger's parameters and arrays."""
        mean, sd = (arrays.get(_ARRAYS + name) for name in ("prior_mean", "prior_sd"))
        return cls(
            parameters=parameters,
            plausible=fact["plausible"],
            gradients=bool(fact["gradients"]),
            data=arrays.get(_ARRAYS + "data"),
            noise_sd=arrays.get(_ARRAYS + "noise_sd"),
            prior=None if mean is None or sd is None else GaussianPrior(mean=mean, sd=sd),
        )


# --- the study ---


def study(
    path: str | os.PathLike[str],
    *,
    parameters: Declared | None = None,
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
    results are passed to :meth:`Study.tell`, in this process or in a later one. All is kept in a
    file. The draws are those of a run that calls the model itself.

    Parameters
    ----------
    path
        The file of the study. If it is there, everything else is in it and must be left out.
    parameters, dim, plausible
        As for :func:`surrokit.potential`.
    gradients
        Whether a log density is reported together with its gradient.
    data, noise_sd, prior
        As for :func:`surrokit.forward_potential`; outputs of the model are reported, and no log
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
        reported = [name for name, value in given.items() if value is not None]
        if reported := reported + ["gradients"] * gradients:
            raise ConfigurationError(
                f"{path} is there, and holds the {', '.join(reported)} of its study; leave them "
                "out, or give a new path"
            )
        return Study(path, parts)
    check_flag("gradients", gradients)
    description = Description(
        parameters=declare_parameters(dim, parameters),
        plausible=plausible,
        gradients=gradients,
        data=None if data is None else numbers("data", data),
        noise_sd=None if noise_sd is None else numbers("noise_sd", noise_sd),
        prior=prior,
    )
    catalogue = default_catalogue()
    if not any(kind in settings for kind in PURPOSES):
        serving = {kind: catalogue.serving(kind, purpose) for kind, purpose in PURPOSES.items()}
        usual = {str(kind): part.name for kind, part in serving.items() if part is not None}
        settings = {**usual, **settings}
    _begin(path, description, settings)
    named = _given_parts(settings)
    return Study(path, {n: part for n, part in named.items() if not is_data(n, part, catalogue)})


def _begin(path: Path, description: Description, settings: Mapping[str, Any]) -> None:
    """Write the file of a study whose run begins."""
    lock = Lock(path)
    try:
        with made_beside(path) as new:
            with _quietly():
                sample(description.target(Results({})), path=new, progress=False, **settings)
            with _opened(new, write=True) as store, store.transaction():
                store.write_facts(description.facts())
    finally:
        lock.release()


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
    """

    def __init__(self, path: Path, parts: Mapping[str, Any] | None = None) -> None:
        self.path, self._parts = path, dict(parts or {})
        with _opened(path, write=False) as store:
            facts, (parameters, _) = store.facts(), read_parameters(store)
        if _FACT not in facts:
            raise LedgerError(f"{path} is no study's; give a file that surrokit.study has made")
        with reading(path):
            self.description = Description.of(parameters, facts[_FACT], facts)
            reported = {
                n.removeprefix(_RESULTS): of for n, of in facts.items() if n.startswith(_RESULTS)
            }
            if reported:
                n = len(reported["positions"])
                self.description.check(
                    {name: reported[name] for name in self.description.shapes}, n
                )
                read_quantities(_quantities(reported), (n,))
        self._reported: dict[str, FloatArray] = reported
        self._pending: FloatArray | None = None
        self.run: Run = open_run(path)
        self._go_on()

    @property
    def done(self) -> bool:
        """Whether nothing is left to be evaluated."""
        return self._pending is None

    def ask(self, n: int | None = None) -> FloatArray:
        """Return positions at which the model is to be evaluated, shape (k, dim).

        They are in the parameters' own coordinates: n of those that the run wants by now, or all
        for None. Where results of some were reported, the others are returned again; none where the
        study is done. What the run wants next depends on them.

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
        quantities: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        """Take in what the model returned, and go on with the run if that was all that it wants.

        NaN means that the model has failed at a position.

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
        quantities : dict of str to array_like of shape (k, ...), optional
            What else the model returned, such as ``{"mass": ...}``: always the same names.

        Raises
        ------
        ConfigurationError
            If something else was asked for, or at other positions.
        ShapeError
            If shapes do not fit.
        ResultTypeError
            If quantities are none.
        LedgerError
            If the file cannot be written.
        """
        at = check_positions(numbers("positions", positions), self.description.parameters.dim)
        given = {"log_density": log_density, "gradients": gradients, "outputs": outputs}
        beside = dict(*read_quantities(quantities, (len(at),)))
        fresh = {"positions": at, **self.description.check(given, len(at))}
        fresh |= {NAMED + name: array for name, array in beside.items()}
        self._check_asked(at)
        Layout(_shapes(self._reported) if self._reported else None).fix(_shapes(fresh))
        joined = {
            name: np.concatenate([self._reported[name], array]) if self._reported else array.copy()
            for name, array in fresh.items()
        }
        self._keep({_RESULTS + name: array for name, array in joined.items()})
        self._reported = joined
        if self._pending is not None:
            known = self._results()
            left = self._pending[[key_of(row) not in known for row in self._pending]]
            if len(left):
                self._pending = left
                self._keep({_PENDING: left})
            else:
                self._go_on()

    def _go_on(self) -> None:
        """Do the run again with all that was reported, up to where it wants to know more."""
        reported = Results(self._results(), tuple(_quantities(self._reported)))
        with _quietly():
            target = self.description.target(reported)
            self.run = resume(self.path, target, check=False, progress=False, **self._parts)
        self._pending = reported.pending
        none = np.empty((0, self.description.parameters.dim))
        self._keep({_PENDING: none if reported.pending is None else reported.pending})

    def _keep(self, arrays: Mapping[str, FloatArray]) -> None:
        with _opened(self.path, write=True) as store, store.transaction():
            store.write_facts(dict(arrays))

    def _results(self) -> dict[bytes, tuple[FloatArray, ...]]:
        if not self._reported:
            return {}
        names = [*self.description.shapes, *(NAMED + n for n in _quantities(self._reported))]
        rows = zip(*(self._reported[name] for name in names), strict=True)
        return {key_of(at): row for at, row in zip(self._reported["positions"], rows, strict=True)}

    def _check_asked(self, positions: FloatArray) -> None:
        wanted = {key_of(row) for row in self.ask()} | self._results().keys()
        for i, row in enumerate(positions):
            if key_of(row) not in wanted:
                raise ConfigurationError(
                    f"position {i} was not asked for; evaluate the model at what ask() returns, "
                    "and pass that on with all its digits"
                )


def _quantities(reported: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    return {n.removeprefix(NAMED): of for n, of in reported.items() if n.startswith(NAMED)}


def _shapes(reported: Mapping[str, FloatArray]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape[1:] for name, array in _quantities(reported).items()}


def _given_parts(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts among settings; a file holds what else stands with a schedule."""
    named = {name: settings[name] for name in _PARTS if name in settings}
    schedule = split_safety(named.pop("schedule", None)).get("schedule")
    return named if schedule is None else {**named, "schedule": schedule}


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


def waits_for(ledger: Ledger) -> str | None:
    """Return in words what a study waits for; None for a run that is none, or a study that is done.

    Raises
    ------
    LedgerError
        If the file is damaged.
    """
    with reading(ledger.path):
        arrays = ledger.facts
        fact = arrays.get(_FACT)
        if fact is None or not len(arrays.get(_PENDING, ())):
            return None
        what = "log densities, with their gradients," if fact["gradients"] else "log densities"
    what = "outputs of the model" if _ARRAYS + "data" in arrays else what
    return (
        f"the study waits for {what} at {len(arrays[_PENDING])} positions. Get these by surrokit "
        f"ask {ledger.path.name}, and pass the results by surrokit tell {ledger.path.name} TABLE"
    )
