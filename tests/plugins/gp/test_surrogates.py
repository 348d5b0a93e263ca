"""Both surrogates from settings to fitted potential."""

import attrs
import numpy as np
import pytest

from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit_gp import process as process_module
from surrokit_gp import surrokit_components
from surrokit_gp.process import Fitc, GaussianProcess
from surrokit_gp.search import Hyperparameters

DIM = 3
FIXED = {"length_scales": 2.0, "signal_sd": 5.0, "noise_sd": 0.01}
COMPONENTS = {
    component.name: component
    for component in surrokit_components()
    if component.name in ("gp", "fitc")
}


def potential(positions):
    return 0.5 * np.square(positions).sum(axis=1) + np.logaddexp(
        0.0, positions[:, 0] - positions[:, 1]
    )


def gradient(positions):
    slope = 1.0 / (1.0 + np.exp(positions[:, 1] - positions[:, 0]))
    return positions + slope[:, None] * np.array([1.0, -1.0, 0.0])


def evaluations(n=80, seed=0, shift=0.0, gradients=False):
    positions = np.random.default_rng(seed).standard_normal((n, DIM))
    return Evaluations(
        positions=positions,
        values=potential(positions) + shift,
        gradients=gradient(positions) if gradients else None,
    )


def learner(surrogate, seed=7, dim=DIM):
    problem = LearningProblem(dim=dim, capabilities=frozenset())
    return surrogate.learner(problem, np.random.default_rng(seed))


def fitted(surrogate, rows=None, seed=7):
    rows = evaluations() if rows is None else rows
    learns = learner(surrogate, seed, rows.positions.shape[1])
    learns.observe(rows)
    return learns.fit()


def fresh(n=200, seed=2):
    return np.random.default_rng(seed).standard_normal((n, DIM))


def relative_error(process):
    exact = gradient(fresh())
    return np.linalg.norm(process.gradient(fresh()) - exact) / np.linalg.norm(exact)


@pytest.fixture(params=["gp", "fitc"])
def factory(request):
    return COMPONENTS[request.param].load()


# --- fits ---


def test_gradients_are_worth_more_than_values():
    rows = evaluations(30, gradients=True)
    both, values = (fitted(GaussianProcess(gradients=use), rows) for use in (True, False))
    assert both.n_gradients == 30
    assert values.n_gradients == 0
    assert relative_error(both) < 0.5 * relative_error(values)


def test_the_variance_covers_the_error(factory):
    process = fitted(factory(), evaluations(150))
    error = process.value(fresh()) - potential(fresh())
    variance = process.variance(fresh())
    assert 0.05 < np.mean(np.square(error) / variance) < 4.0
    far = process.variance(np.full((1, DIM), 30.0))
    assert far > 100.0 * variance.max()


def test_quality_tells_the_error_at_fresh_points(factory):
    process = fitted(factory(), evaluations(120, gradients=True))
    assert process.quality.n_points == 120
    error = np.var(process.value(fresh()) - potential(fresh()))
    assert error / 4.0 < process.quality.variance < 4.0 * error
    if process.n_gradients:
        exact = relative_error(process)
        assert exact / 4.0 < process.quality.gradient_error < 4.0 * exact
    else:
        assert process.quality.gradient_error is None


def test_optimised_inducing_points_are_better_than_drawn_ones():
    settings = {"n_inducing": 6, "mean": "constant"}
    drawn, moved = (
        fitted(Fitc(inducing=inducing, **settings)) for inducing in ("data", "optimised")
    )
    assert moved.log_likelihood > drawn.log_likelihood + 5.0
    assert relative_error(moved) < relative_error(drawn)


def test_affine_reparametrisation_changes_nothing():
    rng = np.random.default_rng(4)
    matrix = np.tril(rng.standard_normal((DIM, DIM))) + 3.0 * np.eye(DIM)
    rows = evaluations(gradients=True)
    moved = Evaluations(
        positions=rows.positions @ matrix.T - 40.0,
        values=rows.values,
        gradients=np.linalg.solve(matrix.T, rows.gradients.T).T,
    )
    one, other = fitted(GaussianProcess(), rows), fitted(GaussianProcess(), moved)
    there = fresh() @ matrix.T - 40.0
    np.testing.assert_allclose(other.value(there), one.value(fresh()), atol=1e-2)
    back = other.gradient(there) @ matrix
    np.testing.assert_allclose(back, one.gradient(fresh()), atol=2e-2)


