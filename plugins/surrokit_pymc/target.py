"""Targets of models written down with PyMC."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal

import attrs
import numpy as np

from surrokit.capabilities import ROWS
from surrokit.coordinates.models import ModelMap
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import ConfigurationError, NotASumError, SurrokitError
from surrokit.potentials import Potential
from surrokit.targets.forward import ModelledPotential
from surrokit.targets.functions import FunctionPotential, Functions
from surrokit.targets.summed import SumAndRest, sum_if_safe
from surrokit.types import FloatArray
from surrokit_pymc.compiled import Compiled
from surrokit_pymc.frozen import freeze, read_observed
from surrokit_pymc.jaxified import Jaxified
from surrokit_pymc.library import load_pymc, single_precision
from surrokit_pymc.line import Line, LogDensity, LogDensityAndGradient
from surrokit_pymc.reported import is_random, report, unconstrain
from surrokit_pymc.rows.recognise import recognise

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

    A model with one observed variable that is a regression of a known family, whose predictor is
    linear in the unconstrained parameters, becomes a sum over rows: a few of them then stand for
    all, as for :func:`surrokit.rows_potential`. What it is, is read from PyTensor's graph, and its
    density is compared with PyMC's own. Else ``target.missing`` says why not.

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
        Whether the target offers gradients; False for a likelihood that has none.
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

    Parameters
    ----------
    model, backend, gradient, rows
        As for :func:`from_pymc`.
    names
        All that is reported, free variables among it.
    adjust
        Changes the map to what is reported.
    """
    try:
        frozen = freeze(model)
        line = Line.of(frozen, [variable.name for variable in model.free_RVs])
        _check_log_density(frozen.logp())
        start = line.start(model)
        reported = report(frozen, model, line, names)
        inner = _inner(frozen, line, backend, gradient=gradient)
    except SurrokitError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"PyMC cannot compile the model: {type(error).__name__}: {error}"
        ) from error
    of = ModelMap(
        reported=reported.reported,
        own=line.own,
        constrain=reported,
        unconstrain=unconstrain(frozen, line),
    )
    found, reason = sum_if_safe(rows, lambda: _sum(frozen, line, start, inner, rows, gradient))
    missing = {} if found is not None else {ROWS: reason}
    observed = read_observed(frozen)
    return ModelledPotential(found or inner, adjust(of), Jittered(start), observed, missing)


def _sum(
    model: Any, line: Line, start: FloatArray, whole: Potential, rows: bool | None, gradient: bool
) -> SumAndRest:
    """Return the model as a sum over rows, if it is one."""
    if rows is None and not gradient:
        raise NotASumError("gradient=False was given, and a sum over rows has gradients")
    return recognise(model, line, start, whole, rows)


@attrs.frozen(eq=False)
class Jittered:
    """Starts around a position on the line.

    Parameters
    ----------
    start
        The position, shape (dim,).
    """

    start: FloatArray

    def __call__(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return n of them, shape (n, dim)."""
        return self.start + rng.uniform(-JITTER, JITTER, size=(n, len(self.start)))


def check_model(model: Any) -> list[str]:
    """Return the names of a model's free variables.

    Raises
    ------
    MissingDependencyError
        If PyMC is not installed.
    ConfigurationError
        If it is no model of PyMC, or none that can be differentiated in its free variables.
    """
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
    """Return the names of a model's deterministic quantities to report.

    Parameters
    ----------
    model
        The model.
    var_names
        What to report; None for all that is not hidden. Free variables are no matter here.
    hidden
        Quantities that are reported only by their names.

    Raises
    ------
    ConfigurationError
        If there is none of such a name.
    """
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
        return Jaxified.potential(model, line, gradient=gradient)
    if backend != "pytensor":
        raise ConfigurationError(f"backend must be 'pytensor' or 'jax', got {backend!r}")
    both = Compiled(model, LogDensityAndGradient(line))
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
        Compiled(model, LogDensity(line)),
        gradient=None,
        joint=both if gradient else None,
        sign=-1.0,
        batched=False,
    )
    return FunctionPotential.of(Parameters.unnamed(line.own.dim), functions)
