"""Targets from functions of one position."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, cast

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_flag, check_functions, check_positions, is_whole, unmasked
from surrokit.coordinates.models import called
from surrokit.coordinates.parameters import Declared, Parameter, Parameters, Plausible
from surrokit.errors import ConfigurationError, ResultTypeError, ShapeError
from surrokit.model.model import Model, ModelPotential, PassingWrapper
from surrokit.model.outcome import Given, Results
from surrokit.model.quantities import Layout, part, read_quantities
from surrokit.model.source import in_a_batch_of_one, one_after_another
from surrokit.potentials import Energy, Pointwise, Potential
from surrokit.targets.bounds import with_bounds
from surrokit.targets.differences import Differences, gauss_newton
from surrokit.targets.estimates import NoiseSd, declare_noise
from surrokit.targets.gaussian import Priors
from surrokit.types import Capabilities, FloatArray, Pair


class PotentialOfOutputs(ModelPotential, ABC):
    """U(q) = energy(forward(q), q), computed from the model's outputs and their derivatives.

    Where the map has failed at all positions, the number of its outputs is not known, and
    everything is NaN.
    """

    energy: Energy

    @property
    @abstractmethod
    def dim(self) -> int:
        """Numbers in a position."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What it offers besides the value."""

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What of the energy may lack its normalising constant."""
        found: tuple[str, ...] = getattr(self.energy, "unnormalized", ("the energy",))
        return found

    @property
    def observed_data(self) -> Mapping[str, FloatArray]:
        """What the outputs are compared with, where the energy has it."""
        found: Mapping[str, FloatArray] = getattr(self.energy, "observed_data", {})
        return found

    @property
    def predictor(self) -> Energy | None:
        """The energy, if it can draw data: it then has ``draw_data``."""
        return self.energy if hasattr(self.energy, "draw_data") else None

    @property
    def pointwise(self) -> Callable[[FloatArray, FloatArray], Pointwise] | None:
        """Of outputs and positions: log likelihoods and priors, where the energy has its parts."""
        return getattr(self.energy, "pointwise", None)

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m)."""
        return self.model.evaluate("forward", check_positions(positions, self.dim))[0]

    def forward_and_jacobian(self, positions: FloatArray) -> Pair:
        """Return the outputs, shape (n, m), and their derivatives, shape (n, m, dim)."""
        q = check_positions(positions, self.dim)
        outputs, jacobian = self.model.evaluate("forward_and_jacobian", q)
        return outputs, jacobian

    def forward_and_gradient(self, positions: FloatArray) -> Pair:
        """Return the outputs, shape (n, m), and the gradient of U, shape (n, dim).

        By the Jacobian, unless a subclass has an adjoint.
        """
        q = check_positions(positions, self.dim)
        outputs, jacobian = self.forward_and_jacobian(q)
        if not outputs.shape[1]:
            return outputs, np.full(q.shape, np.nan)
        return outputs, gradient_of_energy(self.energy, outputs, jacobian, q)[1]

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        q = check_positions(positions, self.dim)
        return self._energy_of(self.forward(q), q)

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return U, shape (n,), and its gradient, shape (n, dim), by the adjoint if any."""
        q = check_positions(positions, self.dim)
        outputs, gradient = self.forward_and_gradient(q)
        return self._energy_of(outputs, q), gradient

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the Gauss-Newton matrix J^T C J + R, shape (n, dim, dim).

        C and R are the energy's curvatures (:class:`surrokit.potentials.CurvedEnergy`).
        """
        q = check_positions(positions, self.dim)
        outputs, jacobian = self.forward_and_jacobian(q)
        if not outputs.shape[1]:
            return np.full((*q.shape, self.dim), np.nan)
        return gauss_newton(self.energy, outputs, jacobian, q)

    def _energy_of(self, outputs: FloatArray, q: FloatArray) -> FloatArray:
        return self.energy.value(outputs, q) if outputs.shape[1] else np.full(len(q), np.nan)


