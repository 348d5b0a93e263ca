"""What a study says of a target, what was told of it, and what its file waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import numbers
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.ledger.reader import Ledger
from surrokit.ledger.store import reading
from surrokit.potentials import Potential
from surrokit.targets.forward import forward_potential
from surrokit.targets.functions import potential
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import FloatArray

FACT, ARRAYS, PENDING = "study", "study/", "pending"
"""The fact of a study, the beginning of the names of its arrays, and of these the positions that it
waits for."""


class Pending(KeyboardInterrupt):
    """Ends a run at positions of which nobody has told anything yet."""


class Told:
    """A function of rows that knows results by :func:`key_of` positions, and else ends the run.

    Its ``pending`` (n, dim) are positions where a result is wanted; None as long as none is.
    """

    def __init__(self, results: Mapping[bytes, tuple[FloatArray, ...]]) -> None:
        self.pending: FloatArray | None = None
        self._results = results

    def __call__(self, positions: FloatArray) -> tuple[FloatArray, ...]:
        """Return the results at positions (n, dim), each stacked; Pending if one is unknown."""
        keys = [key_of(row) for row in positions]
        unknown = [key not in self._results for key in keys]
        if any(unknown):
            self.pending = np.array(positions[unknown])
            raise Pending
        rows = [self._results[key] for key in keys]
        return tuple(np.stack(each) for each in zip(*rows, strict=True))


def key_of(position: FloatArray) -> bytes:
    """Return by what a position (dim,) is known: all of its bits, and no sign of zero."""
    return np.ascontiguousarray(position + 0.0, dtype=np.float64).tobytes()


@attrs.frozen(kw_only=True, eq=False)
class Description:
    """A target without its model.

    Raises
    ------
    ConfigurationError
        If something is missing, or no file can hold it.
    """

    parameters: Parameters
    plausible: Mapping[str, Any] | None = None  # name to a range in which it is likely to be
    gradients: bool = False  # whether a log density comes with its gradient
    data: FloatArray | None = None  # observed outputs (m,); None where log densities are told
    noise_sd: FloatArray | None = None  # their errors (m,)
    prior: GaussianPrior | None = None  # of the parameters of such a model; None for a flat one

    def __attrs_post_init__(self) -> None:
        beside = [name for name, spec in self.parameters.specs.items() if spec.prior is not None]
        if beside:
            raise ConfigurationError(
                f"the file of a study holds no prior of {beside[0]!r}; leave it out, and add it to "
                "the log density that is told"
            )
        has_data, has_prior = self.data is not None, self.prior is not None
        if has_data != (self.noise_sd is not None) or (has_prior and not has_data):
            raise ConfigurationError(
                "data and noise_sd belong together, and a prior to them; where log densities are "
                "told, they hold the prior already"
            )
        if has_data and self.gradients:
            raise ConfigurationError(
                "outputs are learnt without their derivatives in a study, but data and gradients "
                "are both given; leave gradients out"
            )
        if has_prior and not isinstance(self.prior, GaussianPrior):
            raise ConfigurationError(
                "the prior of a study must be surrokit.gaussian_prior(...) or None, got "
                f"{self.prior!r}; tell log densities instead, with any prior in them"
            )

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name of what is told of a position to its shape."""
        if self.data is not None:
            return {"outputs": self.data.shape}
        gradients = {"gradients": (self.parameters.dim,)} if self.gradients else {}
        return {"log_density": (), **gradients}

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
        if given.keys() != self.shapes.keys():
            raise ConfigurationError(
                f"this study is told {' and '.join(self.shapes)}, got "
                f"{' and '.join(given) or 'nothing'}"
            )
        found = {name: numbers(name, given[name]) for name in self.shapes}
        for name, shape in self.shapes.items():
            if found[name].shape != (n, *shape):
                raise ShapeError(
                    f"{name} of {n} positions must have shape {(n, *shape)}, got "
                    f"{found[name].shape}; pass one row for each position"
                )
        return found

    def target(self, told: Told) -> Potential:
        """Return the target, whose model is what was told."""
        named: dict[str, Any] = {
            "parameters": dict(self.parameters.specs),
            "plausible": self.plausible,
            "batched": True,
        }
        if self.data is not None:
            given: dict[str, Any] = {"noise_sd": self.noise_sd, "prior": self.prior}
            return forward_potential(lambda at: told(at)[0], data=self.data, **given, **named)
        if self.gradients:
            return potential(value_and_gradient=lambda at: tuple(-x for x in told(at)), **named)
        return potential(log_density=lambda at: told(at)[0], **named)

    def to_dict(self) -> dict[str, Any]:
        """Return what a ledger does not say by itself as plain data, but for arrays."""
        plausible = self.plausible
        return {
            "plausible": plausible
            and {n: np.asarray(part).tolist() for n, part in plausible.items()},
            "gradients": self.gradients,
            "has_data": self.data is not None,
            "has_prior": self.prior is not None,
        }

    def arrays(self) -> dict[str, FloatArray]:
        """Return the arrays by name."""
        found: dict[str, Any] = {"data": self.data, "noise_sd": self.noise_sd}
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


def waits_for(ledger: Ledger) -> str | None:
    """Return in words what a study waits for; None for a run that is none, or a study that is done.

    Raises
    ------
    LedgerError
        If the file is damaged.
    """
    with reading(ledger.path):
        held = ledger.facts
        facts, pending = held.get(FACT), held.get(ARRAYS + PENDING)
        if facts is None or pending is None or not len(pending):
            return None
        what = "log densities, with their gradients," if facts["gradients"] else "log densities"
        what = "outputs of the model" if facts["has_data"] else what
        names = ", ".join(ledger.parameters.labels)
        rows = [", ".join(f"{number:.4g}" for number in row) for row in pending[:3].tolist()]
    file, left = ledger.path.name, len(pending) - len(rows)
    at = "; ".join(rows) + (f"; and {left} more" if left else "")
    return (
        f"the study waits for {what} at {len(pending)} positions, ({names}) = {at}. Get them by "
        f"surrokit ask {file}, and pass the results by surrokit tell {file} TABLE"
    )
