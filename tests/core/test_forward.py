"""Targets with a forward map and an energy."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import CapabilityError, ConfigurationError, EvaluationError, ShapeError
from surrokit.model.calls import Calls
from surrokit.model.model import change_model
from surrokit.potentials import (
    offers_curvatures,
    with_curvature_derivatives,
    with_curvatures,
)
from surrokit.targets.differences import gauss_newton
from surrokit.targets.gaussian import GaussianEnergy
from surrokit.testing import check_potential

MATRIX = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, -1.0]])
DATA = np.array([1.0, -1.0, 0.5])
SD = np.array([0.5, 1.0, 2.0])
CONSTANT = np.log(SD * np.sqrt(2.0 * np.pi)).sum()


def forward(q):
    return MATRIX @ q + np.square(q[0])


def jacobian(q):
    return MATRIX + np.array([2 * q[0], 0.0])


def hessian(q):
    return np.tile(np.diag([2.0, 0.0]), (3, 1, 1))


def linear(**options):
    return sk.forward_potential(forward, jacobian, data=DATA, noise_sd=SD, dim=2, **options)


@pytest.fixture
def q(rng):
    return rng.standard_normal((5, 2))


def misfit(q):
    return np.array([0.5 * np.square((forward(x) - DATA) / SD).sum() for x in q])


def test_the_value_is_half_the_squared_misfit(q):
    assert_allclose(linear().value(q), misfit(q) + CONSTANT)


def test_the_prior_is_added(q):
    target = linear(prior=sk.gaussian_prior(mean=[1.0, 0.0], sd=2.0))
    prior = 0.5 * np.square((q - [1.0, 0.0]) / 2.0).sum(axis=1)
    of_prior = 2.0 * np.log(2.0 * np.sqrt(2.0 * np.pi))
    assert_allclose(target.value(q), misfit(q) + CONSTANT + prior + of_prior)


def test_one_noise_scale_serves_all_outputs(q):
    one = sk.forward_potential(forward, data=DATA, noise_sd=0.5, dim=2)
    each = sk.forward_potential(forward, data=DATA, noise_sd=[0.5] * 3, dim=2)
    assert_allclose(one.value(q), each.value(q))


def test_a_map_with_one_output_may_return_a_number():
    target = sk.forward_potential(lambda q: q.sum(), data=[1.0], noise_sd=2.0, dim=2)
    constant = np.log(2.0 * np.sqrt(2.0 * np.pi))
    ends = target.value(np.array([[1.0, 2.0], [0.0, 1.0]]))
    assert_allclose(ends, [constant + 0.5, constant])


def test_capabilities_follow_the_jacobian():
    assert linear().capabilities == {"forward", "jacobian", "gradient", "metric"}
    assert sk.forward_potential(forward, data=DATA, noise_sd=SD, dim=2).capabilities == {"forward"}


class Laplace:
    """An energy of one's own: absolute misfit."""

    def value(self, outputs, positions):
        return np.abs(outputs).sum(axis=1) + 0.5 * np.square(positions).sum(axis=1)

    def value_and_gradients(self, outputs, positions):
        return self.value(outputs, positions), np.sign(outputs), positions


def test_an_energy_of_ones_own_is_used(q, differences):
    target = sk.forward_potential(forward, jacobian, energy=Laplace(), dim=2)
    expected = [np.abs(forward(x)).sum() + 0.5 * x @ x for x in q]
    assert_allclose(target.value(q), expected)
    gradient = target.value_and_gradient(q)[1]
    assert_allclose(gradient, differences(target.value, q), rtol=1e-5, atol=1e-5)


def test_an_energy_receives_bounded_positions():
    seen = []

    class Looking(Laplace):
        def value(self, outputs, positions):
            seen.append(positions)
            return super().value(outputs, positions)

    sk.forward_potential(lambda q: q, energy=Looking(), parameters={"rate": (0, None)}).value(
        np.array([[-1.0]])
    )
    assert_allclose(seen, [[[np.exp(-1.0)]]])


