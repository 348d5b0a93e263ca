"""One model of which several posteriors are made: each position is evaluated once."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_array_equal

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import ConfigurationError, LedgerError

TIMES = np.linspace(0.0, 4.0, 12)
DATA = 2.0 * np.exp(-0.7 * TIMES) + 0.1 * np.random.default_rng(1).normal(size=12)
POSITIVE = {"height": (0, None), "rate": (0, None)}
PATHS = ("hmc", {"step_size": 0.05, "n_steps": 3})
SIZES = {"chains": 2, "warmup": 30, "draws": 20, "seed": 3, "progress": False}


class Decay:
    """A curve and its derivatives, which count how often they are called, and where."""

    def __init__(self):
        self.at = []

    def outputs(self, q):
        self.at.append(q.tobytes())
        return q[0] * np.exp(-q[1] * TIMES)

    def jacobian(self, q):
        curve = np.exp(-q[1] * TIMES)
        return np.column_stack([curve, -q[0] * TIMES * curve])


def declared(decay):
    place = {"height": (1.0, 3.0), "rate": (0.3, 1.0)}
    return sk.model(decay.outputs, decay.jacobian, parameters=POSITIVE, plausible=place)


def test_a_second_run_on_the_same_model_evaluates_nothing_again():
    decay = Decay()
    shared = declared(decay)
    first = sk.sample(shared.posterior(data=DATA, noise_sd=0.1), sampler=PATHS, **SIZES)
    evaluated = len(decay.at)
    second = sk.sample(shared.posterior(data=DATA, noise_sd=0.1), sampler=PATHS, **SIZES)
    assert_array_equal(first.draws, second.draws)
    assert len(decay.at) == evaluated
    assert first.total_calls > second.total_calls == 0


def test_other_data_noise_and_priors_find_what_was_evaluated():
    decay = Decay()
    shared = declared(decay)
    z = np.random.default_rng(2).normal(size=(5, 2))
    plain = [
        {"data": DATA, "noise_sd": 0.1},
        {"data": np.r_[DATA[:7], DATA[:5]], "noise_sd": 0.3},
        {"data": DATA, "noise_sd": 0.1, "prior": sk.gaussian_prior(mean=1.0, sd=2.0)},
    ]
    for observed in plain:
        target = RecordingPotential(shared.posterior(**observed), keep=False)
        own = sk.forward_potential(
            Decay().outputs, Decay().jacobian, parameters=POSITIVE, **observed
        )
        alone = RecordingPotential(own, keep=False)
        for found, expected in zip(
            target.value_and_gradient(z), alone.value_and_gradient(z), strict=True
        ):
            assert_array_equal(found, expected)
    assert len(decay.at) == len(z)
    assert target.calls["jacobian"] == 0


def test_a_posterior_with_an_estimated_scale_finds_them_too():
    """The map takes no scale, so positions with any scale are one position of the map."""
    decay = Decay()
    shared = declared(decay)
    q = np.random.default_rng(2).normal(size=(4, 2))
    RecordingPotential(shared.posterior(data=DATA, noise_sd=0.1), keep=False).value_and_gradient(q)
    target = RecordingPotential(shared.posterior(data=DATA, noise_sd="estimate"), keep=False)
    values, gradients = target.value_and_gradient(np.hstack([q, np.ones((4, 1))]))
    assert np.isfinite(values).all()
    assert gradients.shape == (4, 3)
    assert len(decay.at) == 4


def test_a_log_likelihood_takes_other_priors():
    calls = []

    def log_likelihood(q):
        calls.append(q)
        return -0.5 * ((q - 1.0) ** 2).sum()

    shared = sk.model(log_likelihood=log_likelihood, parameters={"a": None, "b": None})
    q = np.random.default_rng(1).normal(size=(3, 2))
    for sd, how in ((1.0, "parameters"), (3.0, "parameters"), (3.0, "prior")):
        prior = scipy.stats.norm(0.0, sd)
        given = {"a": prior, "b": None} if how == "parameters" else {"a": prior}
        target = shared.posterior(**{how: given})
        found = RecordingPotential(target, keep=False).value(q)
        np.testing.assert_allclose(
            found, 0.5 * ((q - 1.0) ** 2).sum(axis=1) - prior.logpdf(q[:, 0]), rtol=1e-12
        )
    assert len(calls) == 3


def test_gradients_by_an_adjoint_are_those_of_the_posterior():
    decay = Decay()
    shared = sk.model(decay.outputs, vjp=lambda q, w: decay.jacobian(q).T @ w, parameters=POSITIVE)
    z = np.zeros((1, 2))
    found = [
        RecordingPotential(shared.posterior(data=data, noise_sd=0.1), keep=False)
        for data in (DATA, DATA + 1.0)
    ]
    one, other = (target.value_and_gradient(z)[1] for target in found)
    assert np.abs(one - other).max() > 1.0


def test_failed_positions_are_evaluated_again():
    calls = []

    def outputs(q):
        calls.append(1)
        if len(calls) == 1:
            raise OSError("busy")
        return q

    shared = sk.model(outputs, dim=2)
    target = shared.posterior(data=[0.0, 0.0], noise_sd=1.0)
    assert np.isinf(RecordingPotential(target, keep=False).value(np.ones((1, 2))))
    assert RecordingPotential(target, keep=False).value(np.ones((1, 2))) > 0.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "exactly one of the two"),
        ({"forward": np.sin, "log_likelihood": np.sin}, "exactly one of the two"),
        ({"log_likelihood": np.sin, "jacobian": np.cos}, "jacobian is no part of a log likelihood"),
        ({"forward": np.sin, "gradient": np.cos}, "gradient is no part of a forward map"),
    ],
)
def test_a_model_is_one_thing(given, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.model(**given, dim=2)


def test_what_a_posterior_cannot_be_made_of_is_refused():
    shared = sk.model(log_likelihood=np.sum, parameters={"a": None})
    with pytest.raises(ConfigurationError, match="noise_sd is given, but the model is a log likel"):
        shared.posterior(noise_sd=1.0)
    for other in ({"b": None}, {"a": sk.real(2)}):
        with pytest.raises(ConfigurationError, match="must have the names and shapes of the model"):
            shared.posterior(parameters=other)


@pytest.mark.parametrize("of", ["log_likelihood", "forward"])
def test_priors_by_name_are_of_whole_parameters(of):
    """One of a single number was left out without a word."""
    shared = sk.model(**{of: np.sum}, dim=2)
    observed = {"data": [0.0], "noise_sd": 1.0} if of == "forward" else {}
    for name, message in (
        ("q[0]", "'q\\[0\\]' is a single number"),
        ("b", "no parameter is named"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            shared.posterior(**observed, prior={name: scipy.stats.norm()})


def test_evaluations_of_a_run_that_starts_from_a_file_belong_to_the_model(tmp_path):
    decay = Decay()
    path, observed = tmp_path / "a", {"data": DATA, "noise_sd": 0.1}
    sk.sample(declared(decay).posterior(**observed), sampler=PATHS, path=path, **SIZES)
    shared = declared(decay)
    later = {**SIZES, "sampler": PATHS, "seed": 4, "warm_start": path}
    first = sk.sample(shared.posterior(**observed), **later)
    evaluated = len(decay.at)
    again = sk.sample(shared.posterior(**observed), **later)
    assert first.total_calls > 0
    assert len(decay.at) == evaluated + 1  # whether the file is this model's
    assert again.total_calls == 0


# --- the file of a model ---


def kept(decay, path, **more):
    place = {"height": (1.0, 3.0), "rate": (0.3, 1.0)}
    given = {"parameters": POSITIVE, "plausible": place, "path": path, **more}
    return sk.model(decay.outputs, decay.jacobian, **given)


def test_a_later_session_evaluates_nothing_again(tmp_path):
    first, later = Decay(), Decay()
    posterior = kept(first, tmp_path / "model").posterior(data=DATA, noise_sd=0.1)
    run = sk.sample(posterior, sampler=PATHS, **SIZES)
    posterior = kept(later, tmp_path / "model").posterior(data=DATA, noise_sd=0.1)
    assert len(later.at) == 1  # to see that it is the same model
    again = sk.sample(posterior, sampler=PATHS, **SIZES)
    assert_array_equal(again.draws, run.draws)
    assert len(later.at) == 1
    assert again.total_calls == 0


def test_posteriors_of_a_later_session_learn_from_the_file(tmp_path):
    first, later = Decay(), Decay()
    posterior = kept(first, tmp_path / "model").posterior(data=DATA, noise_sd=0.1)
    sk.sample(posterior, sampler=PATHS, **SIZES)
    other = kept(later, tmp_path / "model").posterior(data=DATA + 0.01, noise_sd=0.2)
    parts = {"surrogate": "additive", "sampler": "sub-chain", "explorer": "rounds"}
    run = sk.sample(other, **parts, **{**SIZES, "warmup": None})
    assert run.adaptation.training_rows > len(set(first.at)) / 2


def test_two_sessions_write_one_file(tmp_path):
    models = [kept(Decay(), tmp_path / "model") for _ in range(2)]
    for model, sd in zip(models, (0.1, 0.3), strict=True):
        sk.sample(model.posterior(data=DATA, noise_sd=sd), sampler=PATHS, **SIZES)
    held = len(kept(Decay(), tmp_path / "model"))
    assert held > max(map(len, models))
    assert held <= sum(map(len, models))


def test_the_file_is_its_owners_alone(tmp_path):
    kept(Decay(), tmp_path / "model")
    assert (tmp_path / "model").stat().st_mode & 0o077 == 0


def test_another_model_is_refused(tmp_path):
    class Other(Decay):
        def outputs(self, q):
            return 1.1 * super().outputs(q)

    posterior = {"data": DATA, "noise_sd": 0.1}
    sk.sample(kept(Decay(), tmp_path / "model").posterior(**posterior), sampler=PATHS, **SIZES)
    with pytest.raises(LedgerError, match=r"ledger of another target.*it holds.*but the target"):
        kept(Other(), tmp_path / "model").posterior(**posterior)
    with pytest.raises(LedgerError, match="is of a run or another model"):
        kept(Decay(), tmp_path / "model", parameters={"a": None, "b": None}, plausible=None)


def test_the_file_of_a_model_is_no_runs(tmp_path):
    posterior = kept(Decay(), tmp_path / "model").posterior(data=DATA, noise_sd=0.1)
    for read in (sk.Ledger, sk.open_run, sk.resume):
        with pytest.raises(LedgerError, match=r"no run; give it to surrokit\.model"):
            read(tmp_path / "model")
    with pytest.raises(LedgerError):
        sk.sample(posterior, sampler=PATHS, path=tmp_path / "model", **SIZES)
    sk.sample(posterior, sampler=PATHS, path=tmp_path / "run", **SIZES)
    with pytest.raises(LedgerError, match="is of a run or another model"):
        kept(Decay(), tmp_path / "run")


# --- what is known answers ---

WEIGHED = {
    "correction": ("weights", {"chains": 16, "warmup": 60, "effective": 800}),
    "sampler": "hmc",
    "surrogate": ("additive", {"n_nodes": 60}),
    "explorer": "rounds",
    "seed": 3,
    "progress": False,
}
PRIOR = sk.gaussian_prior([2.0, 1.0], 1.0)


def truth(noise_sd, prior):
    """Return means and sds on a grid, and the logarithm of the evidence."""
    axes = np.linspace(1.2, 3.0, 500), np.linspace(0.2, 1.4, 500)
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    outputs = grid[:, :1] * np.exp(-grid[:, 1:] * TIMES)
    logs = scipy.stats.norm(outputs, noise_sd).logpdf(DATA).sum(axis=1)
    logs -= prior.value_and_gradient(grid)[0]
    mass = np.exp(logs - logs.max())
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    mean = mass @ grid / mass.sum()
    sd = np.sqrt(mass @ np.square(grid - mean) / mass.sum())
    return mean, sd, logs.max() + np.log(mass.sum() * cell)


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A model in a file after a hundred calls."""
    path = tmp_path_factory.mktemp("asked") / "model"
    first = kept(Decay(), path).posterior(data=DATA, noise_sd=0.1, prior=PRIOR)
    run = sk.sample(first, max_calls=100, **WEIGHED)
    assert run.answer is not None
    return path


