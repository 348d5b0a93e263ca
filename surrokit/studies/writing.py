"""Files of studies: how they begin, and how they are opened."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from surrokit.compose import sample
from surrokit.errors import EvaluationWarning, SamplingWarning
from surrokit.ledger.file import held
from surrokit.ledger.store import Store
from surrokit.studies.description import Description
from surrokit.studies.told import Told
from surrokit.studies.waiting import ARRAYS, FACT
from surrokit.types import FloatArray


def write_study(
    new: Path,
    description: Description,
    told: Told,
    settings: Mapping[str, Any],
    max_calls: int | None,
    arrays: Mapping[str, FloatArray],
) -> None:
    """Write the file of a study whose run begins.

    Parameters
    ----------
    new
        Its name.
    description, told
        The target, and what is known of it.
    settings
        As for :func:`surrokit.sample`.
    max_calls
        Evaluations of the model at most, those included that the run has learnt from before.
    arrays
        By name, beside those of the description.
    """
    with quietly():
        sample(description.target(told), path=new, progress=False, **settings)
    own = {ARRAYS + name: array for name, array in description.arrays().items()}
    with opened(new, write=True) as store:
        with store.transaction():
            store.write_facts({FACT: {**description.to_dict(), "max_calls": max_calls}})
            for name, array in {**own, **arrays}.items():
                store.write_array(name, array)
        store.gather()


@contextmanager
def opened(path: Path, *, write: bool) -> Iterator[Store]:
    """Yield a ledger that nobody else has meanwhile."""
    with held(path, partial(Store.open, write=write)) as (store, lock):
        yield store
        store.close()
        lock.release()


@contextmanager
def quietly() -> Iterator[None]:
    """Leave out what a run warns of that is not at its end; its verdict has all of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        warnings.simplefilter("ignore", EvaluationWarning)
        yield
