"""A run in a process of its own, to be killed."""

from __future__ import annotations

import sys
import time
import warnings

from ledgers import KINDS, SIZES, Counted

import surrokit as sk


class Slow(Counted):
    """Takes a while for each call, and writes down that it was made."""

    def __init__(self, log, seconds):
        super().__init__()
        self.log, self.seconds = log, seconds

    def __call__(self):
        time.sleep(self.seconds)
        self.log.write("x")
        self.log.flush()


def main(kind, path, log, seconds):
    warnings.simplefilter("ignore")
    target, settings = KINDS[kind]
    with open(log, "a", encoding="utf-8") as file:
        sk.sample(target(Slow(file, float(seconds))), path=path, **settings, **SIZES)


if __name__ == "__main__":
    main(*sys.argv[1:])
