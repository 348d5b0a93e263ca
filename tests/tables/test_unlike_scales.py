"""Columns and parameters of very unlike scale are sampled as well as standardised ones."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import surrokit as sk
from surrokit.targets.scaling import is_undeclared, scaled

pd = pytest.importorskip("pandas")
pytest.importorskip("formulaic")

COLUMNS = {"income": (60_000.0, 20_000.0), "year": (2007.0, 5.0), "share": (2e-4, 1e-4)}
WRONG = 0.2  # posterior sds: five Monte Carlo errors of 600 effective draws


def table(n_rows, seed, names=("income", "year", "share")):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.normal(*COLUMNS[name], n_rows) for name in names})
    z = [(frame[name] - COLUMNS[name][0]) / COLUMNS[name][1] for name in names]
    slopes = [0.5, -0.4, 0.3]
    rises = 0.3 + sum(slope * column for slope, column in zip(slopes, z, strict=False))
    frame["y"] = (rng.random(n_rows) < expit(rises)).astype(int)
    frame["count"] = rng.poisson(np.exp(rises))
    frame["cost"] = 1e5 * (rises + rng.normal(size=n_rows))
    frame["class"] = np.array(["a", "b", "c"])[rng.integers(0, 3, n_rows)]
    frame["grade"] = np.digitize(rises + rng.logistic(size=n_rows), [-1.0, 1.0])
    return frame


def newton(frame, names):
    """Return mode and sds of a logistic regression in the units of the columns, flat priors."""
    x = frame[list(names)].to_numpy()
    mean, sd = x.mean(axis=0), x.std(axis=0)
    z = np.column_stack([np.ones(len(x)), (x - mean) / sd])
    y, b = frame["y"].to_numpy(), np.zeros(len(mean) + 1)
    for _ in range(20):
        p = expit(z @ b)
        covariance = np.linalg.inv((z * (p * (1.0 - p))[:, None]).T @ z)
        b = b + covariance @ (z.T @ (y - p))
    back = np.eye(len(b))
    back[0, 1:] = -mean / sd
    back[1:, 1:] = np.diag(1.0 / sd)
    return back @ b, np.sqrt(np.diag(back @ covariance @ back.T))


def test_columns_as_people_have_them_need_no_scaling_by_hand():
    frame = table(10_000, 1)
    mode, sd = newton(frame, COLUMNS)
    target = sk.glm("y ~ income + year + share", frame, "logistic")
    run = sk.sample(target, sampler="hmc", draws=300, warmup=300, seed=1, progress=False)
    flat = run.draws.reshape(-1, 4)
    assert np.abs((flat.mean(axis=0) - mode) / sd).max() < WRONG
    assert np.abs(flat.std(axis=0) / sd - 1.0).max() < 0.15
    assert run.calls["gradient"] < 20_000  # ten times as many in the units of the columns


NARROW = {"income": 1e-5, "year": (0.0, 0.1)}


@pytest.mark.parametrize(
    ("formula", "family", "settings"),
    [
        ("count ~ income + year", "poisson", {"prior": NARROW}),
        ("cost ~ income + year", "gaussian", {"scale": 1e5}),
        ("class ~ income + year", "multinomial", {"prior": NARROW}),
        ("grade ~ income + year", "ordinal", {}),
        ("y ~ 0 + C(grade) + income + year", "logistic", {}),  # levels stand for a column of ones
    ],
)
def test_every_family_and_prior_has_draws_about_the_mode(formula, family, settings):
    target = sk.glm(formula, table(2_000, 2), family, **settings)
    run = sk.sample(target, draws=300, seed=2, progress=False)
    assert run.calls["gradient"] < 1_500
    flat = run.draws.reshape(-1, target.dim)
    root = np.linalg.cholesky(np.cov(flat, rowvar=False))
    gradient = target.value_and_gradient(flat.mean(axis=0)[None])[1][0]
    assert np.abs(root.T @ gradient).max() < 0.3  # posterior sds from the mode
    assert np.max(sk.r_hat(run.draws)) < 1.03


@pytest.mark.long
def test_the_evidence_is_that_of_the_density_in_the_units_of_the_columns():
    frame = table(1_000, 5, ("income", "year"))
    x = np.column_stack([np.ones(1_000), frame[["income", "year"]]])
    prior_sd = np.array([100.0, 1e-4, 0.1])
    y = frame["cost"].to_numpy() / 1e5
    target = sk.rows_potential("gaussian", x, y, prior=sk.gaussian_prior(0.0, prior_sd))
    weights = ("weights", {"effective": 5_000})
    parts = {"surrogate": "quadratic", "explorer": "rounds", "correction": weights}
    run = sk.sample(target, **parts, max_calls=120, seed=5, progress=False)
    precision = x.T @ x + np.diag(prior_sd**-2.0)
    mean = np.linalg.solve(precision, x.T @ y)
    least = target.value(mean[None])[0]
    log_volume = 1.5 * np.log(2.0 * np.pi) - 0.5 * np.linalg.slogdet(precision)[1]
    assert run.log_evidence().value == pytest.approx(log_volume - least, abs=0.02)


def test_a_file_of_unlike_columns_is_opened_resumed_and_learnt_from(tmp_path):
    frame = table(2_000, 6)
    target = sk.glm("y ~ income + year + share", frame, "logistic")
    path = tmp_path / "run.surrokit"
    run = sk.sample(target, draws=50, seed=6, progress=False, path=path)
    assert np.array_equal(sk.open_run(path).draws, run.draws)
    longer = sk.resume(path, target, draws=100, progress=False)
    assert np.array_equal(longer.draws[:, :50], run.draws)
    mode, sd = newton(frame, COLUMNS)
    warm = sk.sample(target, draws=300, seed=7, progress=False, warm_start=path)
    assert np.abs((warm.draws.mean(axis=(0, 1)) - mode) / sd).max() < WRONG


def test_starts_are_given_in_the_units_of_the_columns():
    frame = table(2_000, 7)
    mode, sd = newton(frame, COLUMNS)
    target = sk.glm("y ~ income + year + share", frame, "logistic")
    started = dict(zip(target.parameters.specs, mode + sd, strict=True))
    run = sk.sample(
        target, sampler="hmc", warmup=100, draws=20, initial=started, seed=7, progress=False
    )
    assert np.abs((run.warmup.draws[:, 0] - mode) / sd).max() < 4.0


def test_terms_that_are_chosen_have_no_part_of_the_volume():
    design = np.column_stack([np.ones(200), np.random.default_rng(5).normal(2000.0, 5.0, 200)])
    target = sk.rows_potential("poisson", design, np.ones(200))
    moved, z, rows = scaled(target), np.array([[0.1, -0.2]]), np.array([3, 7])
    line = moved.inner_map.to_bounded(z)
    np.testing.assert_allclose(moved.select(rows).value(z), target.select(rows).value(line))


def test_columns_of_like_scale_are_sampled_as_they_are():
    rng = np.random.default_rng(8)
    x = np.column_stack([np.ones(500), rng.normal(size=(500, 2))])
    y = (rng.random(500) < 0.5).astype(float)
    run = sk.sample(sk.rows_potential("logistic", x, y), draws=20, seed=8, progress=False)
    assert np.array_equal(run.kept.positions, run.draws)


MEAN, SD = np.array([6.1e7, 2e-8, 2007.0]), np.array([9e6, 5e-9, 3.0])
PRECISION = np.linalg.inv([[1.0, 0.8, 0.3], [0.8, 1.0, 0.2], [0.3, 0.2, 1.0]])


def value(q):
    z = (q - MEAN) / SD
    return 0.5 * z @ PRECISION @ z


@pytest.mark.parametrize(
    "declared", [pytest.param("priors", marks=pytest.mark.long), "plausible ranges"]
)
def test_declared_scales_of_very_unlike_size_are_used(declared):
    priors = [stats.norm(6e7, 4e7), stats.norm(2e-8, 3e-8), stats.norm(2005.0, 20.0)]
    if declared == "priors":
        parameters = {n: sk.real(prior=p) for n, p in zip("abc", priors, strict=True)}
        target = sk.potential(value, parameters=parameters)
    else:
        ranges = {"a": (2e7, 1e8), "b": (1e-9, 5e-8), "c": (1990.0, 2020.0)}
        target = sk.potential(value, parameters=dict.fromkeys("abc"), plausible=ranges)
    run = sk.sample(target, sampler="random-walk", draws=1500, seed=9, progress=False)
    flat = run.draws.reshape(-1, 3)
    assert np.abs((flat.mean(axis=0) - MEAN) / SD).max() < 0.4
    assert np.abs(np.log(flat.std(axis=0) / SD)).max() < 0.25


def test_a_prior_that_is_wide_about_zero_moves_no_start():
    parameters = {"a": sk.real(prior=stats.norm(0.0, 1e6))}
    target = sk.potential(lambda q: 0.5 * float(q @ q), parameters=parameters)
    run = sk.sample(target, sampler="random-walk", warmup=1, draws=1, seed=10, progress=False)
    assert np.abs(run.draws).max() < 20.0


@pytest.mark.parametrize(
    ("settings", "undeclared"),
    [
        ({"dim": 2}, True),
        ({"parameters": {"a": None, "b": (0.0, None)}}, True),
        ({"parameters": {"a": None, "b": stats.norm(0.0, 1.0)}}, False),
        ({"parameters": {"a": None}, "plausible": {"a": (-1.0, 1.0)}}, False),
    ],
)
def test_a_prior_or_a_plausible_range_says_where_numbers_lie(settings, undeclared):
    assert is_undeclared(sk.potential(lambda q: 0.0, **settings)) == undeclared
