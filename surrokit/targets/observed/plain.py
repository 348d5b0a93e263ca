"""How data scatter about the outputs of a forward map, as plain data of a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surrokit.targets.gaussian import GaussianEnergy
from surrokit.targets.observed.energy import Block, ObservedEnergy
from surrokit.targets.observed.families import NormalErrors
from surrokit.targets.observed.observed import read_family

KIND = "errors"
"""Says in a file that predictions are outputs with errors."""


def write_errors(energy: Any) -> dict[str, Any] | None:
    """Return data and their errors as plain data; None for an energy of the user's own.

    Parameters
    ----------
    energy
        Of outputs and positions. Its prior is left out, as predictions take none.
    """
    blocks: tuple[Block, ...]
    if isinstance(energy, GaussianEnergy):
        factors = np.broadcast_to(energy.noise_sd, energy.data.shape)
        blocks = (Block(data=energy.data, family=NormalErrors(), factors=factors),)
    elif isinstance(energy, ObservedEnergy):
        blocks = energy.blocks
    else:
        return None
    return {"kind": KIND, "blocks": [_to_plain(block) for block in blocks]}


def read_errors(plain: Mapping[str, Any], dim: int) -> ObservedEnergy:
    """Return data and their errors, without a prior.

    Parameters
    ----------
    plain
        As :func:`write_errors` returned it.
    dim
        Numbers of a position.

    Raises
    ------
    KeyError, TypeError, ValueError, ConfigurationError, ShapeError
        If it is damaged.
    """
    return ObservedEnergy(blocks=tuple(_from_plain(each, dim) for each in plain["blocks"]))


def _to_plain(block: Block) -> dict[str, Any]:
    return {
        "family": block.family.name,
        "degrees": getattr(block.family, "degrees", None),
        "link": getattr(block.family, "link", None),
        "data": block.data.tolist(),
        "factors": block.factors.tolist(),
        "columns": None if block.columns is None else block.columns.tolist(),
    }


def _from_plain(plain: Mapping[str, Any], dim: int) -> Block:
    data, factors = (np.array(plain[name], dtype=np.float64) for name in ("data", "factors"))
    columns = None if plain["columns"] is None else np.array(plain["columns"], dtype=np.int64)
    if data.ndim != 1 or factors.shape != data.shape:
        raise ValueError("data and their errors do not fit one another")
    if columns is not None and (
        columns.shape != data.shape or (columns < 0).any() or (columns >= dim).any()
    ):
        raise ValueError("errors are of parameters that there are not")
    family = read_family(plain["family"], plain["degrees"], plain["link"])
    return Block(data=data, family=family, factors=factors, columns=columns)
