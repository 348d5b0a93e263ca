"""What newcomers type into the search leads to the page that answers, among the first three."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote_plus

import pytest
from browsers import ABSENT, FOUND

sync_api = pytest.importorskip("playwright.sync_api", reason="run by the tox environment browser")
pytest.importorskip("sphinx", reason="run by the tox environment browser")

pytestmark = pytest.mark.skipif(FOUND is None, reason=ABSENT)

DOCS = Path(__file__).parents[2] / "docs"

QUESTIONS = {
    "install": "installation",
    "getting started": "tutorials/first-run",
    "simulator": "tutorials/expensive-model",
    "big table": "tutorials/table",
    "resume": "how-to/resume",
    "parallel": "how-to/parallel",
    "simplex": "how-to/constraints",
    "likelihood": "how-to/give-a-target",
    "convergence": "how-to/convergence",
    "budget": "how-to/budgets",
    "weights": "how-to/weights",
    "model fails": "how-to/failing-models",
    "Slurm": "how-to/programs",
    "MATLAB": "how-to/programs",
    "cluster": "how-to/rows",
    "Poisson regression": "how-to/regressions",
    "scikit-learn": "how-to/scikit-learn",
    "JAX": "tutorials/models",
    "PyMC": "tutorials/models",
    "Stan": "tutorials/models",
    "notebook": "how-to/look-at-a-run",
    "credible interval": "tutorials/table",
    "first plugin": "tutorials/plugin",
    "report": "how-to/look-at-a-run",
    "outliers": "how-to/noise",
    "predict_proba": "how-to/scikit-learn",
    "which door": "how-to/give-a-target",
    "plugin": "how-to/write-a-plugin",
    "reproduce": "experiments",
    "error": "how-to/when-something-goes-wrong",
    "settings": "reference/parts",
    "glossary": "reference/notation",
    "changelog": "changelog",
    "cite": "installation",
    "several modes": "how-to/several-modes",
}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Keep the log of the tests clean."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built documentation, served on the loopback."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(DOCS), str(folder)]
    subprocess.run(build, check=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def page():
    """A page of a browser."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=FOUND, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


def first_pages(page, site, question):
    """Return the pages of the first results, each once."""
    page.goto(f"{site}/search.html?q={quote_plus(question)}")
    page.wait_for_function(
        "/found|did not match/.test(document.querySelector('.search-summary')?.textContent)"
    )
    links = "links => links.map(link => link.pathname)"
    found = page.eval_on_selector_all("ul.search > li > a", links)
    return list(dict.fromkeys(path.removeprefix("/").removesuffix(".html") for path in found))


@pytest.mark.parametrize(("question", "answer"), QUESTIONS.items())
def test_a_newcomer_finds_the_page(page, site, question, answer):
    assert answer in first_pages(page, site, question)[:3]
