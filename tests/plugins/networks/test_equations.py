"""Normal equations gathered cleverly against products of rows written out."""

import attrs
import numpy as np
import pytest

from surrokit_networks.equations import Basis, join, normal_equations, write_out
from surrokit_networks.trend import TrendColumns

DIM, NODES = 3, 7
KINDS, DEGREES = (None, "additive", "rbf"), (0, 1, 2)
FIELDS = ("gram", "right", "squares", "sums", "target_sums", "weight")


@pytest.fixture(params=[(kind, degree) for kind in KINDS for degree in DEGREES], ids=str)
def basis(request, make_nodes):
    kind, degree = request.param
    return Basis(trend=TrendColumns(dim=DIM, degree=degree), network=make_nodes(kind, DIM, NODES))


def in_plain_products(basis, equations):
    """All fields of the normal equations, from features and Jacobians alone."""
    features, weights = basis.features(equations.whitened), equations.value_weights
    fields = {
        "gram": np.einsum("n,ni,nj->ij", weights, features, features),
        "right": np.einsum("n,ni,nm->im", weights, features, equations.targets),
        "squares": weights @ equations.targets**2,
        "sums": weights @ features,
        "target_sums": weights @ equations.targets,
        "weight": weights.sum(),
    }
    if equations.gradients is not None:
        jacobian, weights = basis.jacobian(equations.whitened), equations.gradient_weights
        gradients = equations.gradients
        fields["gram"] += np.einsum("n,nki,nkj->ij", weights, jacobian, jacobian)
        fields["right"] += np.einsum("n,nki,nmk->im", weights, jacobian, gradients)
        fields["squares"] += np.einsum("n,nmk->m", weights, gradients**2)
    return fields


