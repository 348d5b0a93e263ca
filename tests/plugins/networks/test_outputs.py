"""Networks that learn the outputs of a forward map: fits and units."""

import attrs
import numpy as np
import pytest
from equations_by_hand import nodes_of
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import CapabilityError, SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.surrogate.whitening import Whitening
from surrokit.targets.energies import gaussian_energy
from surrokit.targets.gaussian import gaussian_prior
from surrokit_networks.nodes import Nodes
from surrokit_networks.training import Training
from surrokit_networks.training_rows import TrainingRows, output_scales

DIM, OUTPUTS = 2, 3
SDS = np.array([1.0, 3.0, 40.0])
ENERGY = gaussian_energy(data=[2.7, 3.5, 1.0], noise_sd=SDS, prior=gaussian_prior(0.0, 1.0))
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


@pytest.mark.parametrize("train_on", ["auto", "values"])
@pytest.mark.parametrize("kind", ["additive", "rbf", "quadratic"])
def test_every_way_to_train(train_on, kind):
    emulator = fitted(sk.make("surrogate", kind, train_on=train_on, trend="quadratic"), exact(60))
    error = emulator.forward(FRESH.positions) - FRESH.outputs
    assert np.abs(error / SDS).max() < 1e-2
    assert np.var(emulator.value(FRESH.positions) - FRESH.values) < 1e-3


@pytest.mark.parametrize("kind", ["additive", "rbf"])
def test_many_outputs_are_as_many_fits_at_the_same_ridge(kind):
    rows = TrainingRows.of(exact(30, rough=1.0), "full", of_outputs=True)
    nodes, whitening = nodes_of(kind, DIM, 20), Whitening.of(rows.positions, rows.weights)
    training = Training(ridge=0.01, trend="linear")
    _, emulator = training.fit(nodes, whitening, rows, energy=ENERGY)
    assert emulator.ridge == 0.01
    # A training of one potential knows nothing of outputs: hand it one output as a value. A
    # ridge on weights in units of u is one of ridge / u^2 on weights.
    found = emulator.forward(FRESH.positions)
    for m in range(OUTPUTS):
        one = attrs.evolve(
            rows, values=rows.outputs[:, m], gradients=rows.jacobians[:, m], outputs=None
        )
        alone = training.fit(nodes, whitening, one)[1]
        assert_allclose(alone.value(FRESH.positions), found[:, m], rtol=1e-6, atol=1e-6 * SDS[m])
        assert_allclose(
            alone.gradient(FRESH.positions),
            emulator.forward_and_jacobian(FRESH.positions)[1][:, m],
            rtol=1e-6,
            atol=1e-5 * SDS[m],
        )


def test_units_of_an_output_change_nothing():
    units = np.array([1e-6, 1.0, 1e6])
    energy = gaussian_energy(data=ENERGY.data * units, noise_sd=SDS * units, prior=ENERGY.prior)
    rows = exact(40, rough=1.0)
    moved = attrs.evolve(
        rows, outputs=rows.outputs * units, jacobians=rows.jacobians * units[:, None]
    )
    learns = learner(sk.make("surrogate", "additive"), energy=energy)
    learns.observe(moved)
    one, other = fitted(sk.make("surrogate", "additive"), rows), learns.fit()
    assert_allclose(other.value(FRESH.positions), one.value(FRESH.positions), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("trend", "degree"), [("constant", 0), ("linear", 1), ("quadratic", 2)])
def test_trends_of_outputs(trend, degree):
    # Those of U need not be those of outputs: a normal density makes a linear map, not a bent one.
    rows = TrainingRows.of(exact(40), "full", of_outputs=True)
    whitening = Whitening.of(rows.positions, rows.weights)
    training, bare = Training(trend=trend), Nodes.none(DIM)
    _, emulator = training.fit(bare, whitening, rows, energy=ENERGY)
    _, jacobians = emulator.forward_and_jacobian(FRESH.positions)
    if degree == 0:
        assert_array_equal(jacobians, 0.0)
    elif degree == 1:
        assert_allclose(jacobians, [jacobians[0]] * len(jacobians), rtol=1e-9)
    else:
        assert_allclose(jacobians, FRESH.jacobians, rtol=1e-6, atol=1e-6)
        # which may fall in every direction, too
        falling = attrs.evolve(rows, outputs=-rows.outputs, jacobians=-rows.jacobians)
        _, emulator = training.fit(bare, whitening, falling, energy=ENERGY)
        assert_allclose(emulator.forward(FRESH.positions), -FRESH.outputs, atol=1e-6)


def test_gradients_of_the_potential_are_made_from_jacobians():
    # They whiten, and judge the fit, even where only Jacobians were handed over.
    learns = learner(sk.make("surrogate", "additive", n_nodes=20))
    learns.observe(exact(40))
    expected = np.einsum("nm,nmd->nd", (FRESH.outputs - ENERGY.data) / SDS**2, FRESH.jacobians)
    learns.observe(FRESH)
    gradients = learns.state()["rows"]["gradients"]
    assert_allclose(gradients[40:], expected + FRESH.positions, rtol=1e-9)
    assert learns.fit().quality.gradient_error is not None


