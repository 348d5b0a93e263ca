"""The fixtures that the suite gives to plugin authors, for tests of the suite itself."""

import pytest
from threadpoolctl import threadpool_limits

from surrokit.testing.fixtures import hook_calls, surrokit_plugins

__all__ = ["hook_calls", "surrokit_plugins"]


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    with threadpool_limits(1):
        yield
