"""Targets of models behind servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit.potentials import Energy, Potential
from surrokit.targets.gaussian import Prior
from surrokit.targets.noise import Data, Scale
from surrokit.types import FloatArray
from surrokit_umbridge.model import Model, connect


def potential(
    url: str | Model,
    name: str | None = None,
    *,
    config: Mapping[str, Any] | None = None,
    jacobian: bool | None = None,
    hessian: bool = False,
    data: Data | None = None,
    noise_sd: Scale | None = None,
    prior: Prior | None = None,
    energy: Energy | None = None,
    parameters: Mapping[str, sk.Parameter | tuple[float | None, float | None] | None] | None = None,
    plausible: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    wait: float = 60.0,
) -> Potential:
    """Make a target of a model behind a server that speaks UM-Bridge.

    Its inputs, one after another, are the position, and its outputs are one vector. The model is a
    forward map if there are ``data`` or an ``energy``; else its one output is the log density.
    The server's Gradient is the gradient of a log density, and the adjoint of a map.

    Parameters
    ----------
    url
        Where the server is, or a :class:`Model` from :func:`connect`.
    name, config, timeout, wait
        As for :func:`connect`, where seconds are positive; they are left out where a model is
        given.
    jacobian
        Whether a map gives its Jacobian: as many requests as inputs, or as outputs where these are
        fewer. None for only where there is ApplyJacobian and no Gradient.
    hessian
        Whether a map gives its second derivatives, by ApplyHessian: as many requests as inputs
        times outputs. It needs the Jacobian.
    data, noise_sd, prior, energy
        As for :func:`surrokit.forward_potential`.
    parameters, plausible
        As for :func:`surrokit.potential`.

    Returns
    -------
    Potential
        As :func:`surrokit.potential` or :func:`surrokit.forward_potential` return.

    Raises
    ------
    ConfigurationError
        If there is no such server or model, it does not support what is asked of it, or settings
        contradict one another.
    """
    model = _model(url, name, {"config": config, "timeout": timeout, "wait": wait})
    is_map = any(given is not None for given in (data, noise_sd, prior, energy))
    _require(model, "Evaluate", "a target is evaluated")
    shared: dict[str, Any] = {"parameters": parameters, "plausible": plausible, "dim": model.dim}
    if not is_map:
        _check_density(model, jacobian=jacobian, hessian=hessian)
        density = Density(model)
        slope = density.gradient if "Gradient" in model.supported else None
        return sk.potential(log_density=density, gradient=slope, **shared)
    if jacobian is None:
        jacobian = "ApplyJacobian" in model.supported and "Gradient" not in model.supported
    if jacobian and "Gradient" not in model.supported:
        _require(model, "ApplyJacobian", "jacobian=True is given")
    if hessian:
        _require(model, "ApplyHessian", "hessian=True is given")
    return sk.forward_potential(
        model.evaluate,
        model.jacobian if jacobian else None,
        model.hessian if hessian else None,
        vjp=model.gradient if "Gradient" in model.supported else None,
        data=data,
        noise_sd=noise_sd,
        prior=prior,
        energy=energy,
        **shared,
    )


@attrs.frozen
class Density:
    """A log density that is the one output of a model.

    Parameters
    ----------
    model
        The model.
    """

    model: Model

    def __call__(self, position: FloatArray) -> FloatArray:
        """Return the log density, shape (), at a position of shape (dim,)."""
        return self.model.evaluate(position).reshape(())

    def gradient(self, position: FloatArray) -> FloatArray:
        """Return its gradient, shape (dim,)."""
        return self.model.gradient(position, np.ones(1))


def _model(url: str | Model, name: str | None, settings: dict[str, Any]) -> Model:
    if not isinstance(url, Model):
        return connect(url, name, **settings)
    if name is not None or settings != {"config": None, "timeout": None, "wait": 60.0}:
        raise ConfigurationError(
            "name, config, timeout and wait belong to a model, and one is given; pass them to "
            "surrokit_umbridge.connect(url, ...), or give the url here"
        )
    return url


def _require(model: Model, what: str, why: str) -> None:
    if what not in model.supported:
        raise ConfigurationError(
            f"{why}, but model {model.name!r} behind {model.transport.url} does not support "
            f"{what}; it supports {', '.join(sorted(model.supported)) or 'nothing'}"
        )


def _check_density(model: Model, *, jacobian: bool | None, hessian: bool) -> None:
    if model.n_outputs != 1:
        raise ConfigurationError(
            f"model {model.name!r} behind {model.transport.url} has {model.n_outputs} outputs, so "
            "it is no log density; pass data and noise_sd, or an energy, for a forward map"
        )
    if jacobian or hessian:
        raise ConfigurationError(
            "jacobian and hessian are of forward maps, and without data or an energy the model is "
            "a log density; leave them out, or pass data and noise_sd"
        )
