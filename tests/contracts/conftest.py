"""The fixture that the suite gives to plugin authors, for tests of the suite itself."""

from surrokit.testing.fixtures import hook_calls

__all__ = ["hook_calls"]
