"""What lies between a run and the functions of a user: nothing that one does moves the other."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surrokit as sk
from surrokit.errors import ConfigurationError, ShapeError

pytestmark = pytest.mark.filterwarnings(
    "ignore::surrokit.errors.SamplingWarning", "ignore::surrokit.errors.EvaluationWarning"
)
SIZES = {"chains": 2, "warmup": 30, "draws": 30, "seed": 1, "progress": False}
PATHS = {**SIZES, "sampler": ("hmc", {"step_size": 0.4, "n_steps": 3})}
WALK = {**SIZES, "sampler": ("random-walk", {"step_size": 1.0})}
DATA = {"data": [0.3, -0.2], "noise_sd": 0.7}
NAMES = {"a": None, "b": None}


def value(q):
    return 0.5 * (q**2).sum(axis=-1)


def gradient(q):
    return 1.0 * q


def outputs(q):
    return np.stack([q[..., 0] + q[..., 1] ** 2, q[..., 1]], axis=-1)


def jacobian(q):
    made = np.zeros((*q.shape[:-1], 2, 2))
    made[..., 0, 0] = made[..., 1, 1] = 1.0
    made[..., 0, 1] = 2.0 * q[..., 1]
    return made


def eye(_):
    return np.eye(2)


def pulled(q, w):
    return np.einsum("...md,...m->...d", jacobian(q), w)


def greedy(function):
    """A function of arrays that changes them once it has its result."""

    def call(*arrays):
        result = function(*arrays)
        for array in arrays:
            array += 100.0
        return result

    return call


def thrifty(function):
    """A function that returns the same arrays at each call."""
    kept = {}

    def call(*arrays):
        found = function(*arrays)
        several = found if isinstance(found, tuple) else (found,)
        for i, array in enumerate(map(np.asarray, several)):
            buffer = kept.setdefault((i, array.shape), np.zeros(array.shape))
            buffer[...] = array
        returned = tuple(kept[i, np.shape(array)] for i, array in enumerate(several))
        return returned if isinstance(found, tuple) else returned[0]

    return call


class Own:
    """A potential of a user's own class."""

    dim, capabilities = 2, frozenset({"gradient"})

    def __init__(self, way):
        self.value = way(value)
        self.value_and_gradient = way(lambda q: (value(q), gradient(q)))


class Energy:
    """An energy of a user's own class; with ``value_and_gradients`` alone it is a prior."""

    def __init__(self, way):
        self.value = way(lambda outputs, _: value(outputs))
        self.value_and_gradients = way(lambda o, q: (value(o), gradient(o), np.zeros_like(q)))
        self.value_and_gradient = way(lambda q: (value(q), gradient(q)))


def by_name(way):
    function = way(lambda q: value(q))
    return lambda a, b: function(np.stack([a, b]))


DOORS = {
    "gradient": lambda way: sk.potential(way(value), way(gradient), dim=2),
    "both": lambda way: sk.potential(
        value_and_gradient=way(lambda q: (value(q), gradient(q))), dim=2
    ),
    "rows": lambda way: sk.potential(way(value), way(gradient), dim=2, batched=True),
    "bounded": lambda way: sk.potential(
        way(value), way(gradient), parameters={"a": (0, None), "b": None}
    ),
    "jacobian": lambda way: sk.forward_potential(way(outputs), way(jacobian), dim=2, **DATA),
    "adjoint": lambda way: sk.forward_potential(way(outputs), vjp=way(pulled), dim=2, **DATA),
    "maps of rows": lambda way: sk.forward_potential(
        way(outputs), way(jacobian), dim=2, batched=True, **DATA
    ),
    "energy": lambda way: sk.forward_potential(outputs, jacobian, energy=Energy(way), dim=2),
    "prior": lambda way: sk.forward_potential(outputs, jacobian, prior=Energy(way), dim=2, **DATA),
    "own class": Own,
    "one by one": lambda way: sk.one_by_one(Own(way)),
}


def same(run, other):
    assert_array_equal(run.draws, other.draws)
    assert_array_equal(run.warmup.draws, other.warmup.draws)
    assert_array_equal(run.kept.values, other.kept.values)
    if run.outputs is not None:
        assert_array_equal(run.outputs, other.outputs)


def rude(function):
    return greedy(thrifty(function))


@pytest.mark.parametrize("door", DOORS)
def test_a_function_that_changes_its_arrays_changes_no_draw(door):
    plain = sk.sample(DOORS[door](lambda function: function), **PATHS)
    same(sk.sample(DOORS[door](rude), **PATHS), plain)


def test_differences_of_a_class_that_changes_its_arrays_are_right():
    def target(wanted):
        own = Own(wanted)
        own.capabilities = frozenset()
        return own

    few = ("weights", {"chains": 16, "warmup": 60, "effective": 800})
    options = {"correction": few, "max_calls": 60, "seed": 1, "progress": False}
    plain = sk.sample(target(lambda function: function), **options)
    same(sk.sample(target(greedy), **options), plain)


