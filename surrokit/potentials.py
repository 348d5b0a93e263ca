"""What potentials offer: values, derivatives, outputs of forward maps, terms of sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, cast

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import is_whole
from surrokit.capabilities import ROWS, ROWS_IN_BALLS, require
from surrokit.errors import CapabilityError, ConfigurationError
from surrokit.types import Capabilities, FloatArray, IntArray, Pair


class Potential(Protocol):
    """U(q) = -log density + constant, for rows of positions.

    ``capabilities`` names whatever else it can do (see :mod:`surrokit.capabilities`). A potential
    is pure: the same positions give the same values, and arguments stay unchanged.
    """

    @property
    def dim(self) -> int:
        """Numbers in a position."""

    @property
    def capabilities(self) -> Capabilities:
        """Names of what it can do beyond its value."""

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim); ``inf`` outside the support."""


class GradientPotential(Potential, Protocol):
    """A potential with capability ``gradient``."""

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""


class CovariancePotential(Potential, Protocol):
    """A process about noisy values, with capability ``covariance``."""

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise of values that was found, in nats."""

    def variance(self, positions: FloatArray) -> FloatArray:
        """Return the variance of U, shape (n,), without the noise of a value."""

    def covariance(self, positions: FloatArray) -> FloatArray:
        """Return the covariance of U at positions (n, dim) with one another, shape (n, n)."""


@attrs.frozen
class Straight:
    """A potential in coordinates in which its mass is straight, and chains mix better.

    Parameters
    ----------
    potential
        In these coordinates.
    apply, undo
        To them from the potential's own, positions being of shape (n, dim), and back.
    covariance : ndarray of shape (dim, dim), optional
        That of the mass in these coordinates, where it is known.
    log_volume
        From the potential's own positions to the log of what becomes of a volume there, shape (n,).
        Without, volumes are kept.
    """

    potential: Potential
    apply: Callable[[FloatArray], FloatArray] = np.asarray
    undo: Callable[[FloatArray], FloatArray] = np.asarray
    covariance: FloatArray | None = None
    log_volume: Callable[[FloatArray], FloatArray] | None = None

    def volume(self, positions: FloatArray) -> FloatArray:
        """Return by how much the potential is higher in these coordinates, shape (...).

        That is at its own positions, of shape (..., dim).
        """
        if self.log_volume is None:
            return np.zeros(positions.shape[:-1])
        rows = positions.reshape(-1, positions.shape[-1])
        return self.log_volume(rows).reshape(positions.shape[:-1])


def straight_of(potential: Potential) -> Straight:
    """Return a potential in coordinates that it comes with; in its own for any other."""
    found = getattr(potential, "straight", None)
    return found if isinstance(found, Straight) else Straight(potential)


class FullPotential(GradientPotential, Protocol):
    """A potential with all of these methods; those that its ``capabilities`` promise may be called.

    Arguments and results are as :mod:`surrokit.capabilities` says.
    """

    energy: Energy
    """With ``forward``: the cheap exact part of U."""
    mean: FloatArray
    """With ``gaussian``: its mean, shape (dim,)."""
    factor: FloatArray
    """With ``gaussian``: L, lower triangular of shape (dim, dim); L L^T is the covariance."""

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U, shape (n, dim)."""

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return positions, shape (n, dim), from which chains may start."""

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives of U, shape (n, dim, dim)."""

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G) of the Hessian G, shape (n, dim), with A in ``matrices``."""

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u of the Hessian G, shape (n, dim), with u in ``vectors``."""

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian, shape (n, dim)."""

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the gradient of the diagonal's weighted sum, for ``weights (n, dim)``."""

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the Fisher or Gauss-Newton matrix of the target, shape (n, dim, dim)."""

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the outputs of the expensive map, shape (n, m)."""

    def forward_and_jacobian(self, positions: FloatArray) -> Pair:
        """Return the outputs, shape (n, m), and their derivatives, shape (n, m, dim)."""

    def forward_and_gradient(self, positions: FloatArray) -> Pair:
        """Return the outputs, shape (n, m), and the gradient of U, shape (n, dim)."""


OF_A_POTENTIAL = ("dim", "capabilities", "value")
"""What every potential has."""


