"""One model of several posteriors, and the file of its evaluations."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import is_whole, read_seed
from surrokit.coordinates.parameters import Declared, Distribution, Parameters
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import ConfigurationError, LedgerError
from surrokit.ledger.fingerprint import check_row
from surrokit.ledger.known import event_with, fill
from surrokit.ledger.store import Store
from surrokit.ledger.tape import read_calls, write_events
from surrokit.model.calls import Memo
from surrokit.model.model import change_model, model_of
from surrokit.model.outcome import Results
from surrokit.potentials import Energy, Potential
from surrokit.targets.bounds import parameters_of, transform_of
from surrokit.targets.forward import Adjoint, forward_potential
from surrokit.targets.functions import Function, declare_parameters, potential
from surrokit.targets.gaussian import Prior
from surrokit.targets.noise import Data, Scale
from surrokit.targets.simulated import observed_energy, prior_laws
from surrokit.types import FloatArray


def model(
    forward: Function | None = None,
    jacobian: Function | None = None,
    hessian: Function | None = None,
    *,
    vjp: Adjoint | None = None,
    log_likelihood: Function | None = None,
    gradient: Any = None,
    dim: int | None = None,
    parameters: Declared | None = None,
    plausible: Mapping[str, Any] | None = None,
    batched: bool = False,
    path: str | os.PathLike[str] | None = None,
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
    path
        A file of all evaluations of the model, new or from before; None keeps them in memory alone.
        Any run of any posterior, in this process or a later one, finds in it what was evaluated.

    Returns
    -------
    SharedModel
        Makes posteriors.

    Raises
    ------
    ConfigurationError
        If neither or both of ``forward`` and ``log_likelihood`` are given.
    LedgerError
        If the file cannot be read or written, or is another model's.
    """
    if (forward is None) == (log_likelihood is None):
        raise ConfigurationError(
            "a model is either a forward map or a log likelihood; give exactly one of the two"
        )
    of_map = {"forward": forward, "jacobian": jacobian, "hessian": hessian, "vjp": vjp}
    of_density = {"log_density": log_likelihood, "gradient": gradient}
    unexpected = of_density if log_likelihood is None else of_map
    kind = "forward map" if log_likelihood is None else "log likelihood"
    given = [name for name, each in unexpected.items() if each is not None]
    if given:
        raise ConfigurationError(f"{given[0]} is no part of a {kind}; leave it out")
    memo, store = Memo(grows=True), None
    if path is not None:  # which is known by no bounds and no priors, as these may change
        specs = declare_parameters(dim, parameters).specs
        shapes = [[name, list(shape)] for name, shape in _shapes(specs)]
        store = _fill(memo, Path(path), {"kind": kind, "parameters": shapes})
    return SharedModel(
        functions=of_map if log_likelihood is None else of_density,
        declared={"dim": dim, "parameters": parameters, "plausible": plausible},
        batched=batched,
        memo=memo,
        store=store,
    )


