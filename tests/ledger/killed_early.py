"""Ends processes at each step of making a file, or has them meet a full disk there."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
import warnings
from pathlib import Path

from ledgers import SIZES, Counted, plain

import surrokit as sk
from surrokit.errors import SurrokitError

SMALL = {"sampler": "hmc", "warmup": 4, "draws": 4, **SIZES}
STEPS = ("open", "sqlite3.connect", "sqlite3.connect/handle", "os.rename", "os.remove", "os.link")


def sample(path):
    return sk.sample(plain(Counted()), path=path, **SMALL)


def die_at(step, path):
    """End this process at a step that has to do with a file."""
    seen = 0

    def hook(event, arguments):
        nonlocal seen
        if event in STEPS and (event != "open" or str(arguments[0]).startswith(str(path))):
            seen += 1
            if seen > step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def have_room(n, _):
    """Let files have so many bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))


def attempt(path, hinder, how):
    """Sample in another process; return whether it was ended or failed."""
    child = os.fork()
    if not child:
        try:
            hinder(how, path)
            sample(path)
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitpid(child, 0)[1] != 0


def goes_on(path):
    """Whether the file can be made, or resumed."""
    try:
        sk.resume(path, plain(Counted()), progress=False) if path.exists() else sample(path)
    except SurrokitError as error:
        return str(error)
    return "well"


def main(folder):
    sample(folder / "whole")  # all that is imported late
    told = {"ended": 0, "after": []}
    for hinder, cases in ((die_at, range(9)), (have_room, (0, 1024, 4096, 9000, 16_000))):
        for case in cases:
            path = folder / f"{hinder.__name__}-{case}"
            told["ended"] += attempt(path, hinder, case)
            told["after"].append(goes_on(path))
            left = [p.name for p in folder.glob(f"{path.name}*") if p != path]
            told["after"] += [name for name in left if not name.endswith(("-wal", "-shm"))]
    print(json.dumps(told))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
