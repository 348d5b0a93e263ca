"""PyMC in double precision: its unconstrained space as a vector, and what it reports there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import load_library
from surrokit.coordinates.models import Axis, ModelMap, Reported, reported_as
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray

Function = Callable[..., Any]

_TRIED = 16  # positions at which a number is the same if it is constant


def load_pymc() -> Any:
    """Return PyMC; ConfigurationError is raised if it computes in single precision."""
    pymc = load_library("pymc", "pymc")
    floats = load_library("pytensor", "pymc").config.floatX
    if floats != "float64":
        raise single_precision(f"PyTensor's floatX is {floats}")
    return pymc


def single_precision(what: str) -> ConfigurationError:
    """Return the error for a model that computes in single precision."""
    return ConfigurationError(
        f"{what}, which is too coarse for acceptance probabilities; set pytensor.config.floatX = "
        '"float64", or leave floatX out of PYTENSOR_FLAGS, before the model is written down'
    )


class Compiled:
    """A function that PyMC compiles of a model, at its first call, also that of a copy.

    Calls from several threads take turns, since PyTensor's functions keep their storage between
    calls. ``build`` makes a function of arrays of the model.
    """

    def __init__(self, model: Any, build: Callable[[Any], Function]) -> None:
        self.model = model
        self.build = build
        self._lock = threading.Lock()
        self._function: Function | None = None

    def compile(self) -> Function:
        """Return the compiled function; it is not safe in threads."""
        if self._function is None:
            self._function = self.build(self.model)
        return self._function

    def __call__(self, *arrays: FloatArray) -> Any:
        """Return what the function returns at arrays."""
        with self._lock:
            return (self._function or self.compile())(*arrays)

    def __reduce__(self) -> tuple[Any, tuple[Any, bytes]]:
        return travel(Compiled, self.model, self.build)


def travel(kind: Callable[..., Any], *given: Any) -> tuple[Any, tuple[Any, bytes]]:
    """Return what pickles something that is made anew, of what cloudpickle can send."""
    import cloudpickle  # late: importing stays fast

    return _arrive, (kind, cloudpickle.dumps(given))


def _arrive(kind: Callable[..., Any], packed: bytes) -> Any:
    import cloudpickle  # late: importing stays fast

    load_pymc()  # first: a worker whose floatX is float32 would compute in single precision
    return kind(*cloudpickle.loads(packed))


@attrs.frozen
class Line:
    """The free variables of a model, one after another, each in PyMC's unconstrained space.

    ``own`` are their names, and their shapes there.
    """

    own: Parameters

    @classmethod
    def of(cls, model: Any, names: Sequence[str]) -> Line:
        """Return the line of a model's free variables, in the order of their names."""
        start = model.initial_point(0)
        values = {name: model.rvs_to_values[model[name]].name for name in names}
        return cls(Parameters({name: Parameter(np.shape(start[v])) for name, v in values.items()}))

    def variables(self, model: Any) -> list[Any]:
        """Return PyTensor's variables of the parts of a position, in their order."""
        return [model.rvs_to_values[model[name]] for name in self.own.specs]

    def start(self, model: Any) -> FloatArray:
        """Return where PyMC starts a model, shape (dim,)."""
        start = model.initial_point(0)
        return np.concatenate([np.ravel(start[each.name]) for each in self.variables(model)])

    def ravel(self, model: Any, outputs: Sequence[Any]) -> tuple[list[Any], Any]:
        """Return outputs of a model as ones of a position vector, and that vector."""
        from pymc.pytensorf import join_nonshared_inputs

        return join_nonshared_inputs(  # type: ignore[no-any-return]
            point=model.initial_point(0), outputs=list(outputs), inputs=self.variables(model)
        )

    def compile(self, model: Any, outputs: Sequence[Any]) -> Function:
        """Return the compiled function from a position (dim,) to a list of arrays."""
        ravelled, position = self.ravel(model, outputs)
        function: Function = model.compile_fn(
            ravelled, inputs=[position], point_fn=False, on_unused_input="ignore"
        )
        return function


def potential_of(model: Any, line: Line, *, gradient: bool) -> Function:
    """Return the compiled function from a position to U, or to U and its gradient."""
    from pytensor.gradient import grad

    (value,), position = line.ravel(model, [-model.logp()])
    outputs = (value, grad(value, position, disconnected_inputs="ignore")) if gradient else value
    function: Function = model.compile_fn(outputs, inputs=[position], point_fn=False)
    return function


def freeze(model: Any) -> Any:
    """Return a copy of a model of PyMC, with constants for its data and lengths of dimensions.

    The copy may lack the initial values of the model.
    """
    from pymc.model.transform.optimization import freeze_dims_and_data

    try:
        return freeze_dims_and_data(model)
    except NotImplementedError:
        with _without_initial_values(model):  # PyMC before 6 cannot copy them
            return freeze_dims_and_data(model)


