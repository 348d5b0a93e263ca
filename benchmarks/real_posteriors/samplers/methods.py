"""Every method of the bench, by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib import metadata

import attrs

from real_posteriors.samplers.outcome import Drawn
from real_posteriors.targets import Posterior


@attrs.frozen(kw_only=True)
class Method:
    """A row of the table.

    Parameters
    ----------
    name, title
        On the command line, and in tables.
    function
        Module and function, by a colon; imported only where it is run.
    distributions
        Whose versions the results quote.
    """

    name: str
    title: str
    function: str = "ours:OURS"
    distributions: tuple[str, ...] = ("surrokit",)

    @property
    def is_peer(self) -> bool:
        """Whether it is somebody else's."""
        return not self.function.startswith("ours:")

    def load(self) -> Callable[[Posterior, int], Drawn]:
        """Return the function of a posterior and a seed.

        Raises
        ------
        ImportError
            If a peer is not installed.
        """
        module, _, function = self.function.partition(":")
        found = getattr(importlib.import_module(f"real_posteriors.samplers.{module}"), function)
        chosen: Callable[[Posterior, int], Drawn] = found if self.is_peer else found[self.name]
        return chosen

    def versions(self) -> dict[str, str]:
        """Return the versions of what it is made of, as far as installed."""
        found = {}
        for name in self.distributions:
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                found[name] = "not installed"
        return found


def _peer(name: str, title: str, function: str, *others: str) -> Method:
    return Method(name=name, title=title, function=function, distributions=(name, *others))


METHODS = {
    method.name: method
    for method in (
        Method(name="default", title="sample(target)"),
        Method(name="hmc", title="HMC"),
        Method(name="nuts", title="NUTS"),
        Method(name="sub-chain", title="sub-chains on `additive`"),
        Method(name="hmc-additive", title="HMC on `additive`"),
        Method(name="greville", title="HMC on `additive`, `greville`"),
        Method(name="rmhmc", title="RMHMC on `additive`, 60 s"),
        Method(name="values", title="sample(target), values alone"),
        Method(name="control", title="HMC from the reference's means"),
        _peer("numpyro", "NumPyro NUTS", "gradient_peers:numpyro_nuts", "jax"),
        _peer("nutpie", "nutpie NUTS", "gradient_peers:nutpie_nuts", "jax"),
        _peer("emcee", "emcee, values alone", "value_peers:emcee_ensemble"),
        _peer("pocomc", "pocoMC, values alone", "value_peers:pocomc_particles"),
        _peer("nautilus-sampler", "nautilus, values alone", "value_peers:nautilus_nested"),
        _peer("pyvbmc", "PyVBMC, values alone", "value_peers:pyvbmc_variational"),
    )
}
"""By name, in the order of the table."""

DEFAULT_METHODS = tuple(name for name in METHODS if name != "control")
"""What runs where no method is named."""