def test_the_prior_alone_has_its_gradient(differences, q):
    prior = sk.gaussian_prior(mean=0.5, sd=[1.0, 3.0])
    value, gradient = prior.value_and_gradient(q)
    expected = 0.5 * np.square((q - 0.5) / [1.0, 3.0]).sum(axis=1) + np.log(3.0 * 2.0 * np.pi)
    assert_allclose(value, expected)
    assert_allclose(
        gradient, differences(lambda x: prior.value_and_gradient(x)[0], q), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "data is missing, noise_sd is missing"),
        ({"data": DATA}, "data is given, noise_sd is missing"),
        ({"noise_sd": 1.0}, "data is missing, noise_sd is given"),
    ],
)
def test_data_and_noise_go_together(given, said):
    with pytest.raises(ConfigurationError, match=f"needs data and noise_sd, or an energy; {said}"):
        sk.forward_potential(forward, **given, dim=2)


@pytest.mark.parametrize(
    "extra", [{"data": DATA}, {"noise_sd": 1.0}, {"prior": sk.gaussian_prior()}]
)
def test_an_energy_stands_alone(extra):
    with pytest.raises(ConfigurationError, match="energy is given together with"):
        sk.forward_potential(forward, energy=Laplace(), **extra, dim=2)


def test_an_infinite_sd_of_a_prior_is_a_flat_one():
    prior = sk.gaussian_prior(1.0, [2.0, np.inf])
    value, gradient = prior.value_and_gradient(np.array([[3.0, 5.0]]))
    np.testing.assert_allclose(value, [0.5 + np.log(2.0 * np.sqrt(2.0 * np.pi))])
    np.testing.assert_allclose(gradient, [[0.5, 0.0]])
    np.testing.assert_allclose(prior.metric(np.zeros((1, 2)))[0], np.diag([0.25, 0.0]))


@pytest.mark.parametrize("prior", [{"mean": np.zeros(3)}, {"sd": np.ones((2, 2))}, {"sd": [1.0]}])
def test_a_prior_must_fit_the_parameters(prior, q):
    message = rf"{next(iter(prior))} of a prior must be one number or have shape \(2,\), got"
    with pytest.raises(ShapeError, match=message):
        linear(prior=sk.gaussian_prior(**prior)).value(q)
    with pytest.raises(ShapeError, match=message):
        sk.gaussian_prior(**prior).metric(q)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"noise_sd": 0.0}, "noise_sd must be positive and finite"),
        ({"noise_sd": np.nan}, "noise_sd must be positive and finite"),
        ({"noise_sd": [1.0, np.inf, 1.0]}, "noise_sd must be positive and finite"),
        ({"noise_sd": [1.0, 1.0]}, "noise_sd must be one number or have the shape of data"),
        ({"data": DATA[None]}, r"data must have shape \(m,\), got \(1, 3\); flatten it"),
    ],
)
def test_data_and_noise_that_do_not_fit_are_refused(given, expected):
    with pytest.raises((ConfigurationError, ShapeError), match=expected):
        sk.forward_potential(forward, **{"data": DATA, "noise_sd": SD, **given}, dim=2)


@pytest.mark.parametrize("sd", [0.0, -1.0, np.nan])
def test_the_sd_of_a_prior_must_be_positive(sd):
    with pytest.raises(ConfigurationError, match="sd of a prior must be positive"):
        sk.gaussian_prior(sd=sd)


@pytest.mark.parametrize(
    ("maps", "expected"),
    [
        ({"forward": lambda q: np.ones((3, 1))}, r"\(m,\), got \(3, 1\)"),
        ({"forward": lambda q: forward(q[0]), "batched": True}, r"\(5, m\), got \(3,\)"),
        ({"forward": lambda q: np.zeros((2, 3)), "batched": True}, r"\(5, m\), got \(2, 3\)"),
        ({"forward": lambda q: np.zeros((5, 3, 1)), "batched": True}, r"got \(5, 3, 1\)"),
        ({"jacobian": lambda q: MATRIX.T}, r"\(3, 2\), got \(2, 3\)"),
        ({"hessian": lambda q: np.zeros((3, 2, 3))}, r"\(m, 2, 2\), got \(3, 2, 3\)"),
        ({"hessian": lambda q: np.zeros(3)}, r"\(m, 2, 2\), got \(3,\)"),
        ({"hessian": lambda q: np.zeros((1, 3, 2, 2))}, r"\(m, 2, 2\), got \(1, 3, 2, 2\)"),
    ],
)
def test_results_of_the_wrong_shape_are_refused(maps, expected, q):
    what = next(iter(maps))
    maps = {"forward": forward, "jacobian": jacobian, "hessian": hessian, **maps}
    target = sk.forward_potential(**maps, data=DATA, noise_sd=1.0, dim=2)
    method = {"forward": target.forward, "jacobian": target.forward_and_jacobian}
    evaluate = method.get(what, lambda q: target.metric_form_gradient(q, q))
    with pytest.raises(
        ShapeError, match=rf"the {what} function, .* must return shape .*{expected}"
    ):
        evaluate(q)


