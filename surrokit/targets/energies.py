"""Data about the outputs of a forward map: families of errors, and their energies.

The location of data is mu(f) of the outputs f, and r = (mu - y) / s in units of the scale s:

    gaussian   r^2 / 2 + log(s sqrt(2 pi))                               mu = f
    student    (nu + 1) / 2 log(1 + r^2 / nu) + log s + a constant       mu = f
    lognormal  as gaussian, with log y in place of y, and log y added    mu = log f
    poisson    mu - y log mu + log y!, without a scale                   mu = f or exp f

The Fisher information of location and scale is a / s^2 and b / s^2, with a = 1 and b = 2. Student's
t has a = (nu + 1) / (nu + 3) and b = 2 nu / (nu + 3) (Lange, Little and Taylor 1989,
doi:10.2307/2290063), and counts have 1 / mu.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from surrokit import capabilities as can
from surrokit.arguments import is_number
from surrokit.coordinates.transforms import plus_diagonal
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import CONSTANT_CURVATURES, CURVATURES, Pointwise
from surrokit.predictive.families import read_name, suggest
from surrokit.targets.gaussian import Prior, Priors, as_parts, check_finite, frozen_numbers
from surrokit.types import BoolArray, Capabilities, FloatArray, IntArray, Pair

Three: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]

FamilyName: TypeAlias = Literal["gaussian", "normal", "student", "cauchy", "lognormal", "poisson"]
"""Names of families of errors."""

Link: TypeAlias = Literal["identity", "log"]
"""Whether outputs are means, or logarithms of means."""


@attrs.frozen
class ErrorFamily:
    """A family of errors; see above.

    Outputs and scales have shape (n, m), data (m,); so have results (n, m). Callers ignore
    overflows, and divisions by zero. ``degrees`` are of Student's t, ``link`` of counts.
    """

    name: str
    degrees: float | None = None
    link: Link | None = None

    @property
    def has_scale(self) -> bool:
        """Whether errors have a scale; derivatives in it are zero otherwise."""
        return self.name != "poisson"

    @property
    def is_constant(self) -> bool:
        """Whether the information of outputs is the same for all outputs."""
        return self.name in ("gaussian", "student")

    def check_data(self, data: FloatArray) -> None:
        """Raise ConfigurationError where data cannot be such."""
        if self.name == "lognormal":
            wrong, must = ~(data > 0.0), "be positive"
            hint = "leave such data out, or take the family 'gaussian'"
        elif self.name == "poisson":
            wrong, must = (data < 0.0) | (data != np.round(data)), "be counts 0, 1, 2, ..."
            hint = "give counts before any scaling, or take another family"
        else:
            return
        if wrong.any():
            place = int(np.flatnonzero(wrong)[0])
            raise ConfigurationError(
                f"data of the family {self.name!r} must {must}, got {data[place]:g} at [{place}]; "
                f"{hint}"
            )

    def on_scale(self, data: FloatArray) -> FloatArray:
        """Return data in the units of the scale."""
        return np.log(data) if self.name == "lognormal" else data

    def value_and_slopes(self, outputs: FloatArray, data: FloatArray, scale: FloatArray) -> Three:
        """Return -log p, and its derivatives in outputs and scales.

        -log p is ``inf`` and the derivatives are NaN where that is no density; all are NaN where
        outputs are.
        """
        mu, first = self._location(outputs)
        if self.name == "poisson":
            from scipy.special import gammaln, xlogy  # late: importing stays fast

            value = mu - xlogy(data, mu) + gammaln(data + 1.0)
            slope, by_scale = 1.0 - np.where(data > 0.0, data / mu, 0.0), np.zeros_like(outputs)
            outside: BoolArray = (mu < 0.0) | (mu == np.inf)  # of which no difference is known
        else:
            r = (mu - self.on_scale(data)) / scale
            term, slope = self._unit(r)
            value = term + np.log(scale)
            slope, by_scale = slope / scale, (1.0 - r * slope) / scale
            outside = ~((scale > 0.0) & (scale < np.inf))
            if self.name == "lognormal":
                value, outside = value + np.log(data), outside | (outputs <= 0.0)
        if outside.any():
            value = np.where(outside, np.inf, value)
            slope, by_scale = (np.where(outside, np.nan, each) for each in (slope, by_scale))
        return value, slope * first, by_scale

    def information(self, outputs: FloatArray, scale: FloatArray) -> Pair:
        """Return the Fisher information of outputs, and of scales."""
        mu, first = self._location(outputs)
        if self.name == "poisson":
            known = np.where(mu > 0.0, 1.0 / mu, np.nan)
            return known * np.square(first), np.zeros_like(outputs)
        nu, precision = self.degrees, 1.0 / np.square(scale) + np.zeros_like(outputs)
        a, b = (1.0, 2.0) if nu is None else ((nu + 1.0) / (nu + 3.0), 2.0 * nu / (nu + 3.0))
        return a * np.square(first) * precision, b * precision

    def draw(self, rng: np.random.Generator, outputs: FloatArray, scale: FloatArray) -> FloatArray:
        """Return data for these outputs."""
        mu = self._location(outputs)[0]
        if self.name == "poisson":
            return np.asarray(rng.poisson(mu), dtype=np.float64)
        if self.degrees is not None:
            return np.asarray(mu + scale * rng.standard_t(self.degrees, size=mu.shape))
        drawn = rng.normal(mu, scale)
        return np.exp(drawn) if self.name == "lognormal" else np.asarray(drawn)

    def squares(self, outputs: FloatArray, data: FloatArray) -> FloatArray:
        """Return squares of residuals, shape (n, m), whose mean is about that of the scale.

        Of long tails a residual counts as less, by a scale of half of them.
        """
        squares = np.square(self._location(outputs)[0] - self.on_scale(data))
        if self.degrees is None:
            return squares
        usual = np.median(squares, axis=1, keepdims=True) / 0.55  # for 4 degrees of freedom
        return np.asarray(squares * (self.degrees + 1.0) / (self.degrees + squares / usual))

    def _location(self, outputs: FloatArray) -> tuple[FloatArray, Any]:
        """Return mu and its derivative in outputs; NaN where there is none."""
        if self.name == "lognormal":
            inside = np.where(outputs <= 0.0, np.nan, outputs)
            return np.log(inside), 1.0 / inside
        if self.link == "log":
            mean = np.exp(np.maximum(outputs, -700.0))  # whose logarithm is finite
            return mean, mean
        return outputs, 1.0

    def _unit(self, r: FloatArray) -> Pair:
        """Return -log p of errors with scale 1, and its derivative."""
        nu = self.degrees
        if nu is None:
            return 0.5 * np.square(r) + 0.5 * math.log(2.0 * math.pi), r
        beta = math.lgamma(0.5 * nu) - math.lgamma(0.5 * (nu + 1.0))
        constant = beta + 0.5 * math.log(math.pi * nu)
        value = 0.5 * (nu + 1.0) * np.log1p(np.square(r) / nu) + constant
        return value, (nu + 1.0) * r / (nu + np.square(r))


def read_family(given: object, degrees: Any = None, link: Any = None) -> ErrorFamily:
    """Return a family of errors by its name, with the settings that :func:`observed` takes."""
    family, settings = read_name(given, {} if degrees is None else {"degrees": degrees})
    degrees, names = settings.get("degrees"), ("gaussian", "student", "lognormal", "poisson")
    if family not in names:
        near = suggest(given, names) or "; for another, write an energy"
        raise ConfigurationError(
            f"family of errors must be one of {', '.join(names)}, got {given!r}{near}"
        )
    for what, value, owner in (("degrees are", degrees, "student"), ("link is", link, "poisson")):
        if value is not None and family != owner:
            raise ConfigurationError(f"{what} of the family {owner!r}, not of {family!r}")
    if family == "student":
        nu = 4.0 if degrees is None else degrees
        if not is_number(nu) or not 0.0 < nu < np.inf:
            raise ConfigurationError(f"degrees must be a positive, finite number, got {degrees!r}")
        return ErrorFamily("student", degrees=float(nu))
    if link not in (None, "identity", "log"):
        raise ConfigurationError(f"link must be 'identity' or 'log', got {link!r}")
    return ErrorFamily(family, link=(link or "identity") if family == "poisson" else None)


@attrs.frozen(kw_only=True, eq=False)
class Block:
    """Data (m,) that follow one another in the outputs, with errors of one family.

    ``scale (m,)`` are known scales. None where they are parameters: ``columns (m,)`` are the places
    of these in a position.
    """

    data: FloatArray
    family: ErrorFamily
    scale: FloatArray | None = None
    columns: IntArray | None = None

    def scales(self, positions: FloatArray) -> FloatArray:
        """Return each datum's scale, shape (n, m) or (1, m)."""
        return positions[:, self.columns] if self.scale is None else self.scale[None]

    def gather(self, by_scale: FloatArray, found: FloatArray) -> None:
        """Add what belongs to each scale, shape (n, m), to its place in ``found (n, dim)``."""
        if self.columns is not None:
            np.add.at(found.T, self.columns, by_scale.T)


