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
from surrokit.errors import ConfigurationError, EvaluationError, ShapeError
from surrokit.model.calls import Calls
from surrokit.model.model import change_model
from surrokit.targets.bounds import LiftedEnergy, parameters_of, transform_of, with_bounds
from surrokit.targets.functions import gradient_of_energy
from surrokit.targets.gaussian import GaussianEnergy, GaussianPrior
from surrokit.targets.scaling import scaled
from surrokit.testing import check_potential

BOUNDS = {"a": (0.0, None), "b": (None, None), "c": (-1.0, 2.0), "d": (None, 1.0)}
PARAMETERS = Parameters.declare(BOUNDS)
ENERGY = GaussianEnergy(
    data=[1.0, -1.0], noise_sd=[0.5, 2.0], prior=GaussianPrior(mean=0.3, sd=1.7)
)


BENT = np.zeros((2, 4, 4))
BENT[0, 0, 1] = BENT[0, 1, 0] = 1
BENT[1, 3, 3] = 2


@attrs.frozen
class Everything:
    """A potential of four numbers with each capability: a nonlinear map under a Gaussian energy."""

    dim: int = 4
    capabilities: frozenset = frozenset(
        {
            "gradient",
            "gradient-alone",
            "hessian",
            "hessian-derivative",
            "hessian-product",
            "hessian-diagonal",
            "metric",
            "metric-derivative",
            "metric-product",
            "forward",
            "jacobian",
            "forward-hessian",
            "initial",
        }
    )
    energy = ENERGY

    def forward(self, q):
        return np.column_stack([q[:, 0] * q[:, 1] + q[:, 2], np.square(q[:, 3]) + q[:, 0]])

    def jacobian(self, q):
        zero, one = np.zeros(len(q)), np.ones(len(q))
        return np.stack(
            [
                np.column_stack([q[:, 1], q[:, 0], one, zero]),
                np.column_stack([one, zero, zero, 2 * q[:, 3]]),
            ],
            axis=1,
        )

    def forward_and_jacobian(self, q):
        return self.forward(q), self.jacobian(q)

    def value(self, q):
        return self.energy.value(self.forward(q), q)

    def value_and_gradient(self, q):
        return gradient_of_energy(self.energy, *self.forward_and_jacobian(q), q)

    def gradient(self, q):
        return self.value_and_gradient(q)[1]

    def hessian(self, q):
        weight = 1 / np.square(self.energy.noise_sd)
        jacobian = self.jacobian(q)
        hessian = np.einsum("nmi,m,nmj->nij", jacobian, weight, jacobian) + np.eye(4) / 1.7**2
        misfit = (self.forward(q) - self.energy.data) * weight
        hessian[:, 0, 1] += misfit[:, 0]
        hessian[:, 1, 0] += misfit[:, 0]
        hessian[:, 3, 3] += 2 * misfit[:, 1]
        return hessian

    def third(self, q):
        weight = 1 / np.square(self.energy.noise_sd)
        one = np.einsum("m,nmi,mjk->nijk", weight, self.jacobian(q), BENT)
        return one + one.transpose(0, 2, 3, 1) + one.transpose(0, 3, 1, 2)

    def hessian_trace_gradient(self, q, matrices):
        return np.einsum("nij,nijk->nk", matrices, self.third(q))

    def hessian_form_gradient(self, q, vectors):
        return np.einsum("ni,nj,nijk->nk", vectors, vectors, self.third(q))

    def metric(self, q):
        weight = 1 / np.square(self.energy.noise_sd)
        return np.einsum("nmi,m,nmj->nij", self.jacobian(q), weight, self.jacobian(q))

    def hessian_product(self, q, vectors):
        return np.einsum("nij,nj->ni", self.hessian(q), vectors)

    def hessian_diagonal(self, q):
        return np.einsum("nkk->nk", self.hessian(q)).copy()

    def hessian_diagonal_gradient(self, q, weights):
        return np.einsum("nj,njjk->nk", weights, self.third(q))

    def metric_slopes(self, q):
        weight = 1 / np.square(self.energy.noise_sd)
        one = np.einsum("m,nmi,mjk->nijk", weight, self.jacobian(q), BENT)
        return one + one.transpose(0, 2, 1, 3)

    def metric_product(self, q, vectors):
        return np.einsum("nij,nj->ni", self.metric(q), vectors)

    def metric_trace_gradient(self, q, matrices):
        return np.einsum("nij,nijk->nk", matrices, self.metric_slopes(q))

    def metric_form_gradient(self, q, vectors):
        return np.einsum("ni,nj,nijk->nk", vectors, vectors, self.metric_slopes(q))

    def forward_hessian_product(self, q, weights):
        return np.einsum("nmi,mik->nk", weights, BENT)

    def initial(self, rng, n):
        return np.tile([1.0, 0.0, 0.5, 0.0], (n, 1)) + 0.1 * rng.random((n, 4))


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


