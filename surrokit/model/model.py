"""The user's model: the innermost object of a target, and the only one that is called and counted.

Whatever stands around it (bounds, priors, data and their noise, differences, scales) is a function
of arrays. It has an ``inner`` potential, and :func:`change_model` reaches the model through that.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions
from surrokit.capabilities import ALL_BY_NAME, BY_NAME, CallKind, Method
from surrokit.errors import EvaluationError, ShapeError
from surrokit.model.calls import Calls, Memo
from surrokit.model.outcome import Outcome, Results, split_rows
from surrokit.model.quantities import Layout
from surrokit.model.source import (
    EachRow,
    Source,
    in_a_batch_of_one,
    isolate,
    one_after_another,
)
from surrokit.potentials import Potential
from surrokit.types import Capabilities, FloatArray, IntArray


@attrs.frozen(eq=False)
class Model:
    """A user's functions, and what surrounds a call of them.

    Parameters
    ----------
    calls
        Those of a run; None outside of runs.
    each_row
        Evaluates rows one by one; None where the functions take them together.
    kinds
        What a position counts as, where that differs from :mod:`surrokit.capabilities`.
    memo
        What was evaluated before, and is not evaluated again; None where nothing is kept.
    columns : ndarray of shape (k,), optional
        Numbers of a position that the functions take; None for all.
    shared
        Whether the memo is that of several posteriors, of whose data gradients by the adjoint are a
        part, so that these are not kept.
    layout
        Of quantities that the functions return beside their results.
    """

    source: Source
    dim: int
    calls: Calls | None = None
    each_row: EachRow | None = one_after_another
    kinds: Mapping[str, CallKind] = attrs.field(factory=dict)
    memo: Memo | None = None
    columns: IntArray | None = None
    shared: bool = False
    layout: Layout = attrs.field(factory=Layout, repr=False)
    _outputs: list[int] = attrs.field(factory=list, repr=False)

    def evaluate(self, what: str, rows: FloatArray, *, each: int = 1) -> Results:
        """Return results at rows (n, width), NaN where the model failed.

        Outputs have no columns as long as the model has failed everywhere, so that their number is
        not known.

        Parameters
        ----------
        what
            A name of :mod:`surrokit.capabilities`.
        rows : ndarray of shape (n, width)
            Positions, in the user's coordinates, and whatever else goes with them.
        each
            How many calls each row counts as.

        Raises
        ------
        EvaluationError
            Outside of runs, if the model raised at some rows.
        ShapeError, ResultTypeError
            If the model has never returned what it should.
        """
        method = ALL_BY_NAME[what]
        if not len(rows):
            return self._full(method, 0)
        attempt, width = partial(self._attempt, method), len(method.gives)
        if self.calls is None:
            outcome = attempt(rows)
            return attrs.evolve(
                outcome, results=outcome.results and outcome.results[:width]
            ).unwrap()
        kind = self.kinds.get(what, method.kind)
        assert kind is not None
        keeps = not (self.shared and what == "forward_and_gradient")
        results = self.calls.evaluate(
            what,
            kind,
            attempt,
            rows,
            each=each,
            memo=self.memo if keeps else None,
            keys=None if self.columns is None else np.ascontiguousarray(rows[:, self.columns]),
            layout=self.layout,
        )
        if results is None:
            return self._full(method, len(rows))
        if len(results) > width:
            found = zip(self.layout.shapes or (), results[width:], strict=True)
            self.calls.beside, results = self.calls.beside or dict(found), results[:width]
        if method.gives[0] == "m":
            self._check_outputs(method, results)  # those of a journal come from elsewhere
        return results

    def remembering(self, memo: Memo, *, shared: bool = False) -> Model:
        """Return a copy with a memo, by whose quantities it goes."""
        memo.layout.taken = self.layout.taken
        if self.layout.shapes:  # of the position that was compared
            memo.layout.fix(self.layout.shapes)
        return attrs.evolve(self, memo=memo, layout=memo.layout, shared=shared)

    def one_by_one(self) -> Model:
        """Return a copy whose rows are evaluated one by one."""
        return self if self.each_row else attrs.evolve(self, each_row=one_after_another)

    def _attempt(self, method: Method, rows: FloatArray) -> Outcome:
        n = len(rows)
        if self.each_row is not None:
            outcome = self.each_row(self.source, method.name, rows)
        else:
            try:
                results, beside = split_rows(self.source.at(method.name, rows.copy()), n)
                outcome = Outcome(n=n, results=results, beside=beside)
            except EvaluationError as error:  # of a potential that knows which rows failed
                outcome = Outcome(n=n, results=error.results or None, causes=error.causes)
        of_what = method.gives[0]
        if of_what == "m" and outcome.results is not None:
            try:
                self._check_outputs(method, outcome.results)
            except ShapeError as error:
                return Outcome(n=n, results=None, causes=dict.fromkeys(range(n), error))
        return self.layout.join(outcome) if of_what in ("", "m") else outcome

    def _check_outputs(self, method: Method, results: Results) -> None:
        """Raise unless a forward map returns as many outputs as before."""
        if method.gives[0] != "m":
            return
        n_outputs = results[0].shape[1]
        if self._outputs and self._outputs[0] != n_outputs:
            raise ShapeError(
                f"a forward map returned {n_outputs} outputs, and {self._outputs[0]} before that; "
                "it must always return the same"
            )
        self._outputs[:] = [n_outputs]

    def _full(self, method: Method, n: int) -> Results:
        of_map = method.gives[0].startswith("m") and method.name != "forward_and_gradient"
        width = self.dim if self.columns is None or not of_map else len(self.columns)
        axes = {"q": width, "m": self._outputs[0] if self._outputs else 0}
        return tuple(np.full((n, *(axes[a] for a in each)), np.nan) for each in method.gives)


class Wrapper:
    """A potential around another one, to which it adds no call of its own.

    Subclasses have a field ``inner``, whose size and price are theirs.
    """

    __slots__ = ()

    inner: Potential

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.inner.dim

    @property
    def calls_per_gradient(self) -> int:
        """Calls that a gradient takes."""
        return calls_per_gradient(self.inner)

    @property
    def missing(self) -> Mapping[str, str]:
        """Why the inner potential lacks capabilities, by name, as far as is known."""
        reported: Mapping[str, str] = getattr(self.inner, "missing", {})
        return reported

    def outside(self, positions: FloatArray) -> FloatArray:
        """Return this potential's positions (n, dim) for those of the inner one; the same here."""
        return positions


