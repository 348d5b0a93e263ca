"""Targets with a forward map and an energy, and their Gauss-Newton matrices."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import CapabilityError, ConfigurationError, EvaluationError, ShapeError
from surrokit.model.calls import Calls
from surrokit.model.model import change_model
from surrokit.potentials import with_curvatures
from surrokit.targets.energies import gaussian_energy
from surrokit.testing import check_potential

MATRIX = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, -1.0]])
DATA = np.array([1.0, -1.0, 0.5])
SD = np.array([0.5, 1.0, 2.0])
ROOT = np.sqrt(2.0 * np.pi)
PRIOR = sk.gaussian_prior(mean=[1.0, 0.0], sd=[2.0, 0.5])
KNOWN = {"data": DATA, "noise_sd": SD}


def forward(q):
    return MATRIX @ q + np.square(q[0])


def jacobian(q):
    return MATRIX + np.array([2 * q[0], 0.0])


def hessian(q):
    return np.tile(np.diag([2.0, 0.0]), (3, 1, 1))


def linear(**options):
    return sk.forward_potential(forward, jacobian, **KNOWN, dim=2, **options)


def second(**options):
    return linear(hessian=hessian, **options)


@pytest.fixture
def q(rng):
    return rng.standard_normal((5, 2))


# --- values ---


def test_the_value_is_half_the_squared_misfit_and_the_prior(q):
    misfit = np.array([0.5 * np.square((forward(x) - DATA) / SD).sum() for x in q])
    expected = misfit + np.log(SD * ROOT).sum()
    assert_allclose(linear().value(q), expected)
    prior = 0.5 * np.square((q - [1.0, 0.0]) / [2.0, 0.5]).sum(axis=1) + 2.0 * np.log(ROOT)
    assert_allclose(linear(prior=PRIOR).value(q), expected + prior)
    one = sk.forward_potential(forward, data=DATA, noise_sd=0.5, dim=2)
    each = sk.forward_potential(forward, data=DATA, noise_sd=[0.5] * 3, dim=2)
    assert_allclose(one.value(q), each.value(q))


def test_a_prior_has_its_gradient_and_may_be_flat(q, differences):
    prior = sk.gaussian_prior(mean=0.5, sd=[1.0, 3.0])
    slopes = differences(lambda x: prior.value_and_gradient(x)[0], q)
    assert_allclose(prior.value_and_gradient(q)[1], slopes, rtol=1e-6, atol=1e-6)
    flat = sk.gaussian_prior(1.0, [2.0, np.inf])
    value, gradient = flat.value_and_gradient(np.array([[3.0, 5.0]]))
    assert_allclose(value, [0.5 + np.log(2.0 * ROOT)])
    assert_allclose(gradient, [[0.5, 0.0]])
    assert_allclose(flat.metric(np.zeros((1, 2)))[0], np.diag([0.25, 0.0]))


@pytest.mark.parametrize("batched", [False, True])
def test_a_map_with_one_output_may_leave_its_axis_out(q, batched):
    target = sk.forward_potential(
        lambda x: np.square(x).sum(axis=-1),
        lambda x: 2 * x,
        lambda x: np.broadcast_to(2 * np.eye(2), (*x.shape[:-1], 2, 2)),
        data=[1.0],
        noise_sd=2.0,
        dim=2,
        batched=batched,
    )
    expected = 0.5 * np.square((np.square(q).sum(axis=1) - 1.0) / 2.0) + np.log(2.0 * ROOT)
    assert_allclose(target.value(q), expected)
    # G = 4 q q^T / noise^2
    assert_allclose(target.metric_form_gradient(q, q), 2 * q * np.square(q).sum(1)[:, None])


def test_functions_of_rows_give_the_same(q):
    maps = [lambda x, f=f: np.stack([f(row) for row in x]) for f in (forward, jacobian, hessian)]
    rows = sk.forward_potential(*maps, **KNOWN, dim=2, batched=True)
    for found, expected in zip(
        rows.value_and_gradient(q), second().value_and_gradient(q), strict=True
    ):
        assert_allclose(found, expected)
    assert_allclose(rows.metric_form_gradient(q, q), second().metric_form_gradient(q, q))


# --- energies of one's own, and capabilities ---


class Laplace:
    """An energy of one's own: absolute misfit."""

    def value(self, outputs, positions):
        return np.abs(outputs).sum(axis=1) + 0.5 * np.square(positions).sum(axis=1)

    def value_and_gradients(self, outputs, positions):
        return self.value(outputs, positions), np.sign(outputs), positions


class Correlated:
    """Normal errors that are correlated, and a flat prior."""

    precision = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 1.5]])
    capabilities = frozenset({"curvatures", "constant-curvatures"})

    def value(self, outputs, positions):
        return self.value_and_gradients(outputs, positions)[0]

    def value_and_gradients(self, outputs, positions):
        by_outputs = (outputs - DATA) @ self.precision
        value = 0.5 * np.einsum("nm,nm->n", by_outputs, outputs - DATA)
        return value, by_outputs, np.zeros_like(positions)

    def curvatures(self, outputs, positions):
        n, dim = positions.shape
        return np.tile(self.precision, (n, 1, 1)), np.zeros((n, dim, dim))


