"""Networks that learn the outputs of a forward map."""

import attrs
import numpy as np
import pytest

import surrokit as sk
from surrokit.contracts.learner import Evaluations, LearningProblem
from surrokit.errors import CapabilityError, SurrogateFitError
from surrokit.surrogate.quality import fit_quality
from surrokit.surrogate.whitening import Whitening
from surrokit.targets.gaussian import GaussianEnergy, gaussian_prior
from surrokit.targets.outputs import gradient_of_energy
from surrokit_networks.outputs import fit_outputs
from surrokit_networks.regression import Regression
from surrokit_networks.training_rows import TrainingRows

DIM, OUTPUTS = 2, 3
ENERGY = GaussianEnergy(
    data=[2.7, 3.5, 1.0], noise_sd=[1.0, 3.0, 40.0], prior=gaussian_prior(0.0, 1.0)
)
MATRIX = np.array([[0.5, -1.0], [2.0, 0.3], [30.0, -10.0]])
BENT = np.array([0.0, 1.0, 10.0])


def outputs_of(positions, rough=0.0):
    """A quadratic map, or with ``rough`` another one on top of it; in very different units."""
    quadratic = positions @ MATRIX.T + 3.0 + BENT * (positions[:, :1] * positions[:, 1:])
    return quadratic + rough * np.sin(positions[:, :1] + positions[:, 1:]) * [1.0, 3.0, 40.0]


def jacobians_of(positions, rough=0.0):
    jacobians = np.tile(MATRIX, (len(positions), 1, 1))
    jacobians += BENT[:, None] * positions[:, None, ::-1]
    slope = rough * np.cos(positions.sum(axis=1))[:, None] * [1.0, 3.0, 40.0]
    return jacobians + slope[:, :, None]


def exact(n=40, seed=0, *, jacobians=True, rough=0.0):
    positions = np.random.default_rng(seed).standard_normal((n, DIM))
    outputs = outputs_of(positions, rough)
    return Evaluations(
        positions=positions,
        values=ENERGY.value(outputs, positions),
        outputs=outputs,
        jacobians=jacobians_of(positions, rough) if jacobians else None,
    )


def learner(surrogate, energy=ENERGY, seed=1):
    problem = LearningProblem(dim=DIM, capabilities=frozenset(), energy=energy)
    return surrogate.learner(problem, np.random.default_rng(seed))


def fitted(surrogate, rows, seed=1):
    learns = learner(surrogate, seed=seed)
    learns.observe(rows)
    return learns.fit()


FRESH = exact(60, seed=9)
SURROGATES = [
    sk.make("surrogate", "additive", n_nodes=30),
    sk.make("surrogate", "rbf", n_nodes=30),
    sk.make("surrogate", "quadratic"),
]
IDS = ["additive", "rbf", "quadratic"]


@pytest.mark.parametrize("surrogate", SURROGATES, ids=IDS)
@pytest.mark.parametrize("jacobians", [False, True])
def test_a_quadratic_map_is_recovered(surrogate, jacobians):
    emulator = fitted(surrogate, exact(jacobians=jacobians))
    error = emulator.forward(FRESH.positions) - FRESH.outputs
    assert np.abs(error / ENERGY.noise_sd).max() < 1e-4
    np.testing.assert_allclose(emulator.value(FRESH.positions), FRESH.values, rtol=1e-3)


@pytest.mark.parametrize("train_on", ["gradients", "values-and-gradients", "values", "auto"])
@pytest.mark.parametrize("kind", ["additive", "rbf", "quadratic"])
def test_every_way_to_train(train_on, kind):
    # Jacobians alone leave the constant of each output open; its values give it.
    emulator = fitted(sk.make("surrogate", kind, train_on=train_on, trend="quadratic"), exact(60))
    error = emulator.forward(FRESH.positions) - FRESH.outputs
    assert np.abs(error / ENERGY.noise_sd).max() < 1e-2
    assert np.var(emulator.value(FRESH.positions) - FRESH.values) < 1e-3


@pytest.mark.parametrize("kind", ["additive", "rbf"])
def test_a_smooth_map_is_learnt_better_with_jacobians(kind):
    fresh = exact(200, seed=9, rough=1.0)
    surrogate = sk.make("surrogate", kind, n_nodes=100)
    variances = []
    for jacobians in (False, True):
        emulator = fitted(surrogate, exact(15, rough=1.0, jacobians=jacobians))
        variances.append(np.var(emulator.value(fresh.positions) - fresh.values))
    assert variances[1] < 0.3 * variances[0]


