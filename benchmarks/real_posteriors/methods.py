"""Every method of the bench, by name."""

from __future__ import annotations

from harness import Method


def _peer(name: str, title: str, function: str, *others: str) -> Method:
    function, own = f"real_posteriors.{function}", (name, *others)
    return Method(name=name, title=title, kind="peer", function=function, distributions=own)


def _ours(name: str, title: str) -> Method:
    return Method(name=name, title=title, function="real_posteriors.ours:OURS")


METHODS = {
    method.name: method
    for method in (
        _ours("default", "sample(target)"),
        _ours("hmc", "HMC"),
        _ours("nuts", "NUTS"),
        _ours("sub-chain", "sub-chains on `additive`"),
        _ours("hmc-additive", "HMC on `additive`"),
        _ours("greville", "HMC on `additive`, `greville`"),
        _ours("rmhmc", "RMHMC on `additive`, 60 s"),
        _ours("values", "sample(target), values alone"),
        _ours("control", "HMC from the reference's means"),
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
