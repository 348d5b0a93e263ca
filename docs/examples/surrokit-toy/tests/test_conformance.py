"""The suite that surrokit ships, run on everything that this plugin offers."""

import surrokit_toy

from surrokit.testing import check_plugin, parametrize_with_checks


@parametrize_with_checks(surrokit_toy.surrokit_components())
def test_contract(check):
    check()


def test_plugin():
    failed = [result for result in check_plugin(surrokit_toy) if result.outcome != "passed"]
    assert not failed, "\n".join(f"{r.name}: {r.message}" for r in failed)
