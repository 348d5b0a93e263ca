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
from surrokit.testing import must
from surrokit.testing.checks import Factory, check
from surrokit.testing.parts import ConstantMetric, CurvedMetric
from surrokit.testing.statistics import Verdict, normality
from surrokit.testing.targets import Banana, Gaussian, Mixture, Student, usable
from surrokit.testing.wrappers import Fenced
from surrokit.types import Cache, FloatArray, IntArray

N_CHAINS = 6  # paths followed as one batch, and positions at which a metric is evaluated
REVERSAL = 1e-8  # largest distance from its start at which a path may end, there and back

_TARGETS = (Banana(), Mixture(), Student(), Gaussian())


def _demand_cache(found: Cache, expected: Cache, what: str, atol: float = 1e-8) -> None:
    for name, array in expected.items():
        must.close(found[name], array, f"{name} in the cache {what}", rtol=1e-7, atol=atol)


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

    def follow(
        self,
        positions: FloatArray,
        momenta: FloatArray,
        step_size: float | FloatArray,
        n_steps: int | IntArray,
        ending: str = "",
    ) -> tuple[Phase, IntArray]:
        """Follow a path from each place; all must end well if they have a name.

        What is given cannot be written to.
        """
        n = (len(positions),)
        steps = np.broadcast_to(np.asarray(n_steps, dtype=np.int64), n).copy()
        sizes = np.broadcast_to(np.asarray(step_size, dtype=np.float64), n).copy()
        held = {"positions": positions.copy(), "momenta": momenta.copy()}
        cache = self.integrator.cache(self.hamiltonian, positions)
        must.freeze(sizes, steps, *held.values(), *cache.values())
        phase = Phase(positions=held["positions"], momenta=held["momenta"], cache=cache)
        with np.errstate(all="ignore"):
            end, status = self.integrator.advance(self.hamiltonian, phase, sizes, steps)
        well = not ending or (status == Status.OK).all()
        must.hold(well, f"{ending} must end with status OK on a smooth target, got {status}")
        return end, status


def _paths(make: Factory, n: int = N_CHAINS) -> Iterator[tuple[_Paths]]:
    integrator = make()
    metrics: tuple[Any, ...] = (ConstantMetric(),)
    if works_by_position(integrator):
        metrics = (CurvedMetric(), CurvedMetric(False))
    for metric in metrics:
        fitting = [
            each for each in _TARGETS if getattr(metric, "needs", set()) <= each.capabilities
        ]
        for target in usable(integrator, *fitting):
            rng = np.random.default_rng(1987)
            positions = target.sample(rng, n)
            if isinstance(metric, CurvedMetric):
                momenta = metric.draw(rng, metric.factor(target, positions))
            else:
                momenta = metric.draw(rng, n, 2)
            yield (_Paths(integrator, target, metric, positions, momenta),)


on_paths = partial(check, "integrator", cases=_paths)
"""Declares a check of an integrator on one target in one metric."""


@on_paths()
def check_reversible(on: _Paths) -> None:
    """Paths lead back with negated momenta, or a negated step, on curved targets too.

    The end has the shapes of the start, and the cache of its own position.
    """
    for momentum, step, n_steps in ((-1.0, 0.15, 7), (1.0, -0.15, 5)):
        end, status = on.follow(on.positions, on.momenta, 0.15, n_steps, "a path")
        must.shape(end.positions, on.positions.shape, "positions at the end")
        must.shape(end.momenta, on.momenta.shape, "momenta at the end")
        must.shape(status, (N_CHAINS,), "status", "i")
        expected, held = on.integrator.cache(on.hamiltonian, end.positions), sorted(end.cache)
        must.hold(set(held) == set(expected), f"the cache must hold {sorted(expected)}, got {held}")
        _demand_cache(end.cache, expected, "at the end against that evaluated there")
        what = "the reverse of a path that ended well"
        back, _ = on.follow(end.positions, momentum * end.momenta, step, n_steps, what)
        must.close(back.positions, on.positions, "position there and back", rtol=0, atol=REVERSAL)
        again = momentum * back.momenta
        must.close(again, on.momenta, "momentum there and back", rtol=0, atol=REVERSAL)


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
    must.close(np.abs(np.linalg.det(jacobians)), np.ones(4), what, atol=1e-6)


