"""Every method of the comparison, by name."""

from __future__ import annotations

from harness import Method


def _ours(name: str, title: str, kind: str = "surrokit") -> Method:
    return Method(name=name, title=title, kind=kind, function="peers.ours:OURS")


def _peer(name: str, title: str, function: str, *distributions: str) -> Method:
    function = f"peers.{function}"
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
