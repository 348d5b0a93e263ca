"""Searches for modes by outputs: where they end, what they evaluate, and what a run makes of it."""

import numpy as np
import pytest
import scipy.stats as st

import surrokit as sk
from surrokit.errors import SamplingWarning
from surrokit.interfaces import Evaluations
from surrokit_learning.secant import search_by_outputs, step_within

TIMES = np.linspace(0.1, 8.0, 25)
TRUTH = np.array([2.0, 0.3, 3.0, 1.6])
SCALES = np.ones(4)


def decays(q):
    """Return the sum of two decays, a curve along which parameters trade off."""
    return q[0] * np.exp(-q[1] * TIMES) + q[2] * np.exp(-q[3] * TIMES)


def posterior(forward=decays):
    priors = {"a": st.lognorm(1), "k": st.lognorm(1, scale=0.3)}
    priors |= {"b": st.lognorm(1), "l": st.lognorm(1, scale=2.0)}
    errors = 0.02 * np.random.default_rng(1).standard_normal(25)
    return sk.model(forward, parameters=priors).posterior(
        data=decays(TRUTH) + errors, noise_sd=0.02
    )


def search(target, at, room=60, searches=1):
    """Return modes, and the evaluations that they took; a model that raises has no outputs."""
    n = 0

    def evaluate(positions):
        outputs = np.full((len(positions), 25), np.nan)
        for row, q in zip(outputs, positions, strict=True):
            if q[0] < 4.0:  # the model fails beyond
                row[:] = target.forward(q[None])[0]
        values = np.nan_to_num(target.energy.value(outputs, positions), nan=np.inf)
        return Evaluations(positions=positions, values=values, outputs=outputs)

    rows = evaluate(np.atleast_2d(at))
    steps = search_by_outputs(target.energy, rows, SCALES, room, searches)
    points = next(steps)
    try:
        while True:
            n += len(points)
            points = steps.send(evaluate(points))
    except StopIteration as end:
        return end.value, n


@pytest.mark.parametrize("seed", range(6))
def test_a_search_ends_at_a_mode_after_few_evaluations(seed):
    target, rng = posterior(), np.random.default_rng(seed)
    begin = np.log([1.0, 0.3, 1.0, 2.0]) + rng.uniform(-1.0, 1.0, 4)
    assert target.value(begin[None])[0] > 500.0
    modes, n = search(target, begin)
    assert n <= 40
    assert modes.values[0] < -58.5  # the two modes lie at -62.3 and -59.1
    # a Newton step from there gains next to nothing
    at = modes.positions[0]
    slopes = np.array(
        [target.value((at + h)[None]) - target.value((at - h)[None]) for h in 1e-5 * np.eye(4)]
    )
    slopes = slopes[:, 0] / 2e-5
    assert 0.5 * slopes @ modes.covariances[0] @ slopes < 1.0


def test_searches_from_afar_find_another_mode():
    far = np.log([[2.0, 0.3, 3.0, 2.0], [3.0, 2.0, 2.0, 0.3], [1e3, 1e3, 1e3, 1e3]])[[0, 1, 2, 2]]
    modes, n = search(posterior(), far, searches=5)
    assert n <= 60
    np.testing.assert_allclose(modes.values, [-62.3, -59.1], atol=0.2)
    assert modes.masses[0] > 0.9


def test_positions_at_which_the_model_fails_are_passed_by():
    modes, _ = search(posterior(), [3.99, -1.0, 0.5, 0.5])
    assert modes.values[0] < -58.5


def test_steps_keep_within_the_radius():
    rng = np.random.default_rng(0)
    factor, gradient, scales = (
        rng.normal(size=(3, 3)),
        rng.normal(size=3),
        np.array([1.0, 0.1, 5.0]),
    )
    matrix = factor @ factor.T
    np.testing.assert_allclose(
        step_within(gradient, matrix, scales, np.inf), -np.linalg.solve(matrix, gradient)
    )
    step = step_within(gradient, matrix, scales, 0.01)
    assert np.linalg.norm(step / scales) == pytest.approx(0.01, rel=1e-6)
    # what is left of the gradient points along the step
    rest = -(gradient + matrix @ step) * scales**2
    np.testing.assert_allclose(rest / np.linalg.norm(rest), step / np.linalg.norm(step), rtol=1e-5)


@pytest.mark.long
def test_few_calls_answer_a_map_without_derivatives():
    """Rounds from points across the prior alone were still far above the mode then."""
    with pytest.warns(SamplingWarning, match="one round|modes"):
        run = sk.sample(posterior(), max_calls=100, seed=1, progress=False)
    assert run.accepted
    means = run.draws.reshape(-1, 4)
    assert (np.abs(means.mean(axis=0) - TRUTH) < 3.0 * means.std(axis=0)).all()
