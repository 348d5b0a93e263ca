"""Checks of integrators: reversibility, volume, order, failures.

An integrator with a true attribute ``by_position`` works with metrics that change with position. It
is checked on such a metric, once with products and once without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from surrokit.interfaces import Hamiltonian, Metric, Phase, PositionMetric, Status
from surrokit.kernel.hamiltonian import works_by_position
from surrokit.potentials import Potential
from surrokit.testing.measures.demands import demand, demand_close, demand_equal, demand_shape
from surrokit.testing.parts.curved_metric import CurvedMetric
from surrokit.testing.parts.reference import ConstantMetric
from surrokit.testing.results import Check, Factory
from surrokit.testing.targets.counting import CountingPotential, Fenced
from surrokit.testing.targets.densities import Banana, Gaussian, Mixture, Student
from surrokit.testing.targets.target import Target
from surrokit.types import Cache, FloatArray, IntArray

N_CHAINS = 6
"""Paths followed as one batch."""

REVERSAL = 1e-8
"""Largest distance from its start at which a path may end that was followed there and back."""

VOLUME = 1e-6
"""Largest distance from 1 of the determinant of a path's Jacobian, the error of differences."""

MAX_GRADIENTS_A_STEP = 60.0
"""Largest number of gradients that a step may cost; explicit integrators need about one."""

_Targets = tuple[Target, ...]
_CURVED: _Targets = (Banana(), Mixture(), Student(), Gaussian())


_Case = tuple[Target, Metric | PositionMetric]
"""A target, and the metric to follow paths in."""


def _hamiltonian(potential: Potential, metric: Metric | PositionMetric) -> Hamiltonian:
    return Hamiltonian(potential=potential, metric=metric)


def _usable(integrator: Any) -> list[_Case]:
    targets = [target for target in _CURVED if integrator.needs <= target.capabilities]
    demand(
        targets,
        f"the integrator needs {sorted(integrator.needs)}, which no target of the suite offers; "
        "names are in surrokit.capabilities",
    )
    if not works_by_position(integrator):
        return [(target, ConstantMetric()) for target in targets]
    return [(target, CurvedMetric(products)) for target in targets for products in (True, False)]


def _start(case: _Case, n: int = N_CHAINS) -> tuple[FloatArray, FloatArray]:
    target, metric = case
    rng = np.random.default_rng(1987)
    positions = target.sample(rng, n)
    if isinstance(metric, CurvedMetric):
        return positions, metric.draw(rng, metric.factor(target, positions))
    return positions, metric.draw(rng, n, target.dim)  # type: ignore[arg-type, call-arg]


def _starts(integrator: Any) -> Iterator[tuple[_Case, FloatArray, FloatArray]]:
    """Yield all cases, each with positions and momenta to start from."""
    for case in _usable(integrator):
        yield case, *_start(case)


def _follow(
    integrator: Any,
    case: tuple[Potential, Metric | PositionMetric],
    positions: FloatArray,
    momenta: FloatArray,
    step_size: float | FloatArray,
    n_steps: int | IntArray,
) -> tuple[Phase, IntArray]:
    n = len(positions)
    hamiltonian = _hamiltonian(*case)
    cache = integrator.cache(hamiltonian, positions)
    phase = Phase(positions=positions, momenta=momenta, cache=cache)
    steps = np.broadcast_to(np.asarray(n_steps, dtype=np.int64), (n,)).copy()
    sizes = np.broadcast_to(np.asarray(step_size, dtype=np.float64), (n,)).copy()
    with np.errstate(all="ignore"):
        end, status = integrator.advance(hamiltonian, phase, sizes, steps)
    return end, status


def _demand_ok(status: IntArray, what: str) -> None:
    demand(
        (status == Status.OK).all(),
        f"{what} must end with status OK on a smooth target, got {status.tolist()}",
    )


def check_phase(make: Factory) -> None:
    """The end of a path has the shapes of its start, and the cache of its own position."""
    integrator = make()
    for case, positions, momenta in _starts(integrator):
        end, status = _follow(integrator, case, positions, momenta, 0.1, 3)
        demand_shape(end.positions, positions.shape, "positions at the end")
        demand_shape(end.momenta, momenta.shape, "momenta at the end")
        demand(
            status.shape == (N_CHAINS,) and status.dtype.kind == "i",
            f"status must be one whole number a chain, got {status!r}",
        )
        _demand_ok(status, "a short path")
        _demand_cache(end.cache, integrator.cache(_hamiltonian(*case), end.positions))


