"""Models of other libraries that are sums over rows: which are, and why others are not."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import ConfigurationError, NotASumError
from surrokit.tables.recognised import Family, Observed, recognise, rows_of, sum_if_safe
from surrokit.targets.summed import SumAndRest

RNG = np.random.default_rng(8)
X = RNG.standard_normal((50, 2)) * [1.0, 50.0]
Y = RNG.poisson(1.0, 50).astype(float)
POISSON = Family("poisson", "rate", "log")
FAR = 2000.0  # of predictors, where thresholds are that a look nearby would miss


@attrs.frozen
class Rest:
    """Minus a log density that is normal, or bent by a power above 2."""

    power: int = 2
    dim: int = 2
    capabilities: frozenset = frozenset({"gradient", "hessian"})

    def value(self, positions):
        return self.value_and_gradient(positions)[0]

    def value_and_gradient(self, positions):
        h = positions - 0.3
        return (h**self.power).sum(axis=1), self.power * h ** (self.power - 1)

    def hessian(self, positions):
        slopes = self.power * (self.power - 1) * (positions - 0.3) ** (self.power - 2)
        return slopes[:, :, None] * np.eye(2)


def linear(z):
    return X @ z


def observe(predictors=linear, settings=None, each=None, **fields):
    def slopes(z, along):
        return np.array([predictors(z + one) - predictors(z) for one in along])

    def log_likelihoods(z):
        return Y * (X @ z) - np.exp(X @ z)

    given = {
        "name": "y",
        "family": POISSON,
        "values": Y,
        "predictors": predictors,
        "slopes": slopes,
        "settings": settings or (lambda z: {}),
        "log_likelihoods": each or log_likelihoods,
        "rest": Rest(),
    }
    return Observed(**{**given, **fields})


def whole(power=2, level=7.0):
    return SumAndRest(sk.rows_potential("poisson", X, Y), Rest(power), level=level)


@pytest.mark.parametrize("power", [2, 4])
def test_a_model_is_the_sum_if_slopes_and_densities_agree(power):
    found = recognise(observe(rest=Rest(power)), whole(power), np.zeros(2), wanted=True)
    z = RNG.uniform(-0.02, 0.02, (4, 2))
    assert_allclose(found.value(z), whole(power).value(z), rtol=1e-12)
    assert_allclose(found.hessian(z), whole(power).hessian(z), rtol=1e-9)
    assert ("convex" in found.capabilities) == (power == 2)  # by a normal prior of the terms


def bent(z):
    return X @ z + 1e-6 * np.sum(z**2)


def product(z):
    return X[:, 0] * z[0] * np.exp(z[1])


def one_row(z):
    return np.where(np.arange(50) == 7, np.abs(X @ z), X @ z)


@pytest.mark.parametrize(
    "predictors",
    [
        bent,
        product,
        one_row,
        lambda z: np.maximum(X @ z, -9.0),
        lambda z: np.where(X @ z < FAR, X @ z, 2.0 * (X @ z) - FAR),
        lambda z: np.where(z[1] > -1.0, X @ z, 0.0),
        lambda z: np.minimum(X @ z, 1e7),
        lambda z: (X @ z).astype(np.float32).astype(float),
        lambda z: np.log(z[0] + X[:, 0] ** 2),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_predictors_that_are_bent_anywhere_make_no_sum(predictors):
    plain = Family("gaussian", "loc", "identity", {"scale": "scale"})
    settings = {"family": plain, "values": 1e6 * Y}
    observed = observe(predictors, lambda z: {"scale": np.ones(50)}, **settings)
    with pytest.raises(NotASumError, match=r"predictor of 'y' is not linear .* 'gaussian' has"):
        recognise(observed, whole(), np.zeros(2), wanted=True)


def test_settings_that_move_and_other_densities_make_no_sum():
    def refuse(message, observed, density):
        with pytest.raises(NotASumError, match=message):
            recognise(observed, density, np.zeros(2), wanted=True)

    moving = observe(settings=lambda z: {"scale": np.full(50, 1.0 + (z[1] > 5.0))})
    refuse("the scale of 'y' depends on parameters, and bounds", moving, whole())
    refuse("has another density than the model", observe(), whole(4))
    swapped = observe(each=lambda z: (Y * (X @ z) - np.exp(X @ z))[::-1])
    refuse("some of its rows have another likelihood", swapped, whole())
    many = observe(values=np.zeros(300_000_000))
    refuse("300000000 rows and 2 parameters is too large", many, whole())


@pytest.mark.parametrize(("n_rows", "dim"), [(999, 3), (1500, 200)])
def test_few_rows_are_not_worth_it_unless_they_are_asked_for(n_rows, dim):
    with pytest.raises(NotASumError, match=f"and it has {n_rows} for {dim}"):
        recognise(observe(values=np.zeros(n_rows)), whole(), np.zeros(dim), wanted=None)


def test_designs_are_sparse_where_mostly_0():
    groups, y = np.eye(10)[np.arange(50) % 10], np.zeros(50)

    def each(z):
        return -0.5 * (groups @ z) ** 2

    observed = observe(
        lambda z: groups @ z,
        lambda z: {"scale": np.ones(50)},
        each,
        family=Family("gaussian", "loc"),
        values=y,
        rest=sk.rows_potential("gaussian", groups, y, prior=1.0),
    )
    density = sk.rows_potential("gaussian", np.vstack([groups, groups]), np.zeros(100), prior=1.0)
    found = recognise(observed, density, np.zeros(10), wanted=True)
    z = RNG.standard_normal((3, 10))
    assert_allclose(found.value(z) - found.value(z[:1]), density.value(z) - density.value(z[:1]))
    assert found.terms._design.nnz == 50


def test_scales_of_rows_are_weights_and_other_settings_are_one_number():
    scales, beside = np.linspace(0.5, 2.0, 50), (X, np.zeros(50), None)
    given, owners = rows_of("gaussian", Y, {"scale": scales}, *beside)
    assert_allclose(given["weights"], scales**-2.0)
    assert_allclose(owners, np.arange(50))
    given, _ = rows_of("gaussian", Y, {"scale": np.full(50, 2.0)}, *beside)
    assert set(given) == {"terms", "data", "response", "scale"}
    assert given["scale"] == 2.0
    with pytest.raises(NotASumError, match="degrees of its observed numbers differs from row"):
        rows_of("student", Y, {"degrees": scales}, *beside)


def test_whatever_looking_raises_is_a_reason():
    def fail():
        raise KeyError("x" * 300)

    found, reason = sum_if_safe(None, fail)
    assert found is None
    assert reason.startswith("the model is sampled whole: looking at it raised KeyError: 'xxx")
    with pytest.raises(ConfigurationError, match="rows=True demands a sum over rows, but looking"):
        sum_if_safe(True, fail)
    with pytest.raises(ConfigurationError, match="rows must be True, False or None, got '1'"):
        sum_if_safe("1", fail)
    assert sum_if_safe(False, fail) == (None, "the model is sampled whole, as rows=False was given")