def test_outputs_must_correspond_to_data(q):
    target = sk.forward_potential(forward, data=DATA[:2], noise_sd=1.0, dim=2)
    with pytest.raises(ShapeError, match="gives 3 outputs, but data holds 2"):
        target.value(q)


def test_outputs_may_not_change_shape(q):
    target = sk.forward_potential(
        lambda x: forward(x)[: 2 if x[0] > 0 else 3], data=DATA, noise_sd=1.0, dim=2
    )
    with pytest.raises(EvaluationError, match=r"1 of 2 .* gives 2 outputs, but data holds 3"):
        target.value(np.array([[1.0, 0.0], [-1.0, 0.0]]))


def failing(q):
    if q[0] > 0:
        raise RuntimeError("no solution")
    return forward(q)


@pytest.mark.parametrize(
    "method", ["value", "value_and_gradient", "metric", "forward", "forward_and_jacobian"]
)
def test_outputs_of_rows_that_work_survive_one_that_fails(method):
    q = np.array([[-1.0, 0.5], [1.0, 0.0], [-0.3, 0.2]])
    target = sk.forward_potential(failing, jacobian, data=DATA, noise_sd=SD, dim=2)
    expected = getattr(linear(), method)(q)
    expected = expected if isinstance(expected, tuple) else (expected,)
    with pytest.raises(EvaluationError, match=r"1 of 3 positions.*no solution"):
        getattr(target, method)(q)
    found = getattr(in_a_run(target), method)(q)
    for known, full in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
        assert_allclose(known[[0, 2]], full[[0, 2]])
        assert np.isnan(known[1]).all()


def in_a_run(potential):
    """Return a potential as runs have it: NaN where its model fails."""
    calls = Calls("reject", 0)
    return change_model(potential, lambda model: attrs.evolve(model, calls=calls))


def test_arrays_of_an_energy_cannot_be_changed():
    energy = GaussianEnergy(data=DATA, noise_sd=SD)
    with pytest.raises(ValueError, match="read-only"):
        energy.data[0] = 1.0


PRIOR = sk.gaussian_prior(mean=[1.0, 0.0], sd=[2.0, 0.5])


def test_the_metric_is_the_gauss_newton_matrix(q):
    metric = linear(prior=PRIOR).metric(q)
    for matrix, x in zip(metric, q, strict=True):
        scaled = jacobian(x) / SD[:, None]
        assert_allclose(matrix, scaled.T @ scaled + np.diag([0.25, 4.0]))
    assert_allclose(metric, metric.transpose(0, 2, 1), rtol=0)


def test_the_metric_of_bounded_parameters(q):
    bounds = {"a": (0, None), "b": (-1, 2)}
    target = sk.forward_potential(
        forward, jacobian, data=DATA, noise_sd=SD, prior=PRIOR, parameters=bounds
    )
    metric, transform = target.metric(q), target.transform
    first = transform.derivatives(q).first
    for i, x in enumerate(transform.to_bounded(q)):
        scaled = jacobian(x) * first[i] / SD[:, None]
        p = (x[1] + 1) / 3
        rest = np.diag(np.square(first[i]) * [0.25, 4.0] + [0.0, 2 * p * (1 - p)])
        assert_allclose(metric[i], scaled.T @ scaled + rest)
    outputs, slopes = target.forward_and_jacobian(q)
    assert_allclose(gauss_newton(target.energy, outputs, slopes, q), metric)


class Plain:
    """A prior that can do no more than it must."""

    def value_and_gradient(self, positions):
        return 0.5 * np.square(positions).sum(axis=1), positions


class Ridge(Plain):
    """A prior that has a metric which is not diagonal."""

    capabilities = frozenset({"gradient", "metric"})

    def metric(self, positions):
        return np.tile([[2.0, 1.0], [1.0, 2.0]], (len(positions), 1, 1))


def test_a_prior_without_a_metric_leaves_none(q):
    target = linear(prior=Plain())
    assert target.capabilities == {"forward", "jacobian", "gradient"}
    with pytest.raises(CapabilityError, match=r"GaussianEnergy does not offer .* has a metric"):
        with_curvatures(GaussianEnergy(data=DATA, noise_sd=SD, prior=Plain()))
    with pytest.raises(CapabilityError, match="needs an energy with 'curvatures' among"):
        target.metric(q)


