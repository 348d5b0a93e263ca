"""Targets of models written down with PyMC."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

import surrokit as sk
from surrokit.arguments import load_library
from surrokit.capabilities import ROWS
from surrokit.coordinates.models import ModelMap
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import ConfigurationError, SurrokitError
from surrokit.potentials import Pointwise, Potential
from surrokit.tables.graphs import sum_if_safe
from surrokit.targets.forward import ModelledPotential
from surrokit.targets.functions import FunctionPotential, Functions
from surrokit.types import FloatArray
from surrokit_pymc.compiled import (
    Compiled,
    Function,
    Line,
    freeze,
    is_random,
    load_pymc,
    map_of_model,
    potential_of,
    single_precision,
    travel,
)
from surrokit_pymc.rows import regression_of

Backend = Literal["pytensor", "jax"]

JITTER = 1.0
"""Chains start within this distance of the model's initial point, as PyMC's own do."""


def from_pymc(
    model: Any,
    *,
    var_names: Sequence[str] | None = None,
    backend: Backend = "pytensor",
    gradient: bool = True,
    rows: bool | None = None,
) -> ModelledPotential:
    """Make a target of a model written down with PyMC.

    Chains move in PyMC's unconstrained space. Draws come back by the model's names, with
    constrained values, and with the model's dimensions and coordinates; deterministic quantities
    are among them. The model is taken as it is now: data that are set later change nothing.

    A model with one observed variable that is a regression with normal priors becomes a sum over
    rows: a few of them then stand for all, as for :func:`surrokit.rows_potential`. What it is, is
    read from PyTensor's graph, and its density is compared with PyMC's own. Else ``target.missing``
    says why not.

    Parameters
    ----------
    model
        The model.
    var_names
        Deterministic quantities to report beside the free variables; None for all.
    backend
        What evaluates the log density: PyTensor one position at a time, or ``"jax"`` all positions
        in one call, with second and third derivatives as far as JAX can trace them.
    gradient
        Whether PyTensor gives gradients; False for a likelihood that has none.
    rows
        True demands a sum over rows, False forbids it; None takes it from 1000 observed numbers on,
        where it is one.

    Returns
    -------
    ModelledPotential
        With gradients. Chains start around the model's initial point.

    Raises
    ------
    MissingDependencyError
        If PyMC is not installed, or JAX where it is asked for.
    ConfigurationError
        If it is no model of PyMC, has discrete free variables or none at all, computes in single
        precision, or is no function of its parameters; also if PyMC cannot compile it, or it is no
        sum over rows and that is demanded.
    """
    free = check_model(model)
    names = [*free, *choose(model, var_names)]
    return assemble(model, names, backend, gradient=gradient, rows=rows)


def assemble(
    model: Any,
    names: Sequence[str],
    backend: Backend = "pytensor",
    *,
    gradient: bool = True,
    rows: bool | None = None,
    adjust: Callable[[ModelMap], ModelMap] = lambda of: of,
) -> ModelledPotential:
    """Return the target of a checked model that reports quantities of these names.

    Free variables are among the names, and ``adjust`` changes the map to what is reported.
    """
    try:
        frozen = freeze(model)
        line = Line.of(frozen, [variable.name for variable in model.free_RVs])
        _check_log_density(frozen.logp())
        start = line.start(model)
        of = map_of_model(frozen, model, line, names)
        inner = _inner(frozen, line, backend, gradient=gradient)
    except SurrokitError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"PyMC cannot compile the model: {type(error).__name__}: {error}"
        ) from error

    observed = _observed(frozen)
    n_rows = sum(array.size for array in observed.values())
    wanted = False if rows is None and not gradient else rows
    found, reason = sum_if_safe(wanted, n_rows, inner, start, lambda: regression_of(frozen, line))
    return ModelledPotential(
        found or inner,
        adjust(of),
        partial(_jittered, start),
        observed,
        {} if found else {ROWS: reason},
        terms=partial(_terms, frozen, line, tuple(observed)),
    )


def _terms(model: Any, line: Line, observed: tuple[str, ...], positions: FloatArray) -> Pointwise:
    """Return log likelihoods by observed variable, and log priors by free one, at (n, dim)."""
    names = [*observed, *line.own.specs]
    logs = model.logp(vars=[model[name] for name in names], jacobian=False, sum=False)
    compiled = line.compile(model, logs)
    arrays = map(np.array, zip(*map(compiled, positions), strict=True))
    found = dict(zip(names, arrays, strict=True))
    priors = {name: found[name].reshape(len(positions), -1).sum(axis=1) for name in line.own.specs}
    return {name: found[name] for name in observed}, priors


def _jittered(start: FloatArray, rng: np.random.Generator, n: int) -> FloatArray:
    return start + rng.uniform(-JITTER, JITTER, size=(n, len(start)))


def _observed(frozen: Any) -> dict[str, Any]:
    """Return what was observed, by name, without what is computed."""
    values = {variable.name: frozen.rvs_to_values[variable] for variable in frozen.observed_RVs}
    found = {name: getattr(value, "data", None) for name, value in values.items()}
    return {name: np.asarray(array) for name, array in found.items() if array is not None}


def check_model(model: Any) -> list[str]:
    """Return the names of a model's free variables, which are all real."""
    pymc = load_pymc()
    if not isinstance(model, pymc.Model):
        raise ConfigurationError(
            f"model must be a pymc.Model, got {type(model).__name__}"
            + ("; pass it to from_bambi" if type(model).__module__.startswith("bambi") else "")
        )
    free = {model.values_to_rvs[value].name: value for value in model.value_vars}
    if not free:
        raise ConfigurationError("the model has no free variable, so there is nothing to draw")
    discrete = [name for name, value in free.items() if value.dtype[0] in "iub"]
    if discrete:
        raise ConfigurationError(
            f"{_listed(discrete)} discrete, and chains move through real numbers alone; "
            "marginalise: sum the density over the values, by pymc.Mixture, say, or by "
            "pymc_extras.marginalize"
        )
    single = [name for name, value in free.items() if value.dtype != "float64"]
    if single:
        raise single_precision(f"{_listed(single)} in single precision (float32)")
    return list(free)


