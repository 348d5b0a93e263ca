"""Functions of one position on the line, compiled by PyMC."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from surrokit.types import FloatArray

Function = Callable[..., Any]


class Compiled:
    """A function that PyMC compiles of a model, at its first call.

    Calls from several threads take turns, since PyTensor's functions keep their storage between
    calls. A copy made by pickle is compiled anew where it goes.

    Parameters
    ----------
    model
        The model.
    build
        Has the function compiled: of the model to a function of arrays.
    """

    def __init__(self, model: Any, build: Callable[[Any], Function]) -> None:
        self.model = model
        self.build = build
        self._lock = threading.Lock()
        self._function: Function | None = None

    def compile(self) -> Function:
        """Return the compiled function; it is not safe in threads."""
        if self._function is None:
            self._function = self.build(self.model)
        return self._function

    def __call__(self, *arrays: FloatArray) -> Any:
        """Return what the function returns at arrays."""
        with self._lock:
            return (self._function or self.compile())(*arrays)

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        """Return what stands for it elsewhere."""
        import cloudpickle  # late: importing stays fast

        return _rebuild, (cloudpickle.dumps((self.model, self.build)),)


def _rebuild(packed: bytes) -> Compiled:
    import cloudpickle  # late: importing stays fast

    from surrokit_pymc.library import load_pymc

    load_pymc()  # first: a worker whose floatX is float32 would compute in single precision
    return Compiled(*cloudpickle.loads(packed))