def check_target(target: Potential) -> Potential:
    """Return a target, if it is a potential.

    Raises
    ------
    ConfigurationError
        If it is not.
    """
    missing = [name for name in OF_A_POTENTIAL if not hasattr(target, name)]
    if missing:
        raise ConfigurationError(
            f"a target must be a potential, got {type(target).__name__} without "
            f"{', '.join(missing)}; make one with surrokit.potential(value, gradient, dim=...)"
        )
    if not (is_whole(target.dim, 1) and callable(target.value)) or isinstance(target, type):
        raise ConfigurationError(
            f"a target must be a potential, got a {type(target).__name__} of dim {target.dim!r} "
            f"and value {target.value!r}; make one with surrokit.potential(value, gradient, "
            "dim=...)"
        )
    return target


def observed_data_of(potential: Potential) -> Mapping[str, Any]:
    """Return arrays of what was observed, by name: an attribute of a potential, or of one inside.

    They are empty where none has it.
    """
    found = find_within(potential, "observed_data", Mapping)
    return {} if found is None else found


def unnormalized_of(potential: Potential) -> tuple[str, ...]:
    """Return what of a potential may lack its normalising constant, in words; nothing if none does.

    It is an attribute of a potential, or of one inside; nothing is known where none has it.
    """
    found = find_within(potential, "unnormalized", tuple)
    return ("the density",) if found is None else found


def predictor_of(potential: Potential) -> Any:
    """Return what makes predictions of draws: an attribute of a potential, or of one inside.

    None there means that nothing is predicted.
    """
    return find_within(potential, "predictor", object)


Pointwise: TypeAlias = tuple[dict[str, FloatArray], dict[str, FloatArray]]
"""Log likelihoods by observation, arrays (n, ...) by name, and log priors (n,) by name."""


def find_within(potential: Any, name: str, kind: type[Any]) -> Any:
    """Return an attribute of a kind, of a potential or of one inside; None where there is none."""
    while potential is not None:
        if hasattr(potential, name) and isinstance(found := getattr(potential, name), kind):
            return found
        potential = getattr(potential, "inner", None)
    return None


def _with(capability: str, potential: Potential) -> FullPotential:
    """Return the potential; CapabilityError is raised if it lacks the capability."""
    offered, whose = potential.capabilities, type(potential).__name__
    if capability not in offered:
        needs = frozenset({capability})
        require("this computation", needs, offered, whose, "use a potential that has it")
    return cast("FullPotential", potential)


with_gradient = partial(_with, can.GRADIENT)
"""Returns a potential that has the capability, and raises CapabilityError for any other."""
with_gradient_alone = partial(_with, can.GRADIENT_ALONE)
with_gaussian = partial(_with, can.GAUSSIAN)
with_hessian = partial(_with, can.HESSIAN)
with_hessian_derivative = partial(_with, can.HESSIAN_DERIVATIVE)
with_hessian_diagonal = partial(_with, can.HESSIAN_DIAGONAL)
with_metric = partial(_with, can.METRIC)
with_forward = partial(_with, can.FORWARD)
with_vjp = partial(_with, can.VJP)

FormsAt: TypeAlias = Callable[[FloatArray, IntArray], FloatArray]
"""From vectors (k, dim) or matrices (k, dim, dim), and row numbers (k,) of fixed positions, to
u^T d_k G u or tr(A d_k G), shape (k, dim)."""