@pytest.mark.parametrize("kind", ["additive", "rbf"])
def test_many_outputs_are_as_many_fits_at_the_same_ridge(kind, make_nodes):
    rows = TrainingRows.of(exact(30, rough=1.0), "full", needs_outputs=True)
    nodes, whitening = make_nodes(kind, DIM, 20), Whitening.of(rows.positions, rows.weights)
    regression = Regression(ridge=0.01, trend="linear", gradient_weight=0.5)
    emulator = fit_outputs(regression, ENERGY, nodes, whitening, rows)
    assert emulator.ridge == 0.01
    # A regression of one potential knows nothing of outputs: hand it one output as a value. A
    # ridge on weights in units of u is one of ridge / u^2 on weights.
    found = emulator.forward(FRESH.positions)
    for m in range(OUTPUTS):
        one = attrs.evolve(rows, values=rows.outputs[:, m], gradients=rows.jacobians[:, m])
        alone = regression.fit(nodes, whitening, one)
        np.testing.assert_allclose(
            alone.value(FRESH.positions), found[:, m], rtol=1e-6, atol=1e-6 * ENERGY.noise_sd[m]
        )
        np.testing.assert_allclose(
            alone.gradient(FRESH.positions),
            emulator.forward_and_jacobian(FRESH.positions)[1][:, m],
            rtol=1e-6,
            atol=1e-5 * ENERGY.noise_sd[m],
        )


def test_units_of_an_output_change_nothing():
    units = np.array([1e-6, 1.0, 1e6])
    energy = GaussianEnergy(
        data=ENERGY.data * units, noise_sd=ENERGY.noise_sd * units, prior=ENERGY.prior
    )
    rows = exact(40, rough=1.0)
    moved = attrs.evolve(
        rows, outputs=rows.outputs * units, jacobians=rows.jacobians * units[:, None]
    )
    learns = learner(sk.make("surrogate", "additive"), energy=energy)
    learns.observe(moved)
    one, other = fitted(sk.make("surrogate", "additive"), rows), learns.fit()
    np.testing.assert_allclose(
        other.value(FRESH.positions), one.value(FRESH.positions), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    ("trend", "degree"), [("constant", 0), ("linear", 1), ("laplace", 1), ("quadratic", 2)]
)
def test_trends_of_outputs(trend, degree):
    # Those of U need not be those of outputs: a normal density makes a linear map, not a bent one.
    rows = TrainingRows.of(exact(40), "full", needs_outputs=True)
    whitening = Whitening.of(rows.positions, rows.weights)
    emulator = fit_outputs(Regression(trend=trend), ENERGY, None, whitening, rows)
    _, jacobians = emulator.forward_and_jacobian(FRESH.positions)
    if degree == 0:
        np.testing.assert_array_equal(jacobians, 0.0)
    elif degree == 1:
        np.testing.assert_allclose(jacobians, [jacobians[0]] * len(jacobians), rtol=1e-9)
    else:
        np.testing.assert_allclose(jacobians, FRESH.jacobians, rtol=1e-6, atol=1e-6)


def test_trends_of_outputs_may_fall_in_every_direction():
    # -|q|^2 in one output; the trend of a potential would not be allowed to.
    positions = np.random.default_rng(3).standard_normal((30, DIM))
    outputs = -np.square(positions).sum(axis=1)[:, None] + [0.0, 1.0, 2.0]
    rows = Evaluations(
        positions=positions, values=ENERGY.value(outputs, positions), outputs=outputs
    )
    emulator = fitted(sk.make("surrogate", "quadratic"), rows)
    np.testing.assert_allclose(emulator.forward(positions), outputs, atol=1e-8)


def test_rows_without_jacobian_count_for_outputs_only():
    rows = exact(40)
    jacobians = np.array(rows.jacobians)
    jacobians[5:] = np.nan
    jacobians[3, 0, 0] = np.nan
    emulator = fitted(
        sk.make("surrogate", "additive", n_nodes=30), attrs.evolve(rows, jacobians=jacobians)
    )
    error = emulator.forward(FRESH.positions) - FRESH.outputs
    assert np.abs(error / ENERGY.noise_sd).max() < 1e-3


def test_rows_without_outputs_are_left_out():
    rows = exact(40)
    outputs = np.array(rows.outputs)
    outputs[:10] = np.nan
    assert (
        fitted(sk.make("surrogate", "additive"), attrs.evolve(rows, outputs=outputs)).n_points == 30
    )


def draws(n, seed, rough):
    """Exact draws from the posterior, by rejection of draws from the prior, with gradients."""
    many = exact(40 * n, seed, rough=rough)
    misfit = many.values - 0.5 * np.square(many.positions).sum(axis=1)
    misfit -= misfit.min()  # U has its constants
    kept = np.random.default_rng([seed, 1]).random(len(many)) < np.exp(-misfit)
    rows = many.take(np.flatnonzero(kept)[:n])
    assert len(rows) == n
    _, gradients = gradient_of_energy(ENERGY, rows.outputs, rows.jacobians, rows.positions)
    return attrs.evolve(rows, gradients=gradients)


