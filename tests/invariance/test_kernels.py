"""Whole kernels of registered parts leave the target as it is, surrogate or no surrogate."""

import numpy as np
import pytest

from mutants import SurrogateDecides
from surrokit.capabilities import ROWS
from surrokit.compose import make
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import ConfigurationError
from surrokit.interfaces import changes_with_position
from surrokit.kernel.hamiltonian import works_by_position
from surrokit.registry.catalogue import default_catalogue
from surrokit.testing.rows import Summed
from surrokit.testing.samplers import SURROGATES, TUNING, affordable, flux, invariance
from surrokit.testing.statistics import CHECK_RATE, FAMILY_SIZE, Verdict
from surrokit.testing.surrogates import evaluate, problem_of
from surrokit.testing.targets import Banana, Gaussian, HalfPlane, Mixture, Student

CATALOGUE = default_catalogue()
N_CHAINS = 6000  # half of what the checks of a sampler take: there are many kernels
N_ON_FITTED = 4000
N_BY_POSITION_ON_FITTED = 1000  # derivatives of third order of many nodes take long
TARGETS = (Gaussian(), Mixture(), Banana(), Student(), HalfPlane())

pytestmark = pytest.mark.statistical


def built_in(kind):
    return [
        entry.component
        for entry in CATALOGUE
        if entry.component.kind == kind and entry.plugin.startswith("surrokit[")
    ]


def label(name, settings):
    return "-".join([name, *(f"{k}={v}" for k, v in settings.items())]).replace(" ", "")


def specs(kind):
    return [
        pytest.param((component.name, dict(settings)), id=label(component.name, settings))
        for component in built_in(kind)
        for settings in component.examples
    ]


def firsts(kind):
    """The first example of every component of a kind."""
    return [
        (component.name, dict(settings))
        for component in built_in(kind)
        for settings in component.examples[:1]
    ]


BY_POSITION = {"metric": changes_with_position, "integrator": works_by_position}
SHORT = {"rmhmc": {"n_steps": 1}}  # implicit steps of thousands of chains take long


def by_position(sampler):
    return changes_with_position(getattr(sampler, "metric", None))


def samplers():
    """Every sampler at its first example; the contract of samplers looks at all examples.

    Kernels with implicit steps take long, and have quicker tests elsewhere. By themselves they
    are in the checks of each sampler, and with a correction that is registered in the test of
    kernels with every part.
    """
    return [
        pytest.param(
            spec,
            id=label(*spec),
            marks=[pytest.mark.long] if by_position(make("sampler", spec[0], **spec[1])) else [],
        )
        for spec in firsts("sampler")
    ]


def sampler_with(kind, fitting=True):
    """Every sampler that takes a part of some kind, at short steps, with each such part.

    Parts for one mass matrix go with samplers for one mass matrix; ``fitting=False`` gives the
    pairs that do not go together.
    """
    return [
        pytest.param(
            component.name,
            setting,
            (part.name, dict(settings)),
            id=f"{component.name}-{label(part.name, settings)}",
        )
        for component in built_in("sampler")
        for setting, wanted in component.parts.items()
        if wanted.kind == kind
        for part in built_in(kind)
        for settings in part.examples
        if fitting
        == (
            BY_POSITION[kind](make(kind, part.name, **settings))
            == by_position(make("sampler", component.name))
        )
    ]


def verdicts(sampler, correction, potential, target, name):
    """Invariance and flux of one kernel."""
    if not (sampler.needs <= potential.capabilities and correction.needs <= target.capabilities):
        return []
    decides = correction.bind(target).prepare(np.array([0.4, -0.2]))
    kernel = sampler.bind(potential, TUNING), decides
    n_chains = min(N_CHAINS, affordable(sampler)[0])
    found = [invariance(*kernel, target, f"{name}: ", n_chains=n_chains)]
    if getattr(sampler, "reversible", True):
        found.append(flux(*kernel, target, f"{name}, flux: ", n_chains=2 * n_chains))
    return found


def targets_of(correction, *usual):
    """The usual targets, or a sum over rows for corrections that look at rows."""
    return (Summed(),) if ROWS in correction.needs else usual


def require(found, claim):
    assert found, "nothing was compared; the parts need what no target offers"
    Verdict.join(found).require(claim)


@pytest.mark.parametrize("correction", specs("correction"))
@pytest.mark.parametrize("sampler", samplers())
def test_exact_kernel(sampler, correction):
    sampler, correction = (
        make("sampler", sampler[0], **sampler[1]),
        make("correction", correction[0], **correction[1]),
    )
    require(
        [
            verdict
            for target in targets_of(correction, *TARGETS)
            for verdict in verdicts(sampler, correction, target, target, type(target).__name__)
        ],
        "the kernel leaves its target as it is",
    )


@pytest.mark.parametrize("correction", specs("correction"))
@pytest.mark.parametrize("sampler", samplers())
def test_kernel_on_wrong_surrogate(sampler, correction):
    sampler, correction = (
        make("sampler", sampler[0], **sampler[1]),
        make("correction", correction[0], **correction[1]),
    )
    require(
        [
            verdict
            for name, surrogate in SURROGATES
            for target in targets_of(correction, Gaussian(), Mixture())
            for verdict in verdicts(
                sampler, correction, surrogate, target, f"{name} for {type(target).__name__}"
            )
        ],
        "a wrong surrogate costs mixing only",
    )