class Plain:
    """A prior that can do no more than it must."""

    def value_and_gradient(self, positions):
        return 0.5 * np.square(positions).sum(axis=1), positions


class Ridge(Plain):
    """A prior with a metric that is not diagonal, and may change."""

    capabilities = frozenset({"gradient", "metric"})

    def metric(self, positions):
        return np.tile([[2.0, 1.0], [1.0, 2.0]], (len(positions), 1, 1))


def own(energy, *derivatives):
    return sk.forward_potential(forward, jacobian, *derivatives, energy=energy, dim=2)


def test_an_energy_of_ones_own_is_used_at_the_users_positions(q, differences):
    expected = [np.abs(forward(x)).sum() + 0.5 * x @ x for x in q]
    assert_allclose(own(Laplace()).value(q), expected)
    slopes = differences(own(Laplace()).value, q)
    assert_allclose(own(Laplace()).value_and_gradient(q)[1], slopes, rtol=1e-5, atol=1e-5)
    seen = []

    class Looking(Laplace):
        def value(self, outputs, positions):
            seen.append(positions)
            return super().value(outputs, positions)

    bounded = sk.forward_potential(lambda q: q, energy=Looking(), parameters={"rate": (0, None)})
    bounded.value(np.array([[-1.0]]))
    assert_allclose(seen, [[[np.exp(-1.0)]]])


FIRST = {"forward", "jacobian", "gradient"}
SECOND = FIRST | {"metric", "metric-derivative"}


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: sk.forward_potential(forward, **KNOWN, dim=2), {"forward"}),
        (linear, FIRST | {"metric"}),
        (lambda: linear(prior=Plain()), FIRST),
        (lambda: linear(prior=Ridge()), FIRST | {"metric"}),
        (lambda: own(Laplace()), FIRST),
        (lambda: own(Laplace(), hessian), FIRST),
        (lambda: own(Correlated(), hessian), SECOND),
        (lambda: second(prior=sk.gaussian_prior()), SECOND),
        (lambda: second(prior=Ridge()), SECOND - {"metric-derivative"}),
    ],
)
def test_capabilities_follow_maps_energies_and_priors(make, expected):
    assert make().capabilities == expected


def test_who_asks_for_curvatures_that_are_not_there_is_told(q):
    plain = gaussian_energy(**KNOWN, prior=Plain())
    with pytest.raises(
        CapabilityError,
        match=r"a Gauss-Newton matrix needs .* ObservedEnergy does not offer .* has a metric",
    ):
        with_curvatures(plain)
    with pytest.raises(CapabilityError, match="needs an energy with 'curvatures' among"):
        linear(prior=Plain()).metric(q)
    with pytest.raises(
        CapabilityError, match=r"with a derivative needs .* and 'constant-curvatures' among its cap"
    ):
        second(prior=Ridge()).metric_form_gradient(q, q)


# --- metrics ---


def test_the_metric_is_the_gauss_newton_matrix(q):
    metric = linear(prior=PRIOR).metric(q)
    for matrix, x in zip(metric, q, strict=True):
        scaled = jacobian(x) / SD[:, None]
        assert_allclose(matrix, scaled.T @ scaled + np.diag([0.25, 4.0]))
    assert_allclose(metric, metric.transpose(0, 2, 1), rtol=0)
    expected = np.tile([[2.0, 1.0], [1.0, 2.0]], (5, 1, 1))
    assert_allclose(linear(prior=Ridge()).metric(q) - linear().metric(q), expected)
    expected = [jacobian(x).T @ Correlated.precision @ jacobian(x) for x in q]
    assert_allclose(own(Correlated()).metric(q), expected)


def bent(q):
    return np.array([q[0] * q[1], q[0] ** 3, np.sin(q[1])])


def bent_jacobian(q):
    return np.array([[q[1], q[0]], [3 * q[0] ** 2, 0.0], [0.0, np.cos(q[1])]])


def bent_hessian(q):
    return np.array([[[0, 1], [1, 0]], [[6 * q[0], 0], [0, 0]], [[0, 0], [0, -np.sin(q[1])]]])


BOUNDS = {"a": (0, None), "b": (-1, 2)}
CONTRACT = {
    "prior": lambda: linear(prior=PRIOR),
    "correlated": lambda: own(Correlated()),
    "plain prior": lambda: linear(prior=Plain()),
    "correlated, to second order": lambda: own(Correlated(), hessian),
    "all": lambda: sk.forward_potential(
        bent, bent_jacobian, bent_hessian, **KNOWN, prior=PRIOR, parameters=BOUNDS
    ),
}


@pytest.mark.parametrize("target", CONTRACT.values(), ids=CONTRACT)
def test_forward_potentials_keep_to_the_contract(target):
    results = check_potential(target)
    assert [r.message for r in results if r.outcome != "passed"] == []
    checked = {r.name.partition("[")[0] for r in results}
    offered = target().capabilities
    assert ("metric" in offered) == ("check_energy_curvatures" in checked)
    assert ("metric" in offered) == ("check_metric_matrix" in checked)


