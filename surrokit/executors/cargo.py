"""Targets, packed to be sent to workers."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from types import ModuleType

from surrokit.errors import ConfigurationError
from surrokit.executors.worker import Cargo
from surrokit.model.source import Source

_by_value: dict[str, tuple[ModuleType, str]] = {}


def send_whole(module: ModuleType, path: Path) -> None:
    """Send a module along with the targets in it, since no worker could import it.

    Parameters
    ----------
    module
        Made from a file by other means than an import.
    path
        The file; what lies beside it can be imported.
    """
    _by_value[module.__name__] = module, str(path.resolve().parent)


def pack(source: Source) -> Cargo:
    """Return a target to send: functions of scripts and notebooks too, by their code.

    Raises
    ------
    ConfigurationError
        If it cannot be pickled.
    """
    import cloudpickle  # late: importing the package stays fast

    for module, _ in _by_value.values():
        if sys.modules.get(module.__name__) is module:  # else no target refers to it any more
            cloudpickle.register_pickle_by_value(module)
    try:
        payload = cloudpickle.dumps(source)
    except Exception as error:
        raise ConfigurationError(
            "worker processes need a copy of the target, and it cannot be pickled: "
            f"{type(error).__name__}: {error}. Open files, sockets, locks, licences and other "
            "live things inside the functions, at their first call, or pass executor='threads'"
        ) from error
    paths = tuple(dict.fromkeys(folder for _, folder in _by_value.values()))
    return Cargo(key=hashlib.sha256(payload).hexdigest(), payload=payload, paths=paths)


def refuse(reason: str) -> ConfigurationError:
    """Return the error for a target that a worker cannot load."""
    return ConfigurationError(
        f"a worker cannot load the target: {reason}. What its functions import must be installed "
        "where workers run, and data files must be found there; or pass executor='threads'"
    )