@pytest.mark.parametrize("batched", [False, True])
def test_an_expectation_leaves_draws_as_they_are(batched):
    run = sk.sample(sk.potential(value, dim=2), **WALK)
    before = run.draws.copy()
    found = run.expectation(rude(lambda q: q**2), batched=batched)
    np.testing.assert_allclose(found.value, np.square(before).mean(axis=(0, 1)))
    assert_array_equal(run.draws, before)


def test_an_observer_may_change_what_it_is_given():
    class Observer:
        def surrokit_transition_done(self, state, **_):
            state.positions[...] += 1.0
            state.values[...] += 1.0

    target = sk.potential(value, gradient, dim=2)
    same(sk.sample(target, observers=[Observer()], **PATHS), sk.sample(target, **PATHS))


def test_a_function_of_rows_cannot_change_the_data_of_later_calls():
    data = np.array([0.5, 1.0, 2.0])

    def terms(q, rows):
        rows += 1.0
        return -0.5 * (rows - 1.0 - q[0]) ** 2

    with pytest.raises(ValueError, match="read-only"):
        sk.rows_potential(terms, data, dim=1).value(np.zeros((1, 1)))
    assert_array_equal(data, [0.5, 1.0, 2.0])


def test_positions_that_were_asked_for_belong_to_who_asked(tmp_path):
    study = sk.study(tmp_path / "a", dim=1, sampler="random-walk", chains=2, draws=3, seed=1)
    asked = study.ask()
    kept = asked.copy()
    asked += 1.0
    assert_array_equal(study.ask(), kept)


# --- masked arrays ---


def masked(function, where):
    return lambda q: np.ma.masked_array(function(q), mask=where(q))


MASKED = {
    "value": lambda hide: sk.potential(hide(value, lambda q: q[0] > 0.5), dim=2),
    "list": lambda hide: sk.potential(
        lambda q: [hide(value, lambda q: q[0] > 0.5)(each) for each in q], dim=2, batched=True
    ),
    "rows": lambda hide: sk.potential(hide(value, lambda q: q[:, 0] > 0.5), dim=2, batched=True),
    "outputs": lambda hide: sk.forward_potential(
        hide(outputs, lambda q: [False, q[0] > 0.5]), dim=2, **DATA
    ),
}


def blank(function, where):
    return lambda q: np.where(where(q), np.nan, function(q))


@pytest.mark.parametrize("door", MASKED)
def test_numbers_behind_a_mask_are_missing(door):
    run, other = (sk.sample(MASKED[door](hide), **WALK) for hide in (masked, blank))
    same(run, other)
    assert run.failures == other.failures > 0
    assert run.draws[..., 0].max() <= 0.5


def test_masked_integers_are_missing():
    counts = np.ma.masked_array([1, 2, 3], mask=[False, True, False])
    target = sk.potential(lambda _: counts[1], dim=2)
    assert np.isnan(target.value(np.zeros((1, 2)))).all()


def test_masked_data_are_missing():
    hidden = np.ma.masked_array([0.0, 1.0, 1.0], mask=[False, True, False])
    with pytest.raises(ConfigurationError, match="data must be finite, got nan"):
        sk.forward_potential(lambda q: q, data=hidden, noise_sd=1.0, dim=3)
    with pytest.raises(ConfigurationError, match="response must be finite"):
        sk.rows_potential("logistic", np.ones((3, 1)), hidden)
    assert_array_equal(sk.Evaluations(positions=np.ones((3, 1)), values=hidden).values[1], np.nan)


# --- rows of another length ---


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("derivatives", [True, False])
def test_a_row_of_another_length_costs_one_call(known, derivatives):
    """Where the count of the data does not tell the right length, most rows do."""
    n = 0

    def forward(q):
        nonlocal n
        n += 1
        return np.append(q, 1.0) if q[0] > 1.0 else q

    setting = DATA if known else {"energy": Energy(lambda function: function)}
    given = (forward, eye) if derivatives else (forward,)
    settings = {**(PATHS if derivatives else WALK), "chains": 5, "initial": np.zeros(2)}
    run = sk.sample(sk.forward_potential(*given, dim=2, **setting), **settings)
    right = sk.forward_potential(
        lambda q: np.full(2, np.nan) if q[0] > 1.0 else q, *given[1:], dim=2, **setting
    )
    other = sk.sample(right, **settings)
    same(run, other)
    assert run.failures == other.failures > 0
    assert run.calls == other.calls
    assert n == sum(run.calls.values())


# --- tables, and what is told ---


@pytest.mark.parametrize("column", [1.5, "text", np.array(2.0)])
def test_a_column_that_is_one_value_is_refused(column):
    with pytest.raises(ShapeError, match="must hold a value for each row"):
        sk.glm("y ~ x", {"y": column, "x": [1.0, 2.0]}, "gaussian")


@pytest.mark.parametrize("told", [["high"], "high"])
def test_text_that_is_told_is_refused(tmp_path, told):
    study = sk.study(tmp_path / "a", dim=1, sampler="random-walk", chains=2, draws=3, seed=1)
    asked = study.ask(1)
    with pytest.raises(ShapeError, match="log_density must be numbers"):
        study.tell(asked, told)
    with pytest.raises(ShapeError, match="positions must be numbers"):
        study.tell([["here"]], [1.0])