def gradient_of_energy(
    energy: Energy, outputs: FloatArray, jacobian: FloatArray, positions: FloatArray
) -> Pair:
    """Return U, shape (n,), and J^T dU/doutputs + dU/dq, shape (n, dim)."""
    value, by_outputs, by_positions = energy.value_and_gradients(outputs, positions)
    gradient = np.einsum("nm,nmd->nd", by_outputs, jacobian) + by_positions
    return value, gradient


@attrs.frozen(eq=False)
class NamedPotential(PassingWrapper):
    """A potential of unbounded numbers, each of which is a parameter with a name.

    It does all that the inner potential does, by the same methods. ``predictor`` makes predictions
    of draws, by these names' data; None for nothing. ShapeError is raised if there are not as many
    names as numbers.
    """

    inner: Potential
    parameters: Parameters
    predictor: Any = attrs.field(default=None, repr=False)

    def __attrs_post_init__(self) -> None:
        if self.parameters.dim != self.inner.dim:
            raise ShapeError(
                f"there are {self.parameters.dim} names, but the potential takes {self.inner.dim} "
                "numbers; give one name for each"
            )

    @classmethod
    def of(cls, inner: Potential, names: Sequence[str], predictor: Any = None) -> NamedPotential:
        """Return the potential with these names."""
        return cls(inner, Parameters.declare({name: Parameter() for name in names}), predictor)


Function = Callable[[FloatArray], Any]
"""A user's function of one position (dim,), or of rows of them."""


def potential(
    value: Function | None = None,
    gradient: Function | Literal["differences"] | None = None,
    *,
    log_density: Function | None = None,
    value_and_gradient: Function | None = None,
    dim: int | None = None,
    parameters: Declared | None = None,
    plausible: Mapping[str, Any] | None = None,
    batched: bool = False,
    noise_sd: NoiseSd | None = None,
    estimate: Literal["unbiased"] | None = None,
) -> Potential:
    """Make a target from functions.

    Parameters
    ----------
    value
        U(q) = -log density + constant, in nats.
    gradient
        Gradient of whichever of ``value`` and ``log_density`` is given, shape (dim,).
        ``"differences"`` makes one of central differences, for 2 dim + 1 values each.
    log_density
        Log density, up to a constant, instead of ``value``.
    value_and_gradient
        One function that returns U and its gradient, instead of ``value`` and ``gradient``.
    dim
        Numbers in a position; not needed with ``parameters``.
    parameters
        Name to what it is: None for a number, a pair of bounds, a prior such as
        ``scipy.stats.norm(0, 5)``, or a declaration: ``surrokit.positive()``,
        ``surrokit.real(8)`` or ``surrokit.simplex(4)``. A function whose
        arguments have these names is called with an array for each, in its shape; one with a single
        argument is called with the vector of all numbers, arrays in C order. Gradients are those in
        these numbers, as a vector or a dictionary by name. Sampling happens on the whole line.
        Priors that stand beside the parameters are added to the density.
    plausible
        Name to a range (low, high), for every parameter: where it is likely to be found. Chains,
        searches for modes and a surrogate's first points start in there; the density does not
        change. A parameter with a shape takes one range for all its numbers, or a pair of arrays.
    batched
        Whether the functions take rows, shape (n, dim), and return (n,) and (n, dim).
    noise_sd
        Standard deviation of the noise of values, in nats, where these are estimates of the log
        density: a number, ``"returned"`` where functions return a quantity ``noise_sd`` beside the
        value, or ``"estimate"`` where it is not known.
    estimate
        ``"unbiased"`` where estimates of the density itself have the right mean, as those of
        particle filters do; unless given, estimates of the log density have.

    Returns
    -------
    Potential
        In unbounded coordinates; it carries the parameters.

    Raises
    ------
    ConfigurationError
        If the value is not given by exactly one function, or the number of parameters is unknown,
        or something that should be a function is none, or a plausible range or the noise cannot be
        one.
    """
    by_differences = isinstance(gradient, str) and gradient == "differences"
    slope: Any = None if by_differences else gradient
    named = {"value": value, "log_density": log_density, "value_and_gradient": value_and_gradient}
    check_functions(**named, gradient=slope)
    check_flag("batched", batched)
    declared = declare_parameters(dim, parameters)
    given = [name for name, function in named.items() if function is not None]
    if len(given) != 1:
        raise ConfigurationError(
            "a target needs exactly one of value, log_density and value_and_gradient, got "
            f"{' and '.join(given) or 'none'}"
        )
    if value_and_gradient is not None and slope is not None:
        raise ConfigurationError(
            "gradient is given twice, by itself and in value_and_gradient; leave one out"
        )
    read = {
        name: called(name, function, declared, by_name=parameters is not None)
        for name, function in {**named, "gradient": slope}.items()
    }
    inner = FunctionPotential.of(
        declared,
        Functions(
            declared.dim,
            read["value"] or read["log_density"],
            gradient=read["gradient"],
            joint=read["value_and_gradient"],
            sign=1.0 if log_density is None else -1.0,
            batched=batched,
        ),
        Plausible.declare(plausible, declared),
    )
    bounded = declare_noise(with_bounds(inner, declared), noise_sd, estimate)
    return Differences(bounded) if by_differences else bounded