@on_paths()
def check_chains_alone(on: _Paths) -> None:
    """Chains of their own step sizes and lengths end where each would end alone.

    Paths into a region without values among them end with a status.
    """
    positions, momenta = 0.2 * on.positions, on.momenta.copy()  # inside the fence
    momenta[::2] *= 50.0
    n_steps, sizes = np.array([4, 1, 5, 5, 4, 4]), np.array([0.15, 0.2, 0.15, -0.1, 0.15, 0.1])
    fenced = attrs.evolve(on, target=Fenced(on.target, 4.0))
    end, status = fenced.follow(positions, momenta, sizes, n_steps)
    ok = status == Status.OK
    must.hold(not ok[::2].any(), f"paths that leave the support must not end with OK, got {status}")
    must.hold(ok[1::2].any(), "every path of a batch failed because some did")
    finite = np.isfinite(end.positions[ok]).all() and np.isfinite(end.momenta[ok]).all()
    must.hold(finite, "a path with status OK must end at a finite position and momentum")
    for i in np.flatnonzero(ok):
        one = slice(i, i + 1)
        alone, _ = fenced.follow(positions[one], momenta[one], sizes[one], n_steps[one])
        what = f"of chain {i} of a batch against the same chain alone"
        must.close(end.positions[one], alone.positions, f"position {what}", atol=REVERSAL)
        must.close(end.momenta[one], alone.momenta, f"momentum {what}", atol=REVERSAL)
        here = {name: array[one] for name, array in end.cache.items()}
        _demand_cache(here, alone.cache, what)


# --- metrics ---


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
        """Return what goes before the momenta in every call, which cannot be written to."""
        must.freeze(positions, self.vectors)
        if self.target is None:
            return ()
        found: Cache = self.metric.factor(self.target, positions)
        must.freeze(*found.values())
        return (found,)

    def masses(self, positions: FloatArray) -> FloatArray:
        """Return M or G, shape (n, 2, 2), by products with unit vectors."""
        units, cache = (
            [np.tile(unit, (len(positions), 1)) for unit in np.eye(2)],
            self.cache(positions),
        )
        times = self.metric.momentum if cache else self.metric.velocity
        found = np.stack([times(*cache, each) for each in units], axis=-1)
        return found if cache else np.linalg.inv(found)

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
    several = {"untuned": metric}
    if metric.tunable:
        several["adapted"] = metric.adapt(np.array([[1.3, 0.5], [0.5, 0.6]]))
    for target in usable(metric, *_TARGETS) if changes_with_position(metric) else (None,):
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
        must.hold(rows, f"{name}{key} in the cache must be an array with one row for each position")
    masses = on.masses(on.positions)
    must.matrices(masses, f"{name}mass matrix", np.finfo(float).tiny)
    velocity, energy = on.metric.velocity(*cache, momenta), on.metric.energy(*cache, momenta)
    must.shape(velocity, momenta.shape, f"{name}velocity")
    must.shape(energy, (N_CHAINS,), f"{name}energy")
    expected = np.linalg.solve(masses, momenta[:, :, None])[:, :, 0]
    must.close(velocity, expected, f"{name}velocity against G^-1 p", rtol=1e-7)
    level = on.log_determinants(on.positions) if cache else np.zeros(N_CHAINS)
    half = 0.5 * (level + (momenta * velocity).sum(axis=1))
    must.close(energy, half, f"{name}energy against log det G / 2 + p . velocity / 2")


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
        expected, error = must.difference(function, on.positions)
        atol = 3.0 * error + 1e-7
        must.close(found, expected, f"{on.name}{what}, by differences", rtol=1e-6, atol=atol)
    product = on.metric.approximate_product(*given, on.vectors)
    if product is not None:
        must.shape(product, on.vectors.shape, f"{on.name}approximate_product")
        if isinstance(on.target, Gaussian):
            exact = on.metric.momentum(cache, on.vectors)
            must.close(product, exact, f"{on.name}approximate_product against G u")


@on_position_metrics()
def check_positions_alone(on: _Energies) -> None:
    """Results at one position do not depend on the others, even if G is not finite there."""
    spoilt = on.positions.copy()
    spoilt[2], spoilt[4] = np.nan, 1e6
    with np.errstate(all="ignore"):
        cache = on.metric.factor(Fenced(on.target, 1e3), spoilt)
        energy = on.metric.energy(cache, on.vectors)[[2, 4]]
    must.equal(energy, [np.nan, np.nan], f"{on.name}energy without a finite G")
    for i in (0, 1, 3, 5):
        one = slice(i, i + 1)
        (alone,) = on.cache(on.positions[one].copy())
        here = {name: array[one] for name, array in cache.items()}
        _demand_cache(here, alone, f"of position {i} beside NaN, {on.name}", atol=1e-10)


@check("metric", level="statistical")
def check_momenta(make: Factory) -> None:
    """Momenta have the covariance G of their energy: L^-1 p is standard normal, G = L L^T."""
    verdicts, n = [], 40_000
    for (on,) in _energies(make):
        cache = on.cache(np.tile(on.positions[1], (n, 1)))
        momenta = on.draw(cache, n)
        must.equal(on.draw(cache, n), momenta, f"{on.name}momenta drawn twice")
        must.shape(momenta, (n, 2), f"{on.name}momenta")
        factor = np.linalg.cholesky(on.masses(on.positions[1:2])[0])
        white = np.asarray(np.linalg.solve(factor, momenta.T).T, dtype=np.float64)
        verdicts.append(normality(white, f"{on.name}L^-1 p, "))
    Verdict.join(verdicts).require("momenta must be drawn from N(0, G) with the G of the energy")