# --- mean functions ---
@pytest.mark.parametrize("mean", ["constant", "linear", "quadratic"])
def test_a_polynomial_of_its_degree_is_learnt_whole(factory, mean):
    positions = fresh(40)
    values = np.full(40, 3.0)
    if mean != "constant":
        values += positions @ [1.0, -2.0, 0.5]
    if mean == "quadratic":
        values += np.square(positions) @ [1.0, 0.5, 2.0] + positions[:, 0] * positions[:, 1]
    process = fitted(
        factory(mean=mean, hyperparameters=FIXED),
        Evaluations(positions=positions, values=values),
    )
    assert process.mean == mean
    np.testing.assert_allclose(process.value(positions), values, atol=1e-6)
    assert np.abs(process.posterior.weights).max() < 1e-3


def test_auto_counts_values_and_gradients(factory):
    quick = factory(hyperparameters=FIXED)
    assert fitted(quick, evaluations(29)).mean == "constant"
    assert fitted(quick, evaluations(30)).mean == "quadratic"
    few = GaussianProcess(hyperparameters=FIXED)
    assert fitted(few, evaluations(8, gradients=True)).mean == "quadratic"
    assert fitted(few, evaluations(3, gradients=True)).n_points == 3


@pytest.mark.parametrize("settings", [{"hyperparameters": FIXED}, {}])
def test_a_trend_curves_upwards_everywhere(factory, settings):
    positions = fresh(60)
    values = np.square(positions) @ [1.0, -0.3, 2.0]
    process = fitted(
        factory(mean="quadratic", **settings), Evaluations(positions=positions, values=values)
    )
    assert (process.mean, process.posterior.kind) == ("quadratic", "linear")
    far = 1e3 * np.eye(DIM)
    assert (np.linalg.eigvalsh(process.hessian(far)) > 0.0).all()
    assert (process.value(far) > 1e3).all()
    # the process makes up for it where there are points
    np.testing.assert_allclose(process.value(positions), values, atol=0.5)
    convex = fitted(factory(mean="quadratic", hyperparameters=FIXED))
    assert (convex.mean, convex.posterior.kind) == ("quadratic", "quadratic")


# --- gradients ---
@pytest.mark.parametrize(("most", "used"), [(3000, 40), (72, 10), (43, 0), (20, 0)])
def test_as_many_gradients_are_used_as_are_cheap(monkeypatch, most, used):
    rows = evaluations(40, gradients=True)
    values = rows.values.copy()
    values[:30] += 40.0
    spoilt = Evaluations(positions=rows.positions, values=values, gradients=rows.gradients)
    monkeypatch.setattr(process_module, "AMPLE_EQUATIONS", most)
    process = fitted(GaussianProcess(hyperparameters=FIXED), spoilt)
    assert process.n_gradients == used
    if used == 10:  # rows in the far tail come last
        q = process.centres[process.posterior.gradient_rows]
        away = np.abs(q[:, None, :] - rows.positions[30:]).max(axis=2).min(axis=1)
        assert (away < 1e-9).all()


def test_rows_without_gradients_count_for_their_values():
    rows = evaluations(40, gradients=True)
    gradients = rows.gradients.copy()
    gradients[::2, 1] = np.nan
    some = Evaluations(positions=rows.positions, values=rows.values, gradients=gradients)
    process = fitted(GaussianProcess(hyperparameters=FIXED), some)
    assert process.n_gradients == 20
    np.testing.assert_allclose(process.value(some.positions), some.values, atol=0.05)


# --- hard data ---


X = np.linspace(-2.0, 2.0, 12)[:, None]
LINE = np.linspace(-1.0, 1.0, 30)


@pytest.mark.parametrize(
    ("positions", "values", "atol"),
    [
        (evaluations(40).positions, np.full(40, 7.0), 1e-6),
        (X, np.sin(2.0 * X[:, 0]), 0.1),
        (np.outer(LINE, [1.0, 2.0, -1.0]), np.square(LINE), 0.05),
    ],
    ids=["equal-values", "one-dimension", "on-a-line"],
)
def test_data_without_much_in_them(factory, positions, values, atol):
    process = fitted(factory(), Evaluations(positions=positions, values=values))
    np.testing.assert_allclose(process.value(positions), values, atol=atol)


def test_a_burn_in_far_away_does_no_harm(factory):
    rows = evaluations(100)
    start = np.random.default_rng(6).standard_normal((20, DIM)) * 20.0
    positions = np.vstack([rows.positions, start])
    values = np.append(rows.values, potential(start) ** 2)
    process = fitted(factory(), Evaluations(positions=positions, values=values))
    assert relative_error(process) < 0.3