def test_a_prior_may_bring_its_own_metric(q):
    target = linear(prior=Ridge())
    assert "metric" in target.capabilities
    expected = np.tile([[2.0, 1.0], [1.0, 2.0]], (5, 1, 1))
    assert_allclose(target.metric(q) - linear().metric(q), expected)


def test_an_energy_of_ones_own_has_no_curvatures_unless_it_says_so():
    target = sk.forward_potential(forward, jacobian, energy=Laplace(), dim=2)
    assert not offers_curvatures(target.energy)
    assert target.capabilities == {"forward", "jacobian", "gradient"}


class Correlated:
    """Normal errors that are correlated, and a flat prior."""

    precision = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 1.5]])
    capabilities = frozenset({"curvatures"})

    def value(self, outputs, positions):
        return self.value_and_gradients(outputs, positions)[0]

    def value_and_gradients(self, outputs, positions):
        by_outputs = (outputs - DATA) @ self.precision
        value = 0.5 * np.einsum("nm,nm->n", by_outputs, outputs - DATA)
        return value, by_outputs, np.zeros_like(positions)

    def curvatures(self, outputs, positions):
        n, dim = positions.shape
        return np.tile(self.precision, (n, 1, 1)), np.zeros((n, dim, dim))


def test_errors_may_be_correlated(q):
    target = sk.forward_potential(forward, jacobian, energy=Correlated(), dim=2)
    expected = [jacobian(x).T @ Correlated.precision @ jacobian(x) for x in q]
    assert_allclose(target.metric(q), expected)


def test_curvatures_are_the_derivatives_of_the_gradients(q, rng, differences):
    energy = GaussianEnergy(data=DATA, noise_sd=SD, prior=PRIOR)
    outputs = rng.standard_normal((5, 3))
    by_outputs, by_positions = energy.curvatures(outputs, q)
    exact = differences(lambda x: energy.value_and_gradients(x, q)[1], outputs)
    assert_allclose(by_outputs[:, :, None] * np.eye(3), exact, rtol=1e-6, atol=1e-6)
    exact = differences(lambda x: energy.value_and_gradients(outputs, x)[2], q)
    assert_allclose(by_positions, exact, rtol=1e-6, atol=1e-6)


def with_second_derivatives():
    def curved(q):
        return np.array([q[0] * q[1], np.tanh(q[0]), q[1] ** 3])

    def slopes(q):
        return np.array([[q[1], q[0]], [1 - np.tanh(q[0]) ** 2, 0.0], [0.0, 3 * q[1] ** 2]])

    def bends(q):
        bend = -2 * np.tanh(q[0]) * (1 - np.tanh(q[0]) ** 2)
        return np.array([[[0, 1], [1, 0]], [[bend, 0], [0, 0]], [[0, 0], [0, 6 * q[1]]]])

    known = {"data": DATA, "noise_sd": SD, "prior": sk.gaussian_prior(0.5, 2.0)}
    return sk.forward_potential(
        curved, slopes, bends, **known, parameters={"a": (0, None), "b": (-1, 2)}
    )


@pytest.mark.parametrize(
    "target",
    [
        lambda: linear(prior=PRIOR),
        lambda: sk.forward_potential(
            forward, jacobian, data=DATA, noise_sd=SD, parameters={"a": (0, 5), "b": (-1, 2)}
        ),
        lambda: sk.forward_potential(forward, jacobian, energy=Correlated(), dim=2),
        lambda: linear(prior=Plain()),
        lambda: linear(hessian=hessian, prior=sk.gaussian_prior()),
        with_second_derivatives,
    ],
)
def test_forward_potentials_keep_to_the_contract(target):
    results = check_potential(target)
    assert [r.message for r in results if r.outcome != "passed"] == []
    checked = {r.name.partition("[")[0] for r in results}
    offered = target().capabilities
    assert ("metric" in offered) == ("check_energy_curvatures" in checked)
    assert ("metric-derivative" in offered) == ("check_metric_derivative" in checked)
    assert ("forward-hessian" in offered) == ("check_forward_hessian" in checked)


class Negative(Correlated):
    precision = np.diag([1.0, -1.0, 2.0])