@attrs.frozen(kw_only=True, eq=False)
class ObservedEnergy:
    """Minus the log likelihood of blocks of data, in the order of outputs, less the log prior.

    The curvatures are the Fisher information of outputs, and that of scales beside the prior's
    metric. ``prior`` is None for a flat one.
    """

    blocks: tuple[Block, ...]
    prior: Priors = attrs.field(default=None, converter=as_parts)

    @property
    def data(self) -> FloatArray:
        """The data of all blocks, shape (m,)."""
        return np.concatenate([block.data for block in self.blocks])

    @property
    def observed_data(self) -> dict[str, FloatArray]:
        """The data, beside the outputs."""
        return {"outputs": self.data}

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What of the prior may lack its constant."""
        return self.prior.unnormalized

    @property
    def capabilities(self) -> Capabilities:
        """``curvatures`` if the prior has a metric, and whether they are constant."""
        if can.METRIC not in self.prior.capabilities:
            return frozenset()
        known = all(each.scale is not None and each.family.is_constant for each in self.blocks)
        constant = known and can.METRIC_DERIVATIVE in self.prior.capabilities
        return frozenset({CURVATURES, CONSTANT_CURVATURES} if constant else {CURVATURES})

    def check(self, n_outputs: int) -> None:
        """Raise ShapeError unless there is one output for each datum."""
        n_data = sum(len(block.data) for block in self.blocks)
        if n_outputs != n_data:
            raise ShapeError(
                f"the forward map gives {n_outputs} outputs, but data holds {n_data}; they "
                "must correspond"
            )

    def draw_data(
        self, rng: np.random.Generator, outputs: FloatArray, positions: FloatArray
    ) -> FloatArray:
        """Return data with their errors, shape (n, m), for outputs of that shape."""
        parts = self._each(outputs, positions)
        with np.errstate(all="ignore"):
            drawn = [block.family.draw(rng, own, scales) for block, _, own, scales in parts]
        return np.concatenate(drawn, axis=1)

    def with_data(self, data: FloatArray) -> ObservedEnergy:
        """Return the energy of other data (m,), with the same errors and prior.

        Raises
        ------
        ShapeError
            If they are not as many.
        ConfigurationError
            If they are none of their family's.
        """
        ends = np.cumsum([len(block.data) for block in self.blocks])
        if data.shape != (ends[-1],):
            raise ShapeError(f"data must have shape ({ends[-1]},), got {data.shape}")
        check_finite("data", data)
        blocks = []
        for block, part in zip(self.blocks, np.split(data, ends[:-1]), strict=True):
            block.family.check_data(part)
            blocks.append(attrs.evolve(block, data=part))
        return attrs.evolve(self, blocks=tuple(blocks))

    def draw_scales(
        self, rng: np.random.Generator, outputs: FloatArray, positions: FloatArray
    ) -> None:
        """Put scales that are parameters into positions (n, dim), as outputs (n, m) have them.

        They are draws of what residuals tell by themselves, each group of its own.
        """
        for block, _, own, _ in self._each(outputs, positions):
            if block.columns is not None:
                groups, places = np.unique(block.columns, return_inverse=True)
                for k, column in enumerate(groups):
                    with np.errstate(all="ignore"):
                        squares = block.family.squares(own, block.data)[:, places == k]
                        chi_squares = (
                            rng.chisquare(squares.shape[1], len(squares)) / squares.shape[1]
                        )
                        positions[:, column] = np.sqrt(squares.mean(axis=1) / chi_squares)

    def pointwise(self, outputs: FloatArray, positions: FloatArray) -> Pointwise:
        """Return the log likelihood of each datum, shape (n, m), and any log prior, shape (n,)."""
        terms = []
        for block, _, own, scales in self._each(outputs, positions):
            with np.errstate(all="ignore"):
                terms.append(-block.family.value_and_slopes(own, block.data, scales)[0])
        prior = {"prior": -self.prior.value_and_gradient(positions)[0]} if self.prior.parts else {}
        return {"outputs": np.concatenate(terms, axis=1)}, prior

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,); ``inf`` where an output or a scale is none of its family's."""
        return self.value_and_gradients(outputs, positions)[0]

    def value_and_gradients(self, outputs: FloatArray, positions: FloatArray) -> Three:
        """Return U (n,), its gradient in the outputs (n, m), and in the positions (n, dim)."""
        value, by_positions = self.prior.value_and_gradient(positions)
        by_outputs = np.empty_like(outputs)
        for block, where, own, scales in self._each(outputs, positions):
            with np.errstate(all="ignore"):
                found = block.family.value_and_slopes(own, block.data, scales)
                value, by_outputs[:, where] = value + found[0].sum(axis=1), found[1]
                block.gather(found[2], by_positions)
        return value, by_outputs, by_positions

    def curvatures(self, outputs: FloatArray, positions: FloatArray) -> Pair:
        """Return C, shape (n, m), and R, shape (n, dim, dim)."""
        by_outputs, of_scales = np.empty_like(outputs), np.zeros_like(positions)
        for block, where, own, scales in self._each(outputs, positions):
            with np.errstate(all="ignore"):
                by_outputs[:, where], found = block.family.information(own, scales)
                block.gather(found, of_scales)
        return by_outputs, plus_diagonal(self.prior.metric(positions), of_scales)

    def _each(
        self, outputs: FloatArray, positions: FloatArray
    ) -> Iterator[tuple[Block, slice, FloatArray, FloatArray]]:
        """Yield each block with the place of its outputs, these, and their scales."""
        self.check(outputs.shape[1])
        first = 0
        for block in self.blocks:
            where = slice(first, first + len(block.data))
            yield block, where, outputs[:, where], block.scales(positions)
            first = where.stop


