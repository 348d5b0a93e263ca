from __future__ import annotations

import gzip

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surrokit.errors import ConfigurationError, TargetError
from surrokit_problems.real_data import a9a_regression, bank_regression

JOBS = [
    *("admin.", "blue-collar", "entrepreneur", "housemaid", "management", "retired"),
    *("self-employed", "services", "student", "technician", "unemployed", "unknown"),
]
EDUCATION = [
    *("basic.4y", "basic.6y", "basic.9y", "high.school"),
    *("illiterate", "professional.course", "university.degree", "unknown"),
]
NUMBERS = [
    *("age", "duration", "campaign", "previous", "emp.var.rate"),
    *("cons.price.idx", "cons.conf.idx", "euribor3m", "nr.employed"),
]


@pytest.fixture
def table():
    """The columns of the real file, one row of each job twice over, and a few to drop."""
    rng = np.random.default_rng(0)
    jobs = ["housemaid", *JOBS, *JOBS, "services"]
    n = len(jobs)
    columns = {name: [f"{x:.3f}" for x in rng.normal(50, 9, n)] for name in NUMBERS}
    columns |= {
        "job": jobs,
        "marital": ["single"] * n,
        "education": [EDUCATION[i % 8] for i in range(n)],
        "housing": ["yes", "no"] * (n // 2),
        "loan": ["unknown" if name == "unknown" else "no" for name in ["no"] * n],
        "contact": ["cellular", "telephone"] * (n // 2),
        "y": ["no", "no", "yes"] * (n // 3) + ["no"] * (n % 3),
    }
    columns["loan"][3] = "yes"
    columns["housing"][-1] = "unknown"
    columns["loan"][-1] = "unknown"
    return columns


def written(table, path):
    lines = [";".join(f'"{name}"' for name in table)]
    lines += [";".join(row) for row in zip(*table.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_parser_makes_the_papers_columns(table, tmp_path):
    packed = tmp_path / "bank.csv.gz"
    packed.write_bytes(gzip.compress(written(table, tmp_path / "bank.csv").read_bytes()))
    design, response = bank_regression(packed)
    kept = slice(1, -1)  # the first row, and the one with housing unknown, are dropped
    assert design.shape == (24, 25)
    assert_allclose(design[:, 0], 1.0)
    assert_allclose(design[:, 1:].mean(axis=0), 0.0, atol=1e-12)
    assert_allclose(design[:, 1:].std(axis=0, ddof=1), 1.0)
    assert_allclose(response, [y == "yes" for y in table["y"][kept]])
    expected = {
        1: np.array(table["age"][kept], dtype=float),
        2: np.array([1.0 + EDUCATION.index(level) for level in table["education"][kept]]),
        5: np.array([contact == "telephone" for contact in table["contact"][kept]], dtype=float),
        13: np.array(table["nr.employed"][kept], dtype=float),
        14: np.array([job == "admin." for job in table["job"][kept]], dtype=float),
        24: np.array([job == "unemployed" for job in table["job"][kept]], dtype=float),
    }
    for column, values in expected.items():
        scaled = (values - values.mean()) / values.std(ddof=1)
        assert_allclose(design[:, column], scaled, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("euribor3m", "euribor"), "KeyError.'euribor3m'.; download"),
        (lambda text: text.replace("telephone", "pigeon"), "pigeon"),
        (lambda text: text.replace("no;", "no;;"), "cannot be read as that"),
        (lambda text: text + "1;2;3\n", "cannot be read as that"),
        (lambda text: text.splitlines()[0], "every column must vary over its 0 rows"),
        (lambda text: text.replace("telephone", "cellular"), "every column must vary"),
        (lambda _: "", "every column must vary over its 0 rows"),
        (lambda _: "\xff\x00", "cannot be read as that"),
    ],
)
def test_tables_that_are_not_those_expected(change, said, table, tmp_path):
    path = written(table, tmp_path / "bank.csv")
    path.write_text(change(path.read_text()), encoding="latin-1")
    with pytest.raises(TargetError, match=said):
        bank_regression(path)


def test_unreadable_files(tmp_path):
    (tmp_path / "broken.csv.gz").write_bytes(b"not gzip")
    for path in (None, tmp_path / "absent.csv", tmp_path / "broken.csv.gz"):
        with pytest.raises(TargetError, match=r"cannot be read as that.* download bank"):
            bank_regression(path)
        with pytest.raises(TargetError, match=r"cannot be read as that.* download a9a"):
            a9a_regression(path)


def test_the_real_file_gives_the_papers_matrix(data_folder):
    design, response = bank_regression(data_folder / "bank-additional-full.csv.gz")
    assert design.shape == (40197, 25)
    assert response.sum() == 4533
    assert_allclose(design[:, 0], 1.0)
    assert_allclose(design[:, 1:].mean(axis=0), 0.0, atol=1e-10)
    assert_allclose(design[:, 1:].std(axis=0, ddof=1), 1.0)


TEXT = "-1 3:1 11:1 123:1 \n+1 1:0.5\n-1\n\n+1 2:-1.5e1 3:1\n"


@pytest.mark.parametrize("text", ["", "+1 3:1 124:1\n", "age;job\n", "3 1:1\n"])
def test_files_that_are_not_a9a(text, tmp_path):
    path = tmp_path / "a9a"
    path.write_text(text)
    with pytest.raises(TargetError, match="path must be that of LIBSVM's training file a9a"):
        a9a_regression(path)


def test_small_file(tmp_path):
    path = tmp_path / "a9a"
    path.write_text(TEXT)
    design, response = a9a_regression(path)
    assert_allclose(design[:, 0], 1.0)
    expected = np.zeros((4, 123))
    expected[0, [2, 10, 122]] = 1
    expected[1, 0] = 0.5
    expected[3, [1, 2]] = -15, 1
    assert_allclose(design[:, 1:], expected)
    assert_allclose(response, [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"projected": 0}, "from 1 to 123"),
        ({"projected": 124}, "from 1 to 123"),
        ({"directions": "any"}, "must be 'normal' or 'orthonormal', got 'any'"),
    ],
)
def test_projections_that_there_are_not(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        a9a_regression("a9a", **settings)


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


def test_the_real_a9a(data_folder):
    design, response = a9a_regression(data_folder / "a9a.gz")
    assert design.shape == (32561, 124)
    assert response.sum() == 7841
    assert set(np.unique(design)) == {0.0, 1.0}
    projected, again = (a9a_regression(data_folder / "a9a.gz", projected=60) for _ in range(2))
    assert projected[0].shape == (32561, 61)
    assert_allclose(projected[0][:, 1:].mean(axis=0), 0.0, atol=1e-10)
    assert_allclose(projected[0][:, 1:].std(axis=0, ddof=1), 1.0)
    assert_allclose(projected[0], again[0])