@contextmanager
def _without_initial_values(model: Any) -> Iterator[None]:
    values = dict(model.rvs_to_initial_values)
    try:
        model.rvs_to_initial_values.update(dict.fromkeys(values))
        yield
    finally:
        model.rvs_to_initial_values.update(values)


def is_random(expression: Any) -> bool:
    """Return whether a number of PyTensor is drawn at random whenever it is computed."""
    from pytensor.graph.traversal import ancestors
    from pytensor.tensor.random.type import RandomType

    return any(isinstance(each.type, RandomType) for each in ancestors([expression]))


# --- what is reported ---


def map_of_model(model: Any, given: Any, line: Line, names: Sequence[str]) -> ModelMap:
    """Return the map from the line to quantities of a frozen model, with names, shapes and axes.

    The model as it was ``given`` knows its dimensions and where it starts. ConfigurationError is
    raised if a quantity is drawn at random.
    """
    for name, expression in zip(names, _expressions(model, names), strict=True):
        if is_random(expression):
            raise ConfigurationError(
                f"{name!r} is drawn at random whenever it is computed, so it is no function of a "
                "draw; leave it out by var_names, and draw it by pymc.sample_posterior_predictive"
            )
    start = line.start(given)
    compiled = _quantities(model, line, names)
    shapes = {name: np.shape(array) for name, array in zip(names, compiled(start), strict=True)}
    if empty := [name for name in names if 0 in shapes[name]]:
        shapes = {name: shape for name, shape in shapes.items() if name not in empty}
        compiled = _quantities(model, line, list(shapes))
    plain = Parameters({name: Reported(shape) for name, shape in shapes.items()})
    reported = reported_as(
        shapes,
        _Constrained(compiled, plain),
        start + np.random.default_rng(0).uniform(-1.0, 1.0, size=(_TRIED, len(start))),
        lambda name: _axes(given, name, len(shapes[name])),
    )
    return ModelMap(
        reported=reported,
        own=line.own,
        constrain=_Constrained(compiled, reported),
        unconstrain=_Unconstrained(Compiled(model, lambda of: _inverse(of, line)), line.own),
    )


@attrs.frozen(eq=False)
class _Constrained:
    """From positions (n, dim) to reported quantities (n, n_user)."""

    quantities: Compiled
    reported: Parameters

    def __call__(self, positions: FloatArray) -> FloatArray:
        found = np.empty((len(positions), self.reported.dim))
        places = self.reported.slices().items()
        for row, position in zip(found, positions, strict=True):
            for (name, where), array in zip(places, self.quantities(position), strict=True):
                if np.shape(array) != self.reported.specs[name].shape:
                    raise ShapeError(
                        f"{name!r} has shape {self.reported.specs[name].shape} at the start and "
                        f"{np.shape(array)} elsewhere; leave it out by var_names"
                    )
                row[where] = np.ravel(array)
        return found


@attrs.frozen(eq=False)
class _Unconstrained:
    """From values of the free variables, (n, *shape) each, to positions (n, dim)."""

    compiled: Compiled
    own: Parameters

    def __call__(self, arrays: Mapping[str, FloatArray]) -> FloatArray:
        rows = zip(*(arrays[name] for name in self.own.specs), strict=True)
        return np.array([self.compiled(*row) for row in rows])


def _expressions(model: Any, names: Sequence[str]) -> list[Any]:
    """Return PyTensor's expressions of quantities, by parts of a position."""
    found: list[Any] = model.replace_rvs_by_values([model[name] for name in names])
    return found


def _quantities(model: Any, line: Line, names: Sequence[str]) -> Compiled:
    return Compiled(model, lambda of: line.compile(of, _expressions(of, names)))


def _inverse(model: Any, line: Line) -> Function:
    """Return the compiled function from values of the free variables to a position."""
    import pytensor.tensor as pt
    from pytensor.graph.replace import graph_replace

    free = [model[name] for name in line.own.specs]
    given = [variable.type(name=variable.name) for variable in free]
    parts = []
    for variable, value in zip(free, given, strict=True):
        transform = model.rvs_to_transforms[variable]
        is_plain = transform is None
        parts.append(value if is_plain else transform.forward(value, *variable.owner.inputs))
    # bounds of one variable may be another
    parts = graph_replace(parts, dict(zip(free, given, strict=True)), strict=False)
    joined = pt.join(0, *[pt.as_tensor_variable(part).ravel() for part in parts])
    function: Function = model.compile_fn(joined, inputs=given, point_fn=False)
    return function


def _axes(model: Any, name: str, n: int) -> tuple[Axis, ...]:
    dims = model.named_vars_to_dims.get(name) or ()
    if len(dims) != n:
        return ()
    return tuple(Axis() if dim is None else Axis(dim, model.coords.get(dim)) for dim in dims)