@attrs.frozen(eq=False)
class JointEnergy:
    """The sum of energies of the same outputs and positions, as of several data sets."""

    parts: tuple[ObservedEnergy, ...]

    @property
    def capabilities(self) -> Capabilities:
        """What all parts offer."""
        return frozenset.intersection(*(part.capabilities for part in self.parts))

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,)."""
        return self.value_and_gradients(outputs, positions)[0]

    def value_and_gradients(self, outputs: FloatArray, positions: FloatArray) -> Three:
        """Return U (n,), its gradient in the outputs (n, m), and in the positions (n, dim)."""
        found = (part.value_and_gradients(outputs, positions) for part in self.parts)
        value, by_outputs, by_positions = (sum(each) for each in zip(*found, strict=True))
        return value, by_outputs, by_positions

    def curvatures(self, outputs: FloatArray, positions: FloatArray) -> Pair:
        """Return C, shape (n, m), and R, shape (n, dim, dim)."""
        found = (part.curvatures(outputs, positions) for part in self.parts)
        by_outputs, by_positions = (sum(each) for each in zip(*found, strict=True))
        return by_outputs, by_positions


def gaussian_energy(
    data: npt.ArrayLike, noise_sd: npt.ArrayLike, prior: Prior | None = None
) -> ObservedEnergy:
    """Return the energy of data (m,) with normal errors of known standard deviations."""
    array = frozen_numbers("data", data)
    scale = np.broadcast_to(np.asarray(noise_sd, dtype=np.float64), array.shape)
    block = Block(data=array, family=ErrorFamily("gaussian"), scale=scale)
    return ObservedEnergy(blocks=(block,), prior=prior)


KIND = "errors"
"""Says in a file that predictions are outputs with errors."""


def write_errors(energy: Any) -> dict[str, Any] | None:
    """Return data and their errors as plain data, without prior; None for an energy of a user's."""
    if not isinstance(energy, ObservedEnergy):
        return None
    blocks = [attrs.asdict(block, value_serializer=_plain) for block in energy.blocks]
    return {"kind": KIND, "blocks": blocks}


def _plain(_: Any, __: Any, value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def read_errors(plain: Mapping[str, Any], dim: int) -> ObservedEnergy:
    """Return what :func:`write_errors` returned, for positions of ``dim`` numbers.

    KeyError, TypeError, ValueError or one of surrokit's errors is raised if it is damaged.
    """
    blocks = []
    for each in plain["blocks"]:
        data = np.array(each["data"], dtype=np.float64)
        scale, columns = each["scale"], each["columns"]
        if (scale is None) == (columns is None):
            raise ValueError("errors have one scale each, known or a parameter")
        if scale is None:
            columns = np.array(columns, dtype=np.int64)
            if ((columns < 0) | (columns >= dim)).any():
                raise ValueError("errors are of parameters that there are not")
        else:
            scale = np.array(scale, dtype=np.float64)
        if data.ndim != 1 or np.shape(columns if scale is None else scale) != data.shape:
            raise ValueError("data and their errors do not fit one another")
        family = read_family(*(each["family"][name] for name in ("name", "degrees", "link")))
        blocks.append(Block(data=data, family=family, scale=scale, columns=columns))
    return ObservedEnergy(blocks=tuple(blocks))