def test_the_value_has_the_jacobian_in_it(target, z, q):
    assert_allclose(target.value(z), INNER.value(q) - target.transform.log_jacobian(z))


SCALING = Scaling(np.array([0.1, 0.2, 0.3, 0.4]), np.eye(4) + np.diag([0.5, -0.4, 0.3], 1))
NO_PRODUCT = Everything(capabilities=INNER.capabilities - {"hessian-product"})
LIFTED = {
    "bounded": lambda: BoundedPotential(INNER, PARAMETERS),
    "bounded without a product": lambda: BoundedPotential(NO_PRODUCT, PARAMETERS),
    "scaled": lambda: scaled(INNER, SCALING),
    "scaled and bounded": lambda: scaled(BoundedPotential(INNER, PARAMETERS), SCALING),
}


@pytest.mark.parametrize("make", LIFTED.values(), ids=list(LIFTED))
def test_all_derivatives_follow_the_chain_rule(make):
    results = check_potential(make)
    assert len(results) >= 19
    assert [result for result in results if result.outcome == "failed"] == []


def test_the_density_integrates_to_that_of_the_bounded_parameter():
    half_normal = BoundedPotential(Squared(), Parameters.declare({"a": (0, None)}))
    z = np.linspace(-30, 8, 20001)
    mass = trapezoid(np.exp(-half_normal.value(z[:, None])), z)
    assert_allclose(mass, np.sqrt(np.pi / 2), rtol=1e-6)


class Squared:
    dim = 1
    capabilities = frozenset()

    def value(self, q):
        return 0.5 * np.square(q[:, 0])


@pytest.fixture
def factors(rng):
    """A symmetric matrix, a vector or weights for each position, by the method that takes them."""
    half, vectors = rng.standard_normal((6, 4, 4)), rng.standard_normal((6, 4))
    return {
        "hessian_trace_gradient": half + half.transpose(0, 2, 1),
        "hessian_form_gradient": vectors,
        "hessian_product": vectors,
        "hessian_diagonal_gradient": vectors,
        "metric_trace_gradient": half + half.transpose(0, 2, 1),
        "metric_form_gradient": vectors,
        "metric_product": vectors,
        "forward_hessian_product": rng.standard_normal((6, 2, 4)),
    }


WITH_FACTORS = [
    "hessian_trace_gradient",
    "hessian_form_gradient",
    "metric_trace_gradient",
    "metric_form_gradient",
    "hessian_product",
    "hessian_diagonal_gradient",
    "metric_product",
    "forward_hessian_product",
]


@pytest.mark.parametrize("method", WITH_FACTORS)
def test_contractions_need_one_factor_for_each_position(target, z, factors, method):
    expected = (
        r"matrices must have shape \(6, 4, 4\)|vectors must have shape \(6, 4\)|"
        r"weights must have shape \(6, m, 4\)"
    )
    with pytest.raises(ShapeError, match=f"({expected}), got .*; pass one for each position"):
        getattr(target, method)(z, factors[method][:5])


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ({"gradient", "hessian", "convex"}, {"gradient", "hessian"}),
        ({"forward", "forward-hessian"}, {"forward"}),
        ({"gradient", "hessian-diagonal"}, {"gradient"}),
        ({"gradient", "hessian-diagonal", "hessian-product"}, None),
        ({"gradient", "hessian-diagonal", "hessian"}, None),
        ({"forward", "jacobian", "forward-hessian"}, None),
    ],
)
def test_bounds_take_away_what_they_must(inner, expected):
    potential = Everything(capabilities=frozenset(inner))
    bounded = BoundedPotential(potential, PARAMETERS).capabilities
    assert bounded == (inner if expected is None else expected)


def test_derivatives_of_the_energys_curvatures_agree_with_differences(rng, z, differences):
    class Bent:
        capabilities = frozenset({"curvatures", "curvature-derivatives"})

        def curvatures(self, outputs, q):
            return outputs**2 * q[:, :2], np.einsum("ni,nj->nij", q, q)

        def curvature_gradients(self, outputs, q, first, second):
            by_positions = np.einsum("nij,nj->ni", second + second.transpose(0, 2, 1), q)
            by_positions[:, :2] += first * outputs**2
            return 2 * first * outputs * q[:, :2], by_positions

    energy = LiftedEnergy(Bent(), BoundedPotential(INNER, PARAMETERS).transform)
    outputs, first = rng.standard_normal((2, 6, 2))
    half = rng.standard_normal((6, 4, 4))
    second = half + half.transpose(0, 2, 1)

    def weighed(x, zz):
        c, r = energy.curvatures(x, zz)
        return (first * c).sum(axis=1) + (second * r).sum(axis=(1, 2))

    by_outputs, by_positions = energy.curvature_gradients(outputs, z, first, second)
    expected = differences(lambda x: weighed(x, z), outputs)
    assert_allclose(by_outputs, expected, rtol=1e-5, atol=1e-5)
    expected = differences(lambda x: weighed(outputs, x), z)
    assert_allclose(by_positions, expected, rtol=1e-4, atol=1e-4)


