"""A bounded target seen from the whole line: the chain rule, for each capability."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import trapezoid

import surrokit as sk
from surrokit import BoundedPotential, Parameters
from surrokit.coordinates.transforms import Scaling
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.targets.bounds import parameters_of, transform_of, with_bounds
from surrokit.targets.energies import gaussian_energy
from surrokit.targets.functions import gradient_of_energy
from surrokit.targets.gaussian import GaussianPrior
from surrokit.targets.scaling import scaled
from surrokit.testing import check_potential

PARAMETERS = Parameters.declare(
    {"a": (0.0, None), "b": (None, None), "c": (-1.0, 2.0), "d": (None, 1.0)}
)
DATA = np.array([1.0, -1.0])
ENERGY = gaussian_energy(DATA, [0.5, 2.0], GaussianPrior(mean=0.3, sd=1.7))
WEIGHT = np.array([4.0, 0.25])
BENT = np.zeros((2, 4, 4))
BENT[0, 0, 1] = BENT[0, 1, 0] = 1
BENT[1, 3, 3] = 2
FACTORS = {
    **dict.fromkeys(["hessian_trace_gradient", "metric_trace_gradient"], "nij,nijk->nk"),
    **dict.fromkeys(["hessian_form_gradient", "metric_form_gradient"], "ni,nj,nijk->nk"),
    "hessian_product": "nij,nj->ni",
}
ALL = ["gradient", "gradient-alone", "forward", "jacobian", "initial"]
ALL += ["hessian", "hessian-derivative", "hessian-product", "metric", "metric-derivative"]


@attrs.frozen
class Everything:
    """A potential of four numbers with each capability: a nonlinear map under a Gaussian energy."""

    dim: int = 4
    capabilities: frozenset = frozenset(ALL)
    energy = ENERGY

    def forward(self, q):
        return np.column_stack([q[:, 0] * q[:, 1] + q[:, 2], np.square(q[:, 3]) + q[:, 0]])

    def jacobian(self, q):
        zero, one = np.zeros(len(q)), np.ones(len(q))
        rows = [[q[:, 1], q[:, 0], one, zero], [one, zero, zero, 2 * q[:, 3]]]
        return np.stack([np.column_stack(row) for row in rows], axis=1)

    def forward_and_jacobian(self, q):
        return self.forward(q), self.jacobian(q)

    def value(self, q):
        return self.energy.value(self.forward(q), q)

    def value_and_gradient(self, q):
        return gradient_of_energy(self.energy, *self.forward_and_jacobian(q), q)

    def gradient(self, q):
        return self.value_and_gradient(q)[1]

    def metric(self, q):
        return np.einsum("nmi,m,nmj->nij", self.jacobian(q), WEIGHT, self.jacobian(q))

    def hessian(self, q):
        misfit = (self.forward(q) - DATA) * WEIGHT
        return self.metric(q) + np.eye(4) / 1.7**2 + np.einsum("nm,mij->nij", misfit, BENT)

    def slopes(self, name, q):
        one = np.einsum("m,nmi,mjk->nijk", WEIGHT, self.jacobian(q), BENT)
        if name.startswith("metric"):
            return one + one.transpose(0, 2, 1, 3)
        return one + one.transpose(0, 2, 3, 1) + one.transpose(0, 3, 1, 2)

    def initial(self, rng, n):
        return np.tile([1.0, 0.0, 0.5, 0.0], (n, 1)) + 0.1 * rng.random((n, 4))

    def __getattr__(self, name):
        """Return a product or contraction."""
        if name not in FACTORS:
            raise AttributeError(name)

        def contracted(q, factors):
            if name == "hessian_product":
                return np.einsum(FACTORS[name], self.hessian(q), factors)
            twice = (factors,) * (FACTORS[name].count(",") or 1)
            return np.einsum(FACTORS[name], *twice, self.slopes(name, q))

        return contracted


INNER = Everything()


@pytest.fixture
def target():
    return BoundedPotential(INNER, PARAMETERS)


@pytest.fixture
def z(rng):
    return rng.standard_normal((6, 4))


@pytest.fixture
def q(target, z):
    return target.transform.to_bounded(z)


def symmetric(rng):
    half = rng.standard_normal((6, 4, 4))
    return half + half.transpose(0, 2, 1)


def factors_of(method, rng):
    """Return a matrix, a vector or weights for each position, if a method takes them."""
    if method.endswith("trace_gradient"):
        return (symmetric(rng),)
    return (rng.standard_normal((6, 4)),) if method in FACTORS else ()


SCALING = Scaling(np.array([0.1, 0.2, 0.3, 0.4]), np.eye(4) + np.diag([0.5, -0.4, 0.3], 1))
LIFTED = {
    "bounded": lambda: BoundedPotential(INNER, PARAMETERS),
    "scaled": lambda: scaled(INNER, SCALING),
    "scaled and bounded": lambda: scaled(BoundedPotential(INNER, PARAMETERS), SCALING),
}


@pytest.mark.parametrize("make", LIFTED.values(), ids=list(LIFTED))
def test_all_derivatives_follow_the_chain_rule(make):
    results = check_potential(make)
    checked = {result.name.partition("[")[0] for result in results}
    assert checked >= {"check_gradient", "check_hessian", "check_metric_matrix", "check_forward"}
    assert len(results) >= 12
    assert [result for result in results if result.outcome == "failed"] == []


def test_values_metrics_outputs_and_starts_are_the_inner_ones(target, z, q):
    assert_allclose(target.value(z), INNER.value(q) - target.transform.log_jacobian(z))
    d = target.transform.derivatives(z)
    slopes = np.stack([np.diag(row) for row in d.first])
    expected = slopes @ INNER.metric(q) @ slopes - np.stack([np.diag(row) for row in d.log_second])
    assert_allclose(target.metric(z), expected)
    assert_allclose(target.forward(z), INNER.forward(q))
    starts = target.initial(np.random.default_rng(1), 5)
    expected = INNER.initial(np.random.default_rng(1), 5)
    assert_allclose(target.transform.to_bounded(starts), expected)
    assert target.capabilities == INNER.capabilities


class Squared:
    dim, capabilities = 1, frozenset()

    def value(self, q):
        return 0.5 * np.square(q[:, 0])


def test_the_density_integrates_to_that_of_the_bounded_parameter():
    half_normal = BoundedPotential(Squared(), Parameters.declare({"a": (0, None)}))
    z = np.linspace(-30, 8, 20001)
    mass = trapezoid(np.exp(-half_normal.value(z[:, None])), z)
    assert_allclose(mass, np.sqrt(np.pi / 2), rtol=1e-6)


@pytest.mark.parametrize("method", FACTORS)
def test_contractions_need_one_factor_for_each_position(target, z, rng, method):
    expected = r"matrices must have shape \(6, 4, 4\)|vectors must have shape \(6, 4\)"
    with pytest.raises(ShapeError, match=f"({expected}), got .*; pass one for each position"):
        getattr(target, method)(z, factors_of(method, rng)[0][:5])


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ({"gradient", "hessian", "convex"}, {"gradient", "hessian"}),
        ({"gradient", "hessian-diagonal", "metric-product"}, {"gradient"}),
        ({"rows", "gaussian", "gradient"}, {"gradient"}),
    ],
)
def test_bounds_take_away_what_they_must(inner, expected):
    potential = Everything(capabilities=frozenset(inner))
    bounded = BoundedPotential(potential, PARAMETERS).capabilities
    assert bounded == expected


def test_what_cannot_be_bounded_is_refused():
    with pytest.raises(ShapeError, match="hold 1 numbers, but the potential takes 4"):
        BoundedPotential(INNER, Parameters.declare({"a": None}))
    with pytest.raises(ConfigurationError, match="none of the parameters has a bound"):
        BoundedPotential(INNER, Parameters.unnamed(4))


def test_parameters_and_transforms_are_those_declared(target):
    assert with_bounds(INNER, Parameters.unnamed(4)) is INNER
    assert isinstance(with_bounds(INNER, PARAMETERS), BoundedPotential)
    assert parameters_of(target) is PARAMETERS
    assert transform_of(target) is target.transform
    named = sk.potential(lambda q: q.sum(), parameters={"a": None, "b": sk.real(2)})
    assert not isinstance(named, BoundedPotential)
    assert parameters_of(named).labels == ["a", "b[0]", "b[1]"]
    assert parameters_of(INNER) == Parameters.unnamed(4)
    assert_allclose(transform_of(INNER).to_bounded(np.ones((1, 4))), 1.0)
