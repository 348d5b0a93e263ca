"""Threads of linear algebra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Run linear algebra in one thread within the block.

    Batches of a surrogate are small: threads gain nothing there, and where other processes run they
    wait for each other most of the time. Exact calls and large fits keep the threads they have.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        yield


FEW = 20_000
"""Numbers that evaluations tell, values and slopes, below which a fit to them is small."""


def threads_for(numbers: int) -> AbstractContextManager[None]:
    """Run a fit to so many numbers in one thread within the block if that is small.

    On two cores of which another process took one, small fits in two threads took twenty times as
    long as in one.
    """
    return one_thread() if numbers < FEW else nullcontext()