def test_the_metric_follows_the_chain_rule(target, z, q):
    d = target.transform.derivatives(z)
    slopes = np.stack([np.diag(row) for row in d.first])
    expected = slopes @ INNER.metric(q) @ slopes - np.stack([np.diag(row) for row in d.log_second])
    assert_allclose(target.metric(z), expected)


def test_outputs_are_those_at_the_bounded_position(target, z, q):
    assert_allclose(target.forward(z), INNER.forward(q))


def test_starts_are_unbounded(target):
    starts = target.initial(np.random.default_rng(1), 5)
    expected = INNER.initial(np.random.default_rng(1), 5)
    assert_allclose(target.transform.to_bounded(starts), expected)


def test_capabilities_are_those_of_the_inner_potential(target):
    assert target.capabilities == INNER.capabilities


def test_parameters_of_the_wrong_size_are_refused():
    with pytest.raises(ShapeError, match="hold 1 numbers, but the potential takes 4"):
        BoundedPotential(INNER, Parameters.declare({"a": None}))


def test_what_has_no_bounds_is_not_wrapped_for_them():
    with pytest.raises(ConfigurationError, match="none of the parameters has a bound"):
        BoundedPotential(INNER, Parameters.unnamed(4))
    assert with_bounds(INNER, Parameters.unnamed(4)) is INNER
    assert isinstance(with_bounds(INNER, PARAMETERS), BoundedPotential)
    named = sk.potential(lambda q: q.sum(), parameters={"a": None, "b": sk.vector(2)})
    assert not isinstance(named, BoundedPotential)
    assert parameters_of(named).labels == ["a", "b[0]", "b[1]"]


class Half:
    """Fails in its first row, and gives what the inner potential gives in the others."""

    def __init__(self, inner):
        self.inner = inner
        self.dim, self.capabilities = inner.dim, inner.capabilities

    def __getattr__(self, name):
        method = getattr(self.inner, name)

        def failing(q, *factors):
            results = method(q, *factors)
            results = results if isinstance(results, tuple) else (results,)
            for array in results:
                array[0] = np.nan
            raise EvaluationError({0: ValueError("first row")}, results)

        return failing


@pytest.mark.parametrize(
    "method",
    [
        "value",
        "value_and_gradient",
        "gradient",
        "forward",
        "forward_and_jacobian",
        "hessian",
        "hessian_diagonal",
        "metric",
        *WITH_FACTORS,
    ],
)
def test_rows_that_work_are_transformed_beside_one_that_fails(target, z, factors, method):
    given = (z, factors[method]) if method in factors else (z,)
    expected = getattr(target, method)(*given)
    found = getattr(in_a_run(BoundedPotential(Half(INNER), PARAMETERS)), method)(*given)
    both = [each if isinstance(each, tuple) else (each,) for each in (found, expected)]
    for known, full in zip(*both, strict=True):
        assert np.isnan(known[0]).all()
        assert_allclose(known[1:], full[1:])


class GradientFails(Half):
    """Gives Hessians everywhere, and gradients in all rows but the first."""

    def __getattr__(self, name):
        return getattr(self.inner, name) if name == "hessian" else super().__getattr__(name)


def test_a_hessian_without_its_gradient_is_nan_in_that_row(target, z):
    known = in_a_run(BoundedPotential(GradientFails(INNER), PARAMETERS)).hessian(z)
    assert_allclose(known[1:], target.hessian(z)[1:])
    assert np.isnan(np.diagonal(known[0])).any()


class AllFail(Half):
    def __getattr__(self, name):
        def failing(q):
            raise EvaluationError({i: ValueError("all") for i in range(len(q))}, (), n=len(q))

        return failing


def test_a_failure_of_all_rows_is_nan_in_all(z):
    value, gradient = in_a_run(BoundedPotential(AllFail(INNER), PARAMETERS)).value_and_gradient(z)
    assert np.isnan(value).all()
    assert np.isnan(gradient).all()
    assert gradient.shape == z.shape


def in_a_run(potential):
    """Return a potential as runs have it: NaN where its model fails."""
    calls = Calls("reject", 0)
    return change_model(potential, lambda model: attrs.evolve(model, calls=calls))


def test_other_exceptions_pass(z):
    class Broken(Squared):
        dim = 4

        def value(self, q):
            raise KeyError("as it was")

    with pytest.raises(KeyError, match="as it was"):
        BoundedPotential(Broken(), PARAMETERS).value(z)


def test_a_potential_without_parameters_has_numbered_ones():
    assert parameters_of(INNER) == Parameters.unnamed(4)
    assert_allclose(transform_of(INNER).to_bounded(np.ones((1, 4))), 1.0)


def test_parameters_and_transform_of_a_bounded_potential_are_its_own(target):
    assert parameters_of(target) is PARAMETERS
    assert transform_of(target) is target.transform
