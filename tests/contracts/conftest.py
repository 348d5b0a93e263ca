"""The fixtures that the suite gives to plugin authors, for tests of the suite itself."""

from surrokit.testing.fixtures import hook_calls, surrokit_plugins

__all__ = ["hook_calls", "surrokit_plugins"]