class Passing:
    """Does what a potential ``inner`` does, in its coordinates."""

    __slots__ = ()

    inner: Potential

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.inner.dim

    @property
    def capabilities(self) -> Capabilities:
        """What the inner potential offers."""
        return self.inner.capabilities

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        return self.inner.value(positions)

    def __getattr__(self, name: str) -> Any:
        """Return what else the inner potential has."""
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)


class PassingWrapper(Passing, Wrapper):
    """A wrapper in the coordinates of the inner potential, which does what the wrapper does not."""

    __slots__ = ()


class ModelPotential:
    """A potential whose model is called directly.

    Subclasses have a field ``model``.
    """

    __slots__ = ()

    model: Model


def change_model(target: Potential, change: Callable[[Model], Model]) -> Potential:
    """Return a target with another model inside.

    A potential of a stranger's is its own model.

    Parameters
    ----------
    change
        Returns the model that takes the place of one.
    """
    if isinstance(target, Wrapper):
        return _with(target, "inner", change_model(target.inner, change))
    found = target if isinstance(target, ModelPotential) else OwnPotential.of(target)
    return _with(found, "model", change(found.model))


def model_of(target: Potential) -> Model:
    """Return the model inside a target."""
    while isinstance(target, Wrapper):
        target = target.inner
    return (target if isinstance(target, ModelPotential) else OwnPotential.of(target)).model


def from_model(target: Potential, positions: FloatArray) -> FloatArray:
    """Return a target's positions (n, dim) for those of the model inside it."""
    if not isinstance(target, Wrapper):
        return positions
    return target.outside(from_model(target.inner, positions))


