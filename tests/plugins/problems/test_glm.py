"""Generalised linear models, on dense and on sparse designs, and their rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from surrokit import capabilities as can
from surrokit.compose import make
from surrokit.errors import ConfigurationError, ShapeError, TargetError
from surrokit.testing import check_potential
from surrokit_problems.families import Family
from surrokit_problems.logistic import LogisticRegression
from surrokit_problems.logistic_terms import LOGISTIC
from surrokit_problems.probit import PROBIT
from surrokit_problems.ready_made import student_errors
from surrokit_problems.rows import GeneralizedLinearModel


def data(n=1500, dim=5, seed=0):
    rng = np.random.default_rng(seed)
    design = rng.standard_normal((n, dim)) * (rng.random((n, dim)) < 0.4)
    binary = (rng.random(n) < 0.4).astype(float)
    return design, binary, design.sum(axis=1) + rng.standard_t(3, n)


DESIGN, BINARY, REAL = data()
POSITIONS = 0.5 * np.random.default_rng(1).standard_normal((4, 5))
MODELS = {
    "logistic": lambda x: LogisticRegression(x, BINARY),
    "probit": lambda x: GeneralizedLinearModel(x, BINARY, PROBIT),
    "student": lambda x: GeneralizedLinearModel(x, REAL, student_errors()),
}
EACH = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@EACH
@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix, sparse.coo_matrix])
def test_sparse_designs_change_nothing(model, form):
    dense, thin = model(DESIGN), model(form(DESIGN))
    assert thin.capabilities == dense.capabilities
    assert_allclose(thin.value(POSITIONS), dense.value(POSITIONS), rtol=1e-12)
    assert_allclose(thin.gradient(POSITIONS), dense.gradient(POSITIONS), rtol=1e-9, atol=1e-9)
    assert_allclose(thin.hessian(POSITIONS), dense.hessian(POSITIONS), rtol=1e-9, atol=1e-9)
    product = dense.hessian_product(POSITIONS, POSITIONS)
    assert_allclose(thin.hessian_product(POSITIONS, POSITIONS), product, rtol=1e-9, atol=1e-9)
    factor = np.tril(np.ones((5, 5)))
    assert_allclose(thin.row_bounds(factor), dense.row_bounds(factor), rtol=1e-12)
    rows, owners = np.array([3, 0, 3, 1499]), np.array([0, 1, 3, 2])
    expected = dense.expand(POSITIONS[0]).changes(POSITIONS, -POSITIONS, rows, owners)
    found = thin.expand(POSITIONS[0]).changes(POSITIONS, -POSITIONS, rows, owners)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-13)
    assert_allclose(
        thin.select(rows).value(POSITIONS), dense.select(rows).value(POSITIONS), rtol=1e-12
    )


def test_sparse_logistic_regression_can_do_all_that_the_dense_one_can():
    dense, thin = (
        LogisticRegression(DESIGN, BINARY),
        LogisticRegression(sparse.csr_array(DESIGN), BINARY),
    )
    matrices = np.einsum("ni,nj->nij", POSITIONS, POSITIONS)
    for name, factors in (
        ("hessian_diagonal", ()),
        ("hessian_diagonal_gradient", (POSITIONS,)),
        ("hessian_trace_gradient", (matrices,)),
        ("hessian_form_gradient", (POSITIONS,)),
        ("metric", ()),
    ):
        found = getattr(thin, name)(POSITIONS, *factors)
        assert_allclose(found, getattr(dense, name)(POSITIONS, *factors), rtol=1e-9, atol=1e-9)


def test_convex_is_declared_with_a_prior_and_where_the_family_is():
    assert can.CONVEX in MODELS["probit"](DESIGN).capabilities
    assert can.CONVEX not in MODELS["student"](DESIGN).capabilities
    for name in ("probit", "logistic"):  # rows alone may leave directions flat
        assert can.CONVEX not in MODELS[name](DESIGN).select(np.arange(3)).capabilities


def test_a_family_of_ones_own():
    smooth = Family(
        name="smooth absolute errors",
        value=lambda e, y: np.sqrt(1.0 + np.square(y - e)),
        first=lambda e, y: (e - y) / np.sqrt(1.0 + np.square(y - e)),
        second=lambda e, y: (1.0 + np.square(y - e)) ** -1.5,
        third_bound=3 * 0.5 / 1.25**2.5,  # of 3 u / (1 + u^2)^(5/2), at u = 1/2
        convex=True,
    )
    results = check_potential(lambda: GeneralizedLinearModel(DESIGN, REAL, smooth))
    assert [result for result in results if result.outcome == "failed"] == []


def test_a_bound_that_is_too_small_is_seen_by_the_contract():
    optimistic = Family(
        name="optimistic",
        value=LOGISTIC.value,
        first=LOGISTIC.first,
        second=LOGISTIC.second,
        third_bound=0.5 * LOGISTIC.third_bound,
        responses="binary",
    )
    # one column: moves along it attain the bound of rows with p near 0.21 and 0.79
    design = np.ones((60, 1))
    results = check_potential(
        lambda: GeneralizedLinearModel(design, BINARY[:60] * 0 + 1, optimistic)
    )
    failed = [result for result in results if result.outcome == "failed"]
    assert [result.name.partition("[")[0] for result in failed] == ["check_row_bounds"]
    assert "times its bound beyond its expansion to order 2" in failed[0].message


@pytest.mark.parametrize(
    ("design", "response", "message"),
    [
        (DESIGN[0], BINARY, r"design must have shape .* got \(5,\) and \(1500,\)"),
        (DESIGN, BINARY[:-1], r"design must have shape .* got \(1500, 5\) and \(1499,\)"),
        (np.where(DESIGN > 2, np.nan, DESIGN), BINARY, "design must be finite, got"),
        (sparse.csr_array(DESIGN) * np.inf, BINARY, "design must be finite, got"),
        (DESIGN, BINARY + np.nan, "response must be finite, got"),
        (DESIGN, 2 * BINARY, "response must be zeros and ones, got 2"),
    ],
)
def test_bad_data_are_refused(design, response, message):
    error = ShapeError if "shape" in message else ConfigurationError
    with np.errstate(invalid="ignore"), pytest.raises(error, match=message):
        GeneralizedLinearModel(design, response, PROBIT)


def test_expansions_and_bounds_say_what_shape_they_need():
    model = MODELS["probit"](DESIGN)
    with pytest.raises(ShapeError, match=r"centre must have shape \(5,\), got \(4, 5\)"):
        model.expand(POSITIONS)
    with pytest.raises(ShapeError, match=r"factor must have shape \(5, 5\), got \(5,\)"):
        model.row_bounds(POSITIONS[0])
    for ask in (model.expand, model.row_bounds):
        with pytest.raises(ConfigurationError, match=r"'probit' .* to an order of 2, got 3; give"):
            ask(np.eye(5), order=3)
    with pytest.raises(ConfigurationError, match="to an order of 2 or 3, got 4; give one of these"):
        LogisticRegression(DESIGN, BINARY).expand(POSITIONS[0], order=4)


@pytest.mark.parametrize("name", ["logistic", "regression"])
def test_components_take_files(name, tmp_path):
    sparse.save_npz(tmp_path / "x.npz", sparse.csr_array(DESIGN))
    np.save(tmp_path / "y.npy", BINARY)
    settings = {"design": str(tmp_path / "x.npz"), "response": tmp_path / "y.npy"}
    given = {"family": "probit"} if name == "regression" else {}
    expected = make("potential", name, design=DESIGN, response=BINARY, **given).value(POSITIONS)
    assert_allclose(make("potential", name, **settings, **given).value(POSITIONS), expected)


def test_files_that_hold_no_array_are_refused(tmp_path):
    (tmp_path / "x.npy").write_text("1 2 3")
    (tmp_path / "x.npz").write_text("no")
    for name in ("x.npy", "absent.npy", "x.npz"):
        with pytest.raises(TargetError, match=rf"design must be .*{name} could not be read"):
            LogisticRegression(tmp_path / name, BINARY)
    with pytest.raises(TargetError, match="response must be an array of numbers"):
        LogisticRegression(DESIGN, ["no"] * 1500)