class Negative(Correlated):
    precision = np.diag([1.0, -1.0, 2.0])


class Changing(Correlated):
    def curvatures(self, outputs, positions):
        by_outputs, by_positions = super().curvatures(outputs, positions)
        return by_outputs * (1.0 + positions[:, :1, None] ** 2), by_positions


class NegativeDiagonal(Correlated):
    def curvatures(self, outputs, positions):
        return -np.ones_like(outputs), super().curvatures(outputs, positions)[1]


NO_LESS = "curvature of the energy in the outputs must have no eigenvalue below"


@pytest.mark.parametrize(
    ("energy", "message"),
    [(Negative, NO_LESS), (NegativeDiagonal, NO_LESS), (Changing, "constant curvature of the en")],
)
def test_wrong_curvatures_are_seen_by_the_checks(energy, message):
    results = check_potential(lambda: own(energy()))
    (found,) = [r for r in results if r.name.startswith("check_energy_curvatures")]
    assert found.outcome == "failed"
    assert message in found.message


# --- what is refused ---


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "needs data and noise_sd, or an energy; data is missing, noise_sd is missing"),
        ({"data": DATA}, "data is given, noise_sd is missing"),
        ({"noise_sd": 1.0}, "data is missing, noise_sd is given"),
        ({"energy": Laplace(), "data": DATA}, "energy is given together with"),
        ({"energy": Laplace(), "prior": PRIOR}, "energy is given together with"),
        ({**KNOWN, "noise_sd": 0.0}, "noise_sd must be positive and finite"),
        ({**KNOWN, "noise_sd": [1.0, np.inf, 1.0]}, "noise_sd must be positive and finite"),
        ({**KNOWN, "noise_sd": [1.0, 1.0]}, "noise_sd must be one number or have the shape of"),
        ({**KNOWN, "hessian": hessian}, "hessian is given without jacobian; .*give both"),
    ],
)
def test_data_errors_and_energies_that_do_not_fit_are_refused(given, message):
    with pytest.raises((ConfigurationError, ShapeError), match=message):
        sk.forward_potential(forward, **given, dim=2)


@pytest.mark.parametrize("prior", [{"mean": np.zeros(3)}, {"sd": np.ones((2, 2))}, {"sd": [1.0]}])
def test_a_prior_must_fit_the_parameters(prior, q):
    for sd in (0.0, -1.0, np.nan):
        with pytest.raises(ConfigurationError, match="sd of a prior must be positive"):
            sk.gaussian_prior(sd=sd)
    message = rf"{next(iter(prior))} of a prior must be one number or have shape \(2,\), got"
    for method in (
        linear(prior=sk.gaussian_prior(**prior)).value,
        sk.gaussian_prior(**prior).metric,
    ):
        with pytest.raises(ShapeError, match=message):
            method(q)


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


def test_outputs_and_weights_must_correspond(q):
    target = sk.forward_potential(forward, data=DATA[:2], noise_sd=1.0, dim=2)
    with pytest.raises(ShapeError, match="gives 3 outputs, but data holds 2"):
        target.value(q)
    changing = sk.forward_potential(lambda x: forward(x)[: 2 if x[0] > 0 else 3], **KNOWN, dim=2)
    with pytest.raises(EvaluationError, match=r"1 of 2 .* gives 2 outputs, but data holds 3"):
        changing.value(np.array([[1.0, 0.0], [-1.0, 0.0]]))


# --- rows that fail ---


def in_a_run(potential):
    """Return a potential as runs have it: NaN where its model fails."""
    calls = Calls("reject", 0)
    return change_model(potential, lambda model: attrs.evolve(model, calls=calls))


@pytest.mark.parametrize(
    ("what", "method", "factors"),
    [
        ("forward", "value", ()),
        ("forward", "value_and_gradient", ()),
        ("forward", "metric", ()),
        ("forward", "forward", ()),
        ("forward", "forward_and_jacobian", ()),
        ("hessian", "metric_form_gradient", (np.ones((5, 2)),)),
        ("hessian", "metric_trace_gradient", (np.tile(np.eye(2), (5, 1, 1)),)),
    ],
)
def test_rows_that_work_survive_one_that_fails(what, method, factors, q):
    maps = {"forward": forward, "jacobian": jacobian, "hessian": hessian}

    def failing(x):
        if x[0] == q[2, 0]:
            raise RuntimeError("no solution")
        return maps[what](x)

    target = sk.forward_potential(**{**maps, what: failing}, **KNOWN, dim=2)
    with pytest.raises(EvaluationError, match=r"1 of 5 positions.*no solution"):
        getattr(target, method)(q, *factors)
    pairs = (getattr(each, method)(q, *factors) for each in (in_a_run(target), second()))
    both = [each if isinstance(each, tuple) else (each,) for each in pairs]
    for known, full in zip(*both, strict=True):
        assert np.isnan(known[2]).all()
        assert_allclose(np.delete(known, 2, axis=0), np.delete(full, 2, axis=0))