def _demand_cache(found: Cache, expected: Cache) -> None:
    demand(
        set(found) == set(expected),
        f"the cache at the end must hold {sorted(expected)}, got {sorted(found)}",
    )
    for name, array in expected.items():
        demand_close(
            np.asarray(found[name]),
            np.asarray(array),
            f"{name} in the cache at the end against the same evaluated there",
            rtol=1e-7,
            atol=1e-8,
        )


def check_reversible(make: Factory) -> None:
    """A path with negated momenta leads from the end back to the start, on curved targets too."""
    integrator = make()
    for case, positions, momenta in _starts(integrator):
        end, status = _follow(integrator, case, positions, momenta, 0.15, 7)
        _demand_ok(status, "a path")
        back, status = _follow(integrator, case, end.positions, -end.momenta, 0.15, 7)
        _demand_ok(status, "the reverse of a path that ended well")
        name = _name_of(case)
        demand_close(
            back.positions,
            positions,
            f"{name}: position after there and back",
            rtol=0,
            atol=REVERSAL,
        )
        demand_close(
            -back.momenta, momenta, f"{name}: momentum after there and back", rtol=0, atol=REVERSAL
        )


def check_negative_step(make: Factory) -> None:
    """A path with a negated step size leads back, with the momenta as they are."""
    integrator = make()
    for case, positions, momenta in _starts(integrator):
        end, _ = _follow(integrator, case, positions, momenta, 0.15, 5)
        back, status = _follow(integrator, case, end.positions, end.momenta, -0.15, 5)
        _demand_ok(status, "a path with a negative step")
        demand_close(back.positions, positions, "position after a step back", atol=REVERSAL)
        demand_close(back.momenta, momenta, "momentum after a step back", atol=REVERSAL)


def check_volume(make: Factory) -> None:
    """The numerical Jacobian of the map from start to end has determinant 1."""
    integrator = make()
    for case in _usable(integrator):
        positions, momenta = _start(case, 4)
        matrix = _jacobian(partial(_map, integrator, case), positions, momenta)
        determinant = np.abs(np.linalg.det(matrix))
        demand_close(
            determinant,
            np.ones(len(positions)),
            f"{_name_of(case)}: volume after a path, where it was 1 before",
            atol=VOLUME,
        )


def _name_of(case: _Case) -> str:
    return f"{type(case[0]).__name__}, {type(case[1]).__name__}"


def _map(integrator: Any, case: _Case, z: FloatArray) -> FloatArray:
    dim = case[0].dim
    end, status = _follow(integrator, case, z[:, :dim], z[:, dim:], 0.2, 3)
    _demand_ok(status, "a path from a start moved by a hair")
    return np.concatenate([end.positions, end.momenta], axis=1)


_STENCIL = {1: 45.0, 2: -9.0, 3: 1.0}  # sixth order, so that the step may be wide: else the
_STEP = 2e-3  # noise of implicit solves would dominate


def _jacobian(
    function: Callable[[FloatArray], FloatArray], positions: FloatArray, momenta: FloatArray
) -> FloatArray:
    z = np.concatenate([positions, momenta], axis=1)
    n, dim = z.shape
    moves = _STEP * np.array([j * sign for j in _STENCIL for sign in (1, -1)])
    weights = np.array([w * sign for w in _STENCIL.values() for sign in (1, -1)])
    starts = z + moves[:, None, None, None] * np.eye(dim)[:, None]  # (moves, dim, n, dim)
    # one batch, since an implicit step costs hardly more for many chains than for few
    ends = function(starts.reshape(-1, dim)).reshape(len(moves), dim, n, dim)
    return np.asarray(np.einsum("m,mkni->nik", weights, ends) / (60.0 * _STEP))


def check_order(make: Factory) -> None:
    """Over a fixed time, halving the step divides the energy error by about four, or more."""
    integrator = make()
    for case, positions, momenta in _starts(integrator):
        errors = []
        for n_steps in (16, 32):
            end, status = _follow(integrator, case, positions, momenta, 0.8 / n_steps, n_steps)
            _demand_ok(status, "a path")
            hamiltonian = _hamiltonian(*case)
            cache = integrator.cache(hamiltonian, positions)
            before = hamiltonian.energy(Phase(positions=positions, momenta=momenta, cache=cache))
            errors.append(float(np.abs(hamiltonian.energy(end) - before).mean()))
        demand(
            errors[1] < 0.4 * errors[0] or errors[1] < 1e-9,
            f"{_name_of(case)}: mean energy error is {errors[0]:.3g} with 16 steps and "
            f"{errors[1]:.3g} with 32 over the same time; an integrator of second order divides "
            "it by four",
        )


