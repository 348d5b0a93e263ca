"""Targets of models written down in Stan."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from surrokit.arguments import is_whole
from surrokit.coordinates.models import ModelMap
from surrokit.errors import ConfigurationError
from surrokit.targets.forward import ModelledPotential
from surrokit_stan.density import StanPotential
from surrokit_stan.model import REQUIRED, StanModel, Turns, load_bridgestan
from surrokit_stan.reported import line_of, report, unconstrain

_MOST = 2**32  # seeds have as many values


def from_stan(
    model: StanModel | str | os.PathLike[str],
    data: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    propto: bool = False,
    seed: int = 0,
) -> ModelledPotential:
    """Make a target of a model written down in Stan.

    Chains move in Stan's unconstrained space. Draws come back by the model's names, with
    constrained values; transformed parameters and generated quantities are among them.

    Parameters
    ----------
    model
        A ``bridgestan.StanModel``, with its data; any object with the methods of
        :class:`surrokit_stan.model.StanModel`; or the path of a file ``.stan``, or of a compiled
        model, for BridgeStan.
    data
        The data, where a path is given: a dictionary, a text in JSON, or a file of it.
    propto
        Whether terms without parameters are left out of the log density. Without them the
        integral of the density is no evidence.
    seed
        Of random numbers in generated quantities, at least 0.

    Returns
    -------
    ModelledPotential
        With gradients, and the second derivatives that the model offers.

    Raises
    ------
    MissingDependencyError
        If a path is given, and BridgeStan is not installed.
    ConfigurationError
        If it is no such model, it has no parameters, or it cannot be loaded.
    """
    if not is_whole(seed, 0) or seed >= _MOST:
        raise ConfigurationError(f"seed must be a whole number below {_MOST}, got {seed!r}")
    given = _loaded(model, data)
    turns = Turns(given)
    dim = int(given.param_unc_num())
    if dim == 0:
        raise ConfigurationError("the model has no parameter, so there is nothing to draw")
    constrained, reported = report(turns, seed)
    of = ModelMap(
        reported=reported,
        own=line_of(turns),
        constrain=constrained,
        unconstrain=unconstrain(turns),
    )
    return ModelledPotential(StanPotential.of(turns, dim, propto=propto), of)


def _loaded(model: Any, data: Any) -> StanModel:
    if isinstance(model, str | os.PathLike):
        try:
            loaded: StanModel = load_bridgestan().StanModel(model, data)
        except (OSError, RuntimeError, ValueError) as error:
            raise ConfigurationError(
                f"BridgeStan cannot load {os.fspath(model)}: {type(error).__name__}: {error}"
            ) from error
        return loaded
    lacking = [name for name in REQUIRED if not callable(getattr(model, name, None))]
    if lacking:
        raise ConfigurationError(
            "model must be a bridgestan.StanModel, or the path of one, got "
            f"{type(model).__name__}, which lacks {', '.join(lacking)}; write "
            "bridgestan.StanModel('model.stan', data)"
        )
    if data is not None:
        raise ConfigurationError("the model has its data already; leave data out, or give a path")
    given: StanModel = model
    return given