def declare_parameters(dim: int | None, parameters: Declared | None) -> Parameters:
    """Return the parameters that a user declared, unnamed ones if only ``dim`` is given."""
    if dim is not None and not is_whole(dim, 1):
        raise ConfigurationError(f"dim must be a whole number of at least 1, got {dim!r}")
    if parameters is not None:
        declared = Parameters.declare(parameters)
        if dim is not None and dim != declared.dim:
            raise ConfigurationError(
                f"dim is {dim}, but the parameters hold {declared.dim} numbers; leave dim out"
            )
        return declared
    if dim is None:
        raise ConfigurationError(
            "the number of parameters is not known; pass dim=..., or parameters={name: bounds}"
        )
    return Parameters.unnamed(int(dim))


def real_numbers(what: str, result: Any) -> FloatArray:
    """Return a copy of a function's result in double precision, without imaginary parts of 0.

    Numbers that a mask hides become NaN. ResultTypeError is raised if it is no array of real
    numbers.
    """
    if type(result) is float or (type(result) is np.ndarray and result.dtype == np.float64):
        return np.array(result)  # what most functions return, as this is often called
    try:
        given = np.asarray(unmasked(result))
    except ValueError as error:
        raise ResultTypeError(
            f"the {what} function must return real numbers in one array: {error}"
        ) from error
    if given.dtype.kind == "c" and not given.imag.any():
        given = given.real
    nothing = given.dtype.kind == "O" and any(item is None for item in given.flat)
    if given.dtype.kind in "fiubO" and not nothing:
        with suppress(TypeError):
            return np.array(given, dtype=np.float64)
    came = "None" if nothing else f"an array of type {given.dtype}"
    raise ResultTypeError(
        f"the {what} function must return real numbers, got {came}"
        + ("; does it lack a return?" if nothing else "; take the real part, or mend what made it")
    )


def wrong_shape(
    what: str, expected: object, got: FloatArray, batched: bool, hint: str
) -> ShapeError:
    """Return the error of a function whose result has another shape than it must."""
    called_with = "rows of positions" if batched else "one position"
    return ShapeError(
        f"the {what} function, called with {called_with}, must return shape {expected}, got "
        f"{got.shape}{hint}"
    )