def check_chains_alone(make: Factory) -> None:
    """Chains with step sizes and lengths of their own end where each would end alone."""
    integrator = make()
    for case, positions, momenta in _starts(integrator):
        n_steps = np.array([3, 1, 5, 5, 2, 4])
        sizes = np.array([0.1, 0.2, -0.1, 0.15, 0.05, 0.1])
        end, status = _follow(integrator, case, positions, momenta, sizes, n_steps)
        _demand_ok(status, "a path")
        for i in range(N_CHAINS):
            one = slice(i, i + 1)
            alone, _ = _follow(
                integrator, case, positions[one], momenta[one], sizes[one], n_steps[one]
            )
            what = f"of chain {i} of a batch against the same chain alone"
            demand_close(end.positions[one], alone.positions, f"position {what}", atol=REVERSAL)
            demand_close(end.momenta[one], alone.momenta, f"momentum {what}", atol=REVERSAL)
            for name, array in alone.cache.items():
                demand_close(end.cache[name][one], array, f"{name} {what}", rtol=1e-7, atol=1e-8)


def check_start_untouched(make: Factory) -> None:
    """The phase at the start of a path is not changed, and may be read-only."""
    integrator = make()
    case = _usable(integrator)[0]
    hamiltonian = _hamiltonian(*case)
    positions, momenta = _start(case)
    cache = {k: np.array(v) for k, v in integrator.cache(hamiltonian, positions).items()}
    sizes, n_steps = np.full(N_CHAINS, 0.1), np.full(N_CHAINS, 3)
    arrays = {"positions": positions, "momenta": momenta, "step_size": sizes, "n_steps": n_steps}
    arrays |= cache
    before = {name: array.copy() for name, array in arrays.items()}
    for array in arrays.values():
        array.setflags(write=False)
    phase = Phase(positions=positions, momenta=momenta, cache=cache)
    integrator.advance(hamiltonian, phase, sizes, n_steps)
    for name, array in arrays.items():
        demand_equal(array, before[name], f"{name} before and after a path")


def check_failures_are_statuses(make: Factory) -> None:
    """A path into a region without values ends with a status; other paths are not affected."""
    integrator = make()
    for case, positions, momenta in _starts(integrator):
        positions = 0.2 * positions  # inside the fence
        momenta[::2] *= 50.0
        fenced = Fenced(case[0], 4.0), case[1]
        end, status = _follow(integrator, fenced, positions, momenta, 0.15, 4)
        _demand_failures(end, status)
        one = slice(1, 2)
        alone, _ = _follow(integrator, fenced, positions[one], momenta[one], 0.15, 4)
        demand_close(
            end.positions[one], alone.positions, "a good path beside paths that fail", atol=REVERSAL
        )


def _demand_failures(end: Phase, status: IntArray) -> None:
    demand(
        (status[::2] != Status.OK).all(),
        f"paths that leave the support must end with another status than OK, got "
        f"{status[::2].tolist()}",
    )
    demand(
        (status[1::2] == Status.OK).any(),
        "every path of a batch failed because some did; one chain's failure must not touch others",
    )
    ok = status == Status.OK
    demand(
        np.isfinite(end.positions[ok]).all() and np.isfinite(end.momenta[ok]).all(),
        "a path with status OK must end at a finite position and momentum",
    )


def gradients_a_step(make: Factory, n_steps: int = 20) -> float:
    """Return how many gradients a step costs, on a curved target, for a report."""
    integrator = make()
    case = _usable(integrator)[0]
    positions, momenta = _start(case)
    hamiltonian = _hamiltonian(counting := CountingPotential(case[0]), case[1])
    phase = Phase(
        positions=positions, momenta=momenta, cache=integrator.cache(hamiltonian, positions)
    )
    before = counting.gradients()
    integrator.advance(hamiltonian, phase, np.full(N_CHAINS, 0.1), np.full(N_CHAINS, n_steps))
    return (counting.gradients() - before) / (N_CHAINS * n_steps)


def check_cost(make: Factory) -> None:
    """A step costs a bounded number of gradients; :func:`gradients_a_step` reports it."""
    cost = gradients_a_step(make)
    demand(
        cost <= MAX_GRADIENTS_A_STEP,
        f"a step costs {cost:.1f} gradients a chain; {MAX_GRADIENTS_A_STEP:g} is the most that "
        "an implicit solve may take",
    )


CHECKS: tuple[Check, ...] = (
    Check(check_phase),
    Check(check_reversible),
    Check(check_negative_step),
    Check(check_volume),
    Check(check_order),
    Check(check_chains_alone),
    Check(check_start_untouched),
    Check(check_failures_are_statuses),
    Check(check_cost),
)
"""For every integrator."""