@pytest.mark.filterwarnings("ignore:there was one round")
@pytest.mark.parametrize(
    ("noise_sd", "mean"),
    [
        pytest.param(0.1, 2.0, marks=pytest.mark.long),
        (0.12, 2.0),
        pytest.param(0.1, 2.4, marks=pytest.mark.long),
    ],
)
def test_other_errors_and_priors_are_answered_without_a_call(asked, noise_sd, mean):
    """Means, sds and the evidence within four errors, in a later session."""
    decay, prior = Decay(), sk.gaussian_prior([mean, 1.0], 1.0)
    target = kept(decay, asked).posterior(data=DATA, noise_sd=noise_sd, prior=prior)
    before = len(decay.at)
    run = sk.sample(target, max_calls=0, **WEIGHED)
    assert (len(decay.at), run.total_calls, run.accepted) == (before, 0, True)
    figures, (means, sds, log_evidence) = run.weights.figures, truth(noise_sd, prior)
    for found, exact in ((figures.mean, means), (figures.sd, sds)):
        assert (found.error < 0.06 * sds).all()
        assert (np.abs(found.value - exact) < 4.0 * found.error).all()
    evidence = run.log_evidence()
    assert abs(evidence.value - log_evidence) < 4.0 * evidence.error
    assert np.isfinite(run.kept.outputs).all()


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
@pytest.mark.parametrize(
    ("observed", "reason"),
    [
        ({"noise_sd": 0.6}, "What is known does not answer: "),
        pytest.param({"noise_sd": "estimate"}, "", marks=pytest.mark.long),
    ],
)
def test_what_does_not_reach_is_refused_with_the_calls_that_it_takes(asked, observed, reason):
    run = sk.sample(kept(Decay(), asked).posterior(data=DATA, **observed), max_calls=0, **WEIGHED)
    assert (run.total_calls, run.accepted) == (0, False)
    assert f"at least 20 more are needed{'. ' if reason else ''}{reason}" in str(run.verdict)
    assert "by 0" not in str(run.verdict)