@attrs.frozen(kw_only=True, eq=False)
class SharedModel:
    """A user's model, which evaluates each position once for all of its posteriors.

    Evaluations are kept in memory as long as the model is, and in its file if it has one. Gradients
    by an adjoint depend on the data, and are not kept.
    """

    functions: Mapping[str, Any]
    declared: Mapping[str, Any]
    batched: bool
    memo: Memo = attrs.field(repr=False)
    store: Store | None = attrs.field(default=None, repr=False)
    _compared: list[Path] = attrs.field(factory=list, repr=False, init=False)

    def __len__(self) -> int:
        """Return how many results are kept."""
        return len(self.memo)

    def posterior(
        self,
        *,
        data: Data | None = None,
        noise_sd: Scale | None = None,
        prior: Prior | Mapping[str, Distribution] | None = None,
        energy: Energy | None = None,
        parameters: Declared | None = None,
        plausible: Mapping[str, Any] | None = None,
    ) -> Potential:
        """Return a posterior of the model.

        What another posterior has evaluated is not evaluated again, and a surrogate learns from it.

        Parameters
        ----------
        data, noise_sd, prior, energy
            As for :func:`surrokit.forward_potential`; for a log likelihood only ``prior``, by name.
        parameters
            The model's parameters with other bounds or priors; None for those of the model.
        plausible
            Other plausible ranges; None for those of the model.

        Raises
        ------
        ConfigurationError
            If parameters have other names or shapes than those of the model, or something is given
            that a log likelihood has no use for.
        LedgerError
            If the model returns other values at a position of its file than the file holds.
        """
        declared = self._declared_with(parameters, plausible)
        if "forward" not in self.functions and isinstance(prior, Mapping):
            known = declare_parameters(declared["dim"], declared["parameters"])
            declared |= {"parameters": known.with_priors(prior).specs, "dim": None}
            prior = None
        observed: dict[str, Any] = {"data": data, "noise_sd": noise_sd}
        observed |= {"prior": prior, "energy": energy}
        if "forward" in self.functions:
            target = forward_potential(**self.functions, **observed, **declared)
        else:
            given = [name for name, each in observed.items() if each is not None]
            if given:
                raise ConfigurationError(
                    f"{given[0]} is given, but the model is a log likelihood; give priors by "
                    "name, as in prior={'rate': scipy.stats.gamma(2)}"
                )
            target = potential(**self.functions, **declared)
        if self.store is not None and not self._compared:
            self._compared.append(self.store.path)
            if model_of(target).columns is None:  # else the file has a part of the position alone
                check_row(self.store, target)  # evaluated again, uncounted
        return change_model(target, lambda inner: inner.remembering(self.memo, shared=True))

    def _declared_with(
        self, parameters: Declared | None, plausible: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        declared: dict[str, Any] = {**self.declared, "batched": self.batched}
        if parameters is not None:
            own = self.declared["parameters"]
            if own is None or _shapes(parameters) != _shapes(own):
                raise ConfigurationError(
                    "parameters of a posterior must have the names and shapes of the model's own, "
                    f"in their order, got {', '.join(parameters)}; declare the model's parameters "
                    "by name"
                )
            declared |= {"parameters": parameters, "dim": None}
        if plausible is not None:
            declared |= {"plausible": plausible}
        return declared

    def prior_predictive(
        self, n: int = 100, *, seed: int | np.random.Generator | None = None, **posterior: Any
    ) -> dict[str, FloatArray]:
        """Return draws of the prior, with the outputs there and simulated data.

        Later posteriors learn from the evaluations.

        Parameters
        ----------
        n
            Draws, each of which takes a call.
        seed
            Whole number or generator.
        **posterior
            What :meth:`posterior` takes: its data give the number of outputs, and their errors.

        Returns
        -------
        dict
            Parameters by name, (n, ...); ``outputs`` of the map, (n, m), NaN where it failed; and
            ``data``, (n, m), which are these with errors.

        Raises
        ------
        ConfigurationError
            If n is no whole number of at least 1, or a prior cannot be drawn from.
        CapabilityError
            If the model is no map, or its errors are an energy of the user's.
        TargetError
            If the model fails at all draws.
        """
        if not is_whole(n, 1):
            raise ConfigurationError(f"n must be a whole number of at least 1, got {n!r}")
        target, rng = self.posterior(**posterior), read_seed(seed)
        energy, parameters = observed_energy(target), parameters_of(target)
        positions = np.hstack([law(rng, n) for law in prior_laws(parameters, energy, {})])
        line = transform_of(target).to_unbounded(positions)
        outputs = RecordingPotential(target, keep=False).forward(line)
        data = energy.draw_data(rng, outputs, positions)
        return {**parameters.split(positions), "outputs": outputs, "data": data}


def _shapes(parameters: Declared) -> list[tuple[str, tuple[int, ...]]]:
    return [(name, spec.shape) for name, spec in Parameters.declare(parameters).specs.items()]


def _fill(memo: Memo, path: Path, described: Mapping[str, Any]) -> Store:
    """Fill a memo with what a model's file holds, and write to it what is new; return the file."""
    path = path.absolute()
    whole = {"model": described}
    is_there = path.exists()
    store = Store.open(path, write=True) if is_there else Store.made(path, whole)
    try:
        held = store.facts().get("model")
        if held != described:
            raise LedgerError(
                f"{path} is of a run or another model: {held} there, {dict(described)} here. "
                "Give its own model, or another file"
            )
        fill(memo, read_calls(store))
    except BaseException:
        store.close()
        raise

    def write(what: str, rows: FloatArray, results: Results, seconds: float) -> None:
        with store.transaction():
            write_events(store, [event_with(memo.layout, what, rows, results, seconds)])

    memo.write = write
    return store
