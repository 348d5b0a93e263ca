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
    "forward_hessian_product": "nmi,mik->nk",
}
ALL = ["gradient", "gradient-alone", "forward", "jacobian", "forward-hessian", "initial"]
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
            if name == "forward_hessian_product":
                return np.einsum(FACTORS[name], factors, BENT)
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
    if method == "forward_hessian_product":
        return (rng.standard_normal((6, 2, 4)),)
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
    expected = (
        r"matrices must have shape \(6, 4, 4\)|vectors must have shape \(6, 4\)|"
        r"weights must have shape \(6, m, 4\)"
    )
    with pytest.raises(ShapeError, match=f"({expected}), got .*; pass one for each position"):
        getattr(target, method)(z, factors_of(method, rng)[0][:5])


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ({"gradient", "hessian", "convex"}, {"gradient", "hessian"}),
        ({"forward", "forward-hessian"}, {"forward"}),
        ({"gradient", "hessian-diagonal", "metric-product"}, {"gradient"}),
        ({"forward", "jacobian", "forward-hessian"}, None),
        ({"rows", "gaussian", "gradient"}, {"gradient"}),
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
    second = symmetric(rng)

    def weighed(x, zz):
        c, r = energy.curvatures(x, zz)
        return (first * c).sum(axis=1) + (second * r).sum(axis=(1, 2))

    by_outputs, by_positions = energy.curvature_gradients(outputs, z, first, second)
    expected = differences(lambda x: weighed(x, z), outputs)
    assert_allclose(by_outputs, expected, rtol=1e-5, atol=1e-5)
    expected = differences(lambda x: weighed(outputs, x), z)
    assert_allclose(by_positions, expected, rtol=1e-4, atol=1e-4)


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
    named = sk.potential(lambda q: q.sum(), parameters={"a": None, "b": sk.vector(2)})
    assert not isinstance(named, BoundedPotential)
    assert parameters_of(named).labels == ["a", "b[0]", "b[1]"]
    assert parameters_of(INNER) == Parameters.unnamed(4)
    assert_allclose(transform_of(INNER).to_bounded(np.ones((1, 4))), 1.0)


# --- rows that fail ---


def in_a_run(inner):
    """Return a bounded potential as runs have it: NaN where its model fails."""
    calls, target = Calls("reject", 0), BoundedPotential(inner, PARAMETERS)
    return change_model(target, lambda model: attrs.evolve(model, calls=calls))


class Half:
    """Fails in its first row, or in all, except in some methods."""

    dim, capabilities = INNER.dim, INNER.capabilities

    def __init__(self, but="", everywhere=False):
        self.but, self.everywhere = but, everywhere

    def __getattr__(self, name):
        method = getattr(INNER, name)

        def failing(q, *factors):
            results = method(q, *factors)
            if name == self.but:
                return results
            if self.everywhere:
                raise EvaluationError({i: ValueError("all") for i in range(len(q))}, (), n=len(q))
            results = results if isinstance(results, tuple) else (results,)
            for array in results:
                array[0] = np.nan
            raise EvaluationError({0: ValueError("first row")}, results)

        return failing


PLAIN = "value value_and_gradient gradient forward forward_and_jacobian hessian metric"


@pytest.mark.parametrize("method", [*PLAIN.split(), *FACTORS])
def test_rows_that_work_are_transformed_beside_one_that_fails(target, z, rng, method):
    factors = factors_of(method, rng)
    expected, found = (getattr(each, method)(z, *factors) for each in (target, in_a_run(Half())))
    both = [each if isinstance(each, tuple) else (each,) for each in (found, expected)]
    for known, full in zip(*both, strict=True):
        assert np.isnan(known[0]).all()
        assert_allclose(known[1:], full[1:])


def test_a_hessian_without_its_gradient_is_nan_in_that_row(target, z):
    known = in_a_run(Half(but="hessian")).hessian(z)
    assert_allclose(known[1:], target.hessian(z)[1:])
    assert np.isnan(np.diagonal(known[0])).any()


def test_a_failure_of_all_rows_is_nan_in_all_and_other_errors_pass(z):
    value, gradient = in_a_run(Half(everywhere=True)).value_and_gradient(z)
    assert np.isnan(value).all()
    assert np.isnan(gradient).all()
    assert gradient.shape == z.shape

    class Broken(Squared):
        dim = 4

        def value(self, q):
            raise KeyError("as it was")

    with pytest.raises(KeyError, match="as it was"):
        BoundedPotential(Broken(), PARAMETERS).value(z)
