"""One model, and the posteriors that are made of what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from surrokit.contracts.forward import Energy
from surrokit.contracts.potential import Potential
from surrokit.coordinates.parameters import Bounds, Parameter, Parameters
from surrokit.errors import ConfigurationError
from surrokit.model.memo import Memo
from surrokit.model.model import change_model
from surrokit.targets.forward import Adjoint, Map, forward_potential
from surrokit.targets.functions import Function, potential
from surrokit.targets.gaussian import Prior
from surrokit.targets.observed.model import Data
from surrokit.targets.observed.observed import Scale

Declared = Mapping[str, Parameter | Bounds | None]


def model(
    forward: Map | None = None,
    jacobian: Map | None = None,
    hessian: Map | None = None,
    *,
    vjp: Adjoint | Mapping[str, Adjoint] | None = None,
    log_likelihood: Function | None = None,
    gradient: Any = None,
    dim: int | None = None,
    parameters: Declared | None = None,
    plausible: Mapping[str, Any] | None = None,
    batched: bool = False,
) -> SharedModel:
    """Declare a model whose evaluations are kept, whatever is asked of it.

    Parameters
    ----------
    forward, jacobian, hessian, vjp
        An expensive map and its derivatives, as for :func:`surrokit.forward_potential`.
    log_likelihood
        Instead of a map: an expensive log likelihood, up to a constant.
    gradient
        Gradient of the log likelihood, shape (dim,), or ``"differences"``.
    dim, parameters, plausible, batched
        As for :func:`surrokit.potential`.

    Returns
    -------
    SharedModel
        Makes posteriors.

    Raises
    ------
    ConfigurationError
        If neither or both of ``forward`` and ``log_likelihood`` are given.
    """
    if (forward is None) == (log_likelihood is None):
        raise ConfigurationError(
            "a model is either a forward map or a log likelihood; give exactly one of the two"
        )
    of_map = {"forward": forward, "jacobian": jacobian, "hessian": hessian, "vjp": vjp}
    of_density = {"log_density": log_likelihood, "gradient": gradient}
    stray = of_density if log_likelihood is None else of_map
    given = [name for name, each in stray.items() if each is not None]
    if given:
        kind = "forward map" if log_likelihood is None else "log likelihood"
        raise ConfigurationError(f"{given[0]} is no part of a {kind}; leave it out")
    return SharedModel(
        functions=of_map if log_likelihood is None else of_density,
        declared={"dim": dim, "parameters": parameters, "plausible": plausible},
        batched=batched,
    )


@attrs.frozen(kw_only=True, eq=False)
class SharedModel:
    """A user's model, which evaluates each position once for all of its posteriors.

    Evaluations are kept in memory as long as the model is. Gradients by an adjoint depend on the
    data, and are not kept.

    Parameters
    ----------
    functions
        The user's functions by name.
    declared
        Parameters of the model, their number, and plausible ranges.
    batched
        Whether the functions take rows.
    memo
        What was evaluated so far.
    """

    functions: Mapping[str, Any]
    declared: Mapping[str, Any]
    batched: bool
    memo: Memo = attrs.field(factory=lambda: Memo(grows=True), repr=False)

    def __len__(self) -> int:
        """Return how many results are kept."""
        return len(self.memo)

    def posterior(
        self,
        *,
        data: Data | None = None,
        noise_sd: Scale | None = None,
        prior: Prior | None = None,
        energy: Energy | None = None,
        parameters: Declared | None = None,
        plausible: Mapping[str, Any] | None = None,
    ) -> Potential:
        """Return a posterior of the model.

        What another posterior has evaluated is not evaluated again, and a surrogate learns from it.

        Parameters
        ----------
        data, noise_sd, prior, energy
            As for :func:`surrokit.forward_potential`; for a forward map only.
        parameters
            The model's parameters with other bounds or priors; None for those of the model.
        plausible
            Other plausible ranges; None for those of the model.

        Raises
        ------
        ConfigurationError
            If parameters have other names or shapes than those of the model, or something is given
            that a log likelihood has no use for.
        """
        declared: dict[str, Any] = {**self.declared, "batched": self.batched}
        if parameters is not None:
            declared |= {"parameters": self._checked(parameters), "dim": None}
        if plausible is not None:
            declared |= {"plausible": plausible}
        observed: dict[str, Any] = {
            "data": data,
            "noise_sd": noise_sd,
            "prior": prior,
            "energy": energy,
        }
        if "forward" in self.functions:
            target = forward_potential(**self.functions, **observed, **declared)
        else:
            given = [name for name, each in observed.items() if each is not None]
            if given:
                raise ConfigurationError(
                    f"{given[0]} is given, but the model is a log likelihood; put priors beside "
                    "the parameters, as in sk.real(prior=...)"
                )
            target = potential(**self.functions, **declared)
        return change_model(target, lambda inner: attrs.evolve(inner, memo=self.memo, shared=True))

    def _checked(self, parameters: Declared) -> Declared:
        own = self.declared["parameters"]
        if own is None or _shapes(parameters) != _shapes(own):
            raise ConfigurationError(
                "parameters of a posterior must have the names and shapes of the model's own, in "
                f"their order, got {', '.join(parameters)}; declare the model's parameters by name"
            )
        return parameters


def _shapes(parameters: Declared) -> list[tuple[str, tuple[int, ...]]]:
    return [(name, spec.shape) for name, spec in Parameters.declare(parameters).specs.items()]
