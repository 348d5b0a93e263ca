"""Checks of integrators and metrics: reversibility, volume, order, energies, momenta.

An integrator with a true attribute ``by_position`` works with metrics that change with position. It
is checked on such a metric, once with products and once without.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import attrs
import numpy as np

from surrokit.interfaces import Hamiltonian, Phase, Status, changes_with_position
from surrokit.kernel.hamiltonian import works_by_position
from surrokit.potentials import Potential
from surrokit.testing.demands import (
    Factory,
    check,
    demand,
    demand_close,
    demand_equal,
    demand_near,
    demand_shape,
    demand_untouched,
    difference,
)
from surrokit.testing.parts import ConstantMetric, CurvedMetric
from surrokit.testing.statistics import Verdict, normality
from surrokit.testing.targets import Banana, Gaussian, Mixture, Student, usable
from surrokit.testing.wrappers import CountingPotential, Fenced
from surrokit.types import Cache, FloatArray, IntArray

N_CHAINS = 6  # paths followed as one batch, and positions at which a metric is evaluated
REVERSAL = 1e-8  # largest distance from its start at which a path may end, there and back

COVARIANCE = {False: np.array([[1.3, 0.5], [0.5, 0.6]]), True: np.array([[1.3, 0.5], [0.5, 2.6]])}
"""What metrics are adapted to, by whether they change with position."""

_WIDE = np.diag([4.0, 0.25])
_TARGETS = (Banana(), Mixture(), Student(), Gaussian())


@attrs.frozen(eq=False)
class _Paths:
    """An integrator on a target, in a metric, with places to start from."""

    integrator: Any
    target: Potential
    metric: Any
    positions: FloatArray
    momenta: FloatArray

    @property
    def hamiltonian(self) -> Hamiltonian:
        return Hamiltonian(potential=self.target, metric=self.metric)

    @property
    def name(self) -> str:
        return f"{type(self.target).__name__}, {type(self.metric).__name__}"

    def phase(self, positions: FloatArray, momenta: FloatArray) -> Phase:
        cache = self.integrator.cache(self.hamiltonian, positions)
        return Phase(positions=positions, momenta=momenta, cache=cache)

    def follow(
        self,
        positions: FloatArray,
        momenta: FloatArray,
        step_size: float | FloatArray,
        n_steps: int | IntArray,
        ending: str = "",
    ) -> tuple[Phase, IntArray]:
        """Follow a path from each place, all of which must end well if they have a name."""
        n = (len(positions),)
        steps = np.broadcast_to(np.asarray(n_steps, dtype=np.int64), n).copy()
        sizes = np.broadcast_to(np.asarray(step_size, dtype=np.float64), n).copy()
        phase = self.phase(positions, momenta)
        with np.errstate(all="ignore"):
            end, status = self.integrator.advance(self.hamiltonian, phase, sizes, steps)
        well = not ending or (status == Status.OK).all()
        demand(well, f"{ending} must end with status OK on a smooth target, got {status}")
        return end, status


def _paths(make: Factory, n: int = N_CHAINS) -> Iterator[tuple[_Paths]]:
    integrator = make()
    by_position = works_by_position(integrator)
    for target in usable(integrator, *_TARGETS):
        for metric in (CurvedMetric(), CurvedMetric(False)) if by_position else (ConstantMetric(),):
            rng = np.random.default_rng(1987)
            positions = target.sample(rng, n)
            if isinstance(metric, CurvedMetric):
                momenta = metric.draw(rng, metric.factor(target, positions))
            else:
                momenta = metric.draw(rng, n, 2)
            yield (_Paths(integrator, target, metric, positions, momenta),)


on_paths = partial(check, "integrator", cases=_paths)
"""Declares a check of an integrator on one target in one metric."""

on_first_path = partial(check, "integrator", cases=lambda make: [next(_paths(make))])


def _demand_cache(found: Cache, expected: Cache, what: str, atol: float = 1e-8) -> None:
    for name, array in expected.items():
        demand_close(found[name], array, f"{name} {what}", rtol=1e-7, atol=atol)


@on_paths()
def check_phase(on: _Paths) -> None:
    """The end of a path has the shapes of its start, and the cache of its own position."""
    end, status = on.follow(on.positions, on.momenta, 0.1, 3, "a short path")
    demand_shape(end.positions, on.positions.shape, "positions at the end")
    demand_shape(end.momenta, on.momenta.shape, "momenta at the end")
    demand_shape(status, (N_CHAINS,), "status", "i")
    expected = on.integrator.cache(on.hamiltonian, end.positions)
    same = set(end.cache) == set(expected)
    demand(same, f"the cache at the end must hold {sorted(expected)}, got {sorted(end.cache)}")
    _demand_cache(end.cache, expected, "in the cache at the end against that evaluated there")


@on_paths()
def check_reversible(on: _Paths) -> None:
    """Paths lead back with negated momenta, or a negated step, on curved targets too."""
    for momentum, step, n_steps in ((-1.0, 0.15, 7), (1.0, -0.15, 5)):
        end, _ = on.follow(on.positions, on.momenta, 0.15, n_steps, "a path")
        what = "the reverse of a path that ended well"
        back, _ = on.follow(end.positions, momentum * end.momenta, step, n_steps, what)
        what = "after there and back"
        demand_close(back.positions, on.positions, f"position {what}", rtol=0, atol=REVERSAL)
        demand_close(momentum * back.momenta, on.momenta, f"momentum {what}", rtol=0, atol=REVERSAL)


@check("integrator", cases=partial(_paths, n=4))
def check_volume(on: _Paths) -> None:
    """The numerical Jacobian of the map from start to end has determinant 1."""
    # sixth order, so that the step may be wide: else the noise of implicit solves would dominate
    stencil, step = {1: 45.0, 2: -9.0, 3: 1.0}, 2e-3
    moves = step * np.array([j * sign for j in stencil for sign in (1, -1)])
    weights = np.array([w * sign for w in stencil.values() for sign in (1, -1)])
    z = np.concatenate([on.positions, on.momenta], axis=1)
    # one batch, since an implicit step costs hardly more for many chains than for few
    starts = (z + moves[:, None, None, None] * np.eye(4)[:, None]).reshape(-1, 4)
    end, _ = on.follow(starts[:, :2], starts[:, 2:], 0.2, 3, "a path from a start moved by a hair")
    ends = np.concatenate([end.positions, end.momenta], axis=1).reshape(len(moves), 4, 4, 4)
    jacobians = np.einsum("m,mkni->nik", weights, ends) / (60.0 * step)
    what = f"{on.name}: volume after a path, where it was 1 before"
    demand_close(np.abs(np.linalg.det(jacobians)), np.ones(4), what, atol=1e-6)


@on_paths()
def check_order(on: _Paths) -> None:
    """Over a fixed time, halving the step divides the energy error by about four, or more."""
    before = on.hamiltonian.energy(on.phase(on.positions, on.momenta))
    errors = []
    for n in (16, 32):
        end, _ = on.follow(on.positions, on.momenta, 0.8 / n, n, "a path")
        errors.append(float(np.abs(on.hamiltonian.energy(end) - before).mean()))
    what = f"mean energy error is {errors[0]:.3g} with 16 steps and {errors[1]:.3g} with 32 steps"
    falls = errors[1] < 0.4 * errors[0] or errors[1] < 1e-9
    demand(falls, f"{on.name}: {what}; an integrator of second order divides it by four")


@on_paths()
def check_chains_alone(on: _Paths) -> None:
    """Chains with step sizes and lengths of their own end where each would end alone."""
    n_steps, sizes = np.array([3, 1, 5, 5, 2, 4]), np.array([0.1, 0.2, -0.1, 0.15, 0.05, 0.1])
    end, _ = on.follow(on.positions, on.momenta, sizes, n_steps)
    for i in range(N_CHAINS):
        one = slice(i, i + 1)
        alone, _ = on.follow(on.positions[one], on.momenta[one], sizes[one], n_steps[one])
        what = f"of chain {i} of a batch against the same chain alone"
        demand_close(end.positions[one], alone.positions, f"position {what}", atol=REVERSAL)
        demand_close(end.momenta[one], alone.momenta, f"momentum {what}", atol=REVERSAL)
        here = {name: array[one] for name, array in end.cache.items()}
        _demand_cache(here, alone.cache, what)


@on_first_path()
def check_start_untouched(on: _Paths) -> None:
    """The phase at the start is not changed, and may be read-only; gradients a step are few."""
    counting = CountingPotential(on.target)
    counted = attrs.evolve(on, target=counting)
    start = counted.phase(on.positions, on.momenta)
    cache = {name: np.array(array) for name, array in start.cache.items()}
    phase, sizes, n_steps = attrs.evolve(start, cache=cache), np.full(6, 0.1), np.full(6, 20)
    arrays = {"positions": phase.positions, "momenta": phase.momenta, "step_size": sizes}
    counting.forget()
    demand_untouched(
        lambda: on.integrator.advance(counted.hamiltonian, phase, sizes, n_steps),
        {**arrays, "n_steps": n_steps, **cache},
    )
    cost = counting.gradients() / n_steps.sum()  # explicit integrators need about one
    demand(cost <= 60.0, f"a step costs {cost:.1f} gradients a chain, and may cost 60")


@on_paths()
def check_failures_are_statuses(on: _Paths) -> None:
    """A path into a region without values ends with a status; other paths are not affected."""
    positions, momenta = 0.2 * on.positions, on.momenta.copy()  # inside the fence
    momenta[::2] *= 50.0
    fenced = attrs.evolve(on, target=Fenced(on.target, 4.0))
    end, status = fenced.follow(positions, momenta, 0.15, 4)
    ok = status == Status.OK
    demand(not ok[::2].any(), f"paths that leave the support must not end with OK, got {status}")
    demand(ok[1::2].any(), "every path of a batch failed because some did")
    finite = np.isfinite(end.positions[ok]).all() and np.isfinite(end.momenta[ok]).all()
    demand(finite, "a path with status OK must end at a finite position and momentum")
    alone, _ = fenced.follow(positions[1:2], momenta[1:2], 0.15, 4)
    what = "a good path beside paths that fail"
    demand_close(end.positions[1:2], alone.positions, what, atol=REVERSAL)


@attrs.frozen(eq=False)
class _Energies:
    """A metric at some positions; one that changes with position, on a target."""

    name: str
    metric: Any
    target: Any
    positions: FloatArray
    vectors: FloatArray = attrs.field(
        factory=lambda: np.random.default_rng(5).standard_normal((N_CHAINS, 2)), init=False
    )

    def cache(self, positions: FloatArray) -> tuple[Cache, ...]:
        """Return what goes before the momenta in every call."""
        return () if self.target is None else (self.metric.factor(self.target, positions),)

    def masses(self, positions: FloatArray) -> FloatArray:
        """Return M or G, shape (n, 2, 2), by products with unit vectors."""
        units = [np.tile(unit, (len(positions), 1)) for unit in np.eye(2)]
        if self.target is None:
            return np.linalg.inv(np.stack([self.metric.velocity(each) for each in units], axis=-1))
        cache = self.cache(positions)
        return np.stack([self.metric.momentum(*cache, each) for each in units], axis=-1)

    def log_determinants(self, positions: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.slogdet(self.masses(positions))[1], dtype=np.float64)

    def forms(self, positions: FloatArray) -> FloatArray:
        """Return u^T G u, u the vectors."""
        products = self.metric.momentum(*self.cache(positions), self.vectors)
        return np.asarray((self.vectors * products).sum(axis=1))

    def draw(self, cache: tuple[Cache, ...], n: int) -> FloatArray:
        """Draw momenta, from a cache of n positions if there is one."""
        return np.asarray(self.metric.draw(np.random.default_rng(29), *(cache or (n, 2))))


def _energies(make: Factory) -> Iterator[tuple[_Energies]]:
    """Yield the metric as made and, if it is tunable, as adapted, on all targets that fit."""
    metric = make()
    by_position = changes_with_position(metric)
    several = {"untuned": metric}
    if metric.tunable:
        several["adapted"] = metric.adapt(COVARIANCE[by_position])
    for target in usable(metric, *_TARGETS) if by_position else (None,):
        rng = np.random.default_rng(1666)
        positions = target.sample(rng, N_CHAINS) if target else rng.standard_normal((N_CHAINS, 2))
        where = f", {type(target).__name__}" if target else ""
        for label, one in several.items():
            yield (_Energies(f"{label}{where}: ", one, target, positions),)


with_energies = partial(check, "metric", cases=_energies)
"""Declares a check of a metric, as made and as adapted."""

on_position_metrics = partial(with_energies, claimed=changes_with_position)


@with_energies()
def check_kinetic_energy(on: _Energies) -> None:
    """The energy is log det G / 2 + p^T G^-1 p / 2, or that of M without log det M."""
    momenta, cache, name = on.vectors, on.cache(on.positions), on.name
    for key, array in cache[0].items() if cache else ():
        rows = isinstance(array, np.ndarray) and array.shape[:1] == (N_CHAINS,)
        demand(rows, f"{name}{key} in the cache must be an array with one row for each position")
    masses = on.masses(on.positions)
    demand_close(masses, masses.transpose(0, 2, 1), f"{name}mass matrix against its transpose")
    least = np.linalg.eigvalsh(masses).min()
    demand(least > 0, f"{name}the mass matrix must be positive definite, eigenvalue {least:g}")
    velocity, energy = on.metric.velocity(*cache, momenta), on.metric.energy(*cache, momenta)
    demand_shape(velocity, momenta.shape, f"{name}velocity")
    demand_shape(energy, (N_CHAINS,), f"{name}energy")
    expected = np.linalg.solve(masses, momenta[:, :, None])[:, :, 0]
    demand_close(velocity, expected, f"{name}velocity against G^-1 p", rtol=1e-7)
    slope, error = difference(partial(on.metric.energy, *cache), momenta)
    demand_near(velocity, slope, error, f"{name}velocity against differences of the energy")
    level = on.log_determinants(on.positions) if cache else np.zeros(N_CHAINS)
    still = on.metric.energy(*cache, np.zeros_like(momenta))
    demand_close(2.0 * still, level, f"{name}2 K(q, 0) against log det G, or 0")
    half = 0.5 * (level + (momenta * velocity).sum(axis=1))
    demand_close(energy, half, f"{name}energy against K(q, 0) + p . velocity / 2")
    demand_close(on.metric.energy(*cache, -momenta), energy, f"{name}energy of momenta turned")


@check("metric")
def check_adapted(make: Factory) -> None:
    """``adapt`` changes no metric in place, and nothing at all if the metric is not tunable."""
    metric = make()
    adapted = metric.adapt(COVARIANCE[changes_with_position(metric)])
    what = f"tunable was {metric.tunable} and is {adapted.tunable} after adapt"
    demand(adapted.tunable == metric.tunable, f"{what}; it says what the user left free")
    for (on,) in _energies(make):
        before = on.masses(on.positions)
        other = attrs.evolve(on, metric=on.metric.adapt(_WIDE)).masses(on.positions)
        demand_equal(on.masses(on.positions), before, f"{on.name}masses before and after adapt")
        if not metric.tunable:
            demand_equal(other, before, f"{on.name}masses of a metric that is not tunable")


@with_energies()
def check_arguments_untouched(on: _Energies) -> None:
    """Positions, vectors and caches are not changed, and a generator gives the same momenta."""
    positions, vectors, metric = on.positions.copy(), on.vectors, on.metric
    cache = tuple({key: a.copy() for key, a in one.items()} for one in on.cache(positions))

    def use() -> None:
        metric.velocity(*cache, vectors)
        metric.energy(*cache, vectors)
        if cache:
            metric.momentum(*cache, vectors)
            metric.draw(np.random.default_rng(0), *cache)
            metric.log_determinant_gradient(on.target, positions, *cache)
            metric.form_gradient(on.target, positions, *cache, vectors)
            metric.approximate_product(on.target, positions, vectors)

    arrays = {"positions": positions, "vectors": vectors, **(cache[0] if cache else {})}
    demand_untouched(use, arrays)
    first, second = on.draw(cache, N_CHAINS), on.draw(cache, N_CHAINS)
    demand_equal(second, first, f"{on.name}momenta drawn twice")


@with_energies(claimed=lambda metric: not changes_with_position(metric))
def check_adapted_scales(on: _Energies) -> None:
    """M^-1 takes the diagonal of the covariance, and ``longest_scale`` is in units of M."""
    for covariance in (COVARIANCE[False], _WIDE):
        mass = on.masses(on.positions[:1])[0]
        expected = np.sqrt(np.linalg.eigvals(mass @ covariance).real.max())
        found = float(on.metric.longest_scale(covariance))
        demand_close(found, expected, f"{on.name}longest_scale")
        if on.metric.tunable:
            adapted = attrs.evolve(on, metric=on.metric.adapt(covariance))
            inverse = np.linalg.inv(adapted.masses(on.positions[:1])[0])
            what = f"{on.name}diagonal of M^-1 after adapt"
            demand_close(np.diag(inverse), np.diag(covariance), what)


@on_position_metrics()
def check_metric_derivatives(on: _Energies) -> None:
    """The two gradients are those of log det G(q) and of u^T G(q) u.

    A cheap product, where there is one, is G u on a normal target.
    """
    (cache,), given = on.cache(on.positions), (on.target, on.positions)
    of_determinant = on.metric.log_determinant_gradient(*given, cache)
    of_form = on.metric.form_gradient(*given, cache, on.vectors)
    for found, function, what in (
        (of_determinant, on.log_determinants, "log_determinant_gradient against those of log det"),
        (of_form, on.forms, "form_gradient against those of u^T G u"),
    ):
        expected, error = difference(function, on.positions)
        atol = 3.0 * error + 1e-7
        demand_close(found, expected, f"{on.name}{what}, by differences", rtol=1e-6, atol=atol)
    product = on.metric.approximate_product(*given, on.vectors)
    if product is not None:
        demand_shape(product, on.vectors.shape, f"{on.name}approximate_product")
        if isinstance(on.target, Gaussian):
            exact = on.metric.momentum(cache, on.vectors)
            demand_close(product, exact, f"{on.name}approximate_product against G u")


@on_position_metrics()
def check_positions_alone(on: _Energies) -> None:
    """Results at one position do not depend on the others, even if G is not finite there."""
    (whole,) = on.cache(on.positions)
    spoilt = on.positions.copy()
    spoilt[2], spoilt[4] = np.nan, 1e6
    with np.errstate(all="ignore"):
        cache = on.metric.factor(Fenced(on.target, 1e3), spoilt)
        energy = on.metric.energy(cache, on.vectors)[[2, 4]]
    demand(np.isnan(energy).all(), f"{on.name}energy must be NaN without a finite G, got {energy}")
    for i in (0, 1, 3, 5):
        one = slice(i, i + 1)
        (alone,) = on.cache(on.positions[one])
        for found, beside in ((whole, "others"), (cache, "NaN")):
            here = {name: array[one] for name, array in found.items()}
            what = f"{on.name}cache of position {i} beside {beside}"
            _demand_cache(here, alone, what, atol=1e-10)


@check("metric", level="statistical")
def check_momenta(make: Factory) -> None:
    """Momenta have the covariance G of their energy: L^-1 p is standard normal, G = L L^T."""
    verdicts, n = [], 40_000
    for (on,) in _energies(make):
        momenta = on.draw(on.cache(np.tile(on.positions[1], (n, 1))), n)
        demand_shape(momenta, (n, 2), f"{on.name}momenta")
        factor = np.linalg.cholesky(on.masses(on.positions[1:2])[0])
        white = np.asarray(np.linalg.solve(factor, momenta.T).T, dtype=np.float64)
        verdicts.append(normality(white, f"{on.name}L^-1 p, "))
    Verdict.join(verdicts).require("momenta must be drawn from N(0, G) with the G of the energy")