@pytest.mark.parametrize("gradients", ["none", "some", "all"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_products_are_those_of_features_and_jacobians(basis, gradients, n_outputs, make_equations):
    equations = make_equations(30, DIM, n_outputs=n_outputs, gradients=gradients)
    found = normal_equations(basis, equations)
    for name, expected in in_plain_products(basis, equations).items():
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(found.gram, found.gram.T, rtol=1e-12, atol=1e-12)


def test_gradients_alone(basis, make_equations):
    equations = make_equations(30, DIM, gradients="some", values=False)
    found = normal_equations(basis, equations)
    for name, expected in in_plain_products(basis, equations).items():
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-11, atol=1e-11)
    assert found.weight == 0.0


@pytest.mark.parametrize("block_rows", [1, 7, 30])
def test_blocks_change_nothing(basis, block_rows, make_equations):
    equations = make_equations(30, DIM, n_outputs=2, gradients="some")
    whole = normal_equations(basis, equations)
    found = normal_equations(basis, equations, block_rows)
    for name in FIELDS:
        np.testing.assert_allclose(
            getattr(found, name), getattr(whole, name), rtol=1e-11, atol=1e-11
        )
    rows = np.vstack(list(write_out(basis, equations, None)))
    in_blocks = np.vstack(list(write_out(basis, equations, block_rows)))
    order = [np.lexsort(each.T) for each in (rows, in_blocks)]
    np.testing.assert_allclose(in_blocks[order[1]], rows[order[0]], rtol=1e-12, atol=1e-12)


def test_rows_written_out_have_the_same_products(basis, make_equations):
    equations = make_equations(30, DIM, n_outputs=2, gradients="some")
    rows = np.vstack(list(write_out(basis, equations, None)))
    known = int((equations.gradient_weights > 0).sum())
    assert rows.shape == (30 + DIM * known, 1 + len(basis) + 2)
    assert len(rows) == equations.n_rows
    products, found = rows.T @ rows, normal_equations(basis, equations)
    np.testing.assert_allclose(products[0, 0], found.weight)
    np.testing.assert_allclose(products[0, 1:-2], found.sums, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(products[0, -2:], found.target_sums, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(products[1:-2, 1:-2], found.gram, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(products[1:-2, -2:], found.right, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(np.diag(products)[-2:], found.squares, rtol=1e-11)


def test_a_column_of_ones_only_where_the_level_is_trained(basis, make_equations):
    for level in (True, False):
        equations = make_equations(9, DIM, level=level)
        rows = np.vstack(list(write_out(basis, equations, None)))
        assert rows.shape == (9, int(level) + len(basis) + 1)


def test_rows_that_count_for_nothing_are_not_written_out(basis, make_equations):
    equations = make_equations(9, DIM)
    none = attrs.evolve(equations, value_weights=equations.value_weights * (np.arange(9) % 3 > 0))
    assert len(np.vstack(list(write_out(basis, none, None)))) == none.n_rows == 6


def test_parts_add_up(basis, make_equations):
    equations = make_equations(30, DIM, n_outputs=2, gradients="some")
    first = np.arange(30) < 11
    parts = [normal_equations(basis, equations.take(rows)) for rows in (first, ~first)]
    whole = normal_equations(basis, equations)
    for name in FIELDS:
        np.testing.assert_allclose(
            getattr(parts[0] + parts[1], name), getattr(whole, name), rtol=1e-11, atol=1e-11
        )


def test_without_level_is_about_the_weighted_mean(basis, make_equations):
    equations = make_equations(30, DIM, n_outputs=2)
    found = normal_equations(basis, equations).without_level()
    weights, features = equations.value_weights, basis.features(equations.whitened)
    features = features - np.average(features, axis=0, weights=weights)
    targets = equations.targets - np.average(equations.targets, axis=0, weights=weights)
    weighted = weights[:, None] * features
    np.testing.assert_allclose(found.gram, weighted.T @ features, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.right, weighted.T @ targets, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.squares, weights @ targets**2, rtol=1e-10)
    assert not found.sums.any()
    assert not found.target_sums.any()


def test_columns_are_monomials_then_nodes(basis):
    z = np.random.default_rng(1).standard_normal((5, DIM))
    first, second = np.triu_indices(DIM, 1)
    columns = [z, 0.5 * z**2, z[:, first] * z[:, second] / np.sqrt(2.0)]
    expected = np.concatenate([np.empty((5, 0)), *columns[: (0, 1, 3)[basis.trend.degree]]], axis=1)
    features = basis.features(z)
    np.testing.assert_allclose(features[:, : basis.n_trend], expected, rtol=1e-12, atol=1e-12)
    assert features.shape == (5, len(basis))
    if basis.network is not None:
        np.testing.assert_array_equal(features[:, basis.n_trend :], basis.network.features(z))


def test_jacobian_is_the_derivative_of_features(basis, differences):
    z = np.random.default_rng(1).standard_normal((5, DIM))
    expected = differences(basis.features, z).transpose(0, 2, 1)
    np.testing.assert_allclose(basis.jacobian(z), expected, atol=1e-8)


def test_parts_count_in_proportion(make_equations):
    equations = make_equations(30, DIM, gradients="all")
    assert equations.n_rows == 30 * (1 + DIM)
    half = equations.take(slice(0, 15))
    assert len(half) == 15
    assert half.count == pytest.approx(equations.count / 2)
    assert make_equations(30, DIM).take(np.zeros(30, dtype=bool)).count == 0.0


def test_a_known_quadratic_is_taken_off(make_equations):
    equations = make_equations(10, DIM, gradients="some")
    matrix = np.diag([1.0, 2.0, 3.0])
    less = equations.less_quadratic(matrix)
    z, known = equations.whitened, equations.gradient_weights > 0
    values = 0.5 * np.einsum("ni,ij,nj->n", z, matrix, z)
    np.testing.assert_allclose(less.targets[:, 0], equations.targets[:, 0] - values)
    expected = (equations.gradients[:, 0] - z @ matrix)[known]
    np.testing.assert_allclose(less.gradients[known, 0], expected)
    np.testing.assert_array_equal(less.gradients[~known], 0.0)
    assert make_equations(10, DIM).less_quadratic(matrix).gradients is None


def test_equations_are_joined_with_and_without_gradients(make_equations):
    parts = [make_equations(5, DIM, gradients=kind) for kind in ("none", "all")]
    whole = join(parts)
    assert len(whole) == 10
    assert whole.count == parts[0].count + parts[1].count
    assert whole.total_weight == pytest.approx(sum(part.total_weight for part in parts))
    np.testing.assert_array_equal(whole.gradients[:5], 0.0)
    np.testing.assert_array_equal(whole.gradients[5:], parts[1].gradients)
    assert join(parts[:1]).gradients is None