@pytest.mark.parametrize(
    ("sampler", "setting", "part"), [*sampler_with("metric"), *sampler_with("integrator")]
)
def test_kernel_with_every_part(sampler, setting, part):
    correction = make("correction", "metropolis")
    kernel = make("sampler", sampler, **{setting: part}, **SHORT.get(sampler, {}))
    # a mixture has no metric of Fisher or Gauss and Newton
    pairs = ((Mixture(), Mixture()), (SURROGATES[1][1], Gaussian()))
    fit = [pair for pair in pairs if kernel.needs <= pair[0].capabilities]

    require(
        [
            verdict
            # implicit steps take long, and the checks of their sampler look at wrong surrogates
            for surrogate, target in fit[: 1 if by_position(kernel) else 2]
            for verdict in verdicts(kernel, correction, surrogate, target, type(target).__name__)
        ],
        "the kernel leaves its target as it is with every part",
    )


@pytest.mark.parametrize(
    ("sampler", "setting", "part"),
    [*sampler_with("metric", fitting=False), *sampler_with("integrator", fitting=False)],
)
def test_parts_that_do_not_go_together_are_refused(sampler, setting, part):
    with pytest.raises(ConfigurationError, match=r"; use sampler='(rm)?hmc' for it, or "):
        make("sampler", sampler, **{setting: part})


def fitted_to(n, name, settings):
    """A target, and a surrogate fitted to few points, so that it is wrong."""
    target = Banana()
    learner = make("surrogate", name, **settings).learner(
        problem_of(target), np.random.default_rng(6)
    )
    learner.observe(evaluate(target, target.sample(np.random.default_rng(5), n)))
    return target, learner.fit()


def fitted_kernels():
    """HMC with every surrogate, and every sampler with one: a surrogate is one more potential."""
    pairs = [("hmc", spec) for spec in firsts("surrogate")]
    pairs += [
        (name, ("additive", {"learns": "potential"}))
        for name, _ in firsts("sampler")
        if name not in {"hmc", "gaussian"} and not by_position(make("sampler", name))
    ]
    return [pytest.param(name, spec, id=f"{name}-{label(*spec)}") for name, spec in pairs]


@pytest.mark.parametrize(("sampler", "surrogate"), fitted_kernels())
def test_kernel_on_fitted_surrogate(sampler, surrogate):
    target, fitted = fitted_to(25, *surrogate)
    # one short path each: most of what is to be seen shows in the first transitions
    kernel = make("sampler", sampler).bind(fitted, TUNING)
    decider = make("correction", "metropolis").bind(target)

    verdict = invariance(kernel, decider, target, "", n_chains=N_ON_FITTED, n_transitions=6)

    verdict.require("draws are exact on a surrogate fitted to few points")


FITTED_BY_POSITION = [
    ("additive", {"learns": "potential", "train_on": "values"}),
    ("rbf", {"learns": "potential"}),
    ("gp", {}),
]


def verdict_by_position(surrogate, correction):
    # six points: fitted to 25, these are too good for so few chains to tell them from the target
    target, fitted = fitted_to(6, *surrogate)
    kernel = make("sampler", "rmhmc", n_steps=1).bind(fitted, TUNING), correction.bind(target)
    return invariance(*kernel, target, "", n_chains=N_BY_POSITION_ON_FITTED, n_transitions=6)


@pytest.mark.parametrize("surrogate", FITTED_BY_POSITION)
def test_kernel_by_position_on_fitted_surrogate(surrogate):
    verdict = verdict_by_position(surrogate, make("correction", "metropolis"))

    verdict.require("draws are exact on a surrogate fitted to few points")


def test_the_surrogate_alone_would_be_seen():
    correction = SurrogateDecides(make("correction", "metropolis"))

    assert verdict_by_position(FITTED_BY_POSITION[-1], correction).p_value < 1e-3 * CHECK_RATE


def test_recorded_exact_kernel_pays_nothing_in_the_correction():
    target = Banana()
    recording = RecordingPotential(target, keep=False)
    sampler = make("sampler", "hmc", step_size=0.4, n_steps=3, randomize=False)
    kernel = (
        sampler.bind(recording, TUNING),
        make("correction", "metropolis").bind(recording),
    )

    verdict = invariance(*kernel, target, "", n_chains=2000, n_transitions=4)

    verdict.require("recording changes nothing")
    assert recording.calls["forward"] == recording.calls["value"] == 0
    assert recording.calls["jacobian"] == 2000 * (1 + 4 * 3)


def test_chains_that_start_outside_the_support_stay_or_enter():
    target = HalfPlane()
    kernel = make("sampler", "random-walk", step_size=1.0).bind(target, TUNING)
    correction = make("correction", "metropolis").bind(target)
    positions = np.array([[-0.5, 0.0]] * 50)
    rng = np.random.default_rng(7)
    state = correction.start(positions, {}, None)
    assert (state.values == np.inf).all()

    for _ in range(20):
        state, _ = correction.decide(state, kernel.propose(state, rng), rng)

    inside = state.positions[:, 0] > 0
    assert inside.any()
    assert (np.isfinite(state.values) == inside).all()


def test_statistical_tests_here_fit_in_the_family_whose_rate_is_stated():
    n_kernels = 2 * len(samplers()) * len(specs("correction"))
    n_parts = len(sampler_with("metric")) + len(sampler_with("integrator"))

    n_fitted = len(fitted_kernels()) + len(FITTED_BY_POSITION)
    assert n_kernels + n_parts + n_fitted + 1 <= FAMILY_SIZE / 2
