"""What a study says of a target, all of which a file can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import numbers
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import Potential
from surrokit.studies.told import Nearest, Told
from surrokit.targets.forward import forward_potential
from surrokit.targets.functions import potential
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Description:
    """A target without its model.

    Parameters
    ----------
    parameters
        Names, shapes and bounds.
    plausible
        Name to a range in which it is likely to be found; None without.
    gradients
        Whether a log density comes with its gradient.
    data, noise_sd : ndarray of shape (m,), optional
        What was observed of a model's outputs, and with what error; None where log densities are
        told.
    prior
        Normal prior of the parameters of such a model; None for a flat one.
    """

    parameters: Parameters
    plausible: Mapping[str, Any] | None = None
    gradients: bool = False
    data: FloatArray | None = None
    noise_sd: FloatArray | None = None
    prior: GaussianPrior | None = None

    def __attrs_post_init__(self) -> None:
        beside = [name for name, spec in self.parameters.specs.items() if spec.prior is not None]
        if beside:
            raise ConfigurationError(
                f"the file of a study holds no prior of {beside[0]!r}; leave it out, and add it to "
                "the log density that is told"
            )
        if self.data is not None and self.gradients:
            raise ConfigurationError(
                "outputs are learnt without their derivatives in a study, but data and gradients "
                "are both given; leave gradients out"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """What is told of a position."""
        if self.data is not None:
            return ("outputs",)
        return ("log_density", "gradients") if self.gradients else ("log_density",)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name of what is told to its shape at one position."""
        sizes = {"log_density": (), "gradients": (self.parameters.dim,)}
        if self.data is not None:
            sizes["outputs"] = self.data.shape
        return {name: sizes[name] for name in self.names}

    def check(self, results: Mapping[str, Any], n: int) -> dict[str, FloatArray]:
        """Return what is told of n positions as arrays.

        Raises
        ------
        ConfigurationError
            If something is missing, or was not asked for.
        ShapeError
            If an array has another shape.
        """
        given = {name: array for name, array in results.items() if array is not None}
        if given.keys() != set(self.names):
            raise ConfigurationError(
                f"this study is told {' and '.join(self.names)}, got "
                f"{' and '.join(given) or 'nothing'}"
            )
        found = {}
        for name, shape in self.shapes.items():
            array = numbers(name, given[name])
            if array.shape != (n, *shape):
                raise ShapeError(
                    f"{name} of {n} positions must have shape {(n, *shape)}, got "
                    f"{array.shape}; pass one row for each position"
                )
            found[name] = array
        return found

    def target(self, told: Told | Nearest) -> Potential:
        """Return the target, whose model is what was told."""
        named: dict[str, Any] = {
            "parameters": dict(self.parameters.specs),
            "plausible": self.plausible,
            "batched": True,
        }
        if self.data is not None:
            return forward_potential(
                lambda at: told(at)[0],
                data=self.data,
                noise_sd=self.noise_sd,
                prior=self.prior,
                **named,
            )
        if self.gradients:
            return potential(value_and_gradient=lambda at: tuple(-x for x in told(at)), **named)
        return potential(log_density=lambda at: told(at)[0], **named)

    # --- as plain data ---

    def to_dict(self) -> dict[str, Any]:
        """Return what a ledger does not say by itself as plain data, but for arrays."""
        return {
            "plausible": None
            if self.plausible is None
            else {name: np.asarray(part).tolist() for name, part in self.plausible.items()},
            "gradients": self.gradients,
            "has_data": self.data is not None,
            "has_prior": self.prior is not None,
        }

    def arrays(self) -> dict[str, FloatArray]:
        """Return the arrays by name."""
        found = {"data": self.data, "noise_sd": self.noise_sd}
        if self.prior is not None:
            found |= {"prior_mean": self.prior.mean, "prior_sd": self.prior.sd}
        return {name: np.asarray(array) for name, array in found.items() if array is not None}

    @classmethod
    def of(
        cls, parameters: Parameters, data: Mapping[str, Any], arrays: Mapping[str, FloatArray]
    ) -> Description:
        """Return what :meth:`to_dict` and :meth:`arrays` made, with the ledger's parameters."""
        prior = None
        if data["has_prior"]:
            prior = GaussianPrior(mean=arrays["prior_mean"], sd=arrays["prior_sd"])
        return cls(
            parameters=parameters,
            plausible=data["plausible"],
            gradients=bool(data["gradients"]),
            data=arrays["data"] if data["has_data"] else None,
            noise_sd=arrays["noise_sd"] if data["has_data"] else None,
            prior=prior,
        )


def observed(data: object, noise_sd: object, prior: object) -> dict[str, Any]:
    """Return the fields of a description that say what was observed of outputs.

    Parameters
    ----------
    data, noise_sd, prior
        As for :func:`surrokit.forward_potential`; None where log densities are told.

    Raises
    ------
    ConfigurationError
        If one is missing, or the prior is no normal one.
    """
    if (data is None) != (noise_sd is None) or (prior is not None and data is None):
        raise ConfigurationError(
            "data and noise_sd belong together, and a prior to them; where log densities are told, "
            "they hold the prior already"
        )
    if data is None:
        return {}
    if prior is not None and not isinstance(prior, GaussianPrior):
        raise ConfigurationError(
            f"the prior of a study must be surrokit.gaussian_prior(...) or None, got {prior!r}; "
            "tell log densities instead, with any prior in them"
        )
    observed: Any = data
    errors: Any = noise_sd
    return {
        "data": numbers("data", observed),
        "noise_sd": numbers("noise_sd", errors),
        "prior": prior,
    }