@pytest.mark.parametrize("kind", ["additive", "rbf"])
@pytest.mark.parametrize("jacobians", [False, True])
def test_held_out_error_is_about_that_on_fresh_points(kind, jacobians):
    rows, fresh = draws(100, 2, 2.0), draws(400, 9, 2.0)
    if not jacobians:
        rows = attrs.evolve(rows, jacobians=None, gradients=None)
    # Few nodes, so that the error is no matter of a few points.
    surrogate = sk.make("surrogate", kind, n_nodes=6, trend="linear", hold_out=0.3)
    emulator = fitted(surrogate, rows)
    # What is down-weighted is not held out: 0.3 (2 dim + 10) nats above the least and more.
    near = fresh.values < rows.values.min() + 4.2
    truth = fit_quality(emulator, fresh.take(near))
    assert emulator.quality.n_points == 30
    assert 0.2 < emulator.quality.variance / truth.variance < 5.0
    if jacobians:
        assert 0.5 < emulator.quality.gradient_error / truth.gradient_error < 2.0
    else:
        assert emulator.quality.gradient_error is None


def test_nothing_held_out_where_nobody_wants_it():
    assert fitted(sk.make("surrogate", "additive", hold_out=0.0), exact(40)).quality is None
    assert fitted(sk.make("surrogate", "additive"), exact(9)).quality is None


def test_gradients_of_the_potential_are_made_from_jacobians():
    # They whiten, and judge the fit, even where only Jacobians were handed over.
    learns = learner(sk.make("surrogate", "additive", n_nodes=20))
    learns.observe(exact(40))
    expected = np.einsum(
        "nm,nmd->nd", (FRESH.outputs - ENERGY.data) / ENERGY.noise_sd**2, FRESH.jacobians
    )
    learns.observe(FRESH)
    gradients = learns.state()["rows"]["gradients"]
    np.testing.assert_allclose(gradients[40:], expected + FRESH.positions, rtol=1e-9)
    assert learns.fit().quality.gradient_error is not None


def test_states_hold_outputs_and_jacobians():
    first = learner(sk.make("surrogate", "additive", n_nodes=20))
    first.observe(exact(30, rough=1.0))
    first.fit()
    first.observe(exact(10, seed=3, rough=1.0, jacobians=False))
    second = learner(sk.make("surrogate", "additive", n_nodes=20), seed=99).restore(first.state())
    for learns in (first, second):
        learns.observe(exact(5, seed=4, rough=1.0))
    one, other = first.fit(), second.fit()
    np.testing.assert_array_equal(one.forward(FRESH.positions), other.forward(FRESH.positions))
    assert one.quality == other.quality


@pytest.mark.parametrize(
    ("train_on", "needs", "uses"),
    [
        ("auto", {"value", "outputs"}, {"value", "outputs", "jacobian"}),
        ("values", {"value", "outputs"}, {"value", "outputs"}),
        ("gradients", {"value", "outputs", "jacobian"}, {"value", "outputs", "jacobian"}),
        ("values-and-gradients",) + ({"value", "outputs", "jacobian"},) * 2,
    ],
)
def test_what_a_learner_of_outputs_needs(train_on, needs, uses):
    learns = learner(sk.make("surrogate", "additive", train_on=train_on, n_nodes=20))
    assert learns.needs == needs
    assert learns.uses == uses
    learns.observe(exact(20))
    assert learns.fit().capabilities == learns.provides


@pytest.mark.parametrize("kind", ["additive", "rbf", "quadratic"])
def test_learning_outputs_of_a_target_without_a_forward_map(kind):
    with pytest.raises(
        CapabilityError,
        match="learns='outputs' needs a target with a forward map, which this one has not; make",
    ):
        learner(sk.make("surrogate", kind, learns="outputs"), energy=None)


def test_learning_outputs_from_evaluations_without():
    rows = exact(20)
    learns = learner(sk.make("surrogate", "additive"))
    learns.observe(Evaluations(positions=rows.positions, values=rows.values))
    with pytest.raises(
        SurrogateFitError, match="got no evaluations with outputs; pass such, or learn the potent"
    ):
        learns.fit()


def test_learning_the_potential_of_a_forward_map():
    learns = learner(sk.make("surrogate", "additive", learns="potential", n_nodes=20))
    assert learns.energy is None
    assert learns.uses == {"value", "gradient"}
    assert learner(sk.make("surrogate", "additive", learns="outputs")).energy is ENERGY
    assert learner(sk.make("surrogate", "additive", learns="auto")).energy is ENERGY


@pytest.mark.parametrize("kind", ["additive", "rbf"])
def test_there_are_nodes_in_any_case_where_accuracy_is_worth_more_than_speed(kind):
    surrogate, rows = sk.make("surrogate", kind), exact(rough=0.003)
    errors, sizes = [], []
    for is_weighed in (False, True):
        problem = LearningProblem(
            dim=DIM, capabilities=frozenset(), energy=ENERGY, is_weighed=is_weighed
        )
        learns = surrogate.learner(problem, np.random.default_rng(1))
        learns.observe(rows)
        emulator = learns.fit()
        fresh = exact(60, seed=9, rough=0.003)
        errors.append(np.std(emulator.value(fresh.positions) - fresh.values))
        sizes.append(emulator.n_nodes)
    assert sizes[1] == 400 > sizes[0]
    assert errors[1] < errors[0]


def test_too_few_equations_for_quadratic_outputs():
    with pytest.raises(SurrogateFitError, match="has 6 coefficients, but there are only 5 equat"):
        fitted(sk.make("surrogate", "quadratic"), exact(5, jacobians=False))
