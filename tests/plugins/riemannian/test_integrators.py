"""Both integrators with every metric on curved targets: they return, and keep volume."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit.interfaces import Hamiltonian, Phase, Status
from surrokit.testing import CountingPotential, Fenced, Limited
from surrokit.testing.parts import CurvedMetric
from surrokit.testing.targets import Banana, Gaussian, Mixture, Student

COVARIANCE = np.array([[1.3, 0.5], [0.5, 1.6]])
INTEGRATORS = ("generalized-leapfrog", "implicit-midpoint")
METRICS = {
    "fisher": sk.make("metric", "fisher"),
    "hessian": sk.make("metric", "hessian", trusted=True),
    "hessian-diagonal": sk.make("metric", "hessian-diagonal").adapt(COVARIANCE),
    "softabs": sk.make("metric", "softabs"),
    "softabs-adapted": sk.make("metric", "softabs", hardness=5.0).adapt(COVARIANCE),
}


class LogCosh:
    """U = sum log cosh((A q)_i) + |q|^2 / 2: convex, and curved everywhere."""

    dim = 2
    capabilities = frozenset({"gradient", "hessian", "hessian-derivative", "hessian-product"})
    A = np.array([[1.5, 0.4], [-0.3, 1.1], [0.6, -1.0]])

    def value_and_gradient(self, q):
        z = q @ self.A.T
        value = np.log(np.cosh(z)).sum(axis=1) + np.square(q).sum(axis=1) / 2
        return value, np.tanh(z) @ self.A + q

    def value(self, q):
        return self.value_and_gradient(q)[0]

    def hessian(self, q):
        weights = np.cosh(q @ self.A.T) ** -2.0
        return np.einsum("nm,mi,mj->nij", weights, self.A, self.A) + np.eye(2)

    def hessian_product(self, q, u):
        return np.einsum("nij,nj->ni", self.hessian(q), u)

    def _third(self, q):
        z = q @ self.A.T
        return -2.0 * np.tanh(z) * np.cosh(z) ** -2.0

    def hessian_trace_gradient(self, q, a):
        return (self._third(q) * np.einsum("mi,nij,mj->nm", self.A, a, self.A)) @ self.A

    def hessian_form_gradient(self, q, u):
        return (self._third(q) * (u @ self.A.T) ** 2) @ self.A

    def sample(self, rng, n):
        return 0.7 * rng.standard_normal((n, 2))


TARGETS = (Banana(), Mixture(), Student(), LogCosh())


def pairs():
    for name, metric in METRICS.items():
        for target in TARGETS:
            if not metric.needs <= target.capabilities:
                continue
            if name == "hessian" and not isinstance(target, LogCosh):
                continue
            yield pytest.param(metric, target, id=f"{name}-{type(target).__name__}")


def started(integrator, metric, target, n, seed=0):
    rng = np.random.default_rng(seed)
    hamiltonian = Hamiltonian(potential=target, metric=metric)
    q = target.sample(rng, n)
    cache = integrator.cache(hamiltonian, q)
    return hamiltonian, Phase(positions=q, momenta=metric.draw(rng, cache), cache=cache)


def advanced(integrator, hamiltonian, phase, step, n_steps):
    n = len(phase.positions)
    with np.errstate(all="ignore"):
        return integrator.advance(
            hamiltonian, phase, np.broadcast_to(step, n), np.broadcast_to(n_steps, n)
        )


@pytest.mark.parametrize("name", INTEGRATORS)
@pytest.mark.parametrize(("metric", "target"), list(pairs()))
def test_paths_return(name, metric, target):
    integrator = sk.make("integrator", name)
    hamiltonian, start = started(integrator, metric, target, 60)
    end, status = advanced(integrator, hamiltonian, start, 0.1, 5)
    ok = np.flatnonzero(status == Status.OK)
    assert len(ok) > 20
    turned = Phase(
        positions=end.positions[ok],
        momenta=-end.momenta[ok],
        cache={key: array[ok] for key, array in end.cache.items()},
    )
    back, status = advanced(integrator, hamiltonian, turned, 0.1, 5)
    assert (status == Status.OK).all()
    assert_allclose(back.positions, start.positions[ok], rtol=0, atol=1e-8)
    assert_allclose(-back.momenta, start.momenta[ok], rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", INTEGRATORS)
@pytest.mark.parametrize(("metric", "target"), list(pairs()))
def test_paths_keep_volume(name, metric, target):
    integrator = sk.make("integrator", name, tolerance=1e-12)
    hamiltonian, start = started(integrator, metric, target, 30)
    step, n_steps, h = 0.1, 2, 1e-4

    def mapped(z):
        q, p = z[:, :2], z[:, 2:]
        phase = Phase(positions=q, momenta=p, cache=integrator.cache(hamiltonian, q))
        end, status = advanced(integrator, hamiltonian, phase, step, n_steps)
        z = np.concatenate([end.positions, end.momenta], axis=1)
        z[status != Status.OK] = np.nan
        return z

    z = np.concatenate([start.positions, start.momenta], axis=1)
    moves = h * np.array([1, -1, 2, -2])[:, None, None, None] * np.eye(4)[:, None]
    ends = mapped((z + moves).reshape(-1, 4)).reshape(4, 4, *z.shape)  # as one batch, which is fast
    jacobian = np.einsum("m,mkni->nik", np.array([8.0, -8.0, -1.0, 1.0]), ends) / (12.0 * h)
    jacobian = jacobian[np.isfinite(jacobian).all(axis=(1, 2))]
    assert len(jacobian) > 12
    off = np.abs(np.abs(np.linalg.det(jacobian)) - 1.0)
    # close to where a step has no solution differences are poor, so the median is held closest
    assert np.median(off) < 1e-7
    assert np.mean(off < 1e-4) > 0.8


# --- cost ---


def test_with_products_a_step_costs_one_factorised_matrix():
    counting = CountingPotential(LogCosh())
    integrator = sk.make("integrator", "generalized-leapfrog")
    hamiltonian, start = started(integrator, METRICS["hessian"], LogCosh(), 4)
    hamiltonian = Hamiltonian(potential=counting, metric=hamiltonian.metric)
    _, status = advanced(integrator, hamiltonian, start, 0.3, 6)
    assert (status == Status.OK).all()
    assert counting.positions["hessian"] == 4 * 6
    assert counting.positions["hessian_trace_gradient"] == 4 * 6
    assert counting.positions["value_and_gradient"] == 4 * 6


def test_products_and_factorised_matrices_lead_to_one_place():
    integrator = sk.make("integrator", "generalized-leapfrog")
    limited = Limited(LogCosh(), LogCosh.capabilities - {"hessian-product"})
    hamiltonian, start = started(integrator, METRICS["hessian"], LogCosh(), 10)
    end, _ = advanced(integrator, hamiltonian, start, 0.3, 4)
    without = Hamiltonian(potential=limited, metric=hamiltonian.metric)
    other, _ = advanced(integrator, without, start, 0.3, 4)
    assert_allclose(other.positions, end.positions, rtol=0, atol=1e-9)
    assert_allclose(other.momenta, end.momenta, rtol=0, atol=1e-9)


def test_a_product_that_is_wrong_costs_passes_and_changes_nothing():
    class Wrong(CurvedMetric):
        def approximate_product(self, potential, positions, vectors):
            return 1.3 * super().approximate_product(potential, positions, vectors)

    integrator = sk.make("integrator", "generalized-leapfrog")
    hamiltonian, start = started(integrator, CurvedMetric(), Gaussian(), 10)
    end, _ = advanced(integrator, hamiltonian, start, 0.2, 4)
    spoilt = Hamiltonian(potential=Gaussian(), metric=Wrong())
    other, status = advanced(integrator, spoilt, start, 0.2, 4)
    assert (status == Status.OK).all()
    assert_allclose(other.positions, end.positions, rtol=0, atol=1e-9)


# --- statuses ---


@pytest.mark.parametrize("name", INTEGRATORS)
def test_an_equation_without_a_solution_is_a_status(name):
    integrator = sk.make("integrator", name, max_iterations=3)
    hamiltonian, start = started(integrator, METRICS["hessian"], LogCosh(), 6)
    _, status = advanced(integrator, hamiltonian, start, 2.5, 1)
    assert (status == Status.NOT_CONVERGED).any()


@pytest.mark.parametrize("name", INTEGRATORS)
def test_paths_out_of_the_support_fail_alone(name):
    integrator = sk.make("integrator", name)
    fenced = Fenced(Gaussian(), 3.0)
    metric = METRICS["softabs"]
    hamiltonian = Hamiltonian(potential=fenced, metric=metric)
    q = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.2]])
    p = np.array([[0.3, 0.1], [60.0, 0.0], [-0.2, 0.1]])
    start = Phase(positions=q, momenta=p, cache=integrator.cache(hamiltonian, q))
    end, status = advanced(integrator, hamiltonian, start, 0.2, 3)
    assert status.tolist() == [Status.OK, Status.NOT_FINITE, Status.OK]
    assert_array_equal(end.positions[1], q[1])


def test_a_step_that_does_not_return_is_a_status():
    integrator = sk.make("integrator", "generalized-leapfrog", tolerance=0.05)
    hamiltonian, start = started(integrator, METRICS["hessian"], LogCosh(), 6)
    _, status = advanced(integrator, hamiltonian, start, 0.5, 2)
    assert (status == Status.NOT_REVERSIBLE).any()
    hasty = sk.make("integrator", "generalized-leapfrog", tolerance=0.05, check_reversal=False)
    _, status = advanced(hasty, hamiltonian, start, 0.5, 2)
    assert (status == Status.OK).all()


@pytest.mark.parametrize("name", INTEGRATORS)
def test_what_failed_fails_as_well_from_the_other_end(name):
    """Detailed balance: a step is taken if and only if its reverse is."""
    strict = sk.make("integrator", name)
    loose = sk.make("integrator", name, check_reversal=False)
    hamiltonian, start = started(strict, METRICS["softabs"], Student(), 300)
    end, status = advanced(loose, hamiltonian, start, 0.4, 1)
    rows = np.flatnonzero(status == Status.OK)
    turned = Phase(
        positions=end.positions[rows],
        momenta=-end.momenta[rows],
        cache={key: array[rows] for key, array in end.cache.items()},
    )
    _, forth = advanced(strict, hamiltonian, start, 0.4, 1)
    back, status = advanced(strict, hamiltonian, turned, 0.4, 1)
    home = np.abs(back.positions - start.positions[rows]).max(axis=1) < 1e-6
    assert ((forth[rows] == Status.OK) == ((status == Status.OK) & home)).all()


# --- what is refused ---


@pytest.mark.parametrize("name", INTEGRATORS)
def test_a_metric_for_all_positions_is_refused(name):
    integrator = sk.make("integrator", name)
    hamiltonian = Hamiltonian(potential=Gaussian(), metric=sk.make("metric", "identity"))
    q = np.zeros((1, 2))
    message = rf"{name} needs a metric that changes with position, got IdentityMetric"
    with pytest.raises(ConfigurationError, match=message):
        integrator.cache(hamiltonian, q)
    phase = Phase(positions=q, momenta=q, cache={})
    with pytest.raises(ConfigurationError, match=message):
        integrator.advance(hamiltonian, phase, np.ones(1), np.ones(1, dtype=int))


def test_leapfrog_refuses_a_metric_by_position():
    integrator = sk.make("integrator", "leapfrog")
    hamiltonian = Hamiltonian(potential=Gaussian(), metric=METRICS["softabs"])
    q = np.zeros((1, 2))
    phase = Phase(positions=q, momenta=q, cache=integrator.cache(hamiltonian, q))
    message = "leapfrog needs a metric with one mass matrix for all positions, got SoftAbsMetric"
    with pytest.raises(ConfigurationError, match=message):
        integrator.advance(hamiltonian, phase, np.ones(1), np.ones(1, dtype=int))


@pytest.mark.parametrize("name", INTEGRATORS)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tolerance": 0.0}, "tolerance must be a positive finite number, got 0.0"),
        ({"max_iterations": 0}, "max_iterations must be a whole number of at least 1, got 0"),
        ({"reversal_tolerance": -1}, "reversal_tolerance must be a positive finite number"),
    ],
)
def test_settings_out_of_range_are_refused(name, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.make("integrator", name, **settings)


def test_one_midpoint_step_of_two_turns_a_normal_target_by_a_quarter():
    """In whitened coordinates, positions become momenta, whatever they were; energy is kept."""
    target = Gaussian()
    integrator = sk.make("integrator", "implicit-midpoint")
    hamiltonian, start = started(integrator, METRICS["hessian"], target, 40)
    end, status = advanced(integrator, hamiltonian, start, 2.0, 1)
    assert (status == Status.OK).all()
    covariance = np.array(target.covariance)
    quarter = np.array(target.mean) + start.momenta @ covariance
    assert_allclose(end.positions, quarter, rtol=0, atol=1e-8)
    metric = hamiltonian.metric
    before = start.cache["value"] + metric.energy(start.cache, start.momenta)
    after = end.cache["value"] + metric.energy(end.cache, end.momenta)
    assert_allclose(after, before, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["hessian", "softabs"])
def test_midpoints_with_products_are_those_without(name):
    class WithoutProducts(LogCosh):
        capabilities = LogCosh.capabilities - {"hessian-product"}

    integrator = sk.make("integrator", "implicit-midpoint")
    hamiltonian, start = started(integrator, METRICS[name], LogCosh(), 30)
    other, _ = started(integrator, METRICS[name], WithoutProducts(), 30)
    with_products, status = advanced(integrator, hamiltonian, start, 0.7, 2)
    without, also = advanced(integrator, other, start, 0.7, 2)
    ok = (status == Status.OK) & (also == Status.OK)
    assert ok.sum() > 25
    assert_allclose(with_products.positions[ok], without.positions[ok], rtol=0, atol=1e-8)
