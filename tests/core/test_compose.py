"""From names and settings to objects."""

from __future__ import annotations

from unittest.mock import Mock

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import CapabilityError, ConfigurationError, ShapeError, UnknownComponentError
from surrokit.registry.catalogue import Catalogue, Composer
from surrokit.run.book import EVENTS
from surrokit.testing.parts import ConstantMetric
from surrokit_hmc.hmc import HMC
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


def too_wide():
    """A potential that is flatter than the target of these tests."""
    return sk.potential(lambda q: 0.4 * q @ q, lambda q: 0.8 * q, dim=2)


@attrs.frozen
class Needy:
    needs: frozenset = frozenset({"metric"})

    def bind(self, potential):
        return self


# --- make ---


@pytest.mark.parametrize(
    "spec", ["identity", ("identity", {}), IdentityMetric()], ids=["name", "pair", "object"]
)
def test_parts_inside_parts_may_be_given_in_every_form(spec):
    assert sk.make("sampler", "hmc", metric=spec).metric == IdentityMetric()


@pytest.mark.parametrize(
    ("kind", "spec", "settings", "error", "message"),
    [
        (
            "explorer",
            "sampler",
            {},
            ConfigurationError,
            r"explorer 'sampler' needs a sampler as 'sampler'; give a name \(.*hmc, ",
        ),
        (
            "sampler",
            "hmc",
            {"metric": "dens"},
            UnknownComponentError,
            "no metric is named 'dens'; did you mean 'dense'",
        ),
        (
            "sampler",
            "hmc",
            {"n_step": 3},
            ConfigurationError,
            "sampler 'hmc' has no setting 'n_step'; did you mean 'n_steps'.*its settings are: ",
        ),
        ("schedule", "once", {"x": 1}, ConfigurationError, "its settings are: none"),
    ],
)
def test_what_cannot_be_made_is_refused(kind, spec, settings, error, message):
    with pytest.raises(error, match=message):
        sk.make(kind, spec, **settings)


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
    return Composer(Catalogue(entries={("metric", "needing"): component}))


def test_a_missing_setting_is_named_with_how_to_pass_it(composer):
    message = r"metric 'needing' needs size; pass \('needing', \{'size': ...\}\)"
    with pytest.raises(ConfigurationError, match=message):
        composer.make("metric", "needing")


def test_a_pair_is_made_and_an_object_is_returned(composer):
    assert composer.make("metric", ("needing", {"size": 3, "scale": 2.0})).size == 6.0
    metric = ConstantMetric()
    assert composer.make("metric", metric) is metric


def test_making_changes_no_settings():
    spec = ("hmc", {"metric": "identity"})
    sk.sample(target(), sampler=spec, **SMALL)
    assert spec == ("hmc", {"metric": "identity"})


# --- sample ---


def test_the_default_sampler_is_hmc_with_a_dense_metric():
    run = sk.sample(target(), **SMALL)
    assert isinstance(run.sampler.sampler, HMC)
    assert isinstance(run.sampler.metric, DenseMetric)


@pytest.mark.parametrize("thing", [3, lambda q: q @ q, None, ("gaussian", {}, 1)])
def test_what_is_no_target_is_refused_with_what_to_do(thing):
    with pytest.raises(ConfigurationError, match=r"make one with surrokit.potential\(value"):
        sk.sample(thing, **SMALL)


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


