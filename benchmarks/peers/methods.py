"""Every method of the comparison, by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib import metadata
from typing import Literal, TypeAlias

import attrs

from peers.outcome import Outcome, Task

Kind: TypeAlias = Literal["baseline", "surrokit", "peer"]


@attrs.frozen(kw_only=True)
class Method:
    """A row of the table.

    Parameters
    ----------
    name, title
        On the command line, and in tables.
    kind
        ``baseline``: surrokit's HMC on the exact potential; ``surrokit``: its other methods.
    function
        Module in ``peers`` and function, by a colon; imported only where it is run.
    distributions
        Whose versions the results quote.
    """

    name: str
    title: str
    kind: Kind
    function: str
    distributions: tuple[str, ...] = ("surrokit",)

    def run(self) -> Callable[[Task], Outcome]:
        """Return the function.

        Raises
        ------
        ImportError
            If a peer is not installed.
        """
        if self.kind != "peer":
            from peers.ours import OURS

            return OURS[self.name]
        module, _, function = self.function.partition(":")
        found: Callable[[Task], Outcome] = getattr(
            importlib.import_module(f"peers.{module}"), function
        )
        return found

    def versions(self) -> dict[str, str]:
        """Return the versions of what it is made of, as far as installed."""
        found = {}
        for name in self.distributions:
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                found[name] = "not installed"
        return found


def _ours(name: str, title: str, kind: Kind = "surrokit") -> Method:
    return Method(name=name, title=title, kind=kind, function="ours")


def _peer(name: str, title: str, function: str, *distributions: str) -> Method:
    return Method(
        name=name, title=title, kind="peer", function=function, distributions=distributions
    )


METHODS = {
    method.name: method
    for method in (
        _ours("hmc", "surrokit: HMC, the paper's settings", "baseline"),
        _ours("hmc-dense", "surrokit: HMC, tuned dense mass matrix", "baseline"),
        _ours("automatic", "surrokit: sample(target)"),
        _ours("sub-chain", "surrokit: sub-chains on `additive`"),
        _ours("sub-chain-rows", "surrokit: sub-chains on `rows`"),
        _ours("gaussian", "surrokit: `gaussian` on `quadratic`"),
        _ours("subsampled", "surrokit: `gaussian`, `subsampled`"),
        _peer("numpyro", "NumPyro NUTS", "numpyro_nuts:run", "numpyro", "jax"),
        _peer("blackjax", "BlackJAX NUTS", "blackjax_nuts:run", "blackjax", "jax"),
        _peer("nutpie", "nutpie NUTS", "nutpie_nuts:on_jax", "nutpie", "jax"),
        _peer("pymc", "PyMC NUTS", "pymc_nuts:run", "pymc", "pytensor"),
        _peer("mici", "Mici dynamic HMC", "mici_nuts:run", "mici"),
        _peer(
            "nutpie-pymc",
            "nutpie on the PyMC model",
            "nutpie_nuts:on_pymc",
            "nutpie",
            "pymc",
            "numba",
        ),
    )
}
"""By name, in the order of the tables."""

DEFAULT_METHODS = tuple(name for name in METHODS if name != "nutpie-pymc")
"""What runs where no method is named; nutpie is there once, on the faster of two densities."""