@attrs.frozen(eq=False)
class Functions:
    """A user's functions of a density: U, its gradient, or both at once.

    ``function`` is None if ``joint`` gives the value. ``sign`` is -1 for log densities.
    ``give_up`` ends all calls in progress, of whose results nobody makes use any more; None where
    that cannot be done.
    """

    dim: int
    function: Function | None
    gradient: Function | None
    joint: Function | None
    sign: float
    batched: bool
    give_up: Callable[[], None] | None = None

    def at(self, what: str, q: FloatArray) -> Given:
        """Return the value, the gradient or both at one position (dim,), or at (n, dim).

        What the function of the value returns in a dictionary besides is the last.
        """
        if self.batched and q.ndim == 1:
            return in_a_batch_of_one(self, what, q)
        if what == "value_and_gradient" and self.joint is not None:
            both, beside = part(self.joint(q))
            if not isinstance(both, tuple | list) or len(both) != 2:
                raise ShapeError(
                    f"value_and_gradient must return a pair (value, gradient), got {both!r:.80}"
                )
            values = self._read("value", both[0], q)
            return (
                values,
                self._read("gradient", both[1], q),
                *read_quantities(beside, q.shape[:-1]),
            )
        found: Results = ()
        last: Given = ()
        if what != "gradient":  # a function may change its position
            given, beside = part(cast(Function, self.function)(q.copy()))
            found, last = (self._read("value", given, q),), read_quantities(beside, q.shape[:-1])
        if what != "value":
            found += (self._read("gradient", cast(Function, self.gradient)(q.copy()), q),)
        return (*found, *last)

    def _read(self, what: str, result: Any, q: FloatArray) -> FloatArray:
        array, shape = real_numbers(what, result), q.shape if what == "gradient" else q.shape[:-1]
        if array.shape == (*shape, 1) and not self.batched:
            array = array[..., 0]  # an array of length one in place of a number is a common slip
        if array.shape != shape:
            hint = "" if self.batched else "; pass batched=True if it takes rows"
            raise wrong_shape(what, shape, array, self.batched, hint)
        return array if self.sign > 0.0 else -array


class DeclaredPotential(ModelPotential):
    """A potential in the user's coordinates, of the user's functions and declarations.

    ``plausible`` is where positions start; None for no such place.
    """

    __slots__ = ()

    parameters: Parameters
    plausible: Plausible | None

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.parameters.dim

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return starting positions in the plausible place, shape (n, dim)."""
        assert self.plausible is not None
        return self.plausible.draw(rng, n)


@attrs.frozen(eq=False)
class FunctionPotential(DeclaredPotential):
    """A potential in the user's coordinates, of functions (:class:`Functions`) and priors.

    ``priors`` are those that stand beside the parameters.
    """

    parameters: Parameters
    model: Model
    plausible: Plausible | None = None
    priors: Priors = attrs.field(init=False)

    @priors.default
    def _priors(self) -> Priors:
        return Priors.of(self.parameters)

    @classmethod
    def of(
        cls, parameters: Parameters, functions: Functions, plausible: Plausible | None = None
    ) -> FunctionPotential:
        """Return the potential of some functions, and of the priors beside their parameters."""
        each_row = None if functions.batched else one_after_another
        layout = Layout(taken=tuple(parameters.specs))
        model = Model(functions, parameters.dim, each_row=each_row, layout=layout)
        return cls(parameters, model, plausible)

    @property
    def _functions(self) -> Functions:
        assert isinstance(self.model.source, Functions)
        return self.model.source

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """The user's function, which may leave out a constant."""
        if self._functions.function is None:
            return ("value_and_gradient",)
        return ("value",) if self._functions.sign > 0.0 else ("log_density",)

    @property
    def capabilities(self) -> Capabilities:
        """``gradient`` if a function gives it, and ``initial`` with a plausible place."""
        offered = set() if self.plausible is None else {can.INITIAL}
        if self._functions.joint is not None:
            offered |= {can.GRADIENT}
        elif self._functions.gradient is not None:
            offered |= {can.GRADIENT, can.GRADIENT_ALONE}
        return frozenset(offered)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        if self._functions.function is None:
            return self.value_and_gradient(positions)[0]
        q = check_positions(positions, self.dim)
        return self.model.evaluate("value", q)[0] + self.priors.value_and_gradient(q)[0]

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        values, gradients = self.model.evaluate("value_and_gradient", q)
        if not self.priors.parts:
            return values, gradients
        more, slopes = self.priors.value_and_gradient(q)
        return values + more, gradients + slopes

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        found = self.model.evaluate("gradient", q)[0]
        return found + self.priors.value_and_gradient(q)[1] if self.priors.parts else found