@attrs.frozen
class MatrixField:
    """G(q) and its derivative: the four methods that both kinds of matrix have.

    ``name`` says which: ``"hessian"`` is that of second derivatives of U, ``"metric"`` the Fisher
    or Gauss-Newton matrix. CapabilityError is raised if a potential does not offer something.
    """

    name: Literal["hessian", "metric"]

    @property
    def derivative(self) -> str:
        """The capability of the two contractions."""
        return f"{self.name}-derivative"

    @property
    def quick_product(self) -> str:
        """The capability of a product that is cheaper than the matrix."""
        return f"{self.name}-product"

    def matrix(self, potential: Potential, positions: FloatArray) -> FloatArray:
        """Return G at positions (n, dim), shape (n, dim, dim)."""
        return self._call(potential, self.name, "", positions)

    def product(
        self, potential: Potential, positions: FloatArray, vectors: FloatArray
    ) -> FloatArray:
        """Return G u, shape (n, dim), with u in ``vectors (n, dim)``."""
        return self._call(potential, self.quick_product, "_product", positions, vectors)

    def trace_gradient(
        self, potential: Potential, positions: FloatArray, matrices: FloatArray
    ) -> FloatArray:
        """Return tr(A d_k G) for each k, shape (n, dim), with A in ``matrices (n, dim, dim)``."""
        return self._call(potential, self.derivative, "_trace_gradient", positions, matrices)

    def form_gradient(
        self, potential: Potential, positions: FloatArray, vectors: FloatArray
    ) -> FloatArray:
        """Return u^T d_k G u for each k, shape (n, dim), with u in ``vectors (n, dim)``."""
        return self._call(potential, self.derivative, "_form_gradient", positions, vectors)

    def forms_at(self, potential: Potential, positions: FloatArray) -> FormsAt:
        """Return what :meth:`form_gradient` is of some rows of ``positions (n, dim)``.

        A potential may have a method ``hessian_forms_at`` or ``metric_forms_at`` that works out
        once what does not depend on the vectors; ``traces_at`` is the like for matrices.
        """
        return self._at(potential, positions, "_forms_at", self.form_gradient)

    def traces_at(self, potential: Potential, positions: FloatArray) -> FormsAt:
        """Return what :meth:`trace_gradient` is of some rows of ``positions (n, dim)``."""
        return self._at(potential, positions, "_traces_at", self.trace_gradient)

    def _at(
        self, potential: Potential, positions: FloatArray, name: str, otherwise: Callable[..., Any]
    ) -> FormsAt:
        if self.derivative in potential.capabilities and hasattr(potential, self.name + name):
            found: FormsAt = getattr(potential, self.name + name)(positions)
            return found
        return lambda factors, rows: otherwise(potential, positions[rows], factors)

    def _call(
        self, potential: Potential, capability: str, name: str, *given: FloatArray
    ) -> FloatArray:
        found: FloatArray = getattr(_with(capability, potential), self.name + name)(*given)
        return found


HESSIAN_FIELD = MatrixField("hessian")
METRIC_FIELD = MatrixField("metric")


class Energy(Protocol):
    """The cheap exact part of a forward potential: U(q) = energy(forward(q), q).

    An energy with more methods names them in an attribute ``capabilities``, a frozenset; without
    the attribute it has none (see :class:`CurvedEnergy`).
    """

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), from outputs of shape (n, m) and positions of shape (n, dim)."""

    def value_and_gradients(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U (n,), its gradient in the outputs (n, m), and in the positions (n, dim)."""


class CurvedEnergy(Energy, Protocol):
    """An energy with ``curvatures`` among its capabilities, for Gauss-Newton matrices.

    One with ``constant-curvatures`` besides has the same everywhere, and so its matrix has a
    derivative by the second derivatives of the map.

    With J the Jacobian of the forward map, J^T C J + R is the Gauss-Newton matrix of U. C and R
    are the second derivatives of the energy in the outputs and in the positions. Where these are
    not positive semi-definite everywhere, substitutes that are must take their place, such as the
    Fisher information of a noise scale, or the precision of a prior in the coordinates in which
    the prior is normal. Mixed derivatives are left out.
    """

    @property
    def capabilities(self) -> Capabilities:
        """Names of what it can do beyond its gradients."""

    def curvatures(self, outputs: FloatArray, positions: FloatArray) -> Pair:
        """Return C, shape (n, m, m) or its diagonals (n, m), and R, shape (n, dim, dim).

        Outputs have shape (n, m), and positions (n, dim).
        """


