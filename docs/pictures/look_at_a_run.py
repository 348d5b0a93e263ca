"""Pictures of a run of lynx and hares, its page, and what pages cost."""

import shutil
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright
from style import FOLDER, save

import surrokit as sk

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
VIEWS = {"report": (1100, 1250, "light"), "report-telephone": (360, 1250, "dark")}
PARTS = {"sampler": "sub-chain", "surrogate": "additive", "explorer": "rounds"}


def photograph(page: Path) -> None:
    """Write what a browser shows of a page."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        for name, (width, height, scheme) in VIEWS.items():
            size = {"width": width, "height": height}
            view = browser.new_page(viewport=size, color_scheme=scheme)
            view.goto(page.as_uri())
            view.screenshot(path=FOLDER / f"{name}.png")
            print(f"{name}.png: {(FOLDER / f'{name}.png').stat().st_size / 1000:.0f} kB")
        browser.close()


def weigh(run: sk.Run, name: str, folder: Path) -> Path:
    """Write a page, and print what it takes."""
    began = time.perf_counter()
    page = run.report(folder / f"{name}.html")
    seconds = time.perf_counter() - began
    print(f"page of {name}: {seconds:.1f} s, {page.stat().st_size / 1000:.0f} kB")
    return page


if __name__ == "__main__":
    folder = Path(tempfile.mkdtemp())
    run = sk.sample("lynx-hare", **PARTS, draws=250, seed=1, progress=False)
    paid = run.total_calls
    save(run.plot.marginals(), "plot-marginals")
    save(run.plot.pairs(["alpha", "beta", "gamma", "delta"]), "plot-pairs")
    save(run.plot.surrogate(["alpha", "hare_0"]), "plot-surrogate")
    save(run.plot.cost(), "plot-cost")
    assert run.total_calls == paid
    photograph(weigh(run, "lynx-hare", folder))
    names = {f"p{i}": None for i in range(440)} | {"w": sk.vector(60)}
    normal = sk.potential(value_and_gradient=lambda q: (0.5 * q @ q, q), parameters=names)
    many = sk.sample(normal, sampler="hmc", warmup=100, draws=1000, seed=1, progress=False)
    weigh(many, "500 numbers", folder)
