"""The suite that surrokit ships, run on everything that this plugin offers."""

from surrokit_toy import plugin

from surrokit.testing import check_plugin, parametrize_with_checks

PARTS = [*plugin.surrokit_register_surrogates(), *plugin.surrokit_register_potentials()]


@parametrize_with_checks(PARTS)
def test_contract(check):
    check()


def test_plugin():
    failed = [result for result in check_plugin(plugin) if result.outcome != "passed"]
    assert not failed, "\n".join(f"{r.name}: {r.message}" for r in failed)