def choose(model: Any, var_names: Sequence[str] | None, hidden: Collection[str] = ()) -> list[str]:
    """Return the names of a model's deterministic quantities to report: all that is not hidden."""
    known = [variable.name for variable in model.deterministics]
    if var_names is None:
        return [name for name in known if name not in hidden]
    given = [var_names] if isinstance(var_names, str) else list(var_names)
    free = {variable.name for variable in model.free_RVs}
    unknown = [name for name in given if name not in known and name not in free]
    if unknown:
        raise ConfigurationError(
            f"var_names has {', '.join(map(repr, unknown))}, but the model's deterministic "
            f"quantities are {', '.join(known) or 'none'}"
        )
    return [name for name in known if name in given]


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(map(repr, names))} {'is' if len(names) == 1 else 'are'}"


def _check_log_density(log_density: Any) -> None:
    if is_random(log_density):
        raise ConfigurationError(
            "the model's log density is drawn at random whenever it is computed, as by "
            "pymc.Minibatch or pymc.Simulator, so it is no function of the parameters; give the "
            "model all of its data, and a likelihood"
        )
    if log_density.dtype != "float64":
        raise single_precision(f"the model's log density is of type {log_density.dtype}")


def _inner(model: Any, line: Line, backend: Backend, *, gradient: bool) -> Potential:
    """Return U on the line."""
    if backend == "jax":
        load_library("jax", "jax")
        if not gradient:
            raise ConfigurationError("gradient=False goes with backend='pytensor' alone")
        return sk.make(  # type: ignore[no-any-return]
            "potential", "jax", log_density=_InJax(model, line), dim=line.own.dim
        )
    if backend != "pytensor":
        raise ConfigurationError(f"backend must be 'pytensor' or 'jax', got {backend!r}")
    value, both = (
        Compiled(model, partial(potential_of, line=line, gradient=each)) for each in (False, True)
    )
    if gradient:
        try:
            both.compile()
        except Exception as error:
            raise ConfigurationError(
                f"PyMC cannot differentiate the model's log density: {type(error).__name__}: "
                f"{error}; pass gradient=False, and surrokit does with values"
            ) from error
    functions = Functions(
        line.own.dim,
        value,
        gradient=None,
        joint=both if gradient else None,
        sign=1.0,
        batched=False,
    )
    return FunctionPotential.of(Parameters.unnamed(line.own.dim), functions)


class _InJax:
    """The log density of a model at a position (dim,) on the line, in JAX."""

    def __init__(self, model: Any, line: Line) -> None:
        from pymc.sampling.jax import get_jaxified_graph

        self.model = model
        self.line = line
        # here and not at a call: while JAX traces, the model's constants would be traced too
        self._function: Function = get_jaxified_graph(
            inputs=line.variables(model), outputs=[model.logp()]
        )

    def __call__(self, position: Any) -> Any:
        return self._function(*self.line.own.split(position).values())[0]

    def __reduce__(self) -> tuple[Any, tuple[Any, bytes]]:
        return travel(_InJax, self.model, self.line)
