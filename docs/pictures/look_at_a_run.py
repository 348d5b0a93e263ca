"""Pictures of a run of lynx and hares, and what pages cost.

The screenshots of its page come from ``tests/report/test_browser.py``.
"""

import tempfile
import time
from pathlib import Path

from style import save

import surrokit as sk

PARTS = {"sampler": "sub-chain", "surrogate": "additive", "explorer": "rounds"}


def weigh(run: sk.Run, name: str, folder: Path) -> None:
    """Write a page, and print what it takes."""
    began = time.perf_counter()
    page = run.report(folder / f"{name}.html")
    seconds = time.perf_counter() - began
    print(f"page of {name}: {seconds:.1f} s, {page.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    folder = Path(tempfile.mkdtemp())
    run = sk.sample("lynx-hare", **PARTS, draws=250, seed=1, progress=False)
    calls = run.total_calls
    save(run.plot.marginals(), "plot-marginals")
    save(run.plot.surrogate(), "plot-surrogate")
    save(run.plot.cost(), "plot-cost")
    assert run.total_calls == calls
    weigh(run, "lynx-hare", folder)
    names = {f"p{i}": None for i in range(440)} | {"w": sk.real(60)}
    normal = sk.potential(value_and_gradient=lambda q: (0.5 * q @ q, q), parameters=names)
    many = sk.sample(normal, sampler="hmc", warmup=100, draws=1000, seed=1, progress=False)
    weigh(many, "500 numbers", folder)