class ForwardDerivatives(Protocol):
    """m outputs F at n positions, with their first and second derivatives.

    Methods other than ``jacobian`` avoid the whole Jacobian where the map allows that.
    """

    @property
    def outputs(self) -> FloatArray:
        """F, shape (n, m)."""

    def push(self, vectors: FloatArray) -> FloatArray:
        """Return J u for each row u of ``vectors (n, dim)``, shape (n, m)."""

    def pull_back(self, by_outputs: FloatArray) -> FloatArray:
        """Return J^T b for each row b of ``by_outputs (n, m)``, shape (n, dim)."""

    def jacobian(self) -> FloatArray:
        """Return J, shape (n, m, dim)."""

    def hessian_product(self, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m, shape (n, dim), for W (n, m, dim)."""

    def hessian_form(self, by_outputs: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the same for W = b u^T, with rows b (n, m) and u (n, dim)."""


CURVATURES = "curvatures"
"""Capability of an energy: ``curvatures(outputs, positions)``."""

CONSTANT_CURVATURES = "constant-curvatures"
"""Capability of an energy whose curvatures are the same everywhere."""


def energy_capabilities(energy: Energy) -> Capabilities:
    """Return the capabilities of an energy; none if it has no such attribute."""
    offered: Capabilities = getattr(energy, "capabilities", frozenset())
    return offered


def offers_curvatures(energy: Energy) -> bool:
    """Return whether an energy has what Gauss-Newton matrices need."""
    return CURVATURES in energy_capabilities(energy)


def with_curvatures(energy: Energy, *, constant: bool = False) -> CurvedEnergy:
    """Return an energy that gives its curvatures; CapabilityError is raised for any other.

    ``constant`` demands that they are the same everywhere.
    """
    needed = [CURVATURES, CONSTANT_CURVATURES][: 1 + constant]
    if not set(needed) <= energy_capabilities(energy):
        raise CapabilityError(
            f"a Gauss-Newton matrix{' with a derivative' if constant else ''} needs an energy with "
            f"{' and '.join(map(repr, needed))} among its capabilities, but "
            f"{type(energy).__name__} does not offer them; give it the methods of "
            "surrokit.plugin.CurvedEnergy, or, for data with noise_sd, a prior that has a metric"
        )
    return cast(CurvedEnergy, energy)


USUAL_ORDER = 2
"""Default order of an expansion, which every summed potential offers."""


class RowExpansion(Protocol):
    """Expansions of all terms at one point, to second or third order; the rest stays exact.

    V(q) = sum_i [U_i + g_i . h + h . H_i h / 2] + rest(q), where h = q - centre, and the terms U_i,
    gradients g_i and Hessians H_i are those at the centre. Order 3 adds
    sum_i D^3 U_i[h, h, h] / 6. D_i is U_i minus its expansion, so that U = V + sum_i D_i.
    An expansion is frozen and can be pickled.
    """

    @property
    def centre(self) -> FloatArray:
        """Where the terms were expanded, shape (dim,)."""

    @property
    def gradient(self) -> FloatArray:
        """Sum of g_i, without the rest, shape (dim,)."""

    @property
    def hessian(self) -> FloatArray:
        """Sum of H_i, without the rest, shape (dim, dim)."""

    @property
    def third(self) -> FloatArray | None:
        """Sum of third derivatives, without the rest, (dim, dim, dim); None if to second order."""

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim); it touches no row."""

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return D_i(q), shape (m,), for each pair of a row and a position.

        ``rows (m,)`` are the row i of each pair, with repeats, and ``owners (m,)`` the number of
        its position.
        """


@attrs.frozen(eq=False)
class WrappedExpansion:
    """Expansions that another one makes; what a derived class does not say otherwise is its."""

    inner: RowExpansion

    def __getattr__(self, name: str) -> Any:
        """Return what the inner expansions have."""
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)


@attrs.frozen(kw_only=True, eq=False)
class Ball:
    """The positions q with |L^-1 (q - centre (dim,))| <= radius, L the factor it is given with."""

    centre: FloatArray
    radius: float


def check_ball(ball: Ball | None, whose: str) -> Ball:
    """Return the ball that was given; ConfigurationError is raised if there is none."""
    if ball is None:
        raise ConfigurationError(
            f"{whose} have no bound at every position; give row_bounds a ball in which it is to "
            "hold"
        )
    return ball


class RowDraws(Protocol):
    """Draws of rows in proportion to their bounds psi."""

    @property
    def total(self) -> float:
        """Sum of all psi."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Return n rows, drawn independently with probabilities psi_i / total, and their psi.

        Rows that are drawn are likely to be asked for next.
        """