def one_by_one(target: Potential) -> Potential:
    """Return a target that is evaluated one position at a time.

    Batches of such a target can be spread over workers (``executor`` of :func:`surrokit.sample`)
    with the same results to the bit. A target that takes rows of positions together, which is often
    faster in one process, may give other last digits when its rows are parted; so it is spread only
    if this says that single positions are what it is to be given, with workers and without.

    Parameters
    ----------
    target
        A target of ``batched=True`` functions, or any other potential. One whose positions are
        evaluated one by one already is returned as it is.

    Returns
    -------
    Potential
        With the capabilities of the target. What sums over rows of data offer is left to the
        target, in this process.
    """
    return target if model_of(target).each_row else change_model(target, Model.one_by_one)


def calls_per_gradient(potential: Potential) -> int:
    """Return how many calls a gradient of a potential takes: more than one by differences."""
    return int(getattr(potential, "calls_per_gradient", 1))


def _with(target: Potential, name: str, value: object) -> Potential:
    """Return a copy of a potential with another value of one field."""
    other = copy.copy(target)
    object.__setattr__(other, name, value)  # also where the class is frozen
    return other


_OF_FORWARD: Mapping[str, CallKind] = {"value": "forward"}
_OF_JACOBIAN: Mapping[str, CallKind] = {"value_and_gradient": "jacobian", "gradient": "jacobian"}
_OF_VJP: Mapping[str, CallKind] = {"value_and_gradient": "vjp", "gradient": "vjp"}


@attrs.frozen(eq=False)
class OwnPotential(ModelPotential):
    """A potential of a user's own class as the innermost one, which is called by its methods."""

    inner: Potential
    model: Model

    @classmethod
    def of(cls, potential: Potential) -> OwnPotential:
        """Return a potential whose methods take rows together."""
        offered = potential.capabilities
        kinds = {
            **(_OF_FORWARD if can.FORWARD in offered else {}),
            **(_OF_JACOBIAN if can.JACOBIAN in offered else {}),
            **(_OF_VJP if can.VJP in offered else {}),
        }
        source = Methods(potential, potential.dim)
        return cls(potential, Model(source, potential.dim, each_row=None, kinds=kinds))

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.inner.dim

    @property
    def capabilities(self) -> Capabilities:
        """What the user's object offers."""
        return self.inner.capabilities

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        values: FloatArray = self._evaluate(BY_NAME["value"], positions)
        return values

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the user's object, by way of the model if it evaluates."""
        if name.startswith("_") or name in ("inner", "model"):
            raise AttributeError(name)
        attribute, method = getattr(self.inner, name), BY_NAME.get(name)
        if method is None or method.kind is None:
            return attribute
        return partial(self._evaluate, method)

    def _evaluate(self, method: Method, positions: FloatArray, *factors: FloatArray) -> Any:
        rows = check_positions(positions, self.dim)
        if method.factor is not None:
            given = method.check_factors(factors[0], rows)
            # side by side, so that each row comes with its own factor
            rows = np.hstack([rows, given.reshape(len(given), -1)])
        results = self.model.evaluate(method.name, rows)
        return results if len(results) > 1 else results[0]


@attrs.frozen(eq=False)
class Methods:
    """The methods of a potential, by their names."""

    potential: Potential
    dim: int

    def at(self, what: str, rows: FloatArray) -> Results:
        """Return what a method gives at one row (width,), or at rows (n, width).

        A row is a position, with its factor beside it, if any.
        """
        if rows.ndim == 1:
            return in_a_batch_of_one(self, what, rows)
        method, q = BY_NAME[what], rows[:, : self.dim].copy()
        factors: tuple[FloatArray, ...] = ()
        if method.factor == "vectors":
            factors = (rows[:, self.dim :].copy(),)
        elif method.factor is not None:
            factors = (rows[:, self.dim :].reshape(len(rows), -1, self.dim).copy(),)
        results = getattr(self.potential, what)(q, *factors)
        both = results if isinstance(results, tuple) else (results,)
        return tuple(isolate(array) for array in both)