@pytest.mark.filterwarnings("ignore:there was one round", "ignore:the standard deviation of")
@pytest.mark.long
def test_a_scale_that_is_estimated_learns_from_what_is_known(asked):
    """Twenty calls for three numbers; a start takes more without."""
    target = kept(Decay(), asked).posterior(data=DATA, noise_sd="estimate", prior=None)
    run = sk.sample(target, max_calls=20, **WEIGHED)
    assert run.answer is not None
    assert run.total_calls == 20
    long = sk.sample(target, sampler="hmc", draws=800, seed=5, progress=False)
    flat = long.draws.reshape(-1, 3)
    figures = run.weights.figures
    assert (np.abs(figures.mean.value - flat.mean(axis=0)) < 0.15 * flat.std(axis=0)).all()
    assert (np.abs(figures.sd.value / flat.std(axis=0) - 1.0) < 0.15).all()


def test_a_run_without_calls_goes_on_from_its_file(asked, tmp_path):
    given = {"data": DATA, "noise_sd": 0.1, "prior": PRIOR}
    with pytest.warns(sk.errors.SamplingWarning, match="there was one round"):
        run = sk.sample(
            kept(Decay(), asked).posterior(**given), max_calls=0, path=tmp_path / "run", **WEIGHED
        )
    with pytest.warns(sk.errors.SamplingWarning, match="there was one round"):
        again = sk.resume(tmp_path / "run", kept(Decay(), asked).posterior(**given), progress=False)
    assert_array_equal(again.draws, run.draws)
    assert_array_equal(again.weights.figures.mean.value, run.weights.figures.mean.value)


def test_nothing_is_known_of_a_target_that_was_never_evaluated():
    with pytest.raises(ConfigurationError, match=r"max_calls is 0, and nothing is known"):
        sk.sample(declared(Decay()).posterior(data=DATA, noise_sd=0.1), max_calls=0, progress=False)


@pytest.mark.filterwarnings("ignore:there was one round")
def test_outputs_are_the_surrogates_but_where_they_were_evaluated(asked):
    decay = Decay()
    target = kept(decay, asked).posterior(data=DATA, noise_sd=0.11, prior=PRIOR)
    run = sk.sample(target, max_calls=40, **WEIGHED)
    at = run.evaluated
    assert at.shape == run.draws.shape[:2]
    assert 0 < at.sum() < at.size
    exact = np.array([decay.outputs(q) for q in run.draws[at]])
    assert_array_equal(run.outputs[at], exact)
    tree = run.to_arviz()
    for group in ("posterior_predictive", "log_likelihood"):
        assert "the surrogate's, but evaluated at" in tree[group].attrs["outputs"]
    settings = {"sampler": "hmc", **SIZES}
    chains = sk.sample(target, **settings)
    assert chains.evaluated.all()
    assert chains.to_arviz()["log_likelihood"].attrs["outputs"] == "evaluated"
