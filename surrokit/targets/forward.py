"""Targets from forward maps, and from models of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias, cast

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import (
    check_flag,
    check_functions,
    check_matrices,
    check_positions,
    check_vectors,
)
from surrokit.coordinates.models import ModelMap, called
from surrokit.coordinates.parameters import Declared, Distribution, Parameters, Plausible
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.model.model import Model, PassingWrapper
from surrokit.model.outcome import Given
from surrokit.model.quantities import Layout, part, read_quantities
from surrokit.model.source import in_a_batch_of_one, one_after_another
from surrokit.potentials import (
    CONSTANT_CURVATURES,
    CURVATURES,
    Energy,
    Pointwise,
    Potential,
    energy_capabilities,
)
from surrokit.targets.bounds import with_bounds
from surrokit.targets.differences import curve
from surrokit.targets.energies import ObservedEnergy
from surrokit.targets.functions import (
    DeclaredPotential,
    Function,
    PotentialOfOutputs,
    declare_parameters,
    real_numbers,
    wrong_shape,
)
from surrokit.targets.gaussian import Prior
from surrokit.targets.noise import Data, ForwardModel, Scale
from surrokit.types import Capabilities, FloatArray, IntArray, Pair

Adjoint: TypeAlias = Callable[[FloatArray, FloatArray], Any]
"""From positions (dim,) or (n, dim) and weights (m,) or (n, m) to an array of the former shape."""


def forward_potential(
    forward: Function,
    jacobian: Function | None = None,
    hessian: Function | None = None,
    *,
    vjp: Adjoint | None = None,
    data: Data | None = None,
    noise_sd: Scale | None = None,
    prior: Prior | Mapping[str, Distribution] | None = None,
    energy: Energy | None = None,
    dim: int | None = None,
    parameters: Declared | None = None,
    plausible: Mapping[str, Any] | None = None,
    batched: bool = False,
) -> Potential:
    """Make a target from an expensive map and a cheap misfit.

    Parameters
    ----------
    forward
        The map from one position (dim,) to outputs (m,), those of several data sets one after
        another.
    jacobian
        Its derivatives, shape (m, dim), if there are any.
    hessian
        Its second derivatives, shape (m, dim, dim), if there are any; they need ``jacobian``.
        Samplers whose mass matrix is the Gauss-Newton matrix take its derivative from them.
    vjp
        The adjoint, if there is one: from one position (dim,) and weights of the outputs (m,) to
        the gradient (dim,) of the outputs' weighted sum, which is J^T w with J the Jacobian.
        Gradients of U are made by it, also where there is a ``jacobian``.
    data : array_like of shape (m,), Observed or dict, optional
        What was observed, with independent normal errors. With other errors it is
        :func:`observed`; several data sets are a dictionary of these, whose outputs follow one
        another.
    noise_sd : float, array_like of shape (m,), str or Estimated, optional
        Standard deviation of normal errors. ``"estimate"`` makes it one more parameter,
        ``noise_sd``; :func:`estimated` declares one for each group of data. The map does not take
        parameters of errors.
    prior
        -log prior and its gradient, such as :func:`gaussian_prior`; None for a flat one. See
        :class:`surrokit.targets.gaussian.Prior`. Or distributions by name, in place of those that
        stand beside these parameters.
    energy
        Instead of ``data``, ``noise_sd`` and ``prior``: any cheap function of outputs and
        positions.
    dim, parameters, plausible, batched
        As for :func:`surrokit.potential`.

    Returns
    -------
    Potential
        In unbounded coordinates, with capability ``forward``. With ``vjp`` it also has ``vjp`` and
        ``gradient``. With ``jacobian`` it also has ``jacobian`` and ``gradient``, and ``metric``,
        the Gauss-Newton matrix, if the energy offers curvatures. The energy of ``data`` does,
        unless its prior has none. With ``hessian`` it also has ``metric-derivative`` if the
        curvatures are constant: for normal or Student's t errors of known scales.

    Raises
    ------
    ConfigurationError
        If neither or both of ``energy`` and ``data`` with ``noise_sd`` are given, or ``hessian``
        without ``jacobian``, or something is not of its kind.
    ShapeError
        If ``data`` or ``noise_sd`` are not numbers, or do not fit each other.
    """
    check_functions(forward=forward, jacobian=jacobian, hessian=hessian, vjp=vjp)
    check_flag("batched", batched)
    if hessian is not None and jacobian is None:
        raise ConfigurationError(
            "hessian is given without jacobian; second derivatives are of use only together with "
            "the first ones, so give both"
        )
    declared = declare_parameters(dim, parameters)
    if isinstance(prior, Mapping):
        declared, prior = declared.with_priors(prior), None
    model = ForwardModel.read(data, noise_sd, prior, energy, declared)
    joined = Maps(
        forward=called("forward", forward, declared),
        jacobian=called("jacobian", jacobian, declared),
        hessian=hessian,
        vjp=vjp,
        dim=model.parameters.dim,
        columns=model.columns,
        energy=model.energy,
        batched=batched,
    )
    place = Plausible.declare(model.fill_plausible(plausible), model.parameters)
    return with_bounds(MappedPotential.of(model.parameters, joined, place), model.parameters)


@attrs.frozen(kw_only=True, eq=False)
class Maps:
    """A user's forward map and its derivatives.

    They take the numbers at ``columns (k,)`` of a position, None for all. ``both`` is the map with
    its Jacobian at one position, where one call gives both. The energy gives the adjoint its
    weights. ``give_up`` is as for :class:`surrokit.targets.functions.Functions`.
    """

    dim: int
    forward: Function
    jacobian: Function | None
    hessian: Function | None = None
    vjp: Adjoint | None = None
    columns: IntArray | None = None
    energy: Energy
    batched: bool
    both: Callable[[FloatArray], tuple[Any, Any]] | None = None
    give_up: Callable[[], None] | None = None

    def at(self, what: str, q: FloatArray) -> Given:
        """Return outputs, perhaps with derivatives or a gradient, at (n, dim) or at (dim,).

        What the map returns in a dictionary besides is the last.
        """
        if self.batched and q.ndim == 1:
            return in_a_batch_of_one(self, what, q)
        slopes = None
        if what in ("forward_and_jacobian", "forward_to_second_order") and self.both is not None:
            (given, slopes), beside = part(self.both(self._taken(q)))
        else:
            given, beside = part(self.forward(self._taken(q)))
        last = read_quantities(beside, q.shape[:-1])
        outputs = self._read("forward", given, q)
        if isinstance(self.energy, ObservedEnergy):
            self.energy.check(outputs.shape[-1])
        if what == "forward":
            return (outputs, *last)
        if what == "forward_and_gradient":
            return outputs, self._gradient(q, outputs), *last
        if slopes is None:
            slopes = cast(Function, self.jacobian)(self._taken(q))
        first = outputs, self._read("jacobian", slopes, q, outputs.shape[-1])
        if what == "forward_and_jacobian":
            return (*first, *last)
        bends = self._read("hessian", cast(Function, self.hessian)(self._taken(q)), q)
        return (*first, bends, *last)

    def _gradient(self, q: FloatArray, outputs: FloatArray) -> FloatArray:
        _, by_outputs, by_positions = self.energy.value_and_gradients(
            np.atleast_2d(outputs), np.atleast_2d(q)
        )
        weights, of_energy = by_outputs.reshape(outputs.shape), by_positions.reshape(q.shape)
        if q.ndim == 1 and not np.isfinite(weights).all():
            return np.full_like(q, np.nan)  # the map has failed here, and a solver might choke
        taken = self._taken(q)
        pulled = real_numbers("vjp", cast(Adjoint, self.vjp)(taken, weights))
        if pulled.shape != taken.shape:
            hint = f", for weights of shape {weights.shape}{self._hint}"
            raise wrong_shape("vjp", taken.shape, pulled, self.batched, hint)
        of_energy[..., slice(None) if self.columns is None else self.columns] += pulled
        return of_energy

    def _taken(self, q: FloatArray) -> FloatArray:
        """Return the numbers of positions (..., dim) that the map takes, which it may change."""
        return q.copy() if self.columns is None else q[..., self.columns]

    def _read(
        self, what: str, given: Any, q: FloatArray, n_outputs: int | None = None
    ) -> FloatArray:
        """Return outputs, or derivatives of so many outputs; None for any number."""
        found, lead = real_numbers(what, given), q.shape[:-1]
        width = self.dim if self.columns is None else len(self.columns)
        tail = (width,) * {"forward": 0, "jacobian": 1, "hessian": 2}[what]
        if found.shape == lead + tail and n_outputs in (None, 1):
            found = np.expand_dims(found, len(lead))  # a map with one output may leave that axis
        n = found.shape[len(lead)] if n_outputs is None and found.ndim > len(lead) else n_outputs
        if found.shape != (*lead, n, *tail):
            sizes = ", ".join(map(str, (*lead, n_outputs or "m", *tail)))
            expected = f"({sizes}{'' if lead or tail else ','})"
            raise wrong_shape(what, expected, found, self.batched, self._hint)
        return found

    @property
    def _hint(self) -> str:
        return "" if self.columns is None else "; parameters of errors are none of the map's"


@attrs.frozen(kw_only=True, eq=False)
class MappedPotential(DeclaredPotential, PotentialOfOutputs):
    """A forward map (:class:`Maps`) and an energy, in the user's coordinates."""

    parameters: Parameters
    model: Model
    energy: Energy
    plausible: Plausible | None = None

    @classmethod
    def of(
        cls, parameters: Parameters, maps: Maps, plausible: Plausible | None = None
    ) -> MappedPotential:
        """Return the potential of a map, by the energy that its adjoint takes."""
        each_row = None if maps.batched else one_after_another
        layout = Layout(taken=tuple(parameters.specs))
        model = Model(maps, parameters.dim, each_row=each_row, columns=maps.columns, layout=layout)
        return cls(parameters=parameters, model=model, energy=maps.energy, plausible=plausible)

    @property
    def capabilities(self) -> Capabilities:
        """``forward``, and what follows from derivatives of the map and curvatures of the energy.

        ``initial`` with a plausible place.
        """
        maps, energy = cast(Maps, self.model.source), energy_capabilities(self.energy)
        offered = {can.FORWARD} if self.plausible is None else {can.FORWARD, can.INITIAL}
        if maps.vjp is not None:
            offered |= {can.VJP, can.GRADIENT}
        if maps.jacobian is not None:
            offered |= {can.JACOBIAN, can.GRADIENT}
            offered |= {can.METRIC} if CURVATURES in energy else set()
            second = maps.hessian is not None and {CURVATURES, CONSTANT_CURVATURES} <= energy
            offered |= {can.METRIC_DERIVATIVE} if second else set()
        return frozenset(offered)

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), G the metric and A in ``matrices (n, dim, dim)``, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        a = check_matrices(matrices, q)
        # twice: the first derivatives, beside the second
        outputs, first, second = self.model.evaluate("forward_to_second_order", q, each=2)
        if not outputs.shape[1]:
            return np.full(q.shape, np.nan)
        weights = curve(self.energy, outputs, q, first @ a)
        return np.asarray(2.0 * np.einsum("nmi,nmik->nk", weights, second))

    def metric_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, G the metric and u in ``vectors (n, dim)``, shape (n, dim)."""
        u = check_vectors(vectors, check_positions(positions, self.dim))
        return self.metric_trace_gradient(positions, u[:, :, None] * u[:, None, :])

    def forward_and_jacobian(self, positions: FloatArray) -> Pair:
        """Return the outputs, shape (n, m), and their derivatives, shape (n, m, dim)."""
        outputs, jacobian = super().forward_and_jacobian(positions)
        return outputs, self._spread(jacobian)

    def forward_and_gradient(self, positions: FloatArray) -> Pair:
        """Return the outputs, shape (n, m), and the gradient of U, shape (n, dim)."""
        if can.VJP not in self.capabilities:
            return super().forward_and_gradient(positions)
        q = check_positions(positions, self.dim)
        outputs, gradient = self.model.evaluate("forward_and_gradient", q)
        return outputs, gradient

    def _spread(self, jacobian: FloatArray) -> FloatArray:
        """Return derivatives in all numbers of a position, from those in numbers of the map."""
        columns = self.model.columns
        if columns is None:
            return jacobian
        found = np.zeros((*jacobian.shape[:-1], self.dim))
        found[..., columns] = jacobian
        return found


Starts: TypeAlias = Callable[[np.random.Generator, int], FloatArray]
"""Draws starting positions of chains on the line, shape (n, dim)."""


@attrs.frozen(eq=False)
class ModelledPotential(PassingWrapper):
    """A potential on the line of another library, with what the model there reports.

    It does all that the inner potential does, by the same methods, with U on the line, Jacobian
    included. ``starts`` says where chains start; None for anywhere near zero. ``missing`` says why
    it lacks capabilities, by their names, and ``unnormalized`` what may lack its normalising
    constant: models have terms of their own, and flat priors. ``terms`` gives the log likelihoods
    and priors of the model's variables at positions on the line (n, dim); None for nothing.
    """

    inner: Potential
    transform: ModelMap
    starts: Starts | None = None
    observed_data: Mapping[str, Any] = attrs.field(factory=dict)
    missing: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    unnormalized: tuple[str, ...] = ("the model",)
    terms: Callable[[FloatArray], Pointwise] | None = attrs.field(default=None, repr=False)

    predictor: ClassVar[None] = None
    """Nothing is predicted: rows inside go by the line's numbers, and draws by the model's."""

    def __attrs_post_init__(self) -> None:
        if self.transform.own.dim != self.inner.dim:
            raise ShapeError(
                f"the model's map takes {self.transform.own.dim} numbers on the line, but the "
                f"potential takes {self.inner.dim}"
            )

    @property
    def parameters(self) -> Parameters:
        """All that the model reports."""
        return self.transform.reported

    @property
    def pointwise(self) -> Callable[[Any, FloatArray], Pointwise] | None:
        """Of nothing and draws: log likelihoods and priors, evaluated by the library."""
        return None if self.terms is None else self._pointwise

    def _pointwise(self, _: Any, draws: FloatArray) -> Pointwise:
        assert self.terms is not None
        return self.terms(self.transform.to_unbounded(draws))

    @property
    def capabilities(self) -> Capabilities:
        """What the inner potential offers, and ``initial`` where it is known where to start."""
        own = frozenset() if self.starts is None else frozenset({can.INITIAL})
        return self.inner.capabilities | own

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return starting positions, shape (n, dim)."""
        assert self.starts is not None
        return self.starts(rng, n)
