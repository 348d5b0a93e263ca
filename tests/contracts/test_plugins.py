"""Built-in plugin modules keep to the contract of plugins, and listing them stays light."""

import pytest

from surrokit.registry.discovery import default_plugins
from surrokit.testing.plugins import HEAVY, check_imports_light, demand_light
from surrokit.testing.running import CHECKS, Case

MODULES = [*default_plugins().get_plugins()]
CASES = [
    Case(check, module.__name__, lambda module=module: module)
    for module in MODULES
    for check in CHECKS["plugin"]
    if check is not check_imports_light  # one catalogue of all shows it below
]


@pytest.mark.parametrize("check", CASES, ids=[case.name for case in CASES])
def test_plugin_contract(check):
    check()


def test_building_the_catalogue_imports_nothing_heavy():
    demand_light(
        "import sys; from surrokit.registry.catalogue import default_catalogue\n"
        "default_catalogue()\n"
        f"print(*sorted(set({HEAVY!r}) & set(sys.modules)))",
        "building the catalogue",
    )
