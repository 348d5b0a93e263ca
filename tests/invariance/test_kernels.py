"""Kernels of registered parts together leave the target as it is.

Samplers and corrections alone do so by the conformance suite, and samplers on hard targets, on
themselves and on wrong surrogates, by ``test_exact_starts.py``.
"""

import numpy as np
import pytest

from mutants import SurrogateDecides
from surrokit.compose import make
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import ConfigurationError
from surrokit.interfaces import changes_with_position
from surrokit.kernel.hamiltonian import works_by_position
from surrokit.registry.catalogue import default_catalogue
from surrokit.testing.rows import Summed
from surrokit.testing.samplers import TUNING, WIDE, affordable, invariance
from surrokit.testing.statistics import CHECK_RATE, Verdict
from surrokit.testing.surrogates import evaluate, problem_of
from surrokit.testing.targets import Banana, Gaussian, HalfPlane, Mixture

N_CHAINS = 6000  # half of what the checks of a sampler take
N_BY_POSITION_ON_FITTED = 1000  # derivatives of third order of many nodes take long

pytestmark = pytest.mark.statistical


def built_in(kind):
    return [
        entry
        for entry in default_catalogue()
        if entry.kind == kind and entry.plugin.startswith("surrokit[")
    ]


BY_POSITION = {"metric": changes_with_position, "integrator": works_by_position}
SHORT = {"rmhmc": {"n_steps": 1}}  # implicit steps of thousands of chains take long


def by_position(sampler):
    return changes_with_position(sampler.metric)


def with_parts(fitting=True):
    """Every sampler that takes a metric or an integrator, with each such part.

    Parts for one mass matrix go with samplers for one mass matrix; ``fitting=False`` gives the
    pairs that do not go together.
    """
    for component in built_in("sampler"):
        for setting, wanted in component.parts.items():
            for part in built_in(wanted.kind) if wanted.kind in BY_POSITION else ():
                for settings in part.examples:
                    moves = BY_POSITION[wanted.kind](make(part.kind, part.name, **settings))
                    if fitting == (moves == by_position(make("sampler", component.name))):
                        words = [
                            component.name,
                            part.name,
                            *(f"{k}={settings[k]}" for k in settings),
                        ]
                        case = (component.name, setting, (part.name, dict(settings)))
                        yield pytest.param(*case, id="-".join(words).replace(" ", ""))


WITH_PARTS, NOT_FITTING = list(with_parts()), list(with_parts(fitting=False))


def verdict(sampler, correction, potential, target):
    """Invariance of one kernel."""
    kernel = sampler.bind(potential, TUNING), correction.bind(target).prepare(np.array([0.4, -0.2]))
    n_chains = min(N_CHAINS, affordable(sampler)[0])
    return invariance(*kernel, target, f"{type(target).__name__}: ", n_chains=n_chains)


@pytest.mark.parametrize(("sampler", "setting", "part"), WITH_PARTS)
def test_kernel_with_every_part(sampler, setting, part):
    kernel = make("sampler", sampler, **{setting: part}, **SHORT.get(sampler, {}))
    # a mixture has no metric of Fisher or Gauss and Newton
    pairs = ((Mixture(), Mixture()), (WIDE, Gaussian()))
    fit = [pair for pair in pairs if kernel.needs <= pair[0].capabilities]
    assert fit, "nothing would be compared"
    # implicit steps take long, and the checks of their sampler look at wrong surrogates
    several = fit[: 1 if by_position(kernel) else 2]
    found = (verdict(kernel, make("correction", "metropolis"), *pair) for pair in several)
    Verdict.join(found).require("the kernel leaves its target as it is with every part")


@pytest.mark.parametrize(("sampler", "setting", "part"), NOT_FITTING)
def test_parts_that_do_not_go_together_are_refused(sampler, setting, part):
    with pytest.raises(ConfigurationError, match=r"; use sampler='(rm)?hmc' for it, or "):
        make("sampler", sampler, **{setting: part})


@pytest.mark.parametrize("sampler", ["hmc", "nuts", "sub-chain"])
def test_kernel_decided_by_rows(sampler):
    found = verdict(make("sampler", sampler), make("correction", "subsampled"), WIDE, Summed())
    found.require("a wrong surrogate costs mixing only")


FITTED = [
    ("additive", {"learns": "potential", "train_on": "values"}),
    ("gp", {}),
]


def verdict_by_position(surrogate, correction):
    """Of a kernel on a surrogate of so few points that few chains tell it from the target."""
    target, (name, settings) = Banana(), surrogate
    rng = np.random.default_rng(6)
    learner = make("surrogate", name, **settings).learner(problem_of(target), rng)
    learner.observe(evaluate(target, target.sample(np.random.default_rng(5), 6)))
    kernel = make("sampler", "rmhmc", n_steps=1).bind(learner.fit(), TUNING)
    sizes = {"n_chains": N_BY_POSITION_ON_FITTED, "n_transitions": 6}
    return invariance(kernel, correction.bind(target), target, "", **sizes)


@pytest.mark.parametrize("surrogate", FITTED)
def test_kernel_by_position_on_fitted_surrogate(surrogate):
    verdict = verdict_by_position(surrogate, make("correction", "metropolis"))
    verdict.require("draws are exact on a surrogate fitted to few points")


def test_the_surrogate_alone_would_be_seen():
    correction = SurrogateDecides(make("correction", "metropolis"))
    assert verdict_by_position(FITTED[-1], correction).p_value < 1e-3 * CHECK_RATE


def test_recorded_exact_kernel_pays_nothing_in_the_correction():
    target = Banana()
    recording = RecordingPotential(target, keep=False)
    sampler = make("sampler", "hmc", step_size=0.4, n_steps=3, randomize=False)
    kernel = sampler.bind(recording, TUNING), make("correction", "metropolis").bind(recording)
    verdict = invariance(*kernel, target, "", n_chains=2000, n_transitions=4)
    verdict.require("recording changes nothing")
    assert recording.calls["forward"] == recording.calls["value"] == 0
    assert recording.calls["jacobian"] == 2000 * (1 + 4 * 3)


def test_chains_that_start_outside_the_support_stay_or_enter():
    target = HalfPlane()
    kernel = make("sampler", "random-walk", step_size=1.0).bind(target, TUNING)
    correction = make("correction", "metropolis").bind(target)
    rng = np.random.default_rng(7)
    state = correction.start(np.array([[-0.5, 0.0]] * 50), {}, None)
    assert (state.values == np.inf).all()
    for _ in range(20):
        state, _ = correction.decide(state, kernel.propose(state, rng), rng)
    inside = state.positions[:, 0] > 0
    assert inside.any()
    assert (np.isfinite(state.values) == inside).all()
