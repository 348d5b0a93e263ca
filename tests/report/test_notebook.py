"""A notebook that a kernel executes, without a browser."""

from __future__ import annotations

import base64
import re

import pytest

nbclient = pytest.importorskip("nbclient", reason="nbclient executes notebooks: tox -e browser")
nbformat = pytest.importorskip("nbformat", reason="nbformat writes notebooks: tox -e browser")
pytest.importorskip("ipykernel", reason="ipykernel is the kernel of notebooks: tox -e browser")
pytest.importorskip("matplotlib", reason="a notebook shows Matplotlib's pictures")

CELLS = {
    "start": "import surrokit as sk",
    "sample": 'run = sk.sample("lynx-hare", warmup=200, draws=200, seed=1)',
    "summary": "run.summary()",
    "marginals": "run.plot.marginals()",
    "silent": 'quiet = sk.sample("gaussian", warmup=50, draws=250, seed=1, progress=False)',
    "failing": 'sk.sample("gaussian", warmup=-1)',
}


@pytest.fixture(scope="module")
def notebook():
    """The notebook after it was executed."""
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS.values()]
    cells[-1].metadata["tags"] = ["raises-exception"]
    made = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(made, timeout=300, kernel_name="python3").execute()
    return made


@pytest.fixture(scope="module")
def outputs(notebook):
    """What each cell shows, by name of the cell; warnings of samplers are left out."""
    return {
        name: [each for each in cell.outputs if "SamplingWarning" not in each.get("text", "")]
        for name, cell in zip(CELLS, notebook.cells, strict=True)
    }


def test_a_run_shows_one_bar_as_it_was_last(outputs):
    (shown,) = outputs["sample"]
    assert shown.output_type == "display_data"
    text = " ".join(shown.data["text/plain"].split())
    assert re.search(r" 400/400 iterations, acceptance \d\.\d\d, surrogate .* exact calls", text)


def test_a_summary_is_a_table(outputs):
    (shown,) = outputs["summary"]
    assert "alpha" in shown.data["text/plain"]


def test_a_figure_is_shown_once_as_a_picture(outputs):
    (shown,) = outputs["marginals"]
    assert base64.b64decode(shown.data["image/png"]).startswith(b"\x89PNG")


def test_no_bar_where_none_is_wanted(outputs):
    assert outputs["silent"] == []


def test_an_error_stays_one(outputs):
    (shown,) = outputs["failing"]
    assert shown.output_type == "error"
    assert shown.ename == "ConfigurationError"