def test_too_few_points(factory):
    learns = learner(factory())
    with pytest.raises(SurrogateFitError, match="at least 5 distinct points with a finite val"):
        learns.fit()
    learns.observe(Evaluations(positions=np.eye(3), values=np.full(3, np.inf)))
    with pytest.raises(SurrogateFitError, match=r"got 0 \(3 rows were observed\)"):
        learns.fit()
    learns.observe(evaluations(5))
    assert learns.fit().n_points == 5
    with pytest.raises(
        SurrogateFitError, match=r"at least 11 distinct .* got 10 .* longer, set mean='auto', or"
    ):
        fitted(factory(mean="quadratic"), evaluations(10))


def test_a_process_that_is_not_finite(factory):
    rows = evaluations(20)
    huge = Evaluations(positions=rows.positions, values=1e307 * rows.values)
    with (
        np.errstate(all="ignore"),
        pytest.raises(
            SurrogateFitError,
            match=r"values of the training rows range over .* overflow; rescale U",
        ),
    ):
        fitted(factory(tail="full"), huge)


# --- learners ---


def test_a_search_may_look_at_some_rows_only(factory, monkeypatch):
    sizes = []
    for name in ("exact_likelihood", "sparse_likelihood"):
        condition = getattr(process_module, name)

        def spied(rows, *rest, original=condition):
            sizes.append(rows.n_equations)
            return original(rows, *rest)

        monkeypatch.setattr(process_module, name, spied)
    full = factory is GaussianProcess
    rows = evaluations(100, gradients=True)
    assert fitted(factory(n_search=60), rows).n_points == 100
    assert sizes[0] <= 60
    sizes.clear()
    fitted(factory(n_search=5, mean="quadratic"), rows)
    assert 15 <= sizes[0] <= (40 if full else 20)
    sizes.clear()
    fitted(factory(n_search=None), rows)
    assert sizes.count(400 if full else 100) > 5


def test_a_process_is_conditioned_on_some_points_only(monkeypatch):
    monkeypatch.setattr(process_module, "MOST_POINTS", 30)
    rows = evaluations(60)
    values = rows.values.copy()
    values[:20] += 40.0  # the far tail comes last
    process = fitted(
        GaussianProcess(hyperparameters=FIXED),
        Evaluations(positions=rows.positions, values=values),
    )
    assert process.n_points == len(process.centres) == 30
    away = np.abs(process.centres[:, None, :] - rows.positions[20:]).max(axis=2).min(axis=1)
    assert away.max() < 1e-9


# --- settings ---
def test_what_a_fitted_process_shows():
    process = fitted(Fitc(hyperparameters=FIXED, n_inducing=20))
    assert process.hyperparameters == Hyperparameters(**FIXED)
    assert np.isfinite(process.log_likelihood)
    assert (process.centres.shape, process.posterior.weights.shape) == ((20, DIM), (20,))
    jitter = process.posterior.jitter
    assert repr(process).startswith(
        "FittedProcess(dim=3, n_points=80, n_gradients=0, n_centres=20, mean='quadratic', "
        f"length_scales=2, signal_sd=5, noise_sd=0.01, jitter={jitter:.3g}, quality="
    )
    scales = FIXED | {"length_scales": (1.0, 2.0, 4.0)}
    few = repr(fitted(GaussianProcess(hyperparameters=scales), evaluations(5)))
    assert "length_scales=1 to 4," in few
    assert few.endswith("quality=None)")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("mean", "cubic"), ("whiten", 1), ("hyperparameters", 3.0)),
        *(("n_search", 0), ("tail", "cut"), ("max_signal", 0), ("gradients", "auto")),
        *(("inducing", "grid"), ("n_inducing", 0)),
    ],
)
def test_impossible_settings(factory, name, value):
    if name in {field.name for field in attrs.fields(factory)}:
        with pytest.raises(ConfigurationError, match=f"{name} must be .*, got {value!r}"):
            factory(**{name: value})


def test_length_scales_are_given_for_each_coordinate(factory):
    wrong = FIXED | {"length_scales": (1.0, 2.0)}
    with pytest.raises(ConfigurationError, match="2 length scales, but positions have 3 coord"):
        learner(factory(hyperparameters=wrong))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("values", "values of training rows must be numbers, got NaN in row 1 of 3; drop"),
        ("positions", "positions of training rows must be numbers, got NaN in row 1 of 3"),
    ],
)
def test_nan_is_refused_unless_the_target_failed(factory, name, message):
    rows = {"positions": np.eye(3), "values": np.zeros(3)}
    rows[name][1] = np.nan
    learns = learner(factory())
    with pytest.raises(ConfigurationError, match=message):
        learns.observe(Evaluations(**rows))
    learns.observe(Evaluations(positions=np.full((1, 3), np.nan), values=np.full(1, np.inf)))
