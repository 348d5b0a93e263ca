from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_matrix
from sklearn import datasets

from surrokit.errors import ConfigurationError, TargetError
from surrokit_problems.a9a import a9a, a9a_regression, libsvm_matrices
from surrokit_problems.rows.logistic import LogisticRegression

TEXT = "-1 3:1 11:1 123:1 \n+1 1:0.5\n-1\n\n+1 2:-1.5e1 3:1\n"


def test_parser():
    features, labels = libsvm_matrices(TEXT)
    expected = np.zeros((4, 123))
    expected[0, [2, 10, 122]] = 1
    expected[1, 0] = 0.5
    expected[3, [1, 2]] = -15, 1
    assert_allclose(features, expected)
    assert_allclose(labels, [-1, 1, -1, 1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "0 lines"),
        ("+1 3:1 124:1\n", "an index outside 1 to 123"),
        ("+1 0:1\n", "an index outside"),
        ("+1 3:1 7\n", "1 lines with 4 numbers"),
        ("age;job\n", "age;job"),
        ("3 1:1\n", "labels of a9a must be -1 and"),
    ],
)
def test_wrong_file(text, message, tmp_path):
    path = tmp_path / "a9a"
    path.write_text(text)
    with pytest.raises(TargetError, match=message):
        a9a_regression(path)


def test_small_file(tmp_path):
    path = tmp_path / "a9a"
    path.write_text(TEXT)
    design, response = a9a_regression(path)
    assert_allclose(design[:, 0], 1.0)
    assert_allclose(design[:, 1:], libsvm_matrices(TEXT)[0])
    assert_allclose(response, [0, 1, 0, 1])


@pytest.mark.parametrize("projected", [0, 124])
def test_projection_needs_a_size(projected):
    with pytest.raises(ConfigurationError, match="from 1 to 123"):
        a9a_regression("a9a", projected)


def test_directions_must_be_known():
    with pytest.raises(ConfigurationError, match="must be 'normal' or 'orthonormal', got 'any'"):
        a9a_regression("a9a", 60, directions="any")


def test_orthonormal_directions_are_of_the_standardised_features(tmp_path):
    path, rng = tmp_path / "a9a", np.random.default_rng(1)
    on = rng.random((400, 123)) < rng.uniform(0.1, 0.9, 123)
    lines = [" ".join(["+1", *(f"{j + 1}:1" for j in np.flatnonzero(row))]) for row in on]
    path.write_text("\n".join(lines))
    design, _ = a9a_regression(path, 123, directions="orthonormal")
    other, _ = a9a_regression(path, 123)
    features = on - on.mean(axis=0)
    scaled = features / features.std(axis=0, ddof=1)
    # all 123 directions: a rotation, after which columns are standardised again
    columns = design[:, 1:]
    coefficients = np.linalg.lstsq(scaled, columns, rcond=None)[0]
    assert_allclose(scaled @ coefficients, columns, atol=1e-8)
    lengths = np.linalg.norm(coefficients, axis=0)
    assert_allclose((coefficients / lengths).T @ (coefficients / lengths), np.eye(123), atol=1e-8)
    assert np.linalg.cond(columns) < 0.2 * np.linalg.cond(other[:, 1:])


def _fetching(monkeypatch, rows, ones):
    features = np.zeros((rows, 123))
    features[:, 5] = 1.0
    labels = np.array(["-1"] * rows, dtype=object)
    labels[:ones] = "1"
    bunch = SimpleNamespace(data=csr_matrix(features), target=labels)
    monkeypatch.setattr(datasets, "fetch_openml", lambda **settings: bunch)


def test_fetched_data_are_cut_to_the_training_rows(monkeypatch):
    _fetching(monkeypatch, 32561 + 10, 7841)
    design, response = a9a_regression()
    assert design.shape == (32561, 124)
    assert response.sum() == 7841


def test_fetched_data_that_are_not_a9a(monkeypatch):
    _fetching(monkeypatch, 100, 20)
    with pytest.raises(TargetError, match="OpenML data set 1430 must begin with"):
        a9a_regression()


def test_the_real_file(data_folder):
    design, response = a9a_regression(data_folder / "a9a.gz")
    assert design.shape == (32561, 124)
    assert response.sum() == 7841
    assert set(np.unique(design)) == {0.0, 1.0}
    projected, again = (a9a_regression(data_folder / "a9a.gz", projected=60) for _ in range(2))
    assert projected[0].shape == (32561, 61)
    assert_allclose(projected[0][:, 1:].mean(axis=0), 0.0, atol=1e-10)
    assert_allclose(projected[0][:, 1:].std(axis=0, ddof=1), 1.0)
    assert_allclose(projected[0], again[0])


def test_the_real_file_is_kept_sparse(data_folder):
    path = data_folder / "a9a.gz"
    sparse, dense = a9a(path), LogisticRegression(*a9a_regression(path))
    b = 0.1 * np.random.default_rng(0).standard_normal((3, 124))
    assert_allclose(sparse.value(b), dense.value(b), rtol=1e-12)
    assert sparse.capabilities == dense.capabilities