@pytest.mark.parametrize(
    ("train_on", "needs", "uses"),
    [
        ("auto", {"value", "outputs"}, {"value", "outputs", "jacobian"}),
        ("values", {"value", "outputs"}, {"value", "outputs"}),
    ],
)
def test_what_a_learner_of_outputs_needs(train_on, needs, uses):
    learns = learner(sk.make("surrogate", "additive", train_on=train_on, n_nodes=20))
    assert learns.needs == needs
    assert learns.uses == uses
    learns.observe(exact(20))
    assert learns.fit().capabilities == learns.provides
    potential = learner(sk.make("surrogate", "additive", learns="potential", train_on=train_on))
    assert potential.energy is None
    assert "outputs" not in potential.uses


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


@pytest.mark.parametrize("kind", ["additive", "rbf"])
def test_there_are_nodes_in_any_case_where_accuracy_is_worth_more_than_speed(kind):
    surrogate, rows = sk.make("surrogate", kind), exact(400, rough=0.003)
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


NOISE = np.array([1e-3, 1.0, 50.0])
NOISY = gaussian_energy(data=[0.0, 10.0, -300.0], noise_sd=NOISE)


@pytest.fixture
def outputs(rng):
    return NOISY.data + NOISE * rng.standard_normal((400, 3))


def scales(outputs, weights=None, energy=NOISY):
    n = len(outputs)
    return output_scales(
        energy, outputs, np.zeros((n, 2)), np.ones(n) if weights is None else weights
    )


def test_an_error_of_that_size_changes_the_energy_by_a_nat(outputs):
    for output, scale in enumerate(scales(outputs)):
        error = np.zeros(3)
        error[output] = 1e-3 * scale
        change = NOISY.value(outputs + error, outputs) - NOISY.value(outputs, outputs)
        assert np.sqrt(np.mean(np.square(change))) == pytest.approx(1e-3, rel=1e-2)


class First:
    """An energy of the first output alone."""

    def value_and_gradients(self, outputs, positions):
        by_outputs = np.zeros_like(outputs)
        by_outputs[:, 0] = outputs[:, 0]
        return 0.5 * np.square(outputs[:, 0]), by_outputs, np.zeros_like(positions)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e303])
def test_rows_that_cannot_count_do_not(outputs, bad):
    failed = np.concatenate([outputs, np.full((2, 3), bad)])
    weights = np.ones(402)
    weights[400:] = 0.0 if bad == 1e303 else 1.0
    assert_allclose(scales(failed, weights), scales(outputs))
    assert_allclose(scales(outputs * np.nan), 1.0)
    ran_away = scales(np.concatenate([outputs, np.full((2, 3), 1e290)]))
    assert ((ran_away > 0) & (ran_away < np.inf)).all()


def test_outputs_that_do_not_matter_have_no_say(outputs):
    outputs[:, 2] = 7.0
    found = scales(outputs, energy=First())
    assert found[0] == pytest.approx(1 / np.sqrt(np.mean(np.square(outputs[:, 0]))))
    assert found[1] == pytest.approx(1e6 * outputs[:, 1].std())
    assert found[2] == 1.0


def test_few_combinations_stand_for_outputs_that_vary_together():
    """Forty outputs of three bent functions; eight that vary each by itself stay as they are."""
    rng = np.random.default_rng(4)
    places, mixing = rng.standard_normal((60, DIM)), rng.standard_normal((3, 40))
    bent = np.stack([places[:, 0], np.sin(places[:, 1]), np.square(places).sum(axis=1)], axis=1)
    surrogate = sk.make("surrogate", "additive", n_nodes=30)
    for outputs, few in ((bent @ mixing, True), (rng.standard_normal((60, 8)), False)):
        zeros = np.zeros(outputs.shape[1])
        energy = gaussian_energy(zeros, 0.5, prior=gaussian_prior(0.0, 1.0))
        learns = learner(surrogate, energy)
        learns.observe(Evaluations(positions=places, values=places[:, 0], outputs=outputs))
        emulator = learns.fit()
        assert (emulator.mix is not None) == few
        if few:
            assert len(emulator.mix) <= 5
            assert_allclose(emulator.forward(places), outputs, atol=0.2)
        values, gradients = emulator.value_and_gradient(places)
        assert_allclose(values, energy.value(emulator.forward(places), places))
        found, jacobians = emulator.forward_and_jacobian(places)
        by_outputs, by_places = energy.value_and_gradients(found, places)[1:]
        assert_allclose(gradients, np.einsum("nm,nmd->nd", by_outputs, jacobians) + by_places)
