"""Names, shapes and bounds of parameters, and the map from the line to what is bounded."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from scipy.stats import norm

from surrokit import Parameter, Parameters, interval, real
from surrokit.coordinates.transforms import Transform
from surrokit.errors import ConfigurationError, ShapeError

MIXED = {
    "rate": (0, np.inf),
    "slope": None,
    "w": interval(0, 1, 2),
    "m": Parameter((2, 2)),
}


@pytest.fixture
def mixed():
    return Parameters.declare(MIXED)


def test_every_form_of_declaration_is_read(mixed):
    assert mixed.specs["rate"].bounds == (0.0, np.inf)
    assert mixed.specs["slope"] == Parameter()
    assert mixed.specs["w"] == Parameter((2,), lower=0, upper=1)
    assert mixed.specs["m"].shape == (2, 2)
    assert mixed.bounded
    assert not Parameters.unnamed(3).bounded
    one_sided = Parameters.declare({"a": (None, 3), "b": (None, None)})
    assert one_sided.specs["a"].bounds == (-np.inf, 3.0)
    assert one_sided.specs["b"].bounds == (-np.inf, np.inf)


def test_numbers_lie_one_after_the_other_in_c_order(mixed):
    assert mixed.labels == ["rate", "slope", "w[0]", "w[1]", "m[0,0]", "m[0,1]", "m[1,0]", "m[1,1]"]
    assert Parameters.unnamed(3).labels == ["q[0]", "q[1]", "q[2]"]
    covered = [i for part in mixed.slices().values() for i in range(8)[part]]
    assert covered == list(range(mixed.dim)) == list(range(8))
    lower, upper = mixed.bounds()
    assert_array_equal(lower, [0, -np.inf, 0, 0, *[-np.inf] * 4])
    assert_array_equal(upper, [np.inf, np.inf, 1, 1, *[np.inf] * 4])


def test_values_by_name_become_a_position(mixed):
    values = {"w": [0.1, 0.2], "m": [[1, 2], [3, 4]], "slope": -1, "rate": 5}
    position = mixed.position(values)
    assert_array_equal(position, [5, -1, 0.1, 0.2, 1, 2, 3, 4])
    for rows in (position, np.stack([position] * 3)):
        for name, array in mixed.split(rows).items():
            expected = np.broadcast_to(values[name], (*rows.shape[:-1], *np.shape(values[name])))
            assert_array_equal(array, expected)
    assert_array_equal(Parameters.unnamed(2).position([1, 2]), [1.0, 2.0])
    declared = Parameters.declare({"a": None, "w": real(2)})
    chains = declared.position({"a": [1, 2, 3], "w": np.ones((3, 2))})
    assert_array_equal(chains, [[1, 1, 1], [2, 1, 1], [3, 1, 1]])


@pytest.mark.parametrize(
    "bounds", [(1, 0), (1, 1), (np.nan, 1), (0, np.nan), (np.inf, None), (None, -np.inf)]
)
def test_bounds_in_the_wrong_order_are_refused(bounds):
    message = "lower < upper.*use None for a side without a bound"
    with pytest.raises(ConfigurationError, match=message):
        Parameters.declare({"a": bounds})


@pytest.mark.parametrize("spec", [3, (1, 2, 3), (0,), [], object(), "01"])
def test_what_is_no_declaration_is_refused_by_name(spec):
    message = "'rate' must be declared by None, a pair|bounds of a parameter must be numbers"
    with pytest.raises(ConfigurationError, match=message):
        Parameters.declare({"rate": spec})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Parameters.declare({}), "at least one parameter, got none"),
        (lambda: Parameters.declare({"a": ("x", 1)}), "bounds of a parameter must be numbers"),
        (lambda: real(2.5), "shape must be a tuple of whole numbers of at least 1, got 2.5"),
        (lambda: real(True), "shape must be a tuple of whole numbers of at least 1, got True"),
        (lambda: Parameter(lower=[0, 0]), "bounds of a parameter must be numbers or None"),
        (lambda: Parameter(3), "shape must be a tuple of whole numbers of at least 1, got 3"),
    ],
)
def test_declarations_of_another_type_are_refused(make, message):
    with pytest.raises(ConfigurationError, match=message):
        make()


@pytest.mark.parametrize("values", [{"a": 1}, {"a": 1, "b": 1, "c": 1}, {}])
def test_values_of_other_names_or_shapes_are_refused(values):
    declared = Parameters.declare({"a": None, "b": None})
    with pytest.raises(ShapeError, match="must be given for a, b, got"):
        declared.position(values)
    with pytest.raises(ShapeError, match=r"'w' must have shape \(2,\), got \(3,\)"):
        Parameters.declare({"w": real(2)}).position({"w": [1, 2, 3]})


# --- the map from the line ---

BOUNDS = {
    "free": (None, None),
    "above": (1.5, None),
    "below": (None, -2.0),
    "between": (-1.0, 4.0),
    "fraction": (0.0, 1.0),
}


@pytest.fixture
def transform():
    return Transform.of(Parameters.declare(BOUNDS))


def one(lower, upper):
    return Transform.of(Parameters.declare({"a": (lower, upper)}))


@pytest.fixture
def z(rng):
    return 2.0 * rng.standard_normal((50, len(BOUNDS)))


def test_positions_come_back_and_are_the_textbook_ones(transform, z):
    before = z.copy()
    q = transform.to_bounded(z)
    assert ((q > transform.lower) & (q < transform.upper)).all()
    assert_allclose(transform.to_unbounded(q), z, atol=1e-9)
    assert_allclose(transform.to_bounded(transform.to_unbounded(q)), q, rtol=1e-12)
    assert_array_equal(z, before)
    e, p = np.exp(0.7), ndtr(0.7)
    found = transform.to_bounded(np.full((1, 5), 0.7))
    assert_allclose(found, [[0.7, 1.5 + e, -2 - e, -1 + 5 * p, p]])
    plain = Transform.of(Parameters.unnamed(5))
    assert_array_equal(plain.to_bounded(z), z)
    assert_array_equal(plain.to_unbounded(z), z)
    assert_array_equal(plain.log_jacobian(z), 0.0)


def test_any_leading_axes_are_kept(transform, rng):
    z = rng.standard_normal((3, 4, 5))
    assert_array_equal(transform.to_bounded(z)[1, 2], transform.to_bounded(z[1, 2]))
    assert transform.to_unbounded(transform.to_bounded(z)).shape == (3, 4, 5)


def test_derivatives_agree_with_differences(transform, z, differences):
    def diagonal(function):
        return np.diagonal(differences(function, z), axis1=1, axis2=2)

    def of(name):
        return diagonal(lambda x: getattr(transform.derivatives(x), name))

    jacobian = differences(transform.to_bounded, z)
    assert_allclose(np.linalg.slogdet(jacobian)[1], transform.log_jacobian(z), atol=1e-5)
    d = transform.derivatives(z)
    logs = diagonal(lambda x: np.log(np.abs(transform.derivatives(x).first)))
    assert_allclose(d.log_first, logs, rtol=1e-4, atol=1e-6)
    for found, expected in (
        (d.first, diagonal(transform.to_bounded)),
        (d.second, of("first")),
        (d.log_second, of("log_first")),
        (d.third, of("second")),
        (d.log_third, of("log_second")),
    ):
        assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("z", [-800.0, 800.0])
def test_far_out_nothing_is_nan_and_nothing_warns(z, bounds):
    transform, far = one(*bounds), np.array([[z]])
    assert not np.isnan(transform.to_bounded(far)).any()
    assert np.isfinite(transform.log_jacobian(far)).all()
    assert not np.isnan(transform.derivatives(far).first).any()
    assert np.isfinite(transform.derivatives(far).log_first).all()
    assert not np.isnan(
        [transform.derivatives(far).third, transform.derivatives(far).log_third]
    ).any()


@pytest.mark.parametrize("z", [-37.0, -30.0, -20.0, -8.0, -1.0])
def test_the_map_between_two_bounds_keeps_its_lower_tail(z):
    at = np.array([[z]])
    assert_allclose(one(0, 1).to_bounded(at), ndtr(at), rtol=1e-12)
    assert_allclose(one(0, 1).to_unbounded(one(0, 1).to_bounded(at)), at, rtol=1e-12)
    assert_allclose(one(-1, 0).to_unbounded(-ndtr(at)), -at, rtol=1e-12)


def test_a_uniform_density_between_two_bounds_is_standard_normal_on_the_line(z):
    log_density = one(-3, 2).log_jacobian(z[:, :1]) - np.log(5.0)
    assert_allclose(log_density, norm.logpdf(z[:, 0]), rtol=1e-12)


@pytest.mark.parametrize(
    "bounds", [(0, 1), (0, None), (None, 1), (5, None), (None, -5), (5, 6), (-1e300, 1e300)]
)
def test_no_position_on_the_line_is_taken_to_a_bound(bounds):
    transform = one(*bounds)
    q = transform.to_bounded(np.array([[-800.0], [-40.0], [0.0], [40.0], [700.0]]))
    assert ((q > transform.lower[0]) & (q < transform.upper[0])).all()
    assert (np.diff(q[:, 0]) * (-1 if bounds[0] is None else 1) >= 0).all()
    z = np.linspace(-30, 30, 61)[:, None]
    assert_array_equal(one(0, 1).to_bounded(z), np.clip(ndtr(z), 5e-324, 1.0 - 2.0**-53))


def test_bounds_are_infinitely_far_and_beyond_is_nothing():
    far = np.array([[800.0]])
    assert one(0, None).to_bounded(far) == np.inf
    assert one(None, 0).to_bounded(far) == -np.inf
    assert_array_equal(one(0, 1).to_unbounded(np.array([[0.0], [1.0]])), [[-np.inf], [np.inf]])
    assert one(0, None).to_unbounded(np.array([[0.0]])) == -np.inf
    assert np.isnan(one(0, 1).to_unbounded(np.array([[-0.5], [1.5]]))).all()
    assert np.isnan(one(0, None).to_unbounded(np.array([[-1.0]])))
