"""From names and settings to objects."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import (
    CapabilityError,
    ConfigurationError,
    ShapeError,
    UnknownComponentError,
)
from surrokit.registry.catalogue import Catalogue, Composer, Entry
from surrokit.testing.fixtures import HookCalls
from surrokit.testing.parts import ConstantMetric
from surrokit_corrections.metropolis import Metropolis
from surrokit_hmc.hmc import HMC
from surrokit_hmc.independent import RandomWalk
from surrokit_hmc.metrics import DenseMetric, IdentityMetric

SMALL = {"chains": 2, "warmup": 20, "draws": 5, "seed": 4, "progress": False}


class Refusing:
    """A potential that must not be evaluated."""

    dim = 2
    capabilities = frozenset({"gradient"})

    def value(self, positions):
        pytest.fail("an exact call was made before all needs were checked")

    value_and_gradient = gradient = value


def target(dim=2):
    return sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=dim)


def flat_surrogate(**options):
    return sk.batch_surrogate(lambda evaluations, rng: target(), **options)


# --- make ---


def test_a_part_is_made_by_name():
    assert sk.make("metric", "identity") == IdentityMetric()


def test_settings_reach_the_part():
    made = sk.make("sampler", "hmc", step_size=0.2, n_steps=7)
    assert (made.step_size, made.n_steps) == (0.2, 7)


def test_parts_inside_parts_have_defaults():
    assert isinstance(sk.make("sampler", "hmc").metric, DenseMetric)


@pytest.mark.parametrize(
    "spec", ["identity", ("identity", {}), IdentityMetric()], ids=["name", "pair", "object"]
)
def test_parts_inside_parts_may_be_given_in_every_form(spec):
    assert sk.make("sampler", "hmc", metric=spec).metric == IdentityMetric()


def test_parts_go_inside_parts_inside_parts():
    explorer = sk.make(
        "explorer",
        "sampler",
        sampler=("hmc", {"metric": ("dense", {"inverse_mass": np.eye(2)}), "step_size": 0.3}),
        correction="metropolis",
    )
    assert explorer.sampler.step_size == 0.3
    assert_allclose(explorer.sampler.metric.inverse_mass, np.eye(2))
    assert isinstance(explorer.correction, Metropolis)


def test_a_part_without_default_must_be_given():
    message = r"explorer 'sampler' needs a sampler as 'sampler'; give a name \(.*hmc, "
    with pytest.raises(ConfigurationError, match=message):
        sk.make("explorer", "sampler")


def test_an_unknown_name_has_near_ones():
    with pytest.raises(
        UnknownComponentError, match="no sampler is named 'hmcc'; did you mean 'hmc'"
    ):
        sk.make("sampler", "hmcc")


def test_an_unknown_name_of_a_part_inside_is_found_too():
    with pytest.raises(
        UnknownComponentError, match="no metric is named 'dens'; did you mean 'dense'"
    ):
        sk.make("sampler", "hmc", metric="dens")


def test_a_name_of_another_kind_is_recognised():
    with pytest.raises(UnknownComponentError, match="'metropolis' is the name of a correction"):
        sk.make("sampler", "metropolis")


@pytest.mark.parametrize("kind", ["samplers", "Sampler", ""])
def test_an_unknown_kind_is_refused(kind):
    with pytest.raises(LookupError):
        sk.make(kind, "hmc")


def test_an_unknown_setting_has_near_ones():
    message = "sampler 'hmc' has no setting 'n_step'; did you mean 'n_steps'. its settings are: "
    with pytest.raises(ConfigurationError, match=message):
        sk.make("sampler", "hmc", n_step=3)


def test_a_part_without_settings_says_so():
    with pytest.raises(ConfigurationError, match="its settings are: none"):
        sk.make("schedule", "once", x=1)


def test_settings_must_be_a_mapping():
    with pytest.raises(ConfigurationError, match="settings of 'hmc' must be a dictionary, got 3"):
        sk.sample(target(), sampler=("hmc", 3), **SMALL)


class Mass:
    """Has the members of a metric."""

    def __init__(self, size):
        self.size = size

    def draw(self, rng, n, dim):
        return self.size * rng.standard_normal((n, dim))

    tunable = adapt = velocity = energy = longest_scale = draw


def needing(*, size, scale=1.0):
    return Mass(size * scale)


@pytest.fixture
def composer():
    component = sk.Component(kind="metric", name="needing", factory=needing, summary="s")
    entry = Entry(component=component, plugin="p")
    return Composer(Catalogue(entries={("metric", "needing"): entry}))


def test_a_missing_setting_is_named_with_how_to_pass_it(composer):
    message = r"metric 'needing' needs size; pass \('needing', \{'size': ...\}\)"
    with pytest.raises(ConfigurationError, match=message):
        composer.make("metric", "needing")


def test_extra_settings_join_those_of_the_pair(composer):
    assert composer.make("metric", ("needing", {"size": 3}), scale=2.0).size == 6.0


def test_an_extra_setting_of_none_is_not_given(composer):
    assert composer.make("metric", ("needing", {"size": 3}), scale=None).size == 3.0


def test_an_object_is_taken_as_it_is(composer):
    metric = ConstantMetric()
    assert composer.make("metric", metric) is metric


def test_making_changes_no_settings(composer):
    settings = {"sampler": "hmc", "correction": "metropolis"}
    sk.make("explorer", "sampler", **settings)
    spec = ("hmc", {"metric": "identity"})
    sk.sample(target(), sampler=spec, **SMALL)
    assert spec == ("hmc", {"metric": "identity"})


# --- sample ---


@pytest.mark.parametrize(
    "sampler",
    [
        "hmc",
        ("hmc", {"metric": "identity"}),
        HMC(integrator=sk.make("integrator", "leapfrog"), metric=IdentityMetric()),
        RandomWalk(),
    ],
    ids=["name", "pair", "object", "other-object"],
)
def test_a_sampler_may_be_given_in_every_form(sampler):
    assert sk.sample(target(), sampler=sampler, **SMALL).draws.shape == (2, 5, 2)


def test_the_default_sampler_is_hmc_with_a_dense_metric():
    run = sk.sample(target(), **SMALL)
    assert isinstance(run.sampler.sampler, HMC)
    assert isinstance(run.sampler.metric, DenseMetric)


def test_a_registered_target_is_found():
    assert sk.sample(("gaussian", {"dim": 3}), **SMALL).draws.shape == (2, 5, 3)


def test_an_unknown_target_has_near_ones():
    with pytest.raises(UnknownComponentError, match="did you mean 'gaussian'"):
        sk.sample("gausian", **SMALL)


@pytest.mark.parametrize("thing", [3, lambda q: q @ q, None, ("gaussian", {}, 1)])
def test_what_is_no_target_is_refused_with_what_to_do(thing):
    with pytest.raises(ConfigurationError, match=r"make one with surrokit.potential\(value"):
        sk.sample(thing, **SMALL)


def test_settings_that_a_sampler_lacks_are_refused():
    with pytest.raises(ConfigurationError, match="'random-walk' has no setting 'metric'"):
        sk.sample(target(), sampler=("random-walk", {"metric": "dense"}), **SMALL)


@pytest.mark.parametrize("kind", ["sampler", "surrogate", "schedule", "correction", "explorer"])
def test_an_unknown_name_of_any_part_is_refused_before_the_first_exact_call(kind):
    surrogate = {} if kind == "surrogate" else {"surrogate": flat_surrogate()}
    with pytest.raises(UnknownComponentError, match=f"no {kind} is named 'nonsense'"):
        sk.sample(Refusing(), **{kind: "nonsense"}, **surrogate, **SMALL)


@pytest.mark.parametrize("surrogate", [None, "none"])
def test_no_surrogate_can_be_said(surrogate):
    run = sk.sample(target(), surrogate=surrogate, **SMALL)
    assert run.surrogate is None
    assert run.parts["surrogate"] == "none"
    assert run.parts["schedule"] == "never"


def test_a_schedule_that_deploys_needs_a_surrogate():
    with pytest.raises(ConfigurationError, match="'once' deploys a surrogate, but none is named"):
        sk.sample(Refusing(), sampler="hmc", schedule="once", **SMALL)


def test_a_surrogate_needs_a_schedule_that_deploys_it():
    with pytest.raises(ConfigurationError, match="schedule 'never' never deploys it"):
        sk.sample(Refusing(), surrogate=flat_surrogate(), schedule="never", **SMALL)


@pytest.mark.parametrize(
    ("name", "value"), [("explorer", "sampler"), ("warm_start", (np.zeros((3, 2)), np.zeros(3)))]
)
def test_what_only_a_surrogate_can_use_is_refused_without_one(name, value):
    given = {"warm_start": "evaluations are"}.get(name, f"{name} is")
    with pytest.raises(ConfigurationError, match=f"{given} given, but there is no surrogate"):
        sk.sample(Refusing(), sampler="hmc", **{name: value}, **SMALL)


# --- needs ---


class ValuesOnly(Refusing):
    capabilities = frozenset()


def test_a_sampler_that_needs_a_gradient_is_refused_before_the_first_exact_call():
    message = "the sampler needs gradient from the target, which offers values only; "
    with pytest.raises(CapabilityError, match=message) as caught:
        sk.sample(ValuesOnly(), sampler="hmc", **SMALL)
    assert "sampler='random-walk'" in str(caught.value)


def test_an_explorer_that_needs_a_gradient_is_refused_before_the_first_exact_call():
    with pytest.raises(CapabilityError, match="the explorer needs gradient from the target"):
        sk.sample(
            ValuesOnly(),
            surrogate=flat_surrogate(),
            explorer=("sampler", {"sampler": "hmc"}),
            **SMALL,
        )


def test_a_surrogate_must_provide_what_the_sampler_needs():
    with pytest.raises(CapabilityError, match="the sampler needs gradient from the surrogate"):
        sk.sample(Refusing(), surrogate=flat_surrogate(provides=set()), **SMALL)


@attrs.frozen
class Needy:
    needs: frozenset = frozenset({"metric"})

    def bind(self, potential):
        return self


def test_a_correction_must_get_what_it_needs():
    with pytest.raises(CapabilityError, match="the correction needs metric from the target"):
        sk.sample(Refusing(), correction=Needy(), **SMALL)


@pytest.mark.parametrize(
    ("needs", "offered"),
    [({"gradient"}, "value"), ({"outputs"}, "value"), ({"value", "jacobian"}, "value")],
)
def test_a_surrogate_must_get_what_it_learns_from(needs, offered):
    message = f"learns from {', '.join(sorted(needs))}, but .* give only {offered};"
    with pytest.raises(CapabilityError, match=message):
        sk.sample(ValuesOnly(), surrogate=flat_surrogate(needs=needs), **SMALL)


@pytest.mark.parametrize("needs", [{"outputs"}, {"jacobian", "gradient"}])
def test_a_forward_map_gives_outputs_and_jacobians_to_learn_from(needs):
    exact = sk.forward_potential(
        lambda q: q, lambda q: np.eye(2), data=[0.0, 0.0], noise_sd=1.0, dim=2
    )
    run = sk.sample(exact, surrogate=flat_surrogate(needs=needs), **SMALL)
    assert run.adaptation.deployments


def test_without_a_gradient_a_random_walk_explores():
    exact = sk.potential(lambda q: 0.5 * q @ q, dim=2)
    run = sk.sample(exact, surrogate=flat_surrogate(), **SMALL)
    assert (run.warmup.n_steps[:, :10] == 1).all()
    assert run.kept.n_steps.max() > 1
    assert run.calls["gradient"] == 0
    assert isinstance(run.sampler.sampler, HMC)


# --- evaluations already paid for ---


class Keeping:
    """Fits nothing, and remembers what it was given to learn from."""

    def __init__(self):
        self.rows = None

    def surrogate(self, exact):
        def fit(evaluations, rng):
            self.rows = evaluations
            return exact

        return sk.batch_surrogate(fit)


@pytest.fixture
def bounded():
    return sk.potential(
        lambda q: q[0] - np.log(q[0]) + 0.5 * q[1] ** 2,
        lambda q: np.array([1 - 1 / q[0], q[1]]),
        parameters={"rate": (0, None), "slope": None},
    )


@pytest.mark.parametrize("as_tuple", [True, False])
def test_evaluations_come_first_and_in_the_sampling_coordinates(bounded, as_tuple, rng):
    q = np.column_stack([rng.random(7) + 0.1, rng.standard_normal(7)])
    values = q[:, 0] - np.log(q[:, 0]) + 0.5 * q[:, 1] ** 2
    gradients = np.column_stack([1 - 1 / q[:, 0], q[:, 1]])
    given = (q, values, gradients)
    if not as_tuple:
        given = sk.Evaluations(positions=q, values=values, gradients=gradients)
    keeping = Keeping()
    sk.sample(bounded, surrogate=keeping.surrogate(bounded), warm_start=given, **SMALL)
    first = keeping.rows.take(slice(7))
    assert_allclose(first.positions, np.column_stack([np.log(q[:, 0]), q[:, 1]]))
    value, gradient = bounded.value_and_gradient(first.positions)
    assert_allclose(first.values, value)
    assert_allclose(first.gradients, gradient)


def test_evaluations_without_gradients_are_taken(bounded):
    keeping = Keeping()
    given = ([[1.0, 0.0]], [1.0])
    sk.sample(bounded, surrogate=keeping.surrogate(bounded), warm_start=given, **SMALL)
    assert np.isnan(keeping.rows.gradients[0]).all()


def test_evaluations_with_a_jacobian_follow_the_chain_rule():
    exact = sk.forward_potential(
        lambda q: q**2,
        lambda q: np.diag(2 * q),
        data=[1.0],
        noise_sd=1.0,
        parameters={"rate": (0, None)},
    )
    keeping = Keeping()
    given = sk.Evaluations(positions=[[2.0]], values=[4.5], outputs=[[4.0]], jacobians=[[[4.0]]])
    sk.sample(exact, surrogate=keeping.surrogate(exact), warm_start=given, **SMALL)
    outputs, jacobians = exact.forward_and_jacobian(keeping.rows.positions[:1])
    assert_allclose(keeping.rows.outputs[0], outputs[0])
    assert_allclose(keeping.rows.jacobians[0], jacobians[0])


def test_evaluations_outside_the_bounds_are_left_out(bounded):
    keeping = Keeping()
    given = ([[1.0, 5.0], [-1.0, 5.0], [0.0, 5.0], [2.0, 5.0]], [1.0, 2.0, 3.0, 4.0])
    surrogate = keeping.surrogate(bounded)
    run = sk.sample(bounded, surrogate=surrogate, warm_start=given, **SMALL)
    without = sk.sample(bounded, surrogate=surrogate, **SMALL)
    assert run.adaptation.training_rows == without.adaptation.training_rows + 2


def test_evaluations_count_as_training_rows_and_cost_nothing(bounded):
    keeping = Keeping()
    with_rows = sk.sample(
        bounded,
        surrogate=keeping.surrogate(bounded),
        warm_start=([[1.0, 0.0]] * 50, [1.0] * 50),
        **SMALL,
    )
    without = sk.sample(bounded, surrogate=keeping.surrogate(bounded), **SMALL)
    assert with_rows.adaptation.training_rows == without.adaptation.training_rows + 50
    assert with_rows.calls == without.calls


@pytest.mark.parametrize("given", [([[1.0, 0.0]],), ([[1.0, 0.0]], [1.0], [[1.0, 0.0]], [1.0])])
def test_a_tuple_of_evaluations_has_two_or_three_items(given):
    with pytest.raises(
        ShapeError, match=f"evaluations in warm_start must be .positions, values.*got {len(given)}"
    ):
        sk.sample(Refusing(), surrogate=flat_surrogate(), warm_start=given, **SMALL)


def test_evaluations_of_another_size_are_refused():
    given = (np.zeros((4, 3)), np.zeros(4))
    with pytest.raises(ShapeError, match="positions of 3 numbers, but the target has dim 2"):
        sk.sample(Refusing(), surrogate=flat_surrogate(), warm_start=given, **SMALL)


# --- what observers and the output are told ---


def test_parts_are_described_by_name_and_settings():
    run = sk.sample(target(), sampler=("hmc", {"metric": "identity", "n_steps": 3}), **SMALL)
    assert run.parts["sampler"] == "hmc(metric='identity', n_steps=3)"
    assert run.parts["target"] == "FunctionPotential"
    assert run.parts["correction"] == "metropolis"


def test_a_surrogate_that_the_sampler_would_never_use_is_refused():
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=2)
    with pytest.raises(ConfigurationError, match="moves without any potential"):
        sk.sample(target, sampler="random-walk", surrogate="additive", progress=False)


# --- a ready potential as the surrogate ---


def too_wide():
    """A potential that is flatter than the target of these tests."""
    return sk.potential(lambda q: 0.4 * q @ q, lambda q: 0.8 * q, dim=2)


def test_a_ready_potential_serves_from_the_first_iteration():
    ready, told = too_wide(), HookCalls()
    run = sk.sample(target(), surrogate=ready, observers=[told], **SMALL)
    assert run.surrogate is ready
    assert run.parts["schedule"] == "never"
    assert run.parts["explorer"] == "none"
    assert run.adaptation.deployments == ()
    assert run.adaptation.frozen_before_draws
    assert run.calls["gradient"] == 0
    iterations = len(run.warmup.seconds) + len(run.kept.seconds)
    assert 0 < run.calls["value"] <= run.draws.shape[0] * (iterations + 1)
    (call,) = told.of("surrokit_surrogate_deployed")
    assert call.arguments["surrogate"] is ready
    assert call.arguments["evaluations"] == 0
    assert call.arguments["reason"] == "ready before the run"
    assert told.names[:2] == ["surrokit_run_started", "surrokit_surrogate_deployed"]


def test_a_ready_potential_gives_gradients_to_a_target_without():
    exact = sk.potential(lambda q: 0.5 * q @ q, dim=2)
    assert sk.sample(exact, surrogate=too_wide(), **SMALL).acceptance.mean() > 0.5


def test_a_fitted_surrogate_of_one_run_serves_another():
    first = sk.sample("gaussian", surrogate=flat_surrogate(), warmup=200, draws=20, seed=1)
    again = sk.sample("gaussian", surrogate=first.surrogate, warmup=100, draws=20, seed=2)
    assert again.surrogate is first.surrogate


@pytest.mark.parametrize(
    ("name", "value"),
    [("explorer", "sampler"), ("schedule", "once"), ("warm_start", (np.zeros((3, 2)), [0, 0, 0]))],
)
def test_what_only_a_learner_can_use_is_refused_with_a_ready_potential(name, value):
    with pytest.raises(ConfigurationError, match="is ready and learns nothing; pass one that"):
        sk.sample(Refusing(), surrogate=too_wide(), **{name: value}, **SMALL)


def test_a_ready_potential_must_have_the_dimension_of_the_target():
    with pytest.raises(ShapeError, match="the surrogate has dim 3, but the target has dim 2; pass"):
        sk.sample(Refusing(), surrogate=sk.potential(lambda q: q @ q, dim=3), **SMALL)


def test_a_ready_potential_must_offer_what_the_sampler_needs():
    with pytest.raises(CapabilityError, match="the sampler needs gradient from the surrogate"):
        sk.sample(Refusing(), surrogate=sk.potential(lambda q: q @ q, dim=2), **SMALL)