class Terms(Protocol):
    """The methods of a potential with capability ``rows`` that do not evaluate all rows."""

    @property
    def n_rows(self) -> int:
        """Number of terms."""

    def select(self, rows: IntArray) -> Potential:
        """Return the sum of some terms alone, without the rest, by their numbers (m,).

        The sum holds a copy of these rows (a row given twice counts twice), and offers
        ``gradient``, ``gradient-alone`` and ``hessian``.
        """

    def row_bounds(self, factor: FloatArray) -> FloatArray:
        """Return psi_i, shape (n_rows,); see :meth:`SummedPotential.row_bounds`."""


class SummedPotential(Terms, Potential, Protocol):
    """A potential with capability ``rows``: U(q) = sum over rows of U_i(q) + rest(q)."""

    def expand(self, centre: FloatArray, order: int = 2) -> RowExpansion:
        """Return the expansions of all terms at ``centre (dim,)``, in one pass over the rows.

        ``order`` is 2, or 3 with the capability ``rows-third-order``.
        """

    def row_bounds(
        self, factor: FloatArray, order: int = 2, ball: Ball | None = None
    ) -> FloatArray:
        """Return psi_i, shape (n_rows,), the bounds of the terms' next derivatives.

        The third derivative of U_i along any direction u, at any position, is at most
        6 psi_i |L^-1 u|^3 in absolute value, with L the ``factor (dim, dim)``. Hence
        |D_i(q)| <= psi_i |L^-1 (q - centre)|^3 for every centre.

        For a term f(x_i . q) with |f'''| <= B, psi_i is B |L^T x_i|^3 / 6. This takes one pass over
        the rows and evaluates none of them.

        With ``order=3`` the fourth derivative is at most 24 psi_i |L^-1 u|^4, and
        |D_i(q)| <= psi_i |L^-1 (q - centre)|^4.

        With capability ``rows-in-balls`` a ``ball`` may be given, and must be where there are no
        bounds everywhere. The bounds of D_i are then to hold for the expansions at its centre, and
        positions in it, alone. Without that capability none is given.
        """

    def row_draws(self, factor: FloatArray, order: int = 2, ball: Ball | None = None) -> RowDraws:
        """Return draws by the bounds of :meth:`row_bounds`, with capability ``rows-drawn``."""


def of_order(order: int, ball: Ball | None = None) -> dict[str, Any]:
    """Return keyword arguments for an order and a ball; none for 2 and None.

    So methods may do without them.
    """
    chosen: dict[str, Any] = {} if order == USUAL_ORDER else {"order": order}
    return chosen if ball is None else {**chosen, "ball": ball}


@attrs.frozen(eq=False, repr=False)
class SummedTerms:
    """The terms of a ``target`` with capability ``rows``, some of them for a surrogate to copy.

    None of this counts as an exact call: time spent on a copy is time spent on the surrogate, in
    proportion to its rows. ``local`` says whether bounds are sharper in balls.
    """

    _target: Terms = attrs.field(alias="target")
    _local: bool = attrs.field(default=False, alias="local")

    @property
    def n_rows(self) -> int:
        """Rows that the target is a sum over."""
        return self._target.n_rows

    def select(self, rows: IntArray) -> Potential:
        """Return the sum of some terms alone, as a copy of their rows, by their numbers (m,)."""
        return self._target.select(rows)

    def row_bounds(self, factor: FloatArray, about: FloatArray) -> FloatArray:
        """Return how far each term can be from its expansion, shape (n_rows,), in nats.

        psi_i with |U_i - its expansion to second order at c| <= psi_i |L^-1 (q - c)|^3 for any c,
        with L the ``factor (dim, dim)``; where bounds are those of a ball, for c = ``about (dim,)``
        and positions with |L^-1 (q - c)| <= sqrt(dim), about where draws are.
        """
        ball = Ball(centre=about, radius=np.sqrt(len(about))) if self._local else None
        bounds = self._target.row_bounds(factor, **of_order(USUAL_ORDER, ball))
        return np.asarray(bounds, dtype=np.float64)


def terms_of(target: Potential) -> SummedTerms | None:
    """Return the terms of a target with capability ``rows``; None for any other."""
    if ROWS not in target.capabilities:
        return None
    return SummedTerms(with_rows(target), local=ROWS_IN_BALLS in target.capabilities)


def with_rows(potential: Potential) -> SummedPotential:
    """Return a potential that is a sum over rows; CapabilityError is raised for any other."""
    return cast("SummedPotential", _with(can.ROWS, potential))