class NegativeDiagonal(Correlated):
    def curvatures(self, outputs, positions):
        return -np.ones_like(outputs), super().curvatures(outputs, positions)[1]


@pytest.mark.parametrize("energy", [Negative, NegativeDiagonal])
def test_negative_curvatures_are_seen_by_the_checks(energy):
    results = check_potential(
        lambda: sk.forward_potential(forward, jacobian, energy=energy(), dim=2)
    )
    (found,) = [r for r in results if r.name.startswith("check_energy_curvatures")]
    assert found.outcome == "failed"
    assert "curvature of the energy in the outputs must have no negative eigen" in found.message


ALL_DERIVATIVES = {
    "forward",
    "jacobian",
    "gradient",
    "metric",
    "forward-hessian",
    "metric-derivative",
}


def test_capabilities_follow_the_second_derivatives():
    target = linear(hessian=hessian, prior=sk.gaussian_prior())
    assert target.capabilities == ALL_DERIVATIVES
    without = sk.forward_potential(forward, jacobian, hessian, energy=Laplace(), dim=2)
    assert without.capabilities == ALL_DERIVATIVES - {"metric", "metric-derivative"}


def test_functions_of_rows_give_the_same(q):
    maps = [lambda x, f=f: np.stack([f(row) for row in x]) for f in (forward, jacobian, hessian)]
    rows = sk.forward_potential(*maps, data=DATA, noise_sd=SD, dim=2, batched=True)
    one = linear(hessian=hessian)
    for found, expected in zip(rows.value_and_gradient(q), one.value_and_gradient(q), strict=True):
        assert_allclose(found, expected)
    assert_allclose(rows.metric_form_gradient(q, q), one.metric_form_gradient(q, q))
    expected = np.tile([6.0, 0.0], (5, 1))
    for target in (rows, one):
        assert_allclose(target.forward_hessian_product(q, np.ones((5, 3, 2))), expected)


@pytest.mark.parametrize("batched", [False, True])
def test_a_map_with_one_output_may_return_its_hessian_alone(q, batched):
    target = sk.forward_potential(
        lambda x: np.square(x).sum(axis=-1),
        lambda x: 2 * x,
        lambda x: np.broadcast_to(2 * np.eye(2), (*x.shape[:-1], 2, 2)),
        data=[1.0],
        noise_sd=2.0,
        dim=2,
        batched=batched,
    )
    # G = 4 q q^T / noise^2
    assert_allclose(target.metric_form_gradient(q, q), 2 * q * np.square(q).sum(1)[:, None])


def test_second_derivatives_need_the_first():
    with pytest.raises(ConfigurationError, match=r"hessian is given without jacobian; .*give both"):
        sk.forward_potential(forward, hessian=hessian, data=DATA, noise_sd=SD, dim=2)


def test_weights_that_are_not_one_for_each_output_are_refused(q):
    with pytest.raises(ShapeError, match=r"one row for each of the 3 outputs, got 2; pass shape"):
        linear(hessian=hessian).forward_hessian_product(q, np.ones((5, 2, 2)))


def test_second_derivatives_that_fail_somewhere(q):
    def failing(x):
        if x[0] == q[2, 0]:
            raise ValueError("no")
        return hessian(x)

    for method, factors in (
        ("metric_form_gradient", q),
        ("metric_trace_gradient", np.tile(np.eye(2), (5, 1, 1))),
        ("forward_hessian_product", np.ones((5, 3, 2))),
    ):
        expected = getattr(linear(hessian=hessian), method)(q, factors)
        known = getattr(in_a_run(linear(hessian=failing)), method)(q, factors)
        assert np.isnan(known[2]).all()
        assert_allclose(np.delete(known, 2, axis=0), np.delete(expected, 2, axis=0))


def test_a_prior_whose_metric_has_no_derivative_leaves_it_out():
    class Curved:
        capabilities = frozenset({"metric"})

        def value_and_gradient(self, positions):
            return 0.5 * np.square(positions).sum(axis=1), positions

        def metric(self, positions):
            return np.tile(np.eye(2), (len(positions), 1, 1))

    target = linear(hessian=hessian, prior=Curved())
    assert target.capabilities == ALL_DERIVATIVES - {"metric-derivative"}
    with pytest.raises(CapabilityError, match="GaussianEnergy does not offer them; give it a"):
        with_curvature_derivatives(GaussianEnergy(data=DATA, noise_sd=SD, prior=Curved()))