ROWS = (np.zeros((3, 2)), np.zeros(3))
READY = "is ready and learns nothing; pass one that"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sampler": ("hmc", 3)}, ConfigurationError, "of 'hmc' must be a dictionary, got 3"),
        (
            {"sampler": ("random-walk", {"metric": "dense"})},
            ConfigurationError,
            "'random-walk' has no setting 'metric'",
        ),
        (
            {"sampler": "hmc", "schedule": "once"},
            ConfigurationError,
            "'once' deploys a surrogate, but none is named",
        ),
        (
            {"surrogate": flat_surrogate(), "schedule": "never"},
            ConfigurationError,
            "schedule 'never' never deploys it",
        ),
        (
            {"sampler": "hmc", "explorer": "sampler"},
            ConfigurationError,
            "explorer is given, but there is no surrogate",
        ),
        (
            {"sampler": "hmc", "warm_start": ROWS},
            ConfigurationError,
            "evaluations are given, but there is no surrogate",
        ),
        (
            {"sampler": "random-walk", "surrogate": "additive"},
            ConfigurationError,
            "moves without any potential",
        ),
        ({"surrogate": too_wide(), "explorer": "sampler"}, ConfigurationError, READY),
        ({"surrogate": too_wide(), "schedule": "once"}, ConfigurationError, READY),
        ({"surrogate": too_wide(), "warm_start": ROWS}, ConfigurationError, READY),
        (
            {"surrogate": sk.potential(lambda q: q @ q, dim=3)},
            ShapeError,
            "the surrogate has dim 3, but the target has dim 2; pass",
        ),
        (
            {"surrogate": sk.potential(lambda q: q @ q, dim=2)},
            CapabilityError,
            "the sampler needs gradient from the surrogate",
        ),
        (
            {"surrogate": flat_surrogate(provides=set())},
            CapabilityError,
            "the sampler needs gradient from the surrogate",
        ),
        ({"correction": Needy()}, CapabilityError, "the correction needs metric from the target"),
        (
            {"surrogate": flat_surrogate(), "warm_start": (*ROWS, ROWS[0], ROWS[1])},
            ShapeError,
            "evaluations in warm_start must be .positions, values.*got 4",
        ),
        (
            {"surrogate": flat_surrogate(), "warm_start": (np.zeros((4, 3)), np.zeros(4))},
            ShapeError,
            "positions of 3 numbers, but the target has dim 2",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_before_the_first_exact_call(options, error, message):
    with pytest.raises(error, match=message):
        sk.sample(Refusing(), **options, **SMALL)


# --- needs ---


class ValuesOnly(Refusing):
    capabilities = frozenset()


def test_a_sampler_that_needs_a_gradient_is_refused_before_the_first_exact_call():
    message = "the sampler needs gradient from the target, which offers values only; "
    with pytest.raises(CapabilityError, match=message) as caught:
        sk.sample(ValuesOnly(), sampler="hmc", **SMALL)
    assert "sampler='random-walk'" in str(caught.value)


@pytest.mark.parametrize("needs", [{"gradient"}, {"outputs"}, {"value", "jacobian"}])
def test_a_surrogate_must_get_what_it_learns_from(needs):
    message = f"learns from {', '.join(sorted(needs))}, but .* give only value;"
    with pytest.raises(CapabilityError, match=message):
        sk.sample(ValuesOnly(), surrogate=flat_surrogate(needs=needs), **SMALL)


@pytest.mark.parametrize("needs", [{"outputs"}, {"jacobian", "gradient"}])
def test_a_forward_map_gives_outputs_and_jacobians_to_learn_from(needs):
    exact = sk.forward_potential(
        lambda q: q, lambda q: np.eye(2), data=[0.0, 0.0], noise_sd=1.0, dim=2
    )
    run = sk.sample(exact, surrogate=flat_surrogate(needs=needs), **SMALL)
    assert run.adaptation.deployments


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


def test_evaluations_count_as_training_rows_and_cost_nothing(bounded):
    """Those outside of the bounds are left out."""
    surrogate = Keeping().surrogate(bounded)
    given = ([[1.0, 5.0], [-1.0, 5.0], [0.0, 5.0], [2.0, 5.0]], [1.0, 2.0, 3.0, 4.0])
    run = sk.sample(bounded, surrogate=surrogate, warm_start=given, **SMALL)
    without = sk.sample(bounded, surrogate=surrogate, **SMALL)
    assert run.adaptation.training_rows == without.adaptation.training_rows + 2
    assert run.calls == without.calls


# --- what observers and the output are told ---


def test_parts_are_described_by_name_and_settings():
    run = sk.sample(target(), sampler=("hmc", {"metric": "identity", "n_steps": 3}), **SMALL)
    assert run.parts["sampler"] == "hmc(metric='identity', n_steps=3)"
    assert run.parts["target"] == "FunctionPotential"
    assert run.parts["correction"] == "metropolis"


# --- a ready potential as the surrogate ---


def test_a_ready_potential_serves_from_the_first_iteration():
    ready, told = too_wide(), Mock(spec=EVENTS)
    run = sk.sample(target(), surrogate=ready, observers=[told], **SMALL)
    assert run.surrogate is ready
    assert run.parts["schedule"] == "never"
    assert run.parts["explorer"] == "none"
    assert run.adaptation.deployments == ()
    assert run.adaptation.frozen_before_draws
    assert run.calls["gradient"] == 0
    iterations = len(run.warmup.seconds) + len(run.kept.seconds)
    assert 0 < run.calls["value"] <= run.draws.shape[0] * (iterations + 1)
    (call,) = told.surrokit_surrogate_deployed.call_args_list
    assert call.kwargs["surrogate"] is ready
    assert call.kwargs["evaluations"] == 0
    assert call.kwargs["reason"] == "ready before the run"
    assert [name for name, *_ in told.method_calls[:2]] == [
        "surrokit_run_started",
        "surrokit_surrogate_deployed",
    ]


def test_a_ready_potential_gives_gradients_to_a_target_without():
    exact = sk.potential(lambda q: 0.5 * q @ q, dim=2)
    assert sk.sample(exact, surrogate=too_wide(), **SMALL).acceptance.mean() > 0.5
