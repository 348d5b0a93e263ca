"""Pages about runs in a real browser; without Playwright, or a browser of the system, skipped."""

from __future__ import annotations

import struct
import time

import pytest
from browsers import ABSENT, FOUND

import surrokit as sk
from surrokit.report.page import page_of

playwright = pytest.importorskip(
    "playwright.sync_api", reason="Playwright drives the browser: tox -e browser"
)
pytest.importorskip("matplotlib", reason="a page has Matplotlib's pictures")

pytestmark = pytest.mark.skipif(FOUND is None, reason=ABSENT)

WIDTHS = (360, 768, 1600)
SCHEMES = ("light", "dark")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        # a sandbox takes rights that containers lack; pages here are our own
        found = driver.chromium.launch(executable_path=FOUND, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def files(run, weighted, hostile, tmp_path_factory):
    """Pages on disk, by name."""
    folder = tmp_path_factory.mktemp("pages")
    runs = {"run": run, "weighted": weighted, "hostile": hostile}
    return {name: each.report(folder / f"{name}.html") for name, each in runs.items()}


@pytest.fixture
def look(browser):
    """Open a page, and return it with what the console says and what it asks the network for."""
    contexts = []

    def open_page(path, *, width=1600, height=900, scheme="light", **settings):
        viewport = {"width": width, "height": height}
        context = browser.new_context(viewport=viewport, color_scheme=scheme, **settings)
        contexts.append(context)
        page, said, asked = context.new_page(), [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        return page, said, asked

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["run", "weighted", "hostile"])
def test_a_page_fits_and_the_console_is_silent(look, files, name, width, scheme):
    page, said, asked = look(files[name], width=width, scheme=scheme)
    assert said == []
    assert asked == [files[name].as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = page.evaluate(
        """[...document.querySelectorAll("figure, p, dl, h1, h2, h3, li")]
           .filter((each) => each.getBoundingClientRect().right > innerWidth + 1).length"""
    )
    assert wide == 0


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["run", "hostile"])
def test_a_page_is_for_all_readers(look, files, name, scheme):
    """Rules of WCAG 2.1 AA by axe-core, contrast among them."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-core looks at the page"
    )
    page, _, _ = look(files[name], scheme=scheme, bypass_csp=True)
    rules = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
    found = axe.Axe().run(page, options=rules).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == []


SCREENSHOTS = {"report": (1100, 1250, "light"), "report-telephone": (360, 1250, "dark")}
"""Pictures of the documentation: width, height and scheme."""


@pytest.fixture(scope="module")
def lynx_hare(tmp_path_factory):
    """The page that the documentation shows."""
    parts = {"sampler": "sub-chain", "surrogate": "additive", "explorer": "rounds"}
    run = sk.sample("lynx-hare", **parts, draws=250, seed=1, progress=False)
    return run.report(tmp_path_factory.mktemp("documentation") / "lynx-hare.html")


@pytest.fixture(scope="module")
def album(request, tmp_path_factory):
    """Where screenshots go."""
    return request.config.getoption("--screenshots") or tmp_path_factory.mktemp("album")


@pytest.mark.long
@pytest.mark.parametrize("name", SCREENSHOTS)
def test_the_documentation_shows_this_page(look, lynx_hare, album, root, name):
    """``pytest tests/report/test_browser.py -m long --screenshots docs/pictures`` makes them."""
    width, height, scheme = SCREENSHOTS[name]
    page, said, _ = look(lynx_hare, width=width, height=height, scheme=scheme)
    made = page.screenshot(path=album / f"{name}.png")
    assert said == []
    assert page.get_by_text("Nothing speaks against these draws.").is_visible()
    assert page.get_by_role("rowheader", name="hare_0").is_visible()
    shown = (root / "docs" / "pictures" / f"{name}.png").read_bytes()
    assert size_of(shown) == size_of(made) == (width, height)


def size_of(png):
    """Return width and height, as the head of the file tells."""
    return struct.unpack(">II", png[16:24])


def test_colours_follow_the_reader(look, files):
    for scheme, white, filtered in (("light", True, False), ("dark", False, True)):
        page, _, _ = look(files["run"], scheme=scheme)
        paper, change = page.evaluate(
            """[getComputedStyle(document.body).backgroundColor,
                getComputedStyle(document.querySelector("img")).filter]"""
        )
        assert (paper == "rgb(255, 255, 255)") == white
        assert ("invert" in change) == filtered


def test_an_injected_script_is_refused(look, files, tmp_path):
    changed = tmp_path / "changed.html"
    text = files["run"].read_text().replace("</main>", "<script>document.title='x'</script></main>")
    changed.write_text(text)
    page, said, _ = look(changed)
    assert page.title() == "Report of a run"
    assert any("Content Security Policy" in each for each in said)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    names = {f"p{i}": None for i in range(440)} | {"w": sk.real(60)}
    target = sk.potential(value_and_gradient=lambda q: (0.5 * q @ q, q), parameters=names)
    run = sk.sample(target, sampler="hmc", warmup=50, draws=50, seed=1, progress=False)
    path = tmp_path_factory.mktemp("many") / "many.html"
    path.write_text(page_of(run), encoding="utf-8")
    return path


def test_hundreds_of_numbers_open_at_once(look, many):
    begun = time.perf_counter()
    page, said, _ = look(many)
    assert time.perf_counter() - begun < 2.0
    assert page.locator("tbody tr").count() == 500
    assert said == []


def test_the_keyboard_reaches_everything(look, files):
    page, _, _ = look(files["run"])
    count = page.locator("a, [tabindex='0']").count()
    for _ in range(count):
        page.keyboard.press("Tab")
        page.evaluate("document.activeElement.dataset.reached = '1'")
    assert page.locator("[data-reached]").count() == count


def test_a_page_prints_without_what_paper_cannot_do(look, many):
    page, _, _ = look(many)
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert len(page.pdf()) > 10_000
