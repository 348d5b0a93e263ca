"""Threads of linear algebra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Run linear algebra in one thread within the block.

    Batches of a surrogate are small: threads gain nothing there, and where other processes run they
    wait for each other most of the time. Exact calls and fits keep the threads that they have.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        yield
