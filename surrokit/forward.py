"""Targets whose expense lies in a forward map: U(q) = energy(forward(q), q)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, cast

import attrs
import numpy as np
import numpy.typing as npt

from surrokit import capabilities as can
from surrokit.bounds import BoundedPotential
from surrokit.curvatures import CURVATURES, metric_of_outputs, offers_curvatures
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.parameters import Bounds, Parameter
from surrokit.positions import checked_positions
from surrokit.potentials import Function, declared_parameters
from surrokit.protocols import Energy, Potential
from surrokit.rowwise import mapped, row_by_row
from surrokit.types import Capabilities, FloatArray


class Prior(Protocol):
    """What :func:`forward_potential` takes as a prior: a potential with gradient.

    One that names ``metric`` in an attribute ``capabilities`` is a :class:`CurvedPrior`.
    """

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return -log prior, shape (n,), and its gradient, shape (n, dim)."""
        ...


class CurvedPrior(Prior, Protocol):
    """A prior with capability ``metric``."""

    @property
    def capabilities(self) -> Capabilities:
        """Names of what it can do beyond its gradient."""
        ...

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return a curvature of -log prior without negative eigenvalues, shape (n, dim, dim)."""
        ...


def forward_potential(
    forward: Function,
    jacobian: Function | None = None,
    *,
    data: npt.ArrayLike | None = None,
    noise_sd: npt.ArrayLike | None = None,
    prior: Prior | None = None,
    energy: Energy | None = None,
    dim: int | None = None,
    parameters: Mapping[str, Parameter | Bounds | None] | None = None,
    batched: bool = False,
) -> Potential:
    """Make a target from an expensive map and a cheap misfit.

    Parameters
    ----------
    forward
        The map from one position (dim,) to outputs (m,).
    jacobian
        Its derivatives, shape (m, dim), if there are any.
    data : array_like of shape (m,), optional
        What was observed, with independent normal errors.
    noise_sd : float or array_like of shape (m,), optional
        Standard deviation of those errors.
    prior
        -log prior and its gradient, such as :func:`gaussian_prior`; None for a flat one. A prior
        that also has a metric is a :class:`CurvedPrior`.
    energy
        Instead of ``data``, ``noise_sd`` and ``prior``: any cheap function of outputs and
        positions.
    dim, parameters, batched
        As for :func:`surrokit.potential`.

    Returns
    -------
    Potential
        Of unbounded coordinates, with capability ``forward``, and ``jacobian`` and ``gradient``
        where ``jacobian`` is given; then also ``metric``, the Gauss-Newton matrix, where the
        energy offers curvatures. That of ``data`` does, unless its prior has none.

    Raises
    ------
    ConfigurationError
        If neither or both of ``energy`` and ``data`` with ``noise_sd`` are given.
    """
    declared = declared_parameters(dim, parameters)
    inner = MappedPotential(
        dim=declared.dim,
        forward=forward,
        jacobian=jacobian,
        energy=_energy(data, noise_sd, prior, energy),
        batched=batched,
    )
    return BoundedPotential(inner, declared)


def _energy(
    data: npt.ArrayLike | None,
    noise_sd: npt.ArrayLike | None,
    prior: Prior | None,
    energy: Energy | None,
) -> Energy:
    if energy is not None:
        if data is not None or noise_sd is not None or prior is not None:
            raise ConfigurationError(
                "energy is given together with data, noise_sd or prior; an energy holds all "
                "three, so leave them out"
            )
        return energy
    if data is None or noise_sd is None:
        raise ConfigurationError(
            "a forward potential needs data and noise_sd, or an energy; "
            f"data is {'missing' if data is None else 'given'}, "
            f"noise_sd is {'missing' if noise_sd is None else 'given'}"
        )
    return GaussianEnergy(data=data, noise_sd=noise_sd, prior=prior)


def gaussian_prior(mean: npt.ArrayLike = 0.0, sd: npt.ArrayLike = 1.0) -> GaussianPrior:
    """Return independent normal priors.

    Parameters
    ----------
    mean, sd : float or array_like of shape (dim,)
        Of each parameter, in the user's coordinates.

    Raises
    ------
    ConfigurationError
        If a standard deviation is not positive.
    """
    return GaussianPrior(mean=mean, sd=sd)


def _positive(name: str, array: FloatArray) -> None:
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ConfigurationError(f"{name} must be positive and finite, got {array}")


def _array(value: npt.ArrayLike) -> FloatArray:
    array = np.array(value, dtype=np.float64)
    array.setflags(write=False)
    return array


@attrs.frozen(kw_only=True, eq=False)
class GaussianPrior:
    """Independent normal priors; see :func:`gaussian_prior`."""

    mean: FloatArray = attrs.field(converter=_array)
    sd: FloatArray = attrs.field(converter=_array)

    def __attrs_post_init__(self) -> None:
        _positive("sd of a prior", self.sd)

    @property
    def capabilities(self) -> Capabilities:
        """``metric``: the precision."""
        return frozenset({can.METRIC})

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return -log prior + constant, shape (n,), and its gradient, shape (n, dim).

        Raises
        ------
        ShapeError
            If mean or sd do not fit the positions.
        """
        self._check(positions)
        scaled = (positions - self.mean) / self.sd
        return 0.5 * np.square(scaled).sum(axis=1), scaled / self.sd

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the precision for every position, shape (n, dim, dim).

        Raises
        ------
        ShapeError
            If mean or sd do not fit the positions.
        """
        self._check(positions)
        n, dim = positions.shape
        matrices = np.zeros((n, dim, dim))
        matrices[:, np.arange(dim), np.arange(dim)] = 1.0 / np.square(self.sd)
        return matrices

    def _check(self, positions: FloatArray) -> None:
        for name, array in (("mean", self.mean), ("sd", self.sd)):
            if array.shape not in ((), positions.shape[1:]):
                raise ShapeError(
                    f"{name} of a prior must be one number or have shape {positions.shape[1:]}, "
                    f"got {array.shape}"
                )


@attrs.frozen(kw_only=True, eq=False)
class GaussianEnergy:
    """Half the squared misfit in units of the noise, plus minus the log prior.

    Parameters
    ----------
    data : array_like of shape (m,)
        What was observed.
    noise_sd : float or array_like of shape (m,)
        Standard deviation of its errors.
    prior
        -log prior and its gradient; None for a flat one.
    """

    data: FloatArray = attrs.field(converter=_array)
    noise_sd: FloatArray = attrs.field(converter=_array)
    prior: Prior | None = None

    def __attrs_post_init__(self) -> None:
        _positive("noise_sd", self.noise_sd)
        if self.data.ndim != 1:
            raise ShapeError(f"data must have shape (m,), got {self.data.shape}; flatten it")
        if self.noise_sd.shape not in ((), self.data.shape):
            raise ShapeError(
                f"noise_sd must be one number or have the shape of data, {self.data.shape}, "
                f"got {self.noise_sd.shape}"
            )

    @property
    def capabilities(self) -> Capabilities:
        """``curvatures``, unless there is a prior without a metric."""
        offered: Capabilities = getattr(self.prior, "capabilities", frozenset())
        curved = self.prior is None or can.METRIC in offered
        return frozenset({CURVATURES} if curved else ())

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,)."""
        return self.value_and_gradients(outputs, positions)[0]

    def value_and_gradients(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U (n,), its gradient in the outputs (n, m), and in the positions (n, dim).

        Raises
        ------
        ShapeError
            If the forward map does not give one output for each datum.
        """
        self._check(outputs)
        scaled = (outputs - self.data) / self.noise_sd
        value = 0.5 * np.square(scaled).sum(axis=1)
        by_positions = np.zeros_like(positions)
        if self.prior is not None:
            prior_value, by_positions = self.prior.value_and_gradient(positions)
            value = value + prior_value
        return value, scaled / self.noise_sd, by_positions

    def curvatures(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the precision of the noise, (n, m), and the prior's metric, (n, dim, dim).

        Raises
        ------
        ShapeError
            If the forward map does not give one output for each datum.
        """
        self._check(outputs)
        by_outputs = np.empty_like(outputs)
        by_outputs[:] = 1.0 / np.square(self.noise_sd)
        if self.prior is None:
            return by_outputs, np.zeros((*positions.shape, positions.shape[1]))
        return by_outputs, cast(CurvedPrior, self.prior).metric(positions)

    def _check(self, outputs: FloatArray) -> None:
        if outputs.shape[1] != len(self.data):
            raise ShapeError(
                f"the forward map gives {outputs.shape[1]} outputs, but data holds "
                f"{len(self.data)}; they must correspond"
            )


@attrs.frozen(kw_only=True, eq=False)
class MappedPotential:
    """A forward map and an energy, in the user's coordinates."""

    dim: int
    forward_function: Function = attrs.field(alias="forward")
    jacobian_function: Function | None = attrs.field(alias="jacobian")
    energy: Energy
    batched: bool

    @property
    def capabilities(self) -> Capabilities:
        """``forward``, and ``jacobian`` and ``gradient`` if there are derivatives.

        Also ``metric`` if the energy offers curvatures as well.
        """
        if self.jacobian_function is None:
            return frozenset({can.FORWARD})
        differentiable = frozenset({can.FORWARD, can.JACOBIAN, can.GRADIENT})
        return differentiable | ({can.METRIC} if offers_curvatures(self.energy) else set())

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        q = checked_positions(positions, self.dim)
        return value_of_outputs(self.energy, lambda: self.forward(q), q)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        q = checked_positions(positions, self.dim)
        return value_and_gradient_of_outputs(self.energy, lambda: self.forward_and_jacobian(q), q)

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the Gauss-Newton matrix J^T C J + R, shape (n, dim, dim).

        C and R are the energy's curvatures (:class:`surrokit.protocols.CurvedEnergy`).
        """
        q = checked_positions(positions, self.dim)
        return metric_of_outputs(self.energy, lambda: self.forward_and_jacobian(q), q)

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m).

        Raises
        ------
        EvaluationError
            If the function raised at some positions.
        ShapeError
            If the function returns another shape.
        """
        return self._evaluated(lambda q: (self._outputs(q),), positions)[0]

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and their derivatives, shape (n, m, dim)."""
        outputs, jacobian = self._evaluated(
            lambda q: (self._outputs(q), self._jacobian(q)), positions
        )
        if jacobian.shape != (*outputs.shape, self.dim):
            raise ShapeError(
                f"the jacobian function must return shape {(outputs.shape[1], self.dim)} for each "
                f"position, got {jacobian.shape[1:]}"
            )
        return outputs, jacobian

    def _outputs(self, q: FloatArray) -> FloatArray:
        # a map with one output may return a number, and its jacobian a vector
        outputs = np.asarray(self.forward_function(q), dtype=np.float64)
        return _checked(outputs[..., None] if outputs.ndim < q.ndim else outputs, q, "forward", 0)

    def _jacobian(self, q: FloatArray) -> FloatArray:
        assert self.jacobian_function is not None
        jacobian = np.asarray(self.jacobian_function(q), dtype=np.float64)
        return _checked(
            jacobian[..., None, :] if jacobian.shape == q.shape else jacobian, q, "jacobian", 1
        )

    def _evaluated(
        self, evaluate: Callable[[FloatArray], tuple[FloatArray, ...]], positions: FloatArray
    ) -> tuple[FloatArray, ...]:
        q = checked_positions(positions, self.dim)
        return evaluate(q.copy()) if self.batched else row_by_row(evaluate, q)


def _checked(array: FloatArray, q: FloatArray, what: str, more_axes: int) -> FloatArray:
    if array.ndim != q.ndim + more_axes or array.shape[: q.ndim - 1] != q.shape[:-1]:
        expected = (
            ("(m,)", "(m, dim)")[more_axes] if q.ndim == 1 else ("(n, m)", "(n, m, dim)")[more_axes]
        )
        raise ShapeError(
            f"the {what} function must return shape {expected} for positions of shape {q.shape}, "
            f"got {array.shape}"
        )
    return array


def gradient_of_energy(
    energy: Energy, outputs: FloatArray, jacobian: FloatArray, positions: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return U, shape (n,), and J^T dU/doutputs + dU/dq, shape (n, dim)."""
    value, by_outputs, by_positions = energy.value_and_gradients(outputs, positions)
    gradient = np.einsum("nm,nmd->nd", by_outputs, jacobian) + by_positions
    return value, gradient


def value_of_outputs(
    energy: Energy, forward: Callable[[], FloatArray], positions: FloatArray
) -> FloatArray:
    """Return U, shape (n,), of what a forward map gives, also when it fails at some positions.

    Raises
    ------
    EvaluationError
        If the map raises one; it then carries U where the map succeeded.
    """

    def value(outputs: FloatArray) -> tuple[FloatArray]:
        return (energy.value(outputs, positions),)

    return mapped(lambda: (forward(),), value, len(positions))[0]


def value_and_gradient_of_outputs(
    energy: Energy,
    forward_and_jacobian: Callable[[], tuple[FloatArray, FloatArray]],
    positions: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return U, shape (n,), and its gradient, shape (n, dim), of outputs and Jacobian.

    Raises
    ------
    EvaluationError
        If the map raises one; it then carries U and gradient where the map succeeded.
    """

    def both(outputs: FloatArray, jacobian: FloatArray) -> tuple[FloatArray, FloatArray]:
        return gradient_of_energy(energy, outputs, jacobian, positions)

    return mapped(forward_and_jacobian, both, len(positions))
