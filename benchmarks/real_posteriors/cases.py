"""The fourteen posteriors: their parameters, and how draws of them go by the references' names.

Nothing here needs JAX. Coordinates are the program's own, but for simplexes and ordered vectors of
two, which have natural ones: a probability in (0, 1), and a positive difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs
import numpy as np

import surrokit as sk
from surrokit.coordinates.parameters import Bounds, Parameter, Parameters
from surrokit.types import FloatArray

Named: TypeAlias = dict[str, FloatArray]
"""Draws, shape (chains, draws), or single numbers, by the reference's names."""

Reference: TypeAlias = Mapping[str, Mapping[str, float]]
"""Mean and sd, and perhaps quantiles, by name."""

POSITIVE = (0.0, None)


def name_elements(specs: Mapping[str, Parameter]) -> list[str]:
    """Return the names of all numbers as Stan writes them: x, or x[1], x[2], ..."""
    return [
        label
        for name, spec in specs.items()
        for label in ([f"{name}[{i + 1}]" for i in range(spec.size)] if spec.shape else [name])
    ]


def keep_names(case: Case, draws: FloatArray) -> Named:
    """Return draws whose coordinates are the reference's."""
    return {name: draws[..., i] for i, name in enumerate(name_elements(case.declared.specs))}


def name_schools(case: Case, draws: FloatArray) -> Named:
    """Return the effects of schools from standardised ones, their mean and their sd."""
    mu, tau = draws[..., -2], draws[..., -1]
    schools = {f"theta[{i + 1}]": mu + tau * draws[..., i] for i in range(case.dim - 2)}
    return {**schools, "mu": mu, "tau": tau}


def name_states(case: Case, draws: FloatArray) -> Named:
    """Return both simplexes from their first elements, and the means from their difference."""
    first, second, mean, gap = np.moveaxis(draws, -1, 0)
    return {
        "theta1[1]": first,
        "theta1[2]": 1.0 - first,
        "theta2[1]": second,
        "theta2[2]": 1.0 - second,
        "mu[1]": mean,
        "mu[2]": mean + gap,
    }


def typical_schools(reference: Reference) -> tuple[list[float], list[float]]:
    """Return standardised effects as their prior has them, and the rest from the reference."""
    n = sum(name.startswith("theta") for name in reference)
    rest = [reference[name] for name in ("mu", "tau")]
    return [0.0] * n + [x["mean"] for x in rest], [1.0] * n + [x["sd"] for x in rest]


def typical_states(reference: Reference) -> tuple[list[float], list[float]]:
    """Return the difference of the means from both, as if these were independent."""
    names = ("theta1[1]", "theta2[1]", "mu[1]", "mu[2]")
    means, sds = ([reference[name][what] for name in names] for what in ("mean", "sd"))
    means[3] -= means[2]
    sds[3] = float(np.hypot(sds[2], sds[3]))
    return means, sds


def typical_numbers(reference: Reference) -> tuple[list[float], list[float]]:
    """Return the reference's own means and sds."""
    return [x["mean"] for x in reference.values()], [x["sd"] for x in reference.values()]


@attrs.frozen(kw_only=True)
class Case:
    """One posterior."""

    name: str  # of its folder
    density: str  # function of ``in_jax`` that makes its log density
    # names and bounds, as :func:`surrokit.potential` takes them, in the order of positions
    parameters: Mapping[str, Parameter | Bounds | None]
    # function of ``by_hand`` that makes U with a gradient written by hand, if there is one
    by_hand: str | None = None
    # name of a registered target that is the same posterior, if surrokit has one
    registered: str | None = None
    # takes draws of any shape (..., dim) to the reference's names
    named: Callable[[Case, FloatArray], Named] = keep_names
    # takes the reference to centres and scales of the coordinates
    typical: Callable[[Reference], tuple[list[float], list[float]]] = typical_numbers

    @property
    def declared(self) -> Parameters:
        """The parameters, read."""
        return Parameters.declare(self.parameters)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.declared.dim

    def name_draws(self, draws: FloatArray) -> Named:
        """Return draws of shape (..., dim) by the reference's names, each of shape (...)."""
        return self.named(self, draws)


def _regression(name: str, model: str, coefficients: int, **settings: Any) -> Case:
    parameters = {"beta": sk.real(coefficients), "sigma": POSITIVE}
    return Case(name=name, density=model, parameters=parameters, **settings)


_SERIES = {"mu": None, "phi": None, "theta": None, "sigma": POSITIVE}
_STATES = {"theta1": (0.0, 1.0), "theta2": (0.0, 1.0), "mu": POSITIVE, "gap": POSITIVE}
_LYNX_HARE = {name: sk.positive(n) for name, n in (("theta", 4), ("z_init", 2))}


def _latent_process() -> dict[str, Parameter | Bounds | None]:
    found: dict[str, Parameter | Bounds | None] = {}
    for part, size in (("", 40), ("_sigma", 20)):
        found[f"Intercept{part}"] = None
        found[f"sdgp{part}_1"] = POSITIVE
        found[f"lscale{part}_1"] = POSITIVE
        found[f"zgp{part}_1"] = sk.real(size)
    return found


CASES = {
    case.name: case
    for case in (
        Case(
            name="arK-arK",
            density="autoregression",
            parameters={"alpha": None, "beta": sk.real(5), "sigma": POSITIVE},
            by_hand="autoregression",
        ),
        Case(
            name="arma-arma11",
            density="moving_average",
            parameters=_SERIES,
            by_hand="moving_average",
        ),
        _regression("earnings-earn_height", "earnings", 2),
        _regression("earnings-logearn_height_male", "log_earnings", 3),
        Case(
            name="eight_schools-eight_schools_noncentered",
            density="schools",
            parameters={"theta_trans": sk.real(8), "mu": None, "tau": POSITIVE},
            by_hand="schools",
            named=name_schools,
            typical=typical_schools,
        ),
        Case(
            name="hmm_example-hmm_example",
            density="hidden_states",
            parameters=_STATES,
            by_hand="hidden_states",
            named=name_states,
            typical=typical_states,
        ),
        Case(
            name="hudson_lynx_hare-lotka_volterra",
            density="lotka_volterra",
            parameters={**_LYNX_HARE, "sigma": sk.positive(2)},
            registered="lynx-hare",
        ),
        _regression("kidiq-kidscore_interaction", "interaction", 4, by_hand="interaction"),
        _regression("kidiq_with_mom_work-kidscore_interaction_c2", "centred_interaction", 4),
        _regression("kidiq_with_mom_work-kidscore_mom_work", "mothers_work", 4),
        Case(
            name="kilpisjarvi_mod-kilpisjarvi",
            density="temperatures",
            parameters={"alpha": None, "beta": None, "sigma": POSITIVE},
        ),
        Case(
            name="mcycle_gp-accel_gp",
            density="accelerations",
            parameters=_latent_process(),
        ),
        _regression("mesquite-logmesquite_logvash", "log_mesquite", 6),
        _regression("mesquite-mesquite", "mesquite", 7),
    )
}
"""By name."""
