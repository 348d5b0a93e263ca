"""The pages of the documentation: pictures have programs and pages, links lead somewhere."""

from __future__ import annotations

import re
import runpy
import warnings

import numpy as np
import pytest

from surrokit.errors import SamplingWarning

PICTURE = re.compile(r"(?:\]\(|\{image\} )(?:\.\./)?pictures/([\w-]+\.\w+)")
SAVED = re.compile(r'save\(.*"([\w-]+)"\)')


def test_pages_are_few_and_short(root):
    pages = [path.read_text("utf-8") for path in (root / "docs").rglob("*.md")]
    assert len(pages) <= 45
    assert sum(len(text.split()) for text in pages) <= 45_000
    assert len((root / "README.md").read_text("utf-8").splitlines()) <= 120


@pytest.fixture(scope="module")
def made(root):
    """Pictures of the documentation, without the programs beside them."""
    folder = root / "docs" / "pictures"
    return {path.name for path in folder.iterdir() if path.suffix in {".svg", ".png"}}


def test_pages_show_every_picture_and_no_other(made, root):
    pages = (root / "docs").rglob("*.md")
    assert {name for page in pages for name in PICTURE.findall(page.read_text("utf-8"))} == made


def test_programs_beside_the_pictures_make_those_that_no_command_makes(made, root):
    programs = (root / "docs" / "pictures").glob("*.py")
    saved = {f"{name}.svg" for path in programs for name in SAVED.findall(path.read_text("utf-8"))}
    assert saved <= made
    commands = re.compile(r"(figure-\d|table-1|benchmarks|report|report-telephone)\.(svg|png)")
    assert [name for name in sorted(made - saved) if not commands.fullmatch(name)] == []


@pytest.fixture(scope="module")
def broken_links(root):
    return runpy.run_path(str(root / "docs" / "_ext" / "inner_links.py"))["broken_links"]


@pytest.fixture
def site(tmp_path):
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "b.html").write_text('<p id="here">text</p><img src="../c%20d.png">')
    (tmp_path / "c d.png").write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize(
    ("link", "found"),
    [
        ("room/b.html", True),
        ("room/b.html#here", True),
        ("#", True),
        ("https://elsewhere.example/#x", True),
        ("mailto:somebody@elsewhere.example", True),
        ("room/b.html#there", False),
        ("#there", False),
        ("room/a.html", False),
        ("room/", False),
    ],
)
def test_a_link_leads_to_a_file_and_its_anchor(broken_links, site, link, found):
    (site / "a.html").write_text(f'<a href="{link}">there</a>')
    assert broken_links(site) == ([] if found else [f"a.html: {link}"])


def test_pictures_are_looked_for(broken_links, site):
    (site / "c d.png").unlink()
    assert broken_links(site) == ["room/b.html: ../c%20d.png"]


@pytest.mark.parametrize("shortened", [pytest.param(False, marks=pytest.mark.long), True])
def test_the_target_of_the_readme_is_sampled(root, capsys, shortened):
    (code,) = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)[:1]
    if shortened:
        assert "warmup=2000" in code
        code = code.replace("warmup=2000", "warmup=300, draws=100")
    scope = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if shortened:
            warnings.simplefilter("ignore", SamplingWarning)
        exec(compile(code, "README.md", "exec"), scope)
    run = scope["run"]
    assert run.draws.shape == (4, 100 if shortened else 1000, 3)
    assert shortened or np.all(run.rhat() < 1.01)
    assert "rate" in capsys.readouterr().out
